"""Who must go for whom. What is being evicted counts as leaving until the server has answered.

Between a plan and the watch event of the last victim lie seconds, or minutes with a grace period, and other decisions.
Meanwhile a victim is marked: no plan pays for it again, its budgets are charged for it, and its preemptor waits for it
instead of taking others.
"""

from __future__ import annotations

from collections.abc import Iterable

from kohort.scheduler.cache import SchedulerCache


class Evictions:
    """`victims`: preemptor -> uids that must be gone before it is tried again."""

    def __init__(self, cache: SchedulerCache) -> None:
        self._cache = cache
        self.victims: dict[str, set[str]] = {}
        self._refused: dict[str, float] = {}  # uid -> not asked again before
        self._ordered: set[str] = set()  # uids that go by the policy of their own gang, whoever waits

    def plan(self, root: str, uids: Iterable[str], now: float) -> None:
        """These go for a root; from now on they count as leaving."""
        self.victims[root] = set(uids)
        for uid in self.victims[root]:
            member = self._cache.members.get(uid)
            if member is not None and not member.evicting:
                self._cache.set_evicting(member, True)
                self._cache.budgets.charge(member.pod, now)

    def order(self, uids: Iterable[str], now: float) -> None:
        """These go by the policy of their own gang."""
        for uid in uids:
            member = self._cache.members.get(uid)
            if member is not None and not member.evicting:
                self._ordered.add(uid)
                self._cache.set_evicting(member, True)
                if member.node:
                    self._cache.budgets.charge(member.pod, now)

    def wait(self, root: str, uids: set[str]) -> None:
        """Others asked them to go, before a restart perhaps."""
        self.victims.setdefault(root, uids)

    def drop(self, root: str) -> None:
        """The root needs nobody to go any more."""
        self.victims.pop(root, None)

    def wanted(self, uid: str) -> bool:
        return uid in self._ordered or any(uid in uids for uids in self.victims.values())

    def gone(self) -> list[str]:
        """Roots whose victims are all gone: they wait for nobody any more."""
        members = self._cache.members
        ready = [root for root, uids in self.victims.items() if not uids & members.keys()]
        for root in ready:
            del self.victims[root]
        return ready

    def keep(self, uid: str) -> None:
        """It stays: it was never asked to go, or the server refused."""
        member = self._cache.members.get(uid)
        if member is not None and member.evicting:
            self._cache.set_evicting(member, False)
        self._ordered.discard(uid)
        self._cache.budgets.release(uid)

    def refused(self, uid: str, until: float) -> list[str]:
        """The server does not let it go: no plan counts on it for a while. The roots that did."""
        self.keep(uid)
        self._refused[uid] = until
        void = [root for root, uids in self.victims.items() if uid in uids]
        for root in void:
            del self.victims[root]
        return void

    def protected(self) -> set[str]:
        """Whom the server refused to let go."""
        return set(self._refused)

    def expire(self, now: float) -> None:
        if self._ordered:
            self._ordered &= self._cache.members.keys()
        if self._refused:
            members = self._cache.members
            self._refused = {uid: end for uid, end in self._refused.items() if end > now and uid in members}
        if self._cache.budgets.charged:
            self._cache.budgets.expire(now)
