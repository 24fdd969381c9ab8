"""Any interleaving of writes, watches, restarts and compactions gives what a plain dictionary gives.

The same as for the store (test_store_model), one floor higher: requests in, answers and watch events out. Watchers live
through all of it as clients do: they go on from the last version they saw, and list again when told that it is gone.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kohort.api.kind import Context
from kohort.kube.wire import Request
from kohort.server.api import Api
from kohort.server.store import Store
from kohort.server.store.sqlite import SqliteJournal

MAPS = "/api/v1/namespaces/d/configmaps"
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["1", "2", "3"])
Model = dict[str, str]  # name -> value


class Watcher:
    """What a client keeps: the state it was told of, and up to which version."""

    def __init__(self, state: Model, version: int) -> None:
        self.state, self.version = state, version
        self.stream: AsyncGenerator[bytes] | None = None
        self.relists = 0


class ApiMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.model: Model = {}
        self.then: dict[int, Model] = {}  # the state after each version
        self.watchers: list[Watcher] = []
        self.versions: dict[str, str] = {}
        self.open()
        assert self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "d"}})[0] == 201
        self.newest = self.store.revision
        self.then[self.newest] = {}

    # ---- the server

    def open(self) -> None:
        async def start() -> None:
            self.store = Store(SqliteJournal(Path(self.folder.name) / "store.db"))
            await self.store.open()
            self.api = Api(self.store, Context.of("1.37"))

        self.loop.run_until_complete(start())

    def send(self, method: str, path: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        raw = b"" if body is None else json.dumps(body).encode()
        plain, _, query = path.partition("?")
        asked = {one.partition("=")[0]: [one.partition("=")[2]] for one in query.split("&") if one}
        answer = self.loop.run_until_complete(
            self.api.handle(Request(method, plain, asked, {"content-type": media}, raw))
        )
        assert isinstance(answer.body, bytes)
        return answer.status, json.loads(answer.body)

    def wrote(self, answer: tuple[int, Any], name: str, value: str) -> None:
        code, body = answer
        assert code in (200, 201), body
        version = int(body["metadata"]["resourceVersion"])
        if self.model.get(name) != value:
            assert version == self.newest + 1 == self.store.revision
        self.model = {**self.model, name: value}
        self.versions[name] = body["metadata"]["resourceVersion"]
        self.newest = max(self.newest, version)
        self.then[self.newest] = self.model

    # ---- writes

    @rule(name=NAMES, value=VALUES)
    def create(self, name: str, value: str) -> None:
        answer = self.send("POST", MAPS, {"metadata": {"name": name}, "data": {"v": value}})
        if name in self.model:
            assert answer[0] == 409
        else:
            self.wrote(answer, name, value)

    @rule(name=NAMES, value=VALUES, stale=st.booleans())
    def put(self, name: str, value: str, stale: bool) -> None:
        version = "1" if stale else self.versions.get(name, "1")
        body = {"metadata": {"name": name, "resourceVersion": version}, "data": {"v": value}}
        answer = self.send("PUT", f"{MAPS}/{name}", body)
        if name not in self.model:
            assert answer[0] == 404
        elif stale:
            assert answer[0] == 409
        else:
            self.wrote(answer, name, value)

    @rule(name=NAMES, value=VALUES)
    def merge(self, name: str, value: str) -> None:
        answer = self.send("PATCH", f"{MAPS}/{name}", {"data": {"v": value}}, "application/merge-patch+json")
        if name in self.model:
            self.wrote(answer, name, value)
        else:
            assert answer[0] == 404

    @rule(name=NAMES, value=VALUES)
    def apply(self, name: str, value: str) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}}
        path = f"{MAPS}/{name}?fieldManager=m&force=true"
        code, found = self.send("PATCH", path, body, "application/apply-patch+yaml")
        assert code in (200, 201)
        self.model = {**self.model, name: value}
        self.versions[name] = found["metadata"]["resourceVersion"]
        self.newest = self.store.revision  # managers may change though the value does not
        self.then[self.newest] = self.model

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        code, _ = self.send("DELETE", f"{MAPS}/{name}")
        assert code == (200 if name in self.model else 404)
        if name in self.model:
            self.model = {key: value for key, value in self.model.items() if key != name}
            self.newest += 1
            assert self.store.revision == self.newest
            self.then[self.newest] = self.model

    # ---- what happens around them

    @rule(data=st.data())
    def watch(self, data: Any) -> None:
        """From any version that is still there."""
        kept = [version for version in self.then if version >= self.store.compacted]
        version = data.draw(st.sampled_from(kept or [self.newest]))
        if len(self.watchers) < 4:
            self.watchers.append(Watcher(dict(self.then[version]), version))

    @precondition(lambda self: len(self.then) > 2)
    @rule(data=st.data())
    def compact(self, data: Any) -> None:
        self.store.compact(data.draw(st.sampled_from(sorted(self.then))))

    @rule(behind=st.booleans())
    def restart(self, behind: bool) -> None:
        """Watchers may not have heard of the last changes, which may be compacted before they come back."""

        async def stop() -> None:
            self.api.stop()
            for one in self.watchers:
                if one.stream is not None:
                    await one.stream.aclose()
                    one.stream = None
            await self.store.close()

        if not behind:
            self.everybody_knows()
        self.loop.run_until_complete(stop())
        self.open()

    # ---- what must hold

    def everybody_knows(self) -> None:
        for one in self.watchers:
            self.loop.run_until_complete(asyncio.wait_for(self.catch_up(one), 20))
            assert one.state == self.model

    async def catch_up(self, one: Watcher) -> None:
        while one.version < self.newest:
            if one.stream is None and not await self.begin(one):
                continue
            assert one.stream is not None
            for line in (await anext(one.stream)).splitlines():
                self.hear(one, json.loads(line))
                if one.stream is None:
                    break

    async def begin(self, one: Watcher) -> bool:
        asked = {"watch": ["1"], "resourceVersion": [str(one.version)]}
        answer = await self.api.handle(Request("GET", MAPS, asked, {}, b""))
        if answer.status == 410:
            self.relist(one)
            return False
        assert answer.status == 200, answer.body
        assert not isinstance(answer.body, bytes)
        one.stream = answer.body  # type: ignore[assignment]
        return True

    def hear(self, one: Watcher, event: Any) -> None:
        if event["type"] == "ERROR":
            assert event["object"]["code"] == 410
            self.relist(one)
            return
        meta = event["object"]["metadata"]
        version, name = int(meta["resourceVersion"]), meta["name"]
        assert version > one.version, "an event came twice, or late"
        assert (event["type"] == "ADDED") == (name not in one.state)
        if event["type"] == "DELETED":
            del one.state[name]
        else:
            one.state[name] = event["object"]["data"]["v"]
        one.version = version
        assert one.state == self.then[version], "an event was lost"

    def relist(self, one: Watcher) -> None:
        """Only one whose version is forgotten is told so."""
        assert one.version < self.store.compacted
        one.state, one.version, one.stream = dict(self.model), self.newest, None
        one.relists += 1

    @invariant()
    def a_list_is_the_model(self) -> None:
        code, found = self.send("GET", MAPS)
        assert code == 200
        assert {item["metadata"]["name"]: item["data"]["v"] for item in found["items"]} == self.model
        assert int(found["metadata"]["resourceVersion"]) == self.newest

    @precondition(lambda self: self.watchers and self.store.revision % 3 == 0)
    @invariant()
    def watchers_know(self) -> None:
        self.everybody_knows()

    def teardown(self) -> None:
        self.everybody_knows()

        async def stop() -> None:
            self.api.stop()
            for one in self.watchers:
                if one.stream is not None:
                    await one.stream.aclose()
            await self.store.close()

        self.loop.run_until_complete(stop())
        self.loop.close()
        self.folder.cleanup()


TestApiModel = ApiMachine.TestCase
TestApiModel.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
