"""Informers through everything a server and a network can do; in virtual time, in process."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from tests.kube.fake import ABORT, END, HALF, TYPES, FakeApi, answer_of, status
from tests.kube.following import Following

from kohort.kube.cache import Change
from kohort.kube.codec import Key, Meta
from kohort.kube.discovery import ResourceType
from kohort.kube.errors import ApiError, TransportError
from kohort.kube.informer import Informer, without_managed_fields
from kohort.kube.latelines import LARGE
from kohort.kube.wire import Request, Response

BOTH_WAYS = pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "pages"])


class PodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class Pod(msgspec.Struct):
    metadata: Meta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


def lists(api: FakeApi) -> list[Request]:
    """Requests that ask for a whole state."""
    return [one for one in api.requests if one.path.endswith("/pods") and ("watch" not in one.query or initial(one))]


def watches(api: FakeApi) -> list[Request]:
    return [one for one in api.requests if "watch" in one.query and not initial(one)]


def initial(request: Request) -> bool:
    return "sendInitialEvents" in request.query


@BOTH_WAYS
async def test_lists_then_follows(streaming: bool) -> None:
    it = Following(streaming=streaming, page=2)
    for name in "abc":
        it.api.put(name)
    async with it.informer:
        assert not it.informer.synced.is_set()
        await it.informer.ready()
        assert it.short == ["added a", "added b", "added c"]
        await it.clock.advance()
        it.api.put("a", labels={"x": "y"})
        it.api.remove("b")
        it.api.put("d")
        await it.clock.advance()
    assert it.short[3:] == ["updated a", "deleted b", "added d"]
    assert it.same_as_server
    it.judge()


@BOTH_WAYS
async def test_who_may_not_read_what_is_optional_is_told_so(streaming: bool) -> None:
    class Refusing(FakeApi):
        refuses = True

        async def handle(self, request: Request) -> Response:
            if self.refuses and request.path.endswith("/pods"):
                return answer_of(403, status(403, "Forbidden"))
            return await super().handle(request)

    it = Following(Refusing(), streaming=streaming, optional=True)
    async with it.informer:
        with pytest.raises(ApiError, match="Forbidden"):
            await it.informer.ready()
    api = Refusing()
    api.refuses = False
    it = Following(api, streaming=streaming, optional=True)
    async with it.informer:
        await it.informer.ready()
        api.refuses = True  # a right that is taken away later may come back
        api.cut()
        await it.clock.advance(5.0)
        assert isinstance(it.informer.last_error, ApiError)
        api.refuses = False
        api.put("late")
        await it.clock.advance(60.0)
        assert it.same_as_server


async def test_who_joins_late_is_told_in_turns_and_of_nothing_twice() -> None:
    """What changes while there is more to tell: each object is told as it is then, once, in the order of its states."""
    it = Following()
    for number in range(1200):
        it.api.put(f"p{number}")
    async with it.informer:
        await it.informer.ready()
        await it.clock.advance()
        late: list[str] = []
        joining = asyncio.create_task(
            it.informer.tell(
                added=lambda new: late.append(f"added {new['metadata']['name']}"),
                updated=lambda _, new: late.append(f"updated {new['metadata']['name']}"),
                deleted=lambda old: late.append(f"deleted {old['metadata']['name']}"),
            )
        )
        await asyncio.sleep(0)
        assert 0 < len(late) < 1200
        for name in ("p0", "p1199"):  # one that it knows, one that it does not
            it.api.put(name, labels={"x": "y"})
        for name in ("p1", "p1198"):
            it.api.remove(name)
        it.api.put("new")
        await joining
        await it.clock.advance()
    assert late.count("added p0") == late.count("updated p0") == 1
    assert [one for one in late if one.endswith((" p1", " p1198"))] in (
        ["added p1", "deleted p1"],
        ["added p1", "added p1198", "deleted p1", "deleted p1198"],
    )
    assert late.count("added p1199") == late.count("added new") == 1


@BOTH_WAYS
async def test_objects_look_the_same_from_a_list_and_from_a_watch(streaming: bool) -> None:
    it = Following(streaming=streaming)
    it.api.put("listed")
    async with it.informer:
        await it.informer.ready()
        await it.clock.advance()
        it.api.put("watched")
        await it.clock.advance()
    assert {one["kind"] for one in it.informer.cache.values()} == {"Pod"}
    assert {one["apiVersion"] for one in it.informer.cache.values()} == {"v1"}


@BOTH_WAYS
async def test_what_is_kept_is_what_a_transformation_leaves(streaming: bool) -> None:
    def without_spec(pod: dict[str, Any]) -> dict[str, Any]:
        pod.pop("spec", None)
        return pod

    it = Following(streaming=streaming, transform=without_spec)
    it.api.put("listed", spec={"nodeName": "n"})
    async with it.informer:
        await it.informer.ready()
        await it.clock.advance()
        it.api.put("watched", spec={"nodeName": "n"})
        it.api.put("listed", spec={"nodeName": "m"})
        await it.clock.advance()
    assert it.short == ["added listed", "added watched", "updated listed"]
    assert not any("spec" in one for one in it.informer.cache.values())


def test_managed_fields_are_left_out_where_they_are() -> None:
    assert without_managed_fields({"metadata": {"name": "a", "managedFields": [{}]}}) == {"metadata": {"name": "a"}}
    assert without_managed_fields({"kind": "Odd"}) == {"kind": "Odd"}


@BOTH_WAYS
@pytest.mark.parametrize("how", [END, ABORT, HALF])
async def test_a_cut_watch_goes_on_where_it_was(streaming: bool, how: str) -> None:
    it = Following(streaming=streaming)
    it.api.put("a")
    async with it.informer:
        await it.clock.advance()
        it.api.put("a", seen="before the cut")
        await it.clock.advance()
        version = it.informer.cache.version
        it.api.cut(how)
        it.api.put("a", seen="while away")
        it.api.put("a", seen="still away")
        await it.clock.advance(5)
    assert len(lists(it.api)) == 1
    assert watches(it.api)[-1].query["resourceVersion"] == [version]
    assert it.short == ["added a", "updated a", "updated a", "updated a"]
    assert it.same_as_server


async def test_large_lines_that_wait_outlive_their_watch_and_others_do_not_wait_for_them() -> None:
    it = Following()
    async with it.informer:
        await it.clock.advance()
        for name in "hij":
            version = it.api.put(name, "heavy", data="x" * LARGE)["metadata"]["resourceVersion"]
        await it.clock.advance(0)  # one is read, and rests follow
        it.api.cut()
        await it.clock.advance(0)
        it.api.put("a")
        await it.clock.advance(0)
        assert it.short == ["added h", "added a"]
        assert watches(it.api)[-1].query["resourceVersion"] == [version]
        await it.clock.advance(5)
        assert it.short == ["added h", "added a", "added i", "added j"]
    assert it.same_as_server
    it.judge()


async def test_large_lines_that_wait_are_forgotten_when_everything_is_listed_again() -> None:
    it = Following()
    async with it.informer:
        await it.clock.advance()
        for name in "hij":
            it.api.put(name, "heavy", data="x" * LARGE)
        await it.clock.advance(0)
        it.api.remove("j", "heavy")
        it.api.compact()
        it.api.error(410, "Expired")
        await it.clock.advance(5)
    assert "added j" not in it.short
    assert it.same_as_server
    it.judge()


async def test_a_bookmark_moves_the_place_to_go_on_from() -> None:
    it = Following()
    async with it.informer:
        await it.clock.advance()
        it.api.revision = 4000
        it.api.bookmark()
        await it.clock.advance()
        it.api.cut()
        await it.clock.advance(5)
    assert watches(it.api)[-1].query["resourceVersion"] == ["4000"]


@BOTH_WAYS
@pytest.mark.parametrize("odd", [0, 1], ids=["as an event", "as an answer"])
async def test_410_lists_again_and_tells_only_what_differs(streaming: bool, odd: int) -> None:
    it = Following(streaming=streaming)
    for name in ("stays", "changes", "goes", "reborn"):
        it.api.put(name)
    it.api.revision += (it.api.revision + odd) % 2
    async with it.informer:
        await it.clock.advance()
        it.api.cut(ABORT)
        it.api.put("changes", x=1)
        it.api.remove("goes")
        it.api.remove("reborn")
        it.api.put("reborn")
        it.api.put("comes")
        it.api.compact()
        await it.clock.advance(30)
    told = it.short[4:]
    assert sorted(told) == ["added comes", "added reborn", "deleted goes", "deleted reborn", "updated changes"]
    assert told.index("deleted goes") < told.index("added comes"), "who is gone goes first"
    it.judge()
    assert len(lists(it.api)) == 2
    assert it.same_as_server


async def test_410_in_mid_watch_after_events_needs_no_pause() -> None:
    it = Following()
    async with it.informer:
        await it.clock.advance()
        it.api.put("a")
        it.api.error(410, "Expired")
        await it.clock.advance()
    assert len(lists(it.api)) == 2
    assert it.clock.monotonic() == 0


@BOTH_WAYS
async def test_a_server_that_always_answers_410_is_asked_ever_less_often(streaming: bool) -> None:
    class Always410(FakeApi):
        async def handle(self, request: Request) -> Response:
            if "watch" in request.query and not initial(request):
                self.requests.append(request)
                return answer_of(410, status(410, "Gone"))
            response = await super().handle(request)
            self.cut()
            return response

    it = Following(Always410(), streaming=streaming)
    async with it.informer:
        await it.clock.advance(120)
    assert 4 <= len(lists(it.api)) <= 14


async def test_a_restored_server_that_is_behind_us_is_listed_again() -> None:
    it = Following()
    it.api.put("a")
    it.api.revision = 5000
    it.api.put("b")
    async with it.informer:
        await it.clock.advance()
        it.api.cut(ABORT)
        it.api.revision = 11
        it.api.objects.clear()
        it.api.log.clear()
        it.api.put("c")
        await it.clock.advance(30)
        assert it.same_as_server
        it.api.put("d")
        await it.clock.advance()
        assert it.same_as_server


async def test_events_that_come_twice_are_told_once() -> None:
    it = Following()
    it.api.twice = True
    async with it.informer:
        await it.clock.advance()
        it.api.put("a")
        it.api.put("a", x=1)
        it.api.remove("a")
        it.api.put("a")
        await it.clock.advance()
    assert it.short == ["added a", "updated a", "deleted a", "added a"]
    it.judge()


async def test_old_events_that_come_again_change_nothing() -> None:
    it = Following()
    async with it.informer:
        await it.clock.advance()
        it.api.put("a")
        it.api.put("a", x=1)
        it.api.remove("a")
        it.api.put("a", x=2)
        it.api.put("b")
        it.api.remove("b")
        await it.clock.advance()
        before = list(it.diary)
        for _, type_, _, body in list(it.api.log):
            it.api.say(msgspec.json.encode({"type": type_, "object": body}) + b"\n")
        await it.clock.advance()
        assert it.diary == before
        assert it.same_as_server


async def test_a_name_given_to_another_object_is_a_deletion_and_an_addition() -> None:
    it = Following()
    it.api.put("a")
    async with it.informer:
        await it.clock.advance()
        new = {**it.api.objects["pods", "default", "a"], "metadata": {"name": "a", "namespace": "default"}}
        new["metadata"] |= {"uid": "another", "resourceVersion": "999"}
        it.api.say(msgspec.json.encode({"type": "MODIFIED", "object": new}) + b"\n")
        await it.clock.advance()
    assert it.short == ["added a", "deleted a", "added a"]


async def test_lines_may_arrive_in_any_pieces() -> None:
    it = Following()
    async with it.informer:
        await it.clock.advance()
        whole = b"".join(
            msgspec.json.encode({"type": "ADDED", "object": {"metadata": {"name": f"n{n}", "resourceVersion": f"{n}"}}})
            + b"\n"
            for n in range(100, 140)
        )
        for start in range(0, len(whole), 37):
            it.api.say(whole[start : start + 37])
        await it.clock.advance()
        assert len(it.informer.cache) == 40


async def test_a_broken_line_is_a_cut() -> None:
    it = Following()
    async with it.informer:
        await it.clock.advance()
        it.api.put("a")
        it.api.say(b'{"type":"MODIFIED","object":{"metadata"\n')
        it.api.put("b")
        await it.clock.advance(5)
        assert it.same_as_server
        assert it.informer.counts.failures == 1
    assert it.short == ["added a", "added b"]


async def test_a_list_that_is_cut_is_not_taken_for_the_whole() -> None:
    it = Following()
    for name in "abc":
        it.api.put(name)

    def half_a_list(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield msgspec.json.encode({"type": "ADDED", "object": it.api.objects["pods", "default", "a"]}) + b"\n"

        return Response(200, {}, chunks())

    await it.client.discovery.all()
    it.api.faults.append(half_a_list)
    async with it.informer:
        await it.clock.advance()
        assert not it.informer.synced.is_set()
        assert it.diary == []
        await it.clock.advance(5)
        assert it.same_as_server


async def test_changes_before_the_end_of_a_streaming_list_are_part_of_it() -> None:
    it = Following()
    bodies = [it.api.put("a"), it.api.put("b"), it.api.put("b", x=1)]
    it.api.remove("a")
    gone = it.api.log[-1][3]
    events = [*(("ADDED", body) for body in bodies[:2]), ("MODIFIED", bodies[2]), ("DELETED", gone)]

    def whole_list(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            for type_, body in events:
                yield msgspec.json.encode({"type": type_, "object": body}) + b"\n"
            yield it.api._bookmark("pods", {"k8s.io/initial-events-end": "true"})
            await asyncio.Event().wait()

        return Response(200, {}, chunks())

    await it.client.discovery.all()
    it.api.faults.append(whole_list)
    async with it.informer:
        await it.clock.advance()
        assert it.same_as_server
    assert it.short == ["added b"]


async def test_a_continue_token_that_expires_starts_the_list_again() -> None:
    it = Following(streaming=False, page=1)
    for name in "abc":
        it.api.put(name)
    await it.client.discovery.all()
    it.api.faults += [lambda request: None, answer_of(410, status(410, "Expired"))]
    async with it.informer:
        await it.clock.advance(5)
        assert it.same_as_server
    assert it.short == ["added a", "added b", "added c"]


async def test_without_streaming_lists_pages_are_asked_for_and_it_is_remembered() -> None:
    it = Following(page=2)
    it.api.streaming = False
    for name in "abc":
        it.api.put(name)
    async with it.informer:
        await it.clock.advance()
        assert it.same_as_server
        assert it.clock.monotonic() == 0
        it.api.cut()
        it.api.compact()
        it.api.put("d")
        it.api.compact()
        await it.clock.advance(30)
        assert it.same_as_server
    assert sum(map(initial, it.api.requests)) == 1


async def test_a_server_that_takes_a_streaming_list_for_a_watch_is_noticed() -> None:
    it = Following()
    it.api.silent_streaming = True
    it.api.put("a")
    async with it.informer:
        await it.clock.advance(10)
        assert not it.informer.synced.is_set()
        await it.clock.advance(10)
        assert it.same_as_server
    assert it.short == ["added a"]


async def test_an_unreachable_server_is_tried_ever_less_often_and_then_followed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    it = Following()
    it.api.put("a")
    await it.client.discovery.all()
    asked = len(it.api.requests)
    it.api.faults.extend(TransportError("connection refused") for _ in range(8))
    async with it.informer:
        await it.clock.advance(60)
        assert 5 <= len(it.api.requests) - asked <= 9
        assert str(it.informer.last_error) == "connection refused"
        await it.clock.advance(120)
        assert it.same_as_server
        assert it.informer.last_error is None
    assert caplog.text.count("connection refused") == 1, "the same error is logged once"


async def test_429_waits_as_long_as_the_server_says() -> None:
    it = Following()
    await it.client.discovery.all()
    it.api.faults.append(answer_of(429, status(429, "TooManyRequests"), **{"retry-after": "20"}))
    async with it.informer:
        await it.clock.advance(19)
        assert not it.informer.synced.is_set()
        await it.clock.advance(2)
        assert it.informer.synced.is_set()


async def test_a_kind_that_is_served_later_is_followed_then() -> None:
    it = Following(FakeApi(types=tuple(one for one in TYPES if one.plural != "pods")))
    async with it.informer:
        await it.clock.advance(10)
        assert "pods: the server does not have it" in str(it.informer.last_error)
        it.api.types = TYPES
        it.api.put("a")
        await it.clock.advance(60)
        assert it.same_as_server


async def test_structs_of_the_reader_are_held() -> None:
    it = Following(decode=Pod)
    it.api.put("a", spec={"nodeName": "n1", "containers": [{"name": "c"}]})
    async with it.informer:
        await it.clock.advance()
        it.api.put("a", spec={"nodeName": "n2"})
        it.api.bookmark()
        await it.clock.advance()
        found = it.informer.cache.get(("default", "a"))
    assert isinstance(found, Pod)
    assert found.spec.node_name == "n2"
    assert it.short == ["added a", "updated a"]


async def test_raw_bytes_are_held_when_asked_for() -> None:
    it = Following(decode=msgspec.Raw)
    it.api.put("a", x=1)
    async with it.informer:
        await it.clock.advance()
        it.api.put("a", x=2)
        await it.clock.advance()
        assert b'"x": 2' in bytes(it.informer.cache.get(("default", "a")) or b"")


@BOTH_WAYS
async def test_an_object_that_the_struct_cannot_hold_is_left_out_and_said(
    streaming: bool, caplog: pytest.LogCaptureFixture
) -> None:
    it = Following(decode=Pod, streaming=streaming)
    it.api.put("bad", spec={"nodeName": 5})
    it.api.put("good", spec={"nodeName": "n"})
    async with it.informer:
        await it.clock.advance()
        assert it.short == ["added good"]
        it.api.put("good", spec={"nodeName": ["turned bad"]})
        await it.clock.advance()
        assert it.short == ["added good", "deleted good"]
        it.api.put("good", spec={"nodeName": "fine again"})
        it.api.put("bad", spec={})
        await it.clock.advance()
    assert sorted(it.short[2:]) == ["added bad", "added good"]
    assert it.informer.counts.unreadable == 2
    assert "default/bad is not Pod: Expected `str`, got `int`" in caplog.text


async def test_indexes_follow_the_objects() -> None:
    it = Following(indexers={"node": lambda pod: [pod["spec"]["node"]] if pod["spec"].get("node") else []})
    it.api.put("a", spec={"node": "n1"})
    it.api.put("b", spec={})

    def on(node: str) -> list[str]:
        return [one["metadata"]["name"] for one in it.informer.cache.indexed("node", node)]

    async with it.informer:
        await it.clock.advance()
        assert (on("n1"), on("n2")) == (["a"], [])
        it.api.put("b", spec={"node": "n1"})
        await it.clock.advance()
        assert on("n1") == ["a", "b"]
        it.api.put("a", spec={"node": "n2"})
        it.api.remove("b")
        await it.clock.advance()
        assert (on("n1"), on("n2")) == ([], ["a"])
    assert it.informer.cache._indexes["node"].keys() == {"n2"}, "empty groups are not kept"


async def test_a_handler_that_comes_late_is_told_what_is_there_and_can_leave() -> None:
    it = Following()
    it.api.put("a")
    seen: list[str] = []
    async with it.informer:
        await it.clock.advance()
        leave = it.informer.handle(added=lambda pod: seen.append(pod["metadata"]["name"]))
        it.api.put("b")
        await it.clock.advance()
        leave()
        it.api.put("c")
        await it.clock.advance()
    assert seen == ["a", "b"]


async def test_a_handler_that_fails_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    it = Following()
    it.informer.handle(added=lambda pod: 1 / 0)
    late: list[Any] = []
    it.informer.handle(added=late.append)
    it.api.put("a")
    async with it.informer:
        await it.clock.advance()
    assert len(late) == 1
    assert "ZeroDivisionError" in caplog.text


async def test_handlers_see_the_cache_in_the_state_they_are_told_of() -> None:
    it = Following()
    seen: list[tuple[str, bool]] = []
    key = ("default", "a")
    it.informer.handle(
        added=lambda pod: seen.append(("added", it.informer.cache.get(key) is pod)),
        updated=lambda old, new: seen.append(("updated", it.informer.cache.get(key) is new)),
        deleted=lambda pod: seen.append(("deleted", key not in it.informer.cache)),
    )
    async with it.informer:
        await it.clock.advance()
        it.api.put("a")
        it.api.put("a", x=1)
        it.api.remove("a")
        await it.clock.advance()
    assert seen == [("added", True), ("updated", True), ("deleted", True)]


async def test_what_came_and_went_while_its_line_waited_is_told_to_whoever_wants_to_know() -> None:
    """Whoever has written it may wait to see it."""
    it = Following()
    heard: list[str] = []
    it.informer.handle(added=lambda new: heard.append("added"), deleted=lambda old: heard.append("deleted"))
    it.informer.unseen = lambda old: heard.append(f"unseen {old['metadata']['name']}")
    async with it.informer:
        await it.clock.advance()
        it.api.put("first", "heavy", data="x" * LARGE)  # whatever follows of that namespace waits for its turn
        it.api.put("gone", "heavy", data="x" * LARGE)
        it.api.remove("gone", "heavy")
        await it.clock.advance(60)
    assert heard == ["added", "unseen gone"]


async def test_selectors_and_namespace_are_sent_with_every_request() -> None:
    api = FakeApi()
    api.streaming = False
    it = Following(api, namespace="team", labels="app=web", fields="spec.nodeName=")
    async with it.informer:
        await it.clock.advance()
        api.cut()
        await it.clock.advance(5)
    asked = [one for one in api.requests if one.path.endswith("/pods")]
    assert len(asked) >= 3
    assert {one.path for one in asked} == {"/api/v1/namespaces/team/pods"}
    assert all(one.query["labelSelector"] == ["app=web"] for one in asked)
    assert all(one.query["fieldSelector"] == ["spec.nodeName="] for one in asked)


async def test_ready_says_when_the_informer_broke() -> None:
    class Broken(FakeApi):
        async def handle(self, request: Request) -> Response:
            raise ZeroDivisionError

    it = Following(Broken())
    async with it.informer:
        with pytest.raises(ZeroDivisionError):
            await it.informer.ready()


async def test_stopping_ends_the_watch_on_the_server() -> None:
    it = Following()
    ended = asyncio.Event()

    def endless(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                yield it.api._bookmark("pods", {"k8s.io/initial-events-end": "true"})
                await asyncio.Event().wait()
            finally:
                ended.set()

        return Response(200, {}, chunks())

    await it.client.discovery.all()
    it.api.faults.append(endless)
    async with it.informer:
        await it.informer.ready()
    assert ended.is_set()


async def test_a_flood_of_events_leaves_room_for_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    it = Following()
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async with it.informer:
        await it.informer.ready()
        before = turns
        for number in range(200):
            it.api.put(f"p{number}")
        while len(it.informer.cache) < 200:
            await asyncio.sleep(0)
        assert turns - before >= 100
    task.cancel()


async def test_a_known_resource_type_needs_no_discovery() -> None:
    api = FakeApi()
    api.put("a")
    it = Following(api)
    pods = it.client.resource(ResourceType("", "v1", "pods", "Pod", namespaced=True))
    async with Informer(pods, clock=it.clock) as informer:
        await informer.ready()
        assert list(informer.cache.keys()) == [Key("default", "a")]
    assert {one.path for one in api.requests} == {"/api/v1/pods"}


class ByOwner:
    """Sorts: who owns it. The index and the handler `of web` want what web owns."""

    def of(self, item: dict[str, Any]) -> str:
        return str(item["spec"].get("owner") or "")

    def concerns(self, name: str, sort: Any) -> bool:
        return sort == "web" if name == "of web" else True


async def test_sorts_say_who_is_asked_about_an_object() -> None:
    asked: list[str] = []

    def of_web(pod: dict[str, Any]) -> list[str]:
        asked.append(pod["metadata"]["name"])
        return [pod["spec"]["owner"]]

    it = Following(indexers={"of web": of_web}, sorts=ByOwner())
    heard: list[str] = []
    it.api.put("a", spec={"owner": "web"})
    it.api.put("b", spec={"owner": "db"})
    async with it.informer:
        await it.clock.advance()
        await it.informer.tell(
            added=lambda new: heard.append(f"added {new['metadata']['name']}"),
            updated=lambda old, new: heard.append(f"updated {old['spec']['owner']} {new['spec']['owner']}"),
            deleted=lambda old: heard.append(f"deleted {old['metadata']['name']}"),
            name="of web",
        )
        assert (heard, asked) == (["added a"], ["a"])
        it.api.put("b", spec={"owner": "db", "more": 1})
        it.api.put("c", spec={"owner": "db"})
        await it.clock.advance()
        assert (heard, asked) == (["added a"], ["a"]), "what others have is not asked about"
        it.api.put("b", spec={"owner": "web"})  # adopted
        it.api.put("a", spec={"owner": "db"})  # given away: who had it hears of that
        await it.clock.advance()
        assert heard[1:] == ["updated db web", "updated web db"]
        assert [one["metadata"]["name"] for one in it.informer.cache.indexed("of web", "web")] == ["b"]
        it.api.remove("a")
        it.api.remove("b")
        await it.clock.advance()
        assert heard[3:] == ["deleted b"]
        assert it.informer.cache.indexed("of web", "web") == []
    assert not it.informer.cache._values, "nothing is remembered of what is gone"
    it.judge()


async def test_who_comes_late_is_not_told_twice_nor_of_what_went_meanwhile() -> None:
    """A handler that is being told of 600 objects, some of which change, go, or begin to concern it at that time."""
    it = Following(sorts=ByOwner())
    for number in range(600):
        it.api.put(f"p{number:03}", spec={"owner": "web" if number % 2 else "db"})
    heard: list[str] = []
    async with it.informer:
        await it.informer.ready()
        telling = asyncio.create_task(
            it.informer.tell(
                added=lambda new: heard.append(f"added {new['metadata']['name']}"),
                updated=lambda _, new: heard.append(f"updated {new['metadata']['name']}"),
                deleted=lambda old: heard.append(f"deleted {old['metadata']['name']}"),
                name="of web",
            )
        )
        await asyncio.sleep(0)
        assert 200 < len(heard) < 300, "the first turn"
        for name, spec in (("p599", {"owner": "web", "more": 1}), ("p598", {"owner": "web"}), ("p597", None)):
            old = it.informer.cache.get(("default", name))
            assert old is not None
            new = {**old, "spec": spec} if spec is not None else None
            it.informer._move(Change(Key("default", name), old, new, old if new is None else None))
        await telling
        assert not it.informer._handlers[-1].untold
    assert sorted(heard) == sorted(
        {f"added p{number:03}" for number in range(1, 597, 2)} | {"added p598", "added p599"}
    )
