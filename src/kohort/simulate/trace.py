"""Traces: which jobs come when, what they ask for and how long they run; which nodes fail.

cluster:                       # as for kohort up --cluster; --cluster names another
  pools: [{name: gpu, count: 8, capacity: {cpu: 64, nvidia.com/gpu: 8}}]
jobs:
- {name: train, at: 0, pods: 4, requests: {cpu: 8, nvidia.com/gpu: 8}, duration: 600}
- {name: sweep, at: 60, every: 30, count: 20, requests: {nvidia.com/gpu: 1}, duration: 120, user: ana}
failures:
- {node: gpu-3, at: 300, for: 120}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.api.errors import FieldError, invalid, required
from kohort.apimachinery.quantity import well_formed
from kohort.yamlread import ManifestError, load

MOST_JOBS: Final = 1_000_000
MOST_PODS: Final = 100_000  # of one job
_MEMBERS: Final = (
    *("name", "at", "pods", "requests", "duration", "priority", "user", "topology", "minimum", "count", "every"),
)


@dataclass(frozen=True, slots=True)
class TraceJob:
    """Equal pods that start together. Times are seconds; `at` counts from the beginning of the trace."""

    name: str
    at: float
    duration: float
    pods: int = 1
    requests: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    user: str = ""
    topology: str = ""  # a label key: all in one domain of it
    minimum: int = 0  # so many start together; 0: all


@dataclass(frozen=True, slots=True)
class NodeFailure:
    """A node that is gone with all its pods, and comes back empty. `seconds` 0: it does not."""

    node: str
    at: float
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Trace:
    """`cluster`: the pools that the trace itself names, as a cluster file has them; None: it names none."""

    jobs: tuple[TraceJob, ...]
    failures: tuple[NodeFailure, ...] = ()
    cluster: Any = None
    notes: tuple[str, ...] = ()  # what was left out, and why


class TraceError(ValueError):
    """All that is wrong with a trace."""

    def __init__(self, errors: list[FieldError] | list[str]) -> None:
        self.errors = [str(one) for one in errors]
        super().__init__("\n".join(self.errors))


def read_yaml(text: str) -> Trace:
    try:
        document, _ = load(text, 1)
    except ManifestError as error:
        raise TraceError([str(error)]) from None
    errors: list[FieldError] = []
    if not isinstance(document, dict):
        raise TraceError([invalid("", document, "a trace is one YAML document with a list of jobs")])
    errors += [
        invalid(str(name), value, "not known; accepted are cluster, jobs, failures")
        for name, value in document.items()
        if name not in {"cluster", "jobs", "failures"}
    ]
    jobs = document.get("jobs")
    if not isinstance(jobs, list) or not jobs:
        errors.append(required("jobs", "a list of jobs"))
        jobs = []
    found = [one for number, entry in enumerate(jobs) for one in _jobs(entry, f"jobs[{number}]", errors)]
    failures = document.get("failures") or []
    if not isinstance(failures, list):
        errors.append(invalid("failures", failures, "accepted is a list of {node, at, for}"))
        failures = []
    gone = [_failure(entry, f"failures[{number}]", errors) for number, entry in enumerate(failures)]
    if not errors and len(found) > MOST_JOBS:
        errors.append(invalid("jobs", len(found), f"accepted are at most {MOST_JOBS:,} jobs"))
    if errors:
        raise TraceError(errors)
    return Trace(tuple(found), tuple(one for one in gone if one is not None), document.get("cluster"))


def _jobs(entry: Any, path: str, errors: list[FieldError]) -> Iterator[TraceJob]:
    if not isinstance(entry, dict):
        errors.append(invalid(path, entry, f"accepted is a mapping with {', '.join(_MEMBERS)}"))
        return
    wrong = len(errors)
    errors += [
        invalid(f"{path}.{name}", value, f"not known; accepted are {', '.join(_MEMBERS)}")
        for name, value in entry.items()
        if name not in _MEMBERS
    ]
    at = _number(entry, "at", path, errors, default=0.0)
    every = _number(entry, "every", path, errors, default=0.0)
    duration = _number(entry, "duration", path, errors)
    pods = _whole(entry, "pods", path, errors, least=1, most=MOST_PODS, default=1)
    count = _whole(entry, "count", path, errors, least=1, most=MOST_JOBS, default=1)
    minimum = _whole(entry, "minimum", path, errors, least=0, most=pods, default=0)
    priority = _whole(entry, "priority", path, errors, least=-(2**31), most=10**9, default=0)
    requests = _requests(entry.get("requests"), f"{path}.requests", errors)
    name = str(entry.get("name") or path.replace("[", "-").replace("]", ""))
    user, topology = str(entry.get("user") or ""), str(entry.get("topology") or "")
    if len(errors) > wrong:
        return
    for number in range(count):
        called = name if count == 1 else f"{name}-{number}"
        yield TraceJob(called, at + number * every, duration, pods, requests, priority, user, topology, minimum)


def _failure(entry: Any, path: str, errors: list[FieldError]) -> NodeFailure | None:
    if not isinstance(entry, dict) or not set(entry) <= {"node", "at", "for"} or not entry.get("node"):
        errors.append(invalid(path, entry, "accepted is {node, at, for}"))
        return None
    at = _number(entry, "at", path, errors, default=0.0)
    return NodeFailure(str(entry["node"]), at, _number(entry, "for", path, errors, default=0.0))


def _number(
    entry: Mapping[str, Any], name: str, path: str, errors: list[FieldError], default: float | None = None
) -> float:
    value = entry.get(name, default)
    if value is None:
        errors.append(required(f"{path}.{name}", "seconds"))
    elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
        errors.append(invalid(f"{path}.{name}", value, "accepted are seconds, from 0 to 1000000000"))
    else:
        return float(value)
    return 0.0


def _whole(
    entry: Mapping[str, Any], name: str, path: str, errors: list[FieldError], *, least: int, most: int, default: int
) -> int:
    value = entry.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        errors.append(invalid(f"{path}.{name}", value, f"accepted is a whole number from {least} to {most}"))
        return default
    return value


def _requests(given: Any, path: str, errors: list[FieldError]) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        errors.append(invalid(path, given, "accepted is a mapping of resources to quantities"))
        return {}
    for name, amount in given.items():
        if not well_formed(amount):
            errors.append(invalid(f"{path}.{name}", amount, "not a quantity; accepted is for example 8, 500m, 16Gi"))
    return {str(name): str(amount) for name, amount in given.items()}
