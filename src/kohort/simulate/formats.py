"""Traces of others: the Standard Workload Format of the Parallel Workloads Archive, and tables as CSV."""

from __future__ import annotations

import csv
import io
import re
from typing import Any, Final

from kohort.apimachinery.quantity import well_formed
from kohort.simulate.trace import MOST_JOBS, Trace, TraceError, TraceJob

_SWF_FIELDS: Final = 18
_HEADER: Final = re.compile(r";\s*(MaxProcs|MaxNodes):\s*(\d+)")
_KNOWN: Final = ("arrival", "duration", "pods", "name", "user", "priority", "topology", "minimum")
_SHOWN: Final = 20  # mistakes


def read_swf(text: str) -> Trace:
    """Every job is a gang of as many pods as it had processors, each with one cpu.

    Without a cluster of its own the trace runs on as many nodes of one cpu as its header says there were processors.
    """
    jobs: list[TraceJob] = []
    processors, errors, left_out = 0, [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(";"):
            found = _HEADER.match(line)
            processors = max(processors, int(found[2])) if found else processors
            continue
        fields = line.split()
        if not fields:
            continue
        try:
            values = [float(one) for one in fields]
        except ValueError:
            values = []
        if len(values) != _SWF_FIELDS:
            errors.append(f"line {number}: found {len(fields)} fields, accepted are {_SWF_FIELDS} numbers")
            continue
        pods, duration = int(values[4] if values[4] > 0 else values[7]), values[3]
        if pods <= 0 or duration <= 0 or values[1] < 0:
            left_out += 1  # cancelled before it began, or nobody knows
            continue
        user = f"user-{int(values[11])}" if values[11] >= 0 else ""
        jobs.append(TraceJob(f"job-{int(values[0])}", values[1], duration, pods, {"cpu": "1"}, user=user))
    _check(jobs, errors)
    largest = processors or max(one.pods for one in jobs)
    node = {"name": "node", "count": largest, "capacity": {"cpu": 1, "memory": "1Ti", "pods": 10}}
    notes = (f"{left_out} jobs without processors or running time are left out",) if left_out else ()
    return Trace(tuple(jobs), cluster={"pools": [node]}, notes=notes)


def read_csv(text: str) -> Trace:
    """A line for each job: arrival and duration in seconds, pods, and a column for each resource of a pod."""
    rows = csv.DictReader(io.StringIO(text))
    names = [name.strip() for name in rows.fieldnames or ()]
    missing = [name for name in ("arrival", "duration") if name not in names]
    if missing:
        accepted = "arrival, duration, pods, name, user, priority, topology, minimum, and resources such as cpu"
        raise TraceError([f"line 1: no column {' and '.join(missing)}; accepted are {accepted}"])
    resources = [name for name in names if name not in _KNOWN]
    jobs: list[TraceJob] = []
    errors: list[str] = []
    for number, raw in enumerate(rows, 2):
        row = {str(name).strip(): str(value or "").strip() for name, value in raw.items() if name is not None}
        before = len(errors)
        values = {name: _value(row, name, number, errors) for name in ("arrival", "duration")}
        whole = {name: int(_value(row, name, number, errors, 0)) for name in ("pods", "priority", "minimum")}
        requests = {name: row[name] for name in resources if row.get(name) not in {None, "", "0"}}
        errors += [
            f"line {number}: {name}: {amount!r} is not a quantity"
            for name, amount in requests.items()
            if not well_formed(amount)
        ]
        if len(errors) == before:
            name = row.get("name") or f"job-{number - 1}"
            more: dict[str, Any] = {"user": row.get("user", ""), "topology": row.get("topology", "")}
            more |= {"priority": whole["priority"], "minimum": whole["minimum"]}
            jobs.append(TraceJob(name, values["arrival"], values["duration"], max(1, whole["pods"]), requests, **more))
    _check(jobs, errors)
    return Trace(tuple(jobs))


def _value(row: dict[str, str], name: str, line: int, errors: list[str], default: float | None = None) -> float:
    text = row.get(name, "")
    if not text and default is not None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0 if name != "priority" else float("nan")
    if not (0 <= value <= 1e9 or (name == "priority" and abs(value) < 2**31)):
        errors.append(f"line {line}: {name}: {text!r} is not accepted; a number, 0 or more")
        return 0.0
    return value


def _check(jobs: list[TraceJob], errors: list[str]) -> None:
    if errors:
        more = [f"and {len(errors) - _SHOWN} more"] if len(errors) > _SHOWN else []
        raise TraceError(errors[:_SHOWN] + more)
    if not jobs:
        raise TraceError(["no job is in it"])
    if len(jobs) > MOST_JOBS:
        raise TraceError([f"{len(jobs):,} jobs; accepted are at most {MOST_JOBS:,}"])
