"""Large lines of a watch delay their own namespace only."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Generator

import pytest

from kohort.kube import latelines, shares
from kohort.kube.clock import REAL, RealClock
from kohort.kube.latelines import LARGE, LateLines


def line(namespace: str, name: str, size: int = 0, kind: str = "MODIFIED") -> bytes:
    meta = {"namespace": namespace, "name": name} if namespace else {"name": name}
    return json.dumps({"type": kind, "object": {"metadata": meta, "data": "x" * size}}).encode()


def name_of(raw: bytes) -> str:
    return str(json.loads(raw)["object"]["metadata"]["name"])


def whole(raw: bytes) -> Generator[None, None, bytes]:
    """A reader that needs no breaks."""
    yield from ()
    return raw


async def drained(late: LateLines[bytes]) -> None:
    async with asyncio.timeout(30):
        while len(late):
            await asyncio.sleep(0.001)
            late.check()


def taken(lines: list[bytes], seconds: float = 0.0) -> list[str]:
    """In which order lines that come together are read."""

    async def read() -> list[str]:
        found: list[str] = []
        late = LateLines(whole, lambda raw: found.append(name_of(raw)), REAL)
        for one in lines:
            if not late.keeps(one):
                found.append(name_of(one))
        await asyncio.sleep(seconds)
        await drained(late)
        return found

    return asyncio.run(read())


def test_others_pass_by_and_the_order_of_a_namespace_stays() -> None:
    lines = [
        line("a", "a1"),
        line("a", "a2", LARGE),
        line("b", "b1"),
        line("a", "a3"),
        line("b", "b2"),
        line("a", "a4", kind="DELETED"),
    ]
    assert taken(lines) == ["a1", "b1", "b2", "a2", "a3", "a4"]


def test_outside_of_namespaces_every_object_is_for_itself() -> None:
    assert taken([line("", "n1", LARGE), line("", "n2"), line("", "n1")]) == ["n2", "n1"]


def test_of_an_object_that_changes_while_it_waits_the_newest_state_is_read() -> None:
    found: list[tuple[str, str, int]] = []

    async def read() -> None:
        def take(raw: bytes) -> None:
            event = json.loads(raw)
            found.append((event["type"], event["object"]["metadata"]["name"], len(event["object"]["data"])))

        late = LateLines(whole, take, REAL)
        for one in (
            line("a", "a1", LARGE, "ADDED"),
            line("a", "a2", LARGE, "ADDED"),
            line("a", "a1", LARGE + 1),
            line("a", "a2", 2, "DELETED"),
            line("a", "a2", 3, "ADDED"),  # another of the same name: both are told
            line("a", "a2", 4),
        ):
            assert late.keeps(one)
        assert len(late) == 3
        await drained(late)
        assert len(late) == 0

    asyncio.run(read())
    assert found == [("MODIFIED", "a1", LARGE + 1), ("DELETED", "a2", 2), ("MODIFIED", "a2", 4)]


def test_what_changes_while_it_is_read_in_parts_is_read_again() -> None:
    found: list[str] = []

    async def read() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def parts(raw: bytes) -> Generator[None, None, bytes]:
            for _ in range(3):
                time.sleep(0.004)  # longer than a part may be
                found.append(f"part of {len(raw) > LARGE}")
                loop.call_soon_threadsafe(begun.set)
                yield
            return raw

        late = LateLines(parts, lambda raw: found.append(f"whole {len(raw) > LARGE}"), REAL)
        assert late.keeps(line("a", "a1", LARGE))
        await begun.wait()
        found.append("another")
        assert late.keeps(line("a", "a1", 1))
        await drained(late)

    asyncio.run(read())
    assert found == [
        "part of True",
        "another",
        *["part of True"] * 2,
        "whole True",
        *["part of False"] * 3,
        "whole False",
    ]


def test_small_lines_are_never_kept_when_nothing_waits() -> None:
    late = LateLines(whole, name_of, REAL)
    assert not late.keeps(line("a", "a1"))
    assert len(late) == 0


@pytest.mark.parametrize(
    "odd", [b"{" + b"x" * LARGE, line("a", "a", LARGE, "ERROR"), line("a", "a", LARGE, "BOOKMARK")]
)
def test_what_is_not_a_change_is_for_the_reader(odd: bytes) -> None:
    async def kept() -> bool:
        return LateLines(whole, name_of, REAL).keeps(odd)

    assert not asyncio.run(kept())


def test_a_line_that_cannot_be_read_is_told() -> None:
    async def read() -> None:
        def fails(_: bytes) -> None:
            raise ValueError("no")

        late = LateLines(whole, fails, REAL)
        assert late.keeps(line("a", "a1", LARGE))
        await drained(late)
        await asyncio.sleep(0)
        late.check()

    with pytest.raises(ValueError, match="no"):
        asyncio.run(read())


@pytest.mark.parametrize(
    ("who", "waiting", "times"),
    [("noisy", 0, 5.0), ("quiet", 0, 15.0), ("quiet", 9 << 20, 5.0), ("noisy", 1 << 26, 0.0), ("quiet", 1 << 26, 0.0)],
)
async def test_rests_are_longer_while_another_tenant_is_at_it(
    monkeypatch: pytest.MonkeyPatch, who: str, waiting: int, times: float
) -> None:
    """Unless much waits, which is memory."""
    monkeypatch.setattr(shares, "_ACTIVE", 60.0)
    rests: list[float] = []

    class Counting(RealClock):
        async def sleep(self, seconds: float) -> None:
            rests.append(seconds)

    late = LateLines(whole, lambda _: None, Counting())
    shares.of_loop().spent(who, 0.001)
    one = latelines._Waiting("noisy", ("noisy", "a"), "ADDED", b"")
    late._bytes = waiting
    await late._rest(one, 0.01)
    assert rests == ([pytest.approx(times * 0.01)] if times else [])
