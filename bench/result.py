"""What a benchmark says: a time, what was promised, and a time of something known from the same run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    seconds: float
    promise: float | None = None  # seconds

    @property
    def broken(self) -> bool:
        return self.promise is not None and self.seconds > self.promise

    def line(self, width: int) -> str:
        promise = f"  promised < {self.promise * 1e3:.0f} ms" if self.promise else ""
        verdict = "" if self.promise is None else "  BROKEN" if self.broken else "  ok"
        ratio = self.seconds / yardstick()
        return f"{self.name:<{width}}  {self.seconds * 1e3:8.1f} ms  {ratio:6.1f} x yardstick{promise}{verdict}"


def best(work: Callable[[], object], times: int = 5) -> float:
    """The shortest of some runs: what the work costs when the machine does nothing else."""
    spans = []
    for _ in range(times):
        begin = perf_counter()
        work()
        spans.append(perf_counter() - begin)
    return min(spans)


@cache
def yardstick() -> float:
    """A megabyte of JSON through the standard library: says how fast this machine is today."""
    value = [
        {"name": f"pod-{number}", "labels": {"a": "b", "c": str(number)}, "cpu": number} for number in range(16_000)
    ]
    return best(lambda: json.loads(json.dumps(value)))
