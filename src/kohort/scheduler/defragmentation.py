"""Defragmentation that is switched on (`defragmentation` in the profile): looks from time to time whether the domains
that are to be free are, and moves gangs if a plan says how.

The rules are those of `kohort defrag --apply`: whole gangs, budgets asked by the API server, one after the other, and
after each the plan is made anew. Where the command cordons nodes, room is held here: a process that dies in the middle
leaves nothing behind. A search goes on in steps between other decisions. Leaders only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kohort.place.diagnosis import count
from kohort.place.levels import resolve
from kohort.scheduler.defrag import Defragmentation, Defragmenter, Move
from kohort.scheduler.healing import DEFRAGMENT, HealingAction
from kohort.scheduler.model import shown

if TYPE_CHECKING:
    from kohort.api.scheduling.defragmentation import Defragmenting, Free
    from kohort.kube.clock import Clock
    from kohort.scheduler.core import SchedulerCore
    from kohort.scheduler.schedulingcycle import Step
    from kohort.scheduler.trees import PodInfo

log = logging.getLogger(__name__)

_LOOK: Final = 1.0  # seconds between two looks whether a gang runs again
_TRIALS: Final = 500  # placements that are tried for one plan


class KeptFree:
    """Beside one scheduler, for one term."""

    def __init__(
        self,
        core: SchedulerCore,
        settings: Defragmenting,
        clock: Clock,
        carry_out: Callable[[Step], None],
        is_leader: Callable[[], bool],
    ) -> None:
        self._core, self._settings, self._clock = core, settings, clock
        self._carry_out, self._is_leader = carry_out, is_leader
        self._moved: dict[str, float] = {}  # gang -> left alone until
        self._not_before = 0.0  # after a move that went wrong

    async def run(self) -> None:
        while True:
            await self._clock.sleep(self._settings.every)
            now = self._clock.monotonic()
            self._moved = {root: until for root, until in self._moved.items() if until > now}
            for free in self._settings.free:
                if self._is_leader() and now >= self._not_before:
                    await self._keep(free)

    async def _keep(self, free: Free) -> None:
        """One domain of a level. Moves that are still to be made are planned anew: others do not stand still."""
        for left in range(self._settings.moves, 0, -1):
            search = Defragmenter(self._core.cache, _TRIALS, left, self._moved)
            key = resolve(self._core.cache.state, self._core.settings.profile.topology_levels, free[0])
            found: Defragmentation | None = None
            for found in search.search(key, free[1]):
                if found is not None:
                    break
                await asyncio.sleep(0)
            if found is None or not found.moves or not self._is_leader():
                if found is not None and found.why:
                    log.info("defragmentation: %s", found.why)
                return
            if not await self._move(search, found, found.moves[0]):
                self._not_before = self._clock.monotonic() + self._settings.rest
                return

    async def _move(self, search: Defragmenter, found: Defragmentation, move: Move) -> bool:
        """Whether it runs elsewhere in time."""
        core, settings = self._core, self._settings
        now = self._clock.monotonic()
        root = core.cache.trees.get(move.root)
        if root is None:
            return True
        before = [one for leaf in root.leaves() for one in leaf.placed.values()]
        spares = [one for leaf in root.leaves() for one in core.cache.spares.of(leaf.key) if one.node]
        why = (
            f"defragmentation: {count(len(found.nodes), 'node')} of {found.key}={found.domain} are to be free "
            f"({count(len(found.moves), 'move')}); {count(len(before), 'pod')} would fit elsewhere"
        )
        log.info("%s: %s", shown(move.root), why)
        uids = tuple(one.uid for one in (*before, *spares))
        action = HealingAction(DEFRAGMENT, move.root, uids, why, search.seats[move.root])
        self._moved[move.root] = now + settings.rest
        self._carry_out(core.relocate(action, search.barred[move.root], settings.timeout, now))
        try:
            return await self._landed(move.root, {one.uid for one in before}, set(found.nodes))
        finally:
            core.relocated(move.root)

    async def _landed(self, root: str, before: set[str], freed: set[str]) -> bool:
        end = self._clock.monotonic() + self._settings.timeout
        while self._clock.monotonic() < end:
            await self._clock.sleep(_LOOK)
            group = self._core.cache.trees.get(root)
            if group is None:
                return True  # its owner has ended it
            members = [one for leaf in group.leaves() for one in leaf.placed.values()]
            kept = [one for one in members if one.uid in before and not one.evicting and not one.going]
            if kept:
                log.warning("%s: %s was not evicted; nothing is moved for a while", shown(root), kept[0].pod.key)
                return False
            there = [one for one in members if one.uid not in before and _runs(one)]
            if len(there) >= len(before):
                return not any(one.node in freed for one in there)
        log.warning("%s: moved by defragmentation, and does not run after %g s", shown(root), self._settings.timeout)
        return False


def _runs(member: PodInfo) -> bool:
    return member.pod.status.phase == "Running" and not member.going
