"""Pods that nobody runs and that cannot go: told to stop before they had a node, and held by a finalizer.

No kubelet will ever say that such a pod has stopped, so whoever waits for that (a Job that replaces pods only when
they have failed) would wait for ever. Upstream's collector of pods comes by every 20 seconds and says it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.server import objects
from kohort.server.collect.heads import PodHead, pod_of
from kohort.server.collect.job import Job
from kohort.server.collect.writing import merge
from kohort.server.store import Change

if TYPE_CHECKING:
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.store import Event, Item

SECONDS: Final = 20.0
_NEARLY: Final = 0.01  # clocks are not that exact
_FINE: Final = (200, 404, 409)
Pod = tuple[str, str]  # namespace, name


class LostPods(Job[Pod]):
    name = "lost pods"

    def __init__(self, api: Api, clock: Clock) -> None:
        super().__init__(api, clock)
        self._since: dict[Pod, tuple[str, float]] = {}  # uid, and when it was told to stop

    def see(self, table: str, item: Item, event: Event | None) -> None:
        if table != "pods":
            return
        gone = event is not None and event.change is Change.DELETE
        if gone or b'"deletionTimestamp"' not in item.value or not _is_lost(pod := pod_of(item)):
            self._since.pop(item.key, None)
            return
        known = self._since.get(item.key)
        if known is None or known[0] != pod.metadata.uid:
            self._since[item.key] = (pod.metadata.uid, self.clock.monotonic())
            self.look_later(item.key, SECONDS)

    async def work(self, key: Pod) -> bool:
        uid, since = self._since.get(key, ("", 0.0))
        resource = self.api.resources.of_plural("", "pods")
        if not uid or resource is None or since + SECONDS > self.clock.monotonic() + _NEARLY:
            return True  # gone, or another pod of that name: it has a look of its own
        head = self.core.head(resource, *key)
        if head is None:
            return True
        generation = objects.load(resource, head)["metadata"].get("generation")
        body = {"metadata": {"uid": uid}, "status": {"phase": "Failed", "observedGeneration": generation}}
        return await merge(self.api, resource, *key, body, subresource="status") in _FINE


def _is_lost(pod: PodHead) -> bool:
    deleted = pod.metadata.deletionTimestamp is not None
    return deleted and not pod.spec.nodeName and pod.status.phase not in {"Succeeded", "Failed"}
