"""Long steps of reconciles in a thread, so that the event loop goes on meanwhile.

A PodCliqueSet of thousands of cliques is compiled for seconds, in one stretch of Python. In a thread it shares the
interpreter with the loop, which waits for a moment at a time instead of for all of it. Which steps are long is
guessed from the size of the object, and remembered of those that were. One thread for all: what is long may take long.

A reconcile is a generator without I/O that only reads what it is given, so it does not matter where it runs. In virtual
time everything runs on the loop: there, nothing takes long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from kohort.controllers.reconcile import Answer, Reconcile, Result, Step

_LARGE: Final = 1500  # values in an object
_LONG: Final = 0.03  # seconds of a step
_REMEMBERED: Final = 1000  # objects


class Aside:
    def __init__(self) -> None:
        self._long: dict[Hashable, None] = {}
        self._sizes: dict[Hashable, tuple[str, bool]] = {}  # in which version an object was large, or not
        self._thread: ThreadPoolExecutor | None = None
        self.steps = 0  # that ran in the thread

    async def step(
        self,
        key: Hashable,
        subject: Callable[[], Any],
        steps: Reconcile,
        answers: Sequence[Answer] | None,
        spent: Callable[[float], None] = lambda _: None,
    ) -> Step | Result:
        """The next step of a reconcile, or its end. `subject`: the object that it is about. `spent` is told how much
        processor time it took, there or here: the interpreter is one."""
        if key in self._long or (answers is None and self._is_large(key, subject())):
            self._remember(key)
            return await self._in_thread(steps, answers, spent)
        began = time.thread_time()
        try:
            return advance(steps, answers)
        finally:
            took = time.thread_time() - began
            spent(took)
            if took > _LONG:
                self._remember(key)

    def _is_large(self, key: Hashable, obj: Any) -> bool:
        """Looked at once for each of its versions: a workload is reconciled many times in between. What is gone is
        forgotten: its last reconcile finds nothing."""
        if obj is None:
            self._sizes.pop(key, None)
            return False
        version = (obj.get("metadata") or {}).get("resourceVersion") if isinstance(obj, dict) else None
        if not version:
            return is_large(obj)
        known = self._sizes.get(key)
        if known is None or known[0] != version:
            if len(self._sizes) >= _REMEMBERED:
                self._sizes.clear()
            known = self._sizes[key] = (version, is_large(obj))
        return known[1]

    def forget(self) -> None:
        """How large objects are, which is looked up again. Not which were long: that is known when it is too late."""
        self._sizes.clear()

    def _remember(self, key: Hashable) -> None:
        self._long.pop(key, None)
        if len(self._long) >= _REMEMBERED:
            del self._long[next(iter(self._long))]
        self._long[key] = None

    async def _in_thread(
        self, steps: Reconcile, answers: Sequence[Answer] | None, spent: Callable[[float], None]
    ) -> Step | Result:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "reconcile")
        self.steps += 1
        took = 0.0

        def timed() -> Step | Result:
            nonlocal took
            began = time.thread_time()
            try:
                return advance(steps, answers)
            finally:
                took = time.thread_time() - began

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, timed)
        finally:
            spent(took)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)


def advance(steps: Reconcile, answers: Sequence[Answer] | None) -> Step | Result:
    try:
        return next(steps) if answers is None else steps.send(answers)
    except StopIteration as end:
        found: Result = end.value
        return found


def end(steps: Reconcile) -> None:
    """Whoever was cancelled leaves a thread behind that ends by itself."""
    with suppress(ValueError):
        steps.close()


def is_large(obj: Any) -> bool:
    """Whether there is more in it than a step takes in passing."""
    left, waiting = _LARGE, [obj] if isinstance(obj, (dict, list)) else []
    while waiting:
        one = waiting.pop()
        left -= len(one)
        if left < 0:
            return True  # before its items are looked at: they may be a hundred thousand
        inside = one.values() if isinstance(one, dict) else one
        waiting.extend([item for item in inside if isinstance(item, (dict, list))])
    return False
