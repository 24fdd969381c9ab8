"""How many requests at a time, by what a server makes of them."""

import pytest

from kohort.kube.width import FIRST, Width


def run(
    width: Width, seconds: float, rate: float, latency: float, since: float = 0.0, *, waiting: bool = True
) -> float:
    """A server that does `rate` a second at most and needs `latency` for each; gives the time at the end."""
    time = since
    while time < since + seconds:
        time += max(1 / rate, latency / width.now)
        width.answered(time, waiting=waiting)
    return time


@pytest.mark.parametrize("latency", [0.002, 0.01])
def test_a_server_that_has_all_it_can_do_gets_no_more_at_once(latency: float) -> None:
    width = Width(64)
    run(width, 5.0, 1000.0, latency)
    assert width.now == FIRST


def test_a_distant_server_that_could_do_more_gets_more() -> None:
    width = Width(64)
    run(width, 5.0, 100_000.0, 0.05)
    assert width.now == 64


def test_it_is_tried_again_but_ever_less_often() -> None:
    width, tries = Width(64), 0
    time, now = 0.0, width.now
    for _ in range(200_000):
        time += 1 / 1000
        width.answered(time, waiting=True)
        tries += width.now > now
        now = width.now
    assert 3 <= tries <= 6
    end = run(width, 700.0, 100_000.0, 0.05, since=time)
    assert (width.now, end > time) == (64, True), "the server has grown meanwhile"


def test_who_does_not_wait_says_nothing_about_it() -> None:
    width = Width(64)
    run(width, 5.0, 100_000.0, 0.05, waiting=False)
    assert width.now == FIRST
    assert Width(2).now == 2
