"""Answers of `kohort explain` as people read them: first what and since when, then why, then what would help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from kohort.api.scheduling.constants import REASON_SCHEDULER_ERROR
from kohort.apimachinery import times
from kohort.cli.common import count
from kohort.cli.lines import JOINED, Hanging
from kohort.cli.lookup import Found
from kohort.place.demand import Reason
from kohort.place.explain import Explanation
from kohort.place.networkstanding import Standing
from kohort.scheduler.rootstatus import (
    FITS_NOW,
    GroupPlacement,
    RootState,
    RootStatus,
    named,
    reason_and_message,
    remedies,
)

_DIM = "dim"
_WIDTH = 11


@dataclass(frozen=True, slots=True)
class Extent:
    """How many of each kind are told before "and so many more"."""

    nodes: int = 6  # and pods
    domains: int = 16  # lines of a map of ranks
    children: int = 8  # groups of a tree that fail, of each group


SHORT: Final = Extent()
WHOLE: Final = Extent(1_000_000, 1_000_000, 1_000_000)  # of -o wide


def page(found: Found, answers: Sequence[RootStatus], now: datetime, shown: Extent = SHORT) -> RenderableType:
    title = Text.assemble(f"{found.kind} ", (found.name, "bold"), f" in {found.namespace}")
    if not answers:
        return Hanging(Text.assemble(title, ": ", found.note))
    lines: list[RenderableType] = [Hanging(Text.assemble(title, *_summary(answers, now, whose=_whose(found, answers))))]
    for answer in answers:
        lines.append(Text(""))
        itself = len(answers) == 1 and (answer.kind, answer.name) == (found.kind, found.name)
        lines += answer_lines(answer, alone=itself, shown=shown)
    lines += [label_line("preempted", said) for said in found.preempted]
    return Lines(*lines)


def _whose(found: Found, answers: Sequence[RootStatus]) -> str:
    """A pod has no pods: it is one, alone or of a group."""
    if found.kind != "Pod":
        return "its"
    return "" if all(answer.kind == "Pod" for answer in answers) else "its group's"


def _summary(answers: Sequence[RootStatus], now: datetime, *, whose: str = "its") -> tuple[str | tuple[str, str], ...]:
    """One sentence: does it run, and if not, how long has it waited."""
    pending, placed = sum(one.pending for one in answers), sum(one.placed for one in answers)
    finished = sum(one.finished for one in answers)
    ended = f"; {count(finished, 'pod')} succeeded" if finished else ""
    missing = sum(one.missing for one in answers)
    if not pending and placed and missing:
        few = f"{placed} of at least {placed + missing} pods exist"
        return " runs in part: ", (few, "yellow"), f"; {'it has a node' if placed == 1 else 'they have nodes'}{ended}"
    if not pending:
        if placed:
            return " ", ("runs", "green"), f": {_all(placed, whose)}{ended}"
        return (f" has no pods that need a node{ended}",)
    since = min(one.since for one in answers if one.pending)
    length = f" for {_length(since, now)}" if since else ""
    if placed:
        return " runs in part: ", (f"{pending} of {pending + placed} pods wait", "yellow"), f"{length}{ended}"
    return " ", ("waits", "yellow"), f"{length}: {_none(pending, whose)}{ended}"


def _all(number: int, whose: str) -> str:
    if number == 1:
        return f"{whose} pod has a node" if whose else "it has a node"
    return f"all {number} pods have nodes"


def _none(number: int, whose: str) -> str:
    if number == 1:
        return f"{whose} pod has no node" if whose else "it has no node"
    return f"none of {whose} {number} pods has a node"


def _length(since: str, now: datetime) -> str:
    return f"{age(since, now)} (since {since})".lstrip()


def age(since: str, now: datetime) -> str:
    try:
        seconds = int((now - times.moment(since)).total_seconds())
    except ValueError:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{max(seconds, 0)} s"


# ---- all that waits, one line each


def waiting_table(
    statuses: Sequence[RootStatus], now: datetime, *, everywhere: bool, wide: bool
) -> list[tuple[str, ...]]:
    """In columns, as kubectl prints lists."""
    more = ("PODS", "PRIORITY", "SCHEDULER") if wide else ()
    rows: list[tuple[str, ...]] = [("NAMESPACE", "KIND", "NAME", "REASON", "WAITS", *more, "MESSAGE")]
    for one in statuses:
        reason, message = reason_and_message(one)
        more = (str(one.pending), str(one.priority), one.scheduler or "-") if wide else ()
        rows.append((one.namespace, one.kind, one.name, reason, age(one.since, now) or "-", *more, message))
    return rows if everywhere else [row[1:] for row in rows]


# ---- one root


def answer_lines(
    answer: RootStatus, *, alone: bool, planned: bool = False, shown: Extent = SHORT
) -> Iterator[RenderableType]:
    """One root below its title; `alone`: it is the only one. `planned`: nothing of it has happened yet."""
    if not alone:
        yield Hanging(Text.assemble(f"{answer.kind} ", (answer.name, "bold"), (f"  {_state(answer)}", _DIM)))
    for place in answer.places:
        yield label_line("where" if planned else "runs on", _where(place, answer, shown))
        yield from standing_lines(place.standing, shown)
    if answer.explanation is not None:
        yield from _why(answer.explanation, answer, shown)
    elif answer.pending:
        yield from _fits(answer, shown)
    if answer.victims:
        going = some(answer.victims, shown.nodes)
        yield label_line("who goes", f"{count(len(answer.victims), 'pod')} of lower priority: {going}")
    if answer.spares:
        yield label_line("spares", some(answer.spares, shown.nodes))
    for said in answer.healing:
        yield label_line("healing", Text(said, "yellow"))
    if answer.grouped:
        queue = f", queue {answer.queue}" if answer.queue else ""
        yield label_line("group", f"{answer.grouped.removeprefix('grouped ')}{queue}", _DIM)
    if answer.pending:
        yield label_line("scheduler", f"{answer.scheduler}, priority {answer.priority}", _DIM)


def _state(answer: RootStatus) -> str:
    waits = f"{count(answer.pending, 'pod')} {'waits' if answer.pending == 1 else 'wait'}"
    words = {
        RootState.RUNNING: "runs",
        RootState.PARTLY: f"{answer.pending} of {answer.pending + answer.placed} pods wait"
        if answer.pending
        else f"{answer.placed} of at least {answer.placed + answer.missing} pods exist",
        RootState.WAITING: waits,
        RootState.FITS: f"{waits}, but would fit now",
        RootState.EMPTY: "has no pods that need a node",
    }
    return words[answer.state]


def _fits(answer: RootStatus, shown: Extent) -> Iterator[RenderableType]:
    if answer.scheduler_error:
        said = "  (it is tried again and again, each time a little later)"
        yield Hanging(Text.assemble("  ", (REASON_SCHEDULER_ERROR, "bold yellow"), said))
        yield label_line("", answer.scheduler_error)
        return
    yield label_line("", Text(FITS_NOW, "green"))
    for place in answer.would_go:
        yield label_line("would go", _where(place, answer, shown))
    yield label_line("if it lasts", f"look whether the scheduler {answer.scheduler} runs, and for its events")


def _where(place: GroupPlacement, answer: RootStatus, shown: Extent) -> str:
    nodes = some([f"{node}{JOINED}({pods})" if pods > 1 else node for node, pods in place.nodes.items()], shown.nodes)
    of_group = f"{place.group}: " if place.group and len(answer.names) > 1 else ""
    domain = f", in {place.domain}" if place.domain else ""
    return f"{of_group}{count(sum(place.nodes.values()), 'pod')} on {nodes}{domain}"


def standing_lines(standing: Standing, shown: Extent = SHORT) -> Iterator[RenderableType]:
    """A line per domain with its ranks; how often neighbours are apart; preferred levels that were given up."""
    domains = list(standing.ranks.items())
    width = max((len(domain) for domain, _ in domains[: shown.domains]), default=0)
    for number, (domain, ranks) in enumerate(domains[: shown.domains]):
        yield label_line("" if number else "ranks", f"{domain:<{width}}  {ranks}", indent=_WIDTH if number else 0)
    if len(domains) > shown.domains:
        yield label_line("", Text(f"and {len(domains) - shown.domains} domains more", _DIM), indent=_WIDTH)
    crossed = [one for one in standing.levels if one.crossings is not None]
    if crossed:
        each = ", ".join(f"{one.key}{JOINED}{one.crossings}" for one in crossed)
        yield label_line("crossings", f"{each}, of {count(crossed[0].neighbours, 'neighbour').replace(' ', JOINED)}")
    for one in standing.levels:
        if one.note:
            yield label_line("given up", Text(f"{one.key} ({one.mode}): {one.note}", "yellow"))


# ---- why


def _why(explanation: Explanation, answer: RootStatus, shown: Extent) -> Iterator[RenderableType]:
    yield Hanging(Text.assemble("  ", (str(explanation.reason), "bold yellow"), _proof(explanation)))
    yield label_line("", named(explanation.detail, answer.names))
    yield from _evidence(explanation, answer.names)
    if explanation.reason is not Reason.GATED:
        yield from _below(explanation, answer.names, {}, shown)


def _proof(explanation: Explanation) -> str:
    return "" if explanation.proven else "  (not found; it is not proven impossible)"


def _evidence(explanation: Explanation, names: Mapping[str, str], indent: int = 0) -> Iterator[RenderableType]:
    if explanation.causes:
        yield label_line("nodes", "; ".join(str(cause) for cause in explanation.causes), indent=indent)
    if explanation.nearest is not None:
        yield label_line("closest", named(str(explanation.nearest), names), indent=indent)
    for label, wanted in (("would fit", False), ("next step", True)):
        for number, text in enumerate(remedies(explanation, names, steps=wanted)):
            yield label_line("or" if number else label, Text(text, "green"), indent=indent)


def _below(
    explanation: Explanation, names: Mapping[str, str], said: dict[tuple[str, str], str], shown: Extent
) -> Iterator[RenderableType]:
    """The groups of a tree, those that fail first; what one has said already, another does not say again."""
    indent = 2 * explanation.level + 4
    failing = [child for child in explanation.children if not child.ok and child.reason is not None]
    for child in failing[: shown.children]:
        reason = (f"  {child.reason}", "yellow")
        level = (f"  level {child.level} of the tree", _DIM)
        key = (str(child.reason), child.detail)
        if not child.children and key in said:
            same = (f"  as {said[key]}", _DIM)
            yield Hanging(Text.assemble(" " * indent, (_called(child, names), "bold"), reason, same), indent + 2)
            continue
        yield Hanging(Text.assemble(" " * indent, (_called(child, names), "bold"), reason, level), indent + 2)
        if not child.children:
            said[key] = _called(child, names)
            yield label_line("", named(child.detail, names), indent=indent)
        yield from _evidence(child, names, indent)
        yield from _below(child, names, said, shown)
    if len(failing) > shown.children:
        yield Text(f"{' ' * indent}and {len(failing) - shown.children} more that fail", _DIM)
    fine = [_called(child, names) for child in explanation.children if child.ok]
    if fine and failing:
        yield Hanging(Text(f"{' ' * indent}{some(fine, shown.nodes)}: ok", _DIM), indent + 2)


def _called(explanation: Explanation, names: Mapping[str, str]) -> str:
    return names.get(explanation.group, explanation.group)


def label_line(label: str, text: str | Text, style: str = "", *, indent: int = 0) -> Hanging:
    before = " " * (2 + indent)
    line = Text.assemble(before, (f"{label:<{_WIDTH - 2}}  " if label else "", "cyan"), text, style=style)
    return Hanging(line, len(before) + (_WIDTH if label else 0))


def some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
