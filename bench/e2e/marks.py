"""The scheduler's process with a look at the clock at each moment (`timeline`); it loads nothing before that does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def child() -> int:
    mark(0)
    from kohort.scheduler import command

    mark(1)

    def loaded(name: str) -> Any:
        found = original(name)
        if name.endswith(".loop"):
            mark(4)
            _instrument()
        return found

    original, command.import_module = command.import_module, loaded  # type: ignore[attr-defined]
    from kohort.kube.ahead import Ahead

    page = Ahead._page

    async def answered(self: Ahead, request: Any) -> Any:
        found = await page(self, request)
        number = {"/api/v1/nodes": 2, "/api/v1/pods": 3}.get(request.path)
        if number is not None:
            mark(number)
        return found

    Ahead._page = answered  # type: ignore[method-assign]
    return command.run(sys.argv[1:])


def _instrument() -> None:
    from kohort.scheduler import binder, core, loop

    count = 0

    def before(owner: Any, name: str, look: Callable[..., None]) -> None:
        original = getattr(owner, name)

        def called(*args: Any, **options: Any) -> Any:
            look(*args)
            return original(*args, **options)

        setattr(owner, name, called)

    def one_bound(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == 1:
            mark(7)
        if count == int(os.environ["TIMELINE_PODS"]):
            mark(8)

    before(loop.Scheduler, "_decide", lambda *_: mark(5))
    before(core.SchedulerCore, "confirm", lambda *_: mark(6))
    before(binder.Binder, "_bound", one_bound)


_marked: set[int] = set()


def mark(number: int) -> None:
    """The first time counts; of answers in pages, the last."""
    if number in _marked and number not in {2, 3}:
        return
    _marked.add(number)
    with Path(os.environ["TIMELINE_FILE"]).open("a") as file:
        file.write(f"{number} {time.monotonic() - float(os.environ['TIMELINE_BEGAN'])} {time.process_time()}\n")
