"""watch: from where, what, until when; never an event lost or repeated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kohort.api.kind import Context
from kohort.kube.wire import Request
from kohort.server import storage_codec
from kohort.server.api import Api
from kohort.server.handlers import watch
from kohort.server.store import Store

MAPS = "/api/v1/namespaces/d/configmaps"
PODS = "/api/v1/namespaces/d/pods"
HEADERS = {"content-type": "application/json", "user-agent": "test/1"}


class Server:
    def __init__(self) -> None:
        self.store = Store()

    async def start(self) -> None:
        await self.store.open()
        self.api = Api(self.store, Context.of("1.37"))
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "d"}})

    async def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        raw = b"" if body is None else json.dumps(body).encode()
        headers = {**HEADERS, "content-type": content_type}
        answer = await self.api.handle(Request(method, path, {}, headers, raw))
        assert answer.status < 400, answer.body
        assert isinstance(answer.body, bytes)
        return json.loads(answer.body)

    async def put(self, name: str, **labels: str) -> str:
        manager = {"fieldManager": ["t"], "force": ["true"]}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}
        headers = {**HEADERS, "content-type": "application/apply-patch+yaml"}
        answer = await self.api.handle(Request("PATCH", f"{MAPS}/{name}", manager, headers, json.dumps(body).encode()))
        assert answer.status < 300, answer.body
        return str(json.loads(answer.body)["metadata"]["resourceVersion"])  # type: ignore[arg-type]

    async def watch(self, accept: str = "", path: str = MAPS, **query: str) -> AsyncIterator[dict[str, Any]]:
        asked = {"watch": ["1"], **{name: [value] for name, value in query.items()}}
        answer = await self.api.handle(Request("GET", path, asked, {**HEADERS, "accept": accept}))
        assert answer.status == 200, answer.body
        assert not isinstance(answer.body, bytes)
        async for chunk in answer.body:
            for line in chunk.splitlines():
                yield json.loads(line)

    async def seen(self, count: int, **query: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        async for event in self.watch(**query):
            found.append((event["type"], event["object"]["metadata"].get("name", "")))
            if len(found) == count:
                break
        return found


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    await made.start()
    yield made
    made.api.stop()
    await made.store.close()


async def test_without_a_version_the_state_comes_first(server: Server) -> None:
    await server.put("a")
    await server.put("b")
    assert await server.seen(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_from_a_version_only_what_came_later(server: Server) -> None:
    version = await server.put("a")
    await server.put("b")
    await server.put("a", x="1")
    await server.send("DELETE", f"{MAPS}/a")
    wanted = [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert await server.seen(3, resourceVersion=version) == wanted


async def test_a_watch_from_every_version_is_the_rest_of_the_events(server: Server) -> None:
    versions = [await server.put("a"), await server.put("b"), await server.put("a", x="1"), await server.put("c")]
    everything = await server.seen(4, resourceVersion=str(int(versions[0]) - 1))
    for at, version in enumerate(versions[:-1]):
        assert await server.seen(3 - at, resourceVersion=version) == everything[at + 1 :]


async def test_events_arrive_while_watching(server: Server) -> None:
    version = await server.put("a")
    waiting = asyncio.ensure_future(server.seen(20, resourceVersion=version))
    await asyncio.sleep(0)
    for number in range(20):
        await server.put(f"n{number}")
    assert await asyncio.wait_for(waiting, 30) == [("ADDED", f"n{number}") for number in range(20)]


async def test_a_selector_turns_changes_into_comings_and_goings(server: Server) -> None:
    version = await server.put("a", team="red")
    await server.put("a", team="blue")
    await server.put("a", team="blue", more="x")
    await server.put("b", team="green")
    await server.put("a", team="red")
    await server.put("a", team="blue")
    await server.send("DELETE", f"{MAPS}/a")
    wanted = [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "a"), ("DELETED", "a")]
    assert await server.seen(5, resourceVersion=version, labelSelector="team=blue") == wanted


async def test_what_left_the_selection_is_sent_as_it_was(server: Server) -> None:
    version = await server.put("a", team="blue")
    gone = await server.put("a", team="red")
    async for event in server.watch(resourceVersion=version, labelSelector="team=blue"):
        assert event["type"] == "DELETED"
        assert event["object"]["metadata"]["labels"] == {"team": "blue"}
        assert event["object"]["metadata"]["resourceVersion"] == gone
        break


async def test_field_selectors_and_names(server: Server) -> None:
    version = await server.put("a")
    await server.put("b")
    await server.put("c")
    assert await server.seen(1, resourceVersion=version, fieldSelector="metadata.name=c") == [("ADDED", "c")]


async def test_initial_events_end_with_a_bookmark(server: Server) -> None:
    version = await server.put("a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    found = []
    async for event in server.watch(**query):
        found.append(event)
        if len(found) == 2:
            break
    assert [event["type"] for event in found] == ["ADDED", "BOOKMARK"]
    meta = found[1]["object"]["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert meta["resourceVersion"] == version


async def test_bookmarks_move_on_with_changes_of_others(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "BOOKMARKS", 0.05)
    version = await server.put("a")
    await server.send("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    async for event in server.watch(resourceVersion=version, allowWatchBookmarks="true"):
        assert event["type"] == "BOOKMARK"
        assert int(event["object"]["metadata"]["resourceVersion"]) > int(version)
        break


async def test_a_watch_ends_in_time(server: Server) -> None:
    version = await server.put("a")
    found = [event async for event in server.watch(resourceVersion=version, timeoutSeconds="1")]
    assert found == []


async def test_a_forgotten_version_is_gone(server: Server) -> None:
    await server.put("a")
    version = await server.put("b")
    server.store.compact(int(version))
    answer = await server.api.handle(Request("GET", MAPS, {"watch": ["1"], "resourceVersion": ["1"]}, HEADERS))
    assert answer.status == 410
    assert await server.seen(1) == [("ADDED", "a")]


async def test_a_watcher_that_is_too_slow_is_told(server: Server) -> None:
    version = await server.put("a")
    stream = server.watch(resourceVersion=version)
    await server.put("b")
    assert (await anext(stream))["type"] == "ADDED"
    await server.put("c")
    newest = await server.put("d")
    server.store.compact(int(newest))
    last = await anext(stream)
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)


async def test_what_is_forgotten_of_others_ends_no_watch(server: Server) -> None:
    version = await server.put("a")
    stream = server.watch(resourceVersion=version)
    await server.put("b")
    assert (await anext(stream))["type"] == "ADDED"
    for step in range(3):
        await server.store.write("pods", "default", f"p{step}", lambda _: b"{}", expect=None)
    server.store.compact(server.store.revision)
    await server.put("c")
    assert (await anext(stream))["object"]["metadata"]["name"] == "c"


async def test_tables_are_watched_row_by_row(server: Server) -> None:
    await server.put("a")
    async for event in server.watch(accept="application/json;as=Table;v=v1;g=meta.k8s.io"):
        assert event["object"]["kind"] == "Table"
        assert event["object"]["rows"][0]["cells"][0] == "a"
        break


async def test_a_version_to_come_is_not_waited_for_for_ever(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_PATIENCE", 0.1)
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "99999"}
    found = [event async for event in server.watch(**query)]
    assert (found[0]["type"], found[0]["object"]["code"]) == ("ERROR", 504)


async def test_a_pod_without_time_to_go_is_marked_before_it_is_gone(server: Server) -> None:
    version = (await server.send("POST", PODS, POD))["metadata"]["resourceVersion"]
    await server.send("DELETE", f"{PODS}/p")
    seen = []
    async for event in server.watch(path=PODS, resourceVersion=version):
        seen.append((event["type"], bool(event["object"]["metadata"].get("deletionTimestamp"))))
        if event["type"] == "DELETED":
            break
    assert seen == [("MODIFIED", True), ("DELETED", True)]


POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def marked(server: Server) -> asyncio.Task[Any]:
    """The deletion of a pod, in the moment between its two writes."""
    version = (await server.send("POST", PODS, POD))["metadata"]["resourceVersion"]
    server.api.core.marked_seconds = 0.2
    deletion = asyncio.create_task(server.send("DELETE", f"{PODS}/p", {"preconditions": {"resourceVersion": version}}))
    async for event in server.watch(path=PODS, resourceVersion=version):
        assert event["type"] == "MODIFIED"
        break
    return deletion


async def test_who_sees_a_pod_marked_still_finds_it(server: Server) -> None:
    """Operators under envtest count on the moment between etcd's two writes: there pods have no node, and no grace."""
    deletion = await marked(server)
    assert (await server.send("GET", f"{PODS}/p"))["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await deletion)["metadata"]["name"] == "p"
    assert (await server.send("GET", PODS))["items"] == []


async def test_a_finalizer_that_comes_in_that_moment_keeps_the_pod(server: Server) -> None:
    deletion = await marked(server)
    change = {"metadata": {"finalizers": ["example.com/keep"]}}
    # A pod that is going may lose finalizers and not get any, but another writer may have been first.
    resource = server.api.resources.of_plural("", "pods")
    assert resource is not None
    head = server.api.core.head(resource, "d", "p")
    assert head is not None
    body = storage_codec.load(resource, head)
    body["metadata"] |= change["metadata"]
    await server.store.write(
        resource.table, "d", "p", lambda revision: storage_codec.dump(resource, body, revision), expect=head
    )
    assert (await deletion)["metadata"]["finalizers"] == ["example.com/keep"]
    assert len((await server.send("GET", PODS))["items"]) == 1


async def test_a_pod_that_goes_in_that_moment_is_gone(server: Server) -> None:
    deletion = await marked(server)
    await server.send("DELETE", f"{PODS}/p")
    assert (await deletion)["metadata"]["name"] == "p"
    assert (await server.send("GET", PODS))["items"] == []


async def test_who_is_in_this_process_gets_the_same_lines_and_is_counted() -> None:
    server = Server()
    await server.start()
    for name in ("a", "b"):
        await server.put(name)
    over_a_socket = [event async for event in server.watch(timeoutSeconds="1")]
    query = {"watch": ["1"], "timeoutSeconds": ["1"]}
    answer = await server.api.handle(Request("GET", MAPS, query, HEADERS, whole_lines=True))
    assert answer.lines is not None
    found, open_ones = [], []
    async for batch in answer.lines:
        open_ones.append(server.api.metrics.watchers)
        found += [json.loads(line) for line in batch]
    assert found == over_a_socket
    assert [event["object"]["metadata"]["name"] for event in found] == ["a", "b"]
    assert set(open_ones) == {1}
    assert server.api.metrics.watchers == 0
