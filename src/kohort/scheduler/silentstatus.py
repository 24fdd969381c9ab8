"""Conditions and events where nobody reads them, as in a simulation: only what decisions rest on is remembered."""

from __future__ import annotations

from typing import Final

from kohort.api.scheduling import constants as words
from kohort.scheduler.status import SchedulerEvent, StatusBuilder, Writes
from kohort.scheduler.trees import Group, PodInfo

_NOTHING: Final = Writes()  # never added to
_SCHEDULED: Final = ("True", words.REASON_SCHEDULED, "")


class SilentStatus(StatusBuilder):
    """What is frequent is not put into words."""

    def settled(self, group: Group, now: str) -> Writes:  # noqa: ARG002
        if group.spec is not None and group.spec.has_status:
            self._groups[group.spec.uid] = _SCHEDULED
        return _NOTHING

    def bound(self, member: PodInfo, node: str) -> list[SchedulerEvent]:  # noqa: ARG002
        self._pods.pop(member.uid, None)
        self._nominated.pop(member.uid, None)
        return []
