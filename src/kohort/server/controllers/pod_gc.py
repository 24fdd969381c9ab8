"""Pods that nobody stops: what a kubelet, and upstream's pod garbage collector, would do about terminating pods.

`PodTermination`: when the grace period of a pod has passed, it is gone. A kubelet would say so earlier. Where there is
none, the server waits for the deletion's own moment and one second more; on a node that does not exist nothing can be
running, so such a pod goes at once.

`UnscheduledTerminatingPods`: a pod that was deleted before it had a node, and is held by a finalizer. No kubelet will
ever say that such a pod has stopped, so whoever waits for that (a Job that replaces pods only when they have failed)
would wait for ever. Upstream's pod garbage collector looks every 20 seconds and marks it as failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.apimachinery.times import parse
from kohort.server import storage_codec
from kohort.server.controllers.controller import Controller
from kohort.server.controllers.partial_objects import PartialPod, pod_of
from kohort.server.controllers.writes import delete, merge
from kohort.server.store import Change

if TYPE_CHECKING:
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.store import Event, Item

_SLACK: Final = 1.0
_DELETED: Final = (200, 202, 404, 409)  # status codes after which there is nothing left to do
_MARKED: Final = (200, 404, 409)
GC_PERIOD: Final = 20.0
_CLOCK_SLACK: Final = 0.01  # clocks are not that exact
Pod = tuple[str, str]  # namespace, name


class PodTermination(Controller[Pod]):
    name = "pod-termination-controller"
    tables = frozenset({"pods"})

    def __init__(self, api: Api, clock: Clock) -> None:
        super().__init__(api, clock)
        self._due: dict[Pod, tuple[str, float]] = {}  # uid, and when

    def observe(self, table: str, item: Item, event: Event | None) -> None:
        if table != "pods":
            return
        if event is not None and event.change is Change.DELETE:
            self._due.pop(item.key, None)
            return
        if b'"deletionTimestamp"' not in item.value:
            return
        pod = pod_of(item)
        meta = pod.metadata
        # Without time to go it went with the same write, unless the server was killed in the middle of it.
        if meta.deletionTimestamp is None or (
            not meta.deletionGracePeriodSeconds and (event is not None or meta.finalizers)
        ):
            return
        now, uid = self.clock.monotonic(), pod.metadata.uid
        due = now + self._time_left(pod)
        known = self._due.get(item.key)
        if known is None or known[0] != uid or due < known[1]:  # a later deletion may give less time, never more
            self._due[item.key] = (uid, due)
            self.enqueue_after(item.key, due - now)

    def _time_left(self, pod: PartialPod) -> float:
        node = pod.spec.nodeName
        if not node or self.store.table("nodes").get("", node) is None:
            return 0.0
        grace = float(pod.metadata.deletionGracePeriodSeconds or 0)
        moment = parse(pod.metadata.deletionTimestamp)
        left = (moment - self.clock.now()).total_seconds() if moment is not None else grace
        return min(max(left, 0.0), grace) + _SLACK

    async def reconcile(self, key: Pod) -> bool:
        uid, due = self._due.get(key, ("", 0.0))
        if not uid or due > self.clock.monotonic():
            return True  # gone, or looked at too early: another look comes
        resource = self.api.resources.of_plural("", "pods")
        if resource is None:
            return True
        code = await delete(self.api, resource, *key, uid=uid, grace=0)
        if code in _DELETED and self._due.get(key, ("", 0.0))[0] == uid:
            self._due.pop(key, None)
        return code in _DELETED


class UnscheduledTerminatingPods(Controller[Pod]):
    name = "pod-garbage-collector-controller"
    tables = frozenset({"pods"})

    def __init__(self, api: Api, clock: Clock) -> None:
        super().__init__(api, clock)
        self._since: dict[Pod, tuple[str, float]] = {}  # uid, and when it was told to stop

    def observe(self, table: str, item: Item, event: Event | None) -> None:
        if table != "pods":
            return
        gone = event is not None and event.change is Change.DELETE
        if gone or b'"deletionTimestamp"' not in item.value or not _is_unscheduled_terminating(pod := pod_of(item)):
            self._since.pop(item.key, None)
            return
        known = self._since.get(item.key)
        if known is None or known[0] != pod.metadata.uid:
            self._since[item.key] = (pod.metadata.uid, self.clock.monotonic())
            self.enqueue_after(item.key, GC_PERIOD)

    async def reconcile(self, key: Pod) -> bool:
        uid, since = self._since.get(key, ("", 0.0))
        resource = self.api.resources.of_plural("", "pods")
        if not uid or resource is None or since + GC_PERIOD > self.clock.monotonic() + _CLOCK_SLACK:
            return True  # gone, or another pod of that name: it has a look of its own
        head = self.core.head(resource, *key)
        if head is None:
            return True
        generation = storage_codec.load(resource, head)["metadata"].get("generation")
        body = {"metadata": {"uid": uid}, "status": {"phase": "Failed", "observedGeneration": generation}}
        return await merge(self.api, resource, *key, body, subresource="status") in _MARKED


def _is_unscheduled_terminating(pod: PartialPod) -> bool:
    deleted = pod.metadata.deletionTimestamp is not None
    return deleted and not pod.spec.nodeName and pod.status.phase not in {"Succeeded", "Failed"}
