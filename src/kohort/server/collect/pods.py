"""Pods that nobody stops: when the time that a pod was given has passed, it is gone.

A kubelet would say so earlier. Where there is none, the server waits for the deletion's own moment and one second
more; on a node that does not exist nothing can be running, so such a pod goes at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.kube.times import parse
from kohort.server.collect.heads import PodHead, pod_of
from kohort.server.collect.job import Job
from kohort.server.collect.writing import delete
from kohort.server.store import Change

if TYPE_CHECKING:
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.store import Event, Item

_SLACK: Final = 1.0
_FINE: Final = (200, 202, 404, 409)
Pod = tuple[str, str]  # namespace, name


class PodEnder(Job[Pod]):
    name = "pod ender"

    def __init__(self, api: Api, clock: Clock) -> None:
        super().__init__(api, clock)
        self._due: dict[Pod, tuple[str, float]] = {}  # uid, and when

    def see(self, table: str, item: Item, event: Event | None) -> None:
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
            self.look_later(item.key, due - now)

    def _time_left(self, pod: PodHead) -> float:
        node = pod.spec.nodeName
        if not node or self.store.table("nodes").get("", node) is None:
            return 0.0
        grace = float(pod.metadata.deletionGracePeriodSeconds or 0)
        moment = parse(pod.metadata.deletionTimestamp)
        left = (moment - self.clock.now()).total_seconds() if moment is not None else grace
        return min(max(left, 0.0), grace) + _SLACK

    async def work(self, key: Pod) -> bool:
        uid, due = self._due.get(key, ("", 0.0))
        if not uid or due > self.clock.monotonic():
            return True  # gone, or looked at too early: another look comes
        resource = self.api.resources.of_plural("", "pods")
        if resource is None:
            return True
        code = await delete(self.api, resource, *key, uid=uid, grace=0)
        if code in _FINE and self._due.get(key, ("", 0.0))[0] == uid:
            self._due.pop(key, None)
        return code in _FINE
