"""An informer under observation: every call of a handler is written down and judged."""

from __future__ import annotations

import random
from typing import Any

from tests.kube.fake import FakeApi

from kohort.kube.client import Client
from kohort.kube.clock import VirtualClock
from kohort.kube.informer import Informer


class Following:
    """A fake server, virtual time, and an informer on its pods whose handlers write a diary."""

    def __init__(
        self, api: FakeApi | None = None, *, decode: Any = dict[str, Any], seed: int = 0, **options: Any
    ) -> None:
        self.api = api or FakeApi()
        self.clock = VirtualClock()
        self.client = Client.within(self.api, clock=self.clock)
        self.informer: Informer[Any] = Informer(
            self.client.resource("pods", decode), clock=self.clock, jitter=random.Random(seed), **options
        )
        self.diary: list[tuple[str, str, str, str]] = []
        self.wrong: list[str] = []
        self.informer.handle(
            added=lambda new: self._write("added", new),
            updated=self._updated,
            deleted=lambda old: self._write("deleted", old),
        )

    def _write(self, what: str, item: Any) -> None:
        (namespace, name), uid, version = self.informer.cache._identify(item)
        self.diary.append((what, f"{namespace}/{name}", uid, version))

    def _updated(self, old: Any, new: Any) -> None:
        before, after = self.informer.cache._identify(old), self.informer.cache._identify(new)
        # An assertion here would be caught by the informer, as errors of handlers are: it is kept for `judge`.
        if before.uid != after.uid or self.diary_of(str(before.key))[-1][3] != before.version:
            self.wrong.append(f"{before.key}: old is not what was told last")
        self._write("updated", new)

    def diary_of(self, key: str) -> list[tuple[str, str, str, str]]:
        return [entry for entry in self.diary if entry[1] == key]

    @property
    def short(self) -> list[str]:
        return [f"{what} {key.partition('/')[2]}" for what, key, _, _ in self.diary]

    @property
    def same_as_server(self) -> bool:
        return dict(self.informer.cache.items()) == self.api.state()

    def judge(self) -> None:
        """For every object: added, updated, deleted in that order, each state once, versions only growing."""
        assert not self.wrong
        for key in {entry[1] for entry in self.diary}:
            uid, last, here = "", 0, False
            for what, _, its_uid, version in self.diary_of(key):
                if what == "added":
                    assert not here, self.diary_of(key)
                    assert its_uid != uid, "the same object added twice"
                    uid, here = its_uid, True
                else:
                    assert here, self.diary_of(key)
                    assert its_uid == uid
                    here = what != "deleted"
                assert int(version) > last or (what == "deleted" and int(version) == last), self.diary_of(key)
                last = int(version)
