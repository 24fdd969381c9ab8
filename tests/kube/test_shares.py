"""Who has used the loop much rests while somebody lighter is at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kohort.kube.shares import Metered, Shares
from kohort.kube.transport import ADMIN
from kohort.kube.wire import Request, User
from kohort.server.pace import Pace, tenant_of


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("kohort.kube.shares.time.perf_counter", lambda: now[0])
    return now


def test_alone_nobody_rests(clock: list[float]) -> None:
    of = Shares()
    for _ in range(20):
        of.spent("heavy", 0.1)
        assert of.asks("heavy") == 0.0
        clock[0] += 0.1


def test_the_heavy_one_rests_seven_times_as_long_as_it_worked(clock: list[float]) -> None:
    of = Shares()
    of.spent("heavy", 0.5)
    clock[0] += 0.2
    of.spent("light", 0.01)
    of.spent("heavy", 0.02)
    rested = 0.0
    while rest := of.asks("heavy"):
        assert of.asks("light") == 0.0
        clock[0] += rest
        rested += rest
        of.spent("light", 0.001)
    assert rested == pytest.approx(0.14)


def test_a_rest_ends_when_nobody_lighter_is_at_it(clock: list[float]) -> None:
    of = Shares()
    of.spent("heavy", 0.5)
    of.spent("light", 0.01)
    of.spent("heavy", 0.02)
    rest = of.asks("heavy")
    assert 0.0 < rest < 0.05
    clock[0] += rest
    assert of.asks("heavy") == 0.0


def test_a_debt_is_short_and_forgotten(clock: list[float]) -> None:
    of = Shares()
    for _ in range(100):
        of.spent("heavy", 0.5)
    rested = 0.0
    of.spent("light", 0.01)
    while rest := of.asks("heavy"):
        clock[0] += rest
        rested += rest
        of.spent("light", 0.0)
    assert rested == pytest.approx(0.2)
    clock[0] += 10.0
    of.spent("light", 0.01)
    of.spent("heavy", 0.01)
    assert of.asks("heavy") == 0.0, "it is heavy no more"


def test_whoever_has_gone_disturbs_nobody(clock: list[float]) -> None:
    of = Shares()
    of.spent("light", 0.01)
    clock[0] += 1.0
    of.spent("heavy", 0.5)
    assert of.asks("heavy") == 0.0


def test_tenants_are_bounded(clock: list[float]) -> None:
    of = Shares()
    for number in range(5000):
        clock[0] += 0.01
        of.spent(f"n{number}", 0.001)
    assert len(of._accounts) <= 1000


def test_only_work_is_measured_not_waiting(clock: list[float]) -> None:
    found: list[float] = []

    async def work() -> str:
        clock[0] += 1.0
        await asyncio.sleep(0)
        clock[0] += 2.0
        return "done"

    async def other() -> None:
        clock[0] += 50.0

    async def both() -> str:
        task = asyncio.create_task(other())
        answer = await Metered(work(), found.append)
        await task
        return answer

    assert asyncio.run(both()) == "done"
    assert found == [3.0]


def test_a_metered_coroutine_is_cancelled_and_still_counted(clock: list[float]) -> None:
    found: list[float] = []

    async def work() -> None:
        clock[0] += 1.0
        await asyncio.Event().wait()

    async def cancelled() -> None:
        task = asyncio.create_task(_await(Metered(work(), found.append)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert found == [1.0]


async def _await(work: Metered[None]) -> None:
    await work


PATH = "/api/v1/namespaces/{}/pods"


@pytest.mark.parametrize(
    ("request_", "tenant"),
    [
        (Request("POST", PATH.format("a"), user=ADMIN), "a"),
        (Request("POST", PATH.format("b"), user=User("system:serviceaccount:a:x")), "a"),
        (Request("POST", PATH.format("a"), user=User("eve")), "user eve"),
        (Request("POST", PATH.format("a"), user=User("root", groups=("system:masters",))), ""),
        (Request("POST", PATH.format("kube-system"), user=ADMIN), ""),
        (Request("POST", PATH.format("a"), user=User("system:serviceaccount:kube-system:x")), ""),
        (Request("POST", PATH.format("a") + "/p/binding", user=ADMIN), ""),
        (Request("GET", "/api/v1/nodes", user=ADMIN), ""),
        (Request("GET", "/api/v1/nodes"), ""),
    ],
)
def test_a_tenant_is_a_namespace_or_a_user_and_never_whom_somebody_names(request_: Request, tenant: str) -> None:
    """Whoever sends to somebody else's namespace does not make that one heavy."""
    assert tenant_of(request_) == tenant


def test_requests_of_a_heavy_tenant_wait_and_those_of_a_light_one_do_not() -> None:
    async def order() -> list[str]:
        of, begun = Pace(), list[str]()

        async def one(namespace: str) -> None:
            await of.turn(Request("POST", PATH.format(namespace), user=ADMIN))
            begun.append(namespace)

        of.spent("heavy", 2.0)
        of.spent("light", 0.001)
        await asyncio.gather(*(one("heavy") for _ in range(5)), *(one("light") for _ in range(5)))
        return begun

    assert asyncio.run(order()) == ["light"] * 5 + ["heavy"] * 5


def test_a_binding_does_not_wait_behind_what_rests() -> None:
    """Bindings of all tenants share a few places in the scheduler."""

    async def order() -> list[str]:
        of, begun = Pace(), list[str]()

        async def one(path: str) -> None:
            await of.turn(Request("POST", path, user=ADMIN))
            begun.append(path)

        of.spent("heavy", 2.0)
        of.spent("light", 0.001)
        pods = PATH.format("heavy")
        await asyncio.gather(one(pods), one(f"{pods}/p/binding"))
        return begun

    assert asyncio.run(order())[0].endswith("/binding")


def test_nobody_waits_for_ever() -> None:
    async def all_of_them(spend: Callable[[Pace], None]) -> None:
        of = Pace()

        async def one(number: int) -> None:
            await of.turn(Request("POST", PATH.format(f"n{number % 7}"), user=ADMIN))
            spend(of)

        async with asyncio.timeout(30):
            await asyncio.gather(*(one(number) for number in range(200)))

    asyncio.run(all_of_them(lambda of: of.spent("n0", 0.05)))
