"""The watchdog of the event loop: it sees a stall, says how long and what it was, and stays silent otherwise."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import resource
import time
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kohort.controllers.controller import Key
from kohort.kube import watchdog
from kohort.kube.watchdog import SUBJECTS, watching
from kohort.kube.wire import Request, User
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.tuning import raise_file_limit


def hold(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


async def beats() -> None:
    """Long enough for a timer of the watchdog to run."""
    await asyncio.sleep(0.06)


async def test_a_stall_is_counted_and_measured(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), watching() as dog:
        await beats()
        hold(0.4)
        await beats()
    assert dog.stalls >= 1
    assert dog.longest >= 0.35
    assert "test_watchdog.hold" in caplog.text
    registry = CollectorRegistry()
    registry.register(dog)
    text = generate_latest(registry).decode()
    assert 'kohort_event_loop_stall_seconds_bucket{le="0.1"} 0.0' in text
    assert float(text.split("\nkohort_event_loop_longest_stall_seconds ")[1].split()[0]) >= 0.35


async def test_a_stall_that_does_not_end_is_logged_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), watching(threshold=0.05):
        await beats()
        end = time.perf_counter() + 20
        while "still is" not in caplog.text and time.perf_counter() < end:
            hold(0.05)
    assert "test_watchdog.test_a_stall_that_does_not_end" in caplog.text  # or somebody whom it had called just then


async def test_a_loop_that_waits_is_not_held() -> None:
    with watching(threshold=5.0) as dog:
        await asyncio.sleep(0.3)
    assert dog.stalls == 0


async def test_the_request_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(tmp_path, in_memory=True, listen=False, secure=False, custom_kinds=False)
    async with Server(settings) as server:
        server.api.checks["slow"] = lambda: hold(0.4) or True  # type: ignore[func-returns-value]
        with caplog.at_level(logging.WARNING), watching() as server.api.metrics.watchdog:
            await beats()
            await server.api.handle(Request("GET", "/readyz", user=User("mallory")))
            await beats()
            text, _ = server.api.metrics.text()
    assert "by GET /readyz of mallory" in caplog.text
    assert float(text.split(b"\nkohort_event_loop_longest_stall_seconds ")[1].split()[0]) >= 0.35


def test_a_subject_cannot_forge_a_log_line() -> None:
    def handle() -> tuple[str, str]:
        request = Request("GET", "/a\nERROR all is lost")  # noqa: F841 - read from this frame
        return watchdog.describe(inspect.currentframe())

    SUBJECTS[__name__, "handle"] = SUBJECTS["kohort.server.api", "handle"]
    try:
        assert handle()[0] == "GET /a�ERROR all is lost"
    finally:
        del SUBJECTS[__name__, "handle"]


@pytest.mark.parametrize(("module", "name"), SUBJECTS)
def test_what_names_subjects_is_still_there(module: str, name: str) -> None:
    """The table names functions as text; a rename must not silence it."""
    found = importlib.import_module(module)
    owners = [found, *(one for _, one in inspect.getmembers(found, inspect.isclass) if one.__module__ == module)]
    code = next(getattr(one, name).__code__ for one in owners if name in vars(one))

    class Known:
        def __getattr__(self, _: str) -> Known:
            return Known()

        def __str__(self) -> str:
            return str(Key("a", "b"))

    assert SUBJECTS[module, name]({local: Known() for local in (*code.co_varnames, *code.co_cellvars)})


def test_the_file_limit_is_raised_to_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowered = min(256, soft)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowered, hard))
    try:
        assert raise_file_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] > lowered
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
