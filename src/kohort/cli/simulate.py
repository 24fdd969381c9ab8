"""`kohort simulate`: a trace on a described cluster in virtual time; numbers, JSON, a report."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from kohort.api.kind import Object
from kohort.cli.common import UsageError, as_json, choice, friendly, out, say, write
from kohort.cli.lines import Hanging
from kohort.cli.up import read_pools, read_profile
from kohort.place.profile import Profile
from kohort.sim.cluster import ClusterFileError, Pool, read
from kohort.simulate.formats import read_csv, read_swf
from kohort.simulate.history import is_snapshot, read_history
from kohort.simulate.metrics import measure
from kohort.simulate.report import Run, html, rows_of
from kohort.simulate.run import Simulation
from kohort.simulate.trace import Trace, TraceError, read_yaml
from kohort.yamlread import ManifestError, load

_READERS = {"swf": read_swf, "csv": read_csv}


@dataclass(frozen=True, slots=True)
class Setting:
    """What one column is about."""

    name: str
    nodes: tuple[Object, ...]
    profile: Profile | None


@friendly
def run(
    trace: str, more: Sequence[str], output: str, *, cluster: str, profile: str, compare: Sequence[str], report: str
) -> int:
    """`more`: files after the trace, which go with --compare."""
    choice("-o", output, ("text", "json"))
    if more and not compare:
        raise UsageError(f"{more[0]}: one trace is run; --compare FILE runs it with another cluster or profile as well")
    _check_report(report)
    found, own = _read(trace)
    base = Setting(
        Path(cluster).stem if cluster else Path(trace).name.partition(".")[0],
        _nodes(read_pools(cluster)) if cluster else own or _nodes(_own_pools(trace, found)),
        read_profile("--profile", profile),
    )
    runs = [_run(found, one) for one in (base, *(_other(base, file) for file in (*compare, *more)))]
    notes = _notes(found, runs)
    if report:
        _write_report(report, f"{Path(trace).name}: {len(found.jobs):,} jobs", runs, notes)
    if output == "json":
        write(as_json([{"name": one.name, **asdict(one.metrics)} for one in runs]))
    else:
        _print(runs, notes)
    return 0


# ---- what is asked


def _read(path: str) -> tuple[Trace, tuple[Object, ...]]:
    """The trace, and the nodes of its own that a snapshot has."""
    suffix = Path(path).name.removesuffix(".gz").rpartition(".")[2].lower()
    try:
        raw = Path(path).read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        if suffix == "json" and is_snapshot(document := msgspec.json.decode(text)):
            trace, nodes = read_history(document)
            return trace, tuple(nodes)
        return _READERS.get(suffix, read_yaml)(text), ()
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: {error}") from None
    except TraceError as error:
        raise UsageError("\n".join(f"{path}: {line}" for line in error.errors)) from None


def _nodes(pools: tuple[Pool, ...]) -> tuple[Object, ...]:
    return tuple(node for pool in pools for node in pool.nodes())


def _own_pools(path: str, trace: Trace) -> tuple[Pool, ...]:
    if trace.cluster is None:
        kept = Path(path).name.removesuffix(".gz").rpartition(".")[2].lower() in _READERS
        add = "use" if kept else "add `cluster: {pools: [...]}`, or use"
        raise UsageError(f"{path}: the trace names no cluster; {add} --cluster FILE")
    try:
        return read(msgspec.json.encode(trace.cluster).decode())
    except ClusterFileError as error:
        raise UsageError("\n".join(f"{path}: cluster.{line}" for line in str(error).splitlines())) from None


def _other(base: Setting, file: str) -> Setting:
    """A file with pools is another cluster, any other another profile."""
    try:
        document, _ = load(Path(file).read_text(), 1)
    except OSError as error:
        raise UsageError(f"--compare {file}: cannot be read: {error.strerror}") from None
    except ManifestError as error:
        raise UsageError(f"--compare {file}: {error}") from None
    name = Path(file).stem
    if isinstance(document, dict) and "pools" in document:
        return replace(base, name=name, nodes=_nodes(read_pools(file, "--compare")))
    return replace(base, name=name, profile=read_profile("--compare", file))


# ---- running


def _run(trace: Trace, setting: Setting) -> Run:
    names = {node["metadata"]["name"] for node in setting.nodes}
    for failure in trace.failures:
        if failure.node not in names:
            say("warning", f"failures: there is no node {failure.node} in {setting.name}")
    with _progress(setting.name, len(trace.jobs)) as told:
        outcome = Simulation(trace, setting.nodes, setting.profile, told).run()
    return Run(setting.name, outcome, measure(outcome))


@contextmanager
def _progress(name: str, jobs: int) -> Iterator[Any]:
    """A bar for people who wait; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TextColumn("jobs"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=jobs)
        yield lambda done, _: bar.update(task, completed=done)


# ---- telling


def _notes(trace: Trace, runs: Sequence[Run]) -> list[str]:
    found = list(trace.notes)
    for one in runs:
        if one.metrics.never_started:
            names = ", ".join(run.job.name for run in one.outcome.never_started[:5])
            found.append(f"{one.name}: {one.metrics.never_started} jobs never started: {names}")
    return found


def _print(runs: Sequence[Run], notes: Sequence[str]) -> None:
    table = Table(box=None, pad_edge=False, show_header=len(runs) > 1)
    table.add_column("")
    for one in runs:
        table.add_column(one.name, justify="right")
    for label, shown in rows_of(runs[0].metrics.resource):
        table.add_row(label, *(shown(one.metrics) for one in runs))
    out.print(table)
    for note in notes:
        out.print(Hanging(note))


def _check_report(path: str) -> None:
    """Before a run that may take a minute."""
    if path and Path(path).is_dir():
        raise UsageError(f"--report {path}: is a directory; a file is wanted")
    if path and not Path(path).absolute().parent.is_dir():
        raise UsageError(f"--report {path}: there is no directory {Path(path).parent}")


def _write_report(path: str, title: str, runs: Sequence[Run], notes: Sequence[str]) -> None:
    try:
        Path(path).write_text(html(title, runs, notes))
    except OSError as error:
        raise UsageError(f"--report {path}: {error.strerror}") from None
