"""Many requests at once: they begin a few in each turn of the loop, one flow after the other."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from kohort.kube.transport import ADMIN
from kohort.kube.wire import Request, User
from kohort.server.pace import Pace, flow_of


def _own(namespace: str) -> Request:
    return Request("POST", f"/api/v1/namespaces/{namespace}/pods", user=ADMIN)


def test_flows_are_users_and_of_our_own_requests_namespaces() -> None:
    assert flow_of(_own("a")) != flow_of(_own("b"))
    assert flow_of(_own("a")) == flow_of(Request("GET", "/api/v1/namespaces/a/pods/p", user=ADMIN))
    path = "/api/v1/namespaces/a/pods"
    assert flow_of(Request("GET", path, user=User("x"))) != flow_of(Request("GET", path, user=User("y")))
    assert flow_of(Request("GET", path)) != flow_of(_own("a"))


@pytest.mark.parametrize(
    ("user", "apart"),
    [
        (User("admin", groups=("system:masters",)), True),
        (User("system:serviceaccount:kube-system:operator"), True),
        (User("somebody"), False),
        (User("system:serviceaccount:a:tenant"), False),
    ],
)
def test_who_works_for_the_whole_cluster_does_it_for_one_namespace_after_the_other(user: User, apart: bool) -> None:
    flows = {flow_of(Request("POST", f"/api/v1/namespaces/{name}/pods", user=user)) for name in ("a", "b")}
    assert len(flows) == (2 if apart else 1)


def _order(monkeypatch: pytest.MonkeyPatch, requests: list[Request], seconds: float) -> list[int]:
    """In which order requests that come together begin; `seconds` is what each of them takes."""
    now = [0.0]
    monkeypatch.setattr("kohort.server.pace.time.perf_counter", lambda: now[0])
    begun: list[int] = []

    async def one(number: int, request: Request, of: Pace) -> None:
        await of.turn(request)
        begun.append(number)
        now[0] += seconds

    async def together() -> None:
        of = Pace()
        await asyncio.gather(*(one(number, request, of) for number, request in enumerate(requests)))

    asyncio.run(together())
    return begun


def test_what_is_short_begins_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _order(monkeypatch, [_own("a")] * 20, 0.0) == list(range(20))


def test_one_request_does_not_wait_for_the_fifty_of_another_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = _order(monkeypatch, [*[_own("a")] * 50, _own("b")], 1.0)
    assert begun.index(50) <= 2
    assert [number for number in begun if number != 50] == list(range(50))


def _most_in_a_turn(monkeypatch: pytest.MonkeyPatch, requests: list[Request], seconds: float) -> int:
    """How many requests of those that come together begin in one turn of the loop; `seconds` is what each takes."""
    now, turn = [0.0], [0]
    monkeypatch.setattr("kohort.server.pace.time.perf_counter", lambda: now[0])
    begun: list[int] = []

    async def work() -> None:
        begun.append(turn[0])
        now[0] += seconds

    async def one(request: Request, of: Pace) -> None:
        await of.handled(request, work())

    async def together() -> None:
        of, loop = Pace(), asyncio.get_running_loop()

        def count() -> None:
            turn[0] += 1
            loop.call_soon(count)

        count()
        await asyncio.gather(*(one(request, of) for request in requests))

    asyncio.run(together())
    return max(Counter(begun).values())


def test_a_tenant_that_is_alone_gets_as_many_as_a_turn_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn in which something was written wakes all who watch."""
    assert _most_in_a_turn(monkeypatch, [_own("a")] * 200, 0.0005) in (7, 8)
    assert _most_in_a_turn(monkeypatch, [_own("a")] * 200, 0.003) == 2
    assert _most_in_a_turn(monkeypatch, [_own("a"), _own("b")] * 100, 0.0005) == 2
    asked = Request("GET", "/api/v1/namespaces/a", user=User("admin", groups=("system:masters",)))
    assert _most_in_a_turn(monkeypatch, [asked, *[_own("a")] * 150], 0.0005) == 2  # somebody wants an answer


def test_what_a_kubelet_tells_does_not_overtake_the_bindings_of_its_gang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the first pod of a gang would run while the last still waits for its node."""
    bindings = [Request("POST", f"/api/v1/namespaces/a/pods/p{number}/binding", user=ADMIN) for number in range(8)]
    told = [Request("PATCH", f"/api/v1/namespaces/a/pods/p{number}/status", user=ADMIN) for number in range(8)]
    begun = _order(monkeypatch, [*bindings, *told, *[_own("b")] * 4], 1.0)
    assert [number for number in begun if number < 16] == list(range(16))
    assert begun.index(19) < 15  # the other namespace has its turns all the while


def test_probes_never_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _order(monkeypatch, [*[_own("a")] * 50, Request("GET", "/readyz")], 1.0).index(50) == 0
