"""A watchdog for the event loop: says what held it, in the log and as a metric, while it works in production.

Leases, probes and bindings share one loop with everything else, so whatever computes for long without giving it back
delays all of them. A timer of the loop writes down when it ran; a thread looks whether it is late, and while it is,
reads from the loop's stack which request, object or root is being worked on. Nothing on the way of a request or a
reconcile pays for that.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
from bisect import bisect_left
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from prometheus_client.core import Metric

log = logging.getLogger(__name__)

THRESHOLD: Final = 0.1  # seconds
_BEAT: Final = 0.025  # seconds between two timers of the loop
_STUCK: Final = 10  # thresholds after which a stall is logged that does not end
_FRAMES: Final = 6  # innermost ones that are logged
_BUCKETS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 15.0)
_LONGEST_NAME: Final = 300
_LOADING: Final = "importlib."


def _request(request: Any, user: Any) -> str:
    who = f" of {user.name}" if user is not None else ""
    return f"{request.method} {request.path}{who}"


# Functions that know what they work on: module, name -> its subject, from the function's local variables.
SUBJECTS: Final[dict[tuple[str, str], Callable[[dict[str, Any]], str]]] = {
    ("kohort.server.api", "handle"): lambda local: _request(local["request"], local["request"].user),
    ("kohort.server.http", "_handle"): lambda local: _request(local["incoming"], None),
    ("kohort.server.http", "_stream"): lambda local: _request(local["incoming"], None),
    ("kohort.controllers.runtime", "_worker"): lambda local: f"{local['self'].controller.name} {local['key']}",
    ("kohort.controllers.runtime", "_run"): lambda local: f"{local['self'].controller.name} {local['key']}",
    ("kohort.controllers.runtime", "_changed"): lambda local: f"{local['self'].controller.name} {local['watch'].named}",
    ("kohort.scheduler.schedulingcycle", "step"): lambda local: f"scheduling {local['entry'].key}",
}


class Watchdog:
    """Of the loop that `start` is called on. `stalls`: how often it was held longer than the threshold."""

    def __init__(self, threshold: float = THRESHOLD) -> None:
        self.threshold = threshold
        self.stalls = 0
        self.longest = 0.0
        self.longest_processor = 0.0  # what its thread computed itself, without what other work on the machine adds
        self._sum = 0.0
        self._buckets = [0] * (len(_BUCKETS) + 1)
        self._at = 0.0  # when the loop's timer ran last
        self._cpu = 0.0
        self._seen: tuple[str, str] | None = None  # subject and stack of the stall that is going on
        self._collecting = 0.0  # seconds since the last timer in which the interpreter looked for cycles of garbage
        self._collects_since = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ident = threading.get_ident()
        self._at, self._cpu = time.perf_counter(), time.thread_time()
        self._timer = self._loop.call_later(_BEAT, self._beat)
        gc.callbacks.append(self._collected)
        self._thread = threading.Thread(target=self._watch, name="event loop watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        with suppress(ValueError):
            gc.callbacks.remove(self._collected)
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None:
            self._thread.join(1.0)

    # ---- on the loop

    def _beat(self) -> None:
        now, cpu = time.perf_counter(), time.thread_time()
        held, used = now - self._at - _BEAT, cpu - self._cpu
        seen, self._seen = self._seen, None
        collecting, self._collecting = self._collecting, 0.0
        self._at, self._cpu = now, cpu
        if held >= self.threshold:
            self._count(held, used, collecting, seen)
        self._timer = self._loop.call_later(_BEAT, self._beat)

    def _collected(self, phase: str, _: Any) -> None:
        """In whatever thread the interpreter does it, everybody waits."""
        now = time.perf_counter()
        if phase == "start":
            self._collects_since = now
        else:
            self._collecting += now - self._collects_since

    def _count(self, held: float, used: float, collecting: float, seen: tuple[str, str] | None) -> None:
        self.stalls += 1
        self.longest = max(self.longest, held)
        self.longest_processor = max(self.longest_processor, used)
        self._sum += held
        self._buckets[bisect_left(_BUCKETS, held)] += 1
        subject, stack = seen or ("not seen", "over before its stack was read")
        if collecting > held / 2:
            subject = f"collecting garbage for {collecting:.3f} s, met by {subject}"
        log.warning(
            "the event loop was held for %.3f s (%.3f s of processor time) by %s: %s", held, used, subject, stack
        )

    # ---- in the thread

    def _watch(self) -> None:
        said = 0.0  # the stall, by its beginning, that was logged though it is not over
        while not self._stop.wait(_BEAT * 2):
            held = time.perf_counter() - self._at - _BEAT
            if held < self.threshold / 2:
                continue
            frame = sys._current_frames().get(self._ident)
            if self._seen is None and frame is not None:
                self._seen = describe(frame)
            if held >= self.threshold * _STUCK and said != self._at:
                said = self._at
                log.warning("the event loop has been held for %.1f s and still is, by %s: %s", held, *describe(frame))

    # ---- for Prometheus

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily

        text = f"Times for which the event loop was held longer than {self.threshold:g} s."
        total, buckets = 0, []
        for bound, number in zip((*map(str, _BUCKETS), "+Inf"), self._buckets, strict=True):
            total += number
            buckets.append((bound, float(total)))
        stalls = HistogramMetricFamily("kohort_event_loop_stall_seconds", text)
        stalls.add_metric([], buckets, self._sum)
        yield stalls
        yield GaugeMetricFamily("kohort_event_loop_longest_stall_seconds", "The longest of them.", self.longest)
        text = "The most that the loop's thread itself computed in one of them."
        yield GaugeMetricFamily("kohort_event_loop_longest_stall_processor_seconds", text, self.longest_processor)


def describe(frame: FrameType | None) -> tuple[str, str]:
    """What a stack works on, and where it is."""
    subject = ""
    places: list[str] = []
    while frame is not None:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if len(places) < _FRAMES and not module.startswith(_LOADING):  # who loads a module says more than how
            places.append(f"{module}.{name}:{frame.f_lineno}")
        find = SUBJECTS.get((module, name)) if not subject else None
        if find is not None:
            try:
                subject = find(frame.f_locals)
            except (KeyError, AttributeError, TypeError):  # not bound yet
                subject = ""
        frame = frame.f_back
    shown = "".join(sign if sign.isprintable() else "�" for sign in subject[:_LONGEST_NAME])
    return shown or "something else", " < ".join(places)


@contextmanager
def watching(threshold: float = THRESHOLD) -> Iterator[Watchdog]:
    """For the time of the block, on the loop that runs."""
    made = Watchdog(threshold)
    made.start()
    try:
        yield made
    finally:
        made.stop()
