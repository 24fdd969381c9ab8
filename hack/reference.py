"""The reference pages that follow from code: commands, reasons, conditions, metrics. `python hack/generated.py` writes
them, a test compares. Settings have a page of their own (hack/settings_page.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from kohort.api.scheduling import constants as groups
from kohort.cli.main import app
from kohort.controllers import gangquota
from kohort.kinds.grove.api import constants as grove
from kohort.kinds.jobset.api import constants as jobset
from kohort.kinds.leaderworkerset.api import constants as lws
from kohort.kinds.trainer.api import constants as trainer
from kohort.place.demand import MEANINGS, Reason

ROOT: Final = Path(__file__).parent.parent
_MADE: Final = "<!-- Made by hack/reference.py from the code: run `python hack/generated.py`. -->\n\n"

# ---- commands


def cli_page() -> str:
    head = "`kubectl kohort …` is the same as `kohort …`. `kohort COMMAND --help` says the same as this page.\n"
    parts = [f"# Commands\n\n{_MADE}{head}"]
    context = click.Context(app, info_name="kohort")
    parts.append("\n| command | |\n|---|---|\n")
    for name, command in app.commands.items():
        parts.append(f"| [`kohort {name}`](#kohort-{name}) | {_line(command)} |\n")
    for name, command in app.commands.items():
        parts += _command(command, click.Context(command, context, info_name=name), f"kohort {name}")
    return "".join(parts)


def _line(command: click.Command) -> str:
    """The first sentence of its help."""
    return _cell((command.help or "").partition("\n\n")[0])


def _command(command: click.Command, context: click.Context, called: str) -> Iterator[str]:
    level = "##" if called.count(" ") == 1 else "###"
    yield f"\n{level} {called}\n\n{_paragraphs(command)}\n"
    usage = " ".join(filter(None, command.collect_usage_pieces(context)))
    yield f"\n```text\n{called} {usage}\n```\n"
    rows = [_option(one, context) for one in command.params if isinstance(one, click.Option) and not one.hidden]
    if rows:
        yield "\n| option | default | |\n|---|---|---|\n"
        yield from rows
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from _command(one, click.Context(one, context, info_name=name), f"{called} {name}")


def _paragraphs(command: click.Command) -> str:
    text = (command.help or "").replace("\b", "").strip()
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _option(one: click.Option, context: click.Context) -> str:
    record = one.get_help_record(context)
    says = (record[1] if record else one.help) or ""
    says = says.partition("  [")[0]
    names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    metavar = "" if one.is_flag else f" `{one.make_metavar(context)}`"
    said = isinstance(one.default, str | int) and not isinstance(one.default, bool) and one.default != ""
    default = f"`{one.default}`" if said else ""
    return f"| {names}{_cell(metavar)} | {default} | {_cell(says)} |\n"


def _cell(text: str) -> str:
    """Of a table: words in angle brackets are words, not HTML."""
    kept = " " if text.startswith(" ") else ""
    return kept + " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# ---- reasons


def reasons_table() -> str:
    rows = (f"| `{reason.value}` | {MEANINGS[reason].means} |\n" for reason in Reason)
    return "".join(("| reason | what it means |\n|---|---|\n", *rows))


def reasons_page() -> str:
    head = (
        f"# Reasons\n\n{_MADE}Why a group waits, in `kohort explain`, in the queue of the dashboard, in messages of "
        "conditions and events. `kohort explain NAME` adds numbers, the nearest miss and the smallest change after "
        "which it fits.\n\n"
        "| reason | what it means | what helps |\n|---|---|---|\n"
    )
    rows = (f"| `{one.value}` | {MEANINGS[one].means} | {MEANINGS[one].helps} |\n" for one in Reason)
    # The page of the scheduler is a folder up from here.
    return head + "".join(rows).replace("](#faults)", "](../scheduler.md#faults)").replace("](search", "](../search")


# ---- conditions


CONDITIONS: Final[dict[str, dict[str, str]]] = {
    "PodGroup": {
        groups.POD_GROUP_INITIALLY_SCHEDULED: "1.37: True once it had its minimum; it stays True. False: why it waits",
        groups.POD_GROUP_SCHEDULED: "the same, on Kubernetes 1.36",
        groups.POD_GROUP_SATISFIED: "Kohort's own: whether it has its minimum now, and not only once",
        groups.DISRUPTION_TARGET: "it is to be disrupted as a whole",
    },
    "CompositePodGroup": {
        groups.COMPOSITE_INITIALLY_SCHEDULED: "True once enough of its groups had theirs",
        groups.COMPOSITE_SATISFIED: "whether enough of its groups have theirs now",
    },
    "Pod": {
        "PodScheduled": "False with the reason and what would help, while it waits",
        groups.DISRUPTION_TARGET: f"reason {groups.REASON_PREEMPTION}: it makes room for another",
    },
    "Job": {
        gangquota.CONDITION: "a gang of which no pod is created, since a ResourceQuota has no room for all of them",
    },
    "JobSet": {
        jobset.COMPLETED: "it has ended well",
        jobset.FAILED: "it has ended badly; the message says by which rule",
        jobset.SUSPENDED: "spec.suspend is true",
        jobset.RESTARTING: "its Jobs are being made again",
        jobset.IN_PROGRESS: "its ReplicatedJobs start one after the other",
        jobset.STARTED: "all of them have started",
    },
    "TrainJob": {
        trainer.COMPLETE: "the training has ended well",
        trainer.FAILED: "it has ended badly, or what it asks for cannot be",
        trainer.SUSPENDED: "spec.suspend is true",
    },
    "PodCliqueSet, PodClique, PodCliqueScalingGroup, PodGang, ClusterTopologyBinding": {
        grove.SCHEDULED: "of a PodClique: minAvailable of its pods have nodes",
        grove.BREACHED: "fewer than minAvailable are there",
        grove.TERMINATING: "the gang is being ended, since it stayed below its minimum",
        grove.LEVELS_UNAVAILABLE: "of a PodCliqueSet: its topology names a level that the binding does not have",
        grove.INITIALIZED: "of a PodGang: all its pods are made",
        grove.BACKEND_READY: "of a PodGang: its groups are made and as they should be",
        grove.GANG_SCHEDULED: "of a PodGang: enough pods of each of its groups have nodes",
        grove.DRIFT: "of a ClusterTopologyBinding: the scheduler sees other levels",
    },
    "LeaderWorkerSet": {
        lws.PROGRESSING[0]: "groups are on their way",
        lws.AVAILABLE[0]: "all groups are ready",
        lws.UPDATING[0]: "a rolling update is under way",
        lws.SCHEDULING_CREATED: "its Workload and groups are made",
    },
}


def conditions_page() -> str:
    words = (
        *(groups.REASON_SCHEDULED, groups.REASON_SATISFIED, groups.REASON_BELOW_MINIMUM),
        *(groups.REASON_UNSCHEDULABLE, groups.REASON_SCHEDULER_ERROR, groups.REASON_INVALID),
    )
    head = (
        f"# Conditions\n\n{_MADE}What `kubectl describe` and the dashboard show of `status.conditions`. Reasons that "
        f"the scheduler gives are {', '.join(f'`{word}`' for word in words)}; its messages begin with one of "
        "[these words](reasons.md).\n"
    )
    parts = [head]
    for kind, found in CONDITIONS.items():
        parts.append(f"\n## {kind}\n\n| condition | |\n|---|---|\n")
        parts += [f"| `{name}` | {says} |\n" for name, says in found.items()]
    return "".join(parts)


# ---- metrics

_SORTS: Final = {"Counter": "counter", "Gauge": "gauge", "Histogram": "histogram"}
_SOURCES: Final = {
    "Scheduler": "scheduler/metrics.py",
    "Controllers": "controllers/metrics.py",
    "API server of kohort up": "server/metrics.py",
    "Worker processes of kohort up": "server/workers/pool.py",
    "Event loop": "kube/watchdog.py",
    "Leadership, of kohort run": "run/process.py",
}


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    sort: str
    says: str
    labels: tuple[str, ...]


def metrics_sources() -> list[Path]:
    return [ROOT / "src" / "kohort" / path for path in _SOURCES.values()]


def metrics(path: Path) -> Iterator[Metric]:
    """Every call in a module that makes a metric of a name that it says."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef):
            texts = _texts(function)
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and len(call.args) > 1:
                    sort = _SORTS.get(call.func.id.removesuffix("MetricFamily"))
                    if sort:
                        yield from _made(call, sort, texts)


def _made(call: ast.Call, sort: str, texts: dict[str, list[Any]]) -> Iterator[Metric]:
    names, says = (_values(one, texts) for one in call.args[:2])
    assert len(names) == len(says), f"line {call.lineno}: a metric of which no text was found"
    given = next((one.value for one in call.keywords if one.arg == "labels"), call.args[2] if call.args[2:] else None)
    labels = _labels(given, texts)
    for name, text in zip(names, says, strict=True):
        end = "_total" if sort == "counter" and not name.endswith("_total") else ""
        yield Metric(f"{name}{end}", sort, text, labels)


def _texts(function: ast.FunctionDef) -> dict[str, list[Any]]:
    """What names stand for: of assignments, one after the other, and of loops over tuples that are written out."""
    found: dict[str, list[Any]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Tuple):
            rows = [one.elts for one in node.iter.elts if isinstance(one, ast.Tuple)]
            for place, name in enumerate(node.target.elts):
                if isinstance(name, ast.Name):
                    found[f"{name.id} of each"] = [row[place] for row in rows]
    return found


def _values(node: ast.expr, texts: dict[str, list[Any]]) -> list[str]:
    if isinstance(node, ast.Name):
        every = texts.get(f"{node.id} of each")
        before = [one for one in texts.get(node.id, ()) if one.lineno <= node.lineno]
        chosen = every if every is not None else sorted(before, key=lambda one: int(one.lineno))[-1:]
        return [text for one in chosen for text in _values(one, texts)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)]
    return [str(node.value)] if isinstance(node, ast.Constant) else []


def _labels(node: ast.expr | None, texts: dict[str, list[Any]]) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return tuple(label for one in texts.get(node.id, ())[-1:] for label in _labels(one, texts))
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(
            label
            for one in node.elts
            for label in (
                [str(one.value)]
                if isinstance(one, ast.Constant)
                else _labels(one.value, texts)
                if isinstance(one, ast.Starred)
                else []
            )
        )
    return ()


def metrics_page() -> str:
    head = (
        f"# Metrics\n\n{_MADE}`kohort run` serves them at `/metrics` of its `--listen` address, `kohort up` at "
        "`/metrics` of its API. Those about scheduling have kube-scheduler's names where it has one. "
        "[Alerts](../alerts.md) are made of them.\n"
    )
    parts = [head]
    for title, path in _SOURCES.items():
        parts.append(f"\n## {title}\n\n| metric | type | labels | |\n|---|---|---|---|\n")
        for one in metrics(ROOT / "src" / "kohort" / path):
            labels = ", ".join(f"`{label}`" for label in one.labels)
            parts.append(f"| `{one.name}` | {one.sort} | {labels} | {_cell(one.says)} |\n")
    return "".join(parts)


def files() -> dict[Path, str]:
    folder = ROOT / "docs" / "reference"
    return {
        folder / "cli.md": cli_page(),
        folder / "reasons.md": reasons_page(),
        folder / "conditions.md": conditions_page(),
        folder / "metrics.md": metrics_page(),
    }
