"""Whatever the order of writes, cuts, repetitions and expiries: the end is the server's, and no state came twice."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kube.fake import ABORT, END, HALF, answer_of, status
from tests.kube.following import Following

from kohort.kube.errors import TransportError

NAMES = st.sampled_from(["a", "b", "c"])
GENTLE: list[st.SearchStrategy[tuple[Any, ...]]] = [
    st.tuples(st.just("put"), NAMES),
    st.tuples(st.just("put"), NAMES),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("cut"), st.sampled_from([END, ABORT, HALF])),
    st.tuples(st.just("bookmark")),
    st.tuples(st.just("advance"), st.sampled_from([0.0, 0.3, 2.0, 40.0])),
    st.tuples(st.just("twice"), st.booleans()),
    st.tuples(st.just("again")),
    st.tuples(st.just("refuse")),
    st.tuples(st.just("broken")),
]
ROUGH = [*GENTLE, st.tuples(st.just("compact")), st.tuples(st.just("expire"))]


def act(it: Following, action: tuple[Any, ...]) -> None:
    api, (what, *rest) = it.api, action
    acts: dict[str, Callable[[], object]] = {
        "put": lambda: api.put(rest[0], x=api.revision),
        "remove": lambda: api.remove(rest[0]) if ("default", rest[0]) in api.state() else None,
        "cut": lambda: api.cut(rest[0]),
        "bookmark": api.bookmark,
        "twice": lambda: setattr(api, "twice", rest[0]),
        # A replay of what was said before, as a proxy or a server that lost its place would do.
        "again": lambda: api.say(b"".join(line_of(entry) for entry in api.log[-4:])),
        "refuse": lambda: api.faults.extend((TransportError("refused"), answer_of(503, status(503, "Unavailable")))),
        "broken": lambda: api.say(b'{"type":"ADDED","obj\n'),
        "compact": api.compact,
        "expire": lambda: api.error(410, "Expired"),
    }
    acts[what]()


def line_of(entry: tuple[int, str, str, dict[str, Any]]) -> bytes:
    return json.dumps({"type": entry[1], "object": entry[3]}).encode() + b"\n"


async def play(actions: list[tuple[Any, ...]], *, streaming: bool, before: int) -> Following:
    it = Following(streaming=streaming, page=2)
    for number in range(before):
        it.api.put("abc"[number], x=number)
    async with it.informer:
        for action in actions:
            if action[0] == "advance":
                await it.clock.advance(action[1])
            else:
                act(it, action)
        it.api.twice = False
        it.api.faults.clear()
        await it.clock.advance(300)
        assert it.same_as_server, (it.diary, it.api.state())
    it.judge()
    return it


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(ROUGH), max_size=40), st.booleans(), st.integers(0, 3))
def test_property_the_end_is_the_servers_and_every_object_has_one_straight_story(
    actions: list[tuple[Any, ...]], streaming: bool, before: int
) -> None:
    asyncio.run(play(actions, streaming=streaming, before=before))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(GENTLE), max_size=40), st.booleans(), st.integers(0, 3))
def test_property_nothing_is_lost_while_the_server_remembers(
    actions: list[tuple[Any, ...]], streaming: bool, before: int
) -> None:
    """With cuts but without expiries, every state after the first list is told, exactly once, in order."""
    settle: list[tuple[Any, ...]] = [("advance", 1.0)]
    it = asyncio.run(play(settle + actions, streaming=streaming, before=before))
    words = {"ADDED": "added", "MODIFIED": "updated", "DELETED": "deleted"}
    written = [(words[type_], body["metadata"]["resourceVersion"]) for _, type_, _, body in it.api.log]
    told = [(what, version) for what, _, _, version in it.diary]
    assert sorted(told[:before]) == sorted(written[:before])
    assert told[before:] == written[before:]
