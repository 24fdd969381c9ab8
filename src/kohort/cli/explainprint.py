"""Answers of `kohort explain` as people read them: first what and since when, then why, then what would help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from kohort.cli.common import count
from kohort.cli.lookup import Found
from kohort.place.explain import Explanation
from kohort.scheduler.ask import Answer, Place, State

_NODES = 6  # named before "and so many more"
_CHILDREN = 8  # groups of a tree shown of each kind
_DIM = "dim"
_WIDTH = 11


def page(found: Found, answers: Sequence[Answer], now: datetime) -> RenderableType:
    kind, where = found.asked.split(" ", 1)
    space, name = where.split("/", 1)
    title = Text.assemble(f"{kind} ", (name, "bold"), f" in {space}")
    if not answers:
        return Text.assemble(title, ": ", found.note)
    lines: list[Text] = [Text.assemble(title, *_summary(answers, now))]
    for answer in answers:
        lines.append(Text(""))
        lines += _answer(answer, alone=len(answers) == 1 and (answer.kind, answer.name) == (kind, name))
    return Lines(*lines)


def _summary(answers: Sequence[Answer], now: datetime) -> tuple[str | tuple[str, str], ...]:
    """One sentence: does it run, and if not, how long has it waited."""
    pending, placed = sum(one.pending for one in answers), sum(one.placed for one in answers)
    finished = sum(one.finished for one in answers)
    ended = f"; {count(finished, 'pod')} succeeded" if finished else ""
    if not pending:
        if placed:
            return " ", ("runs", "green"), f": {_all(placed)} {'has a node' if placed == 1 else 'have nodes'}{ended}"
        return (f" has no pods that need a node{ended}",)
    since = min(one.since for one in answers if one.pending)
    length = f" for {_length(since, now)}" if since else ""
    if placed:
        return " runs in part: ", (f"{pending} of {pending + placed} pods wait", "yellow"), f"{length}{ended}"
    return " ", ("waits", "yellow"), f"{length}: {_none(pending)}{ended}"


def _all(number: int) -> str:
    return "its pod" if number == 1 else f"all {number} pods"


def _none(number: int) -> str:
    return "its pod has no node" if number == 1 else f"none of its {number} pods has a node"


def _length(since: str, now: datetime) -> str:
    try:
        seconds = int((now - datetime.fromisoformat(since.replace("Z", "+00:00"))).total_seconds())
    except ValueError:
        return f"(since {since})"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit} (since {since})"
    return f"{max(seconds, 0)} s (since {since})"


# ---- one root


def _answer(answer: Answer, *, alone: bool) -> Iterator[Text]:
    if not alone:
        yield Text.assemble(f"{answer.kind} ", (answer.name, "bold"), (f"  {_state(answer)}", _DIM))
    for place in answer.places:
        yield _line("runs on", _where(place, answer))
    if answer.told is not None:
        yield from _why(answer.told, answer)
    elif answer.pending:
        yield from _fits(answer)
    if answer.victims:
        going = ", ".join(answer.victims[:_NODES]) + _more(len(answer.victims) - _NODES)
        yield _line("who goes", f"{count(len(answer.victims), 'pod')} of lower priority: {going}")
    if answer.pending:
        yield _line("scheduler", f"{answer.scheduler}, priority {answer.priority}", _DIM)


def _state(answer: Answer) -> str:
    words = {
        State.RUNNING: "runs",
        State.PARTLY: f"{answer.pending} of {answer.pending + answer.placed} pods wait",
        State.WAITING: f"{count(answer.pending, 'pod')} {'waits' if answer.pending == 1 else 'wait'}",
        State.FITS: f"{count(answer.pending, 'pod')} {'waits' if answer.pending == 1 else 'wait'}, but would fit now",
        State.EMPTY: "has no pods that need a node",
    }
    return words[answer.state]


def _fits(answer: Answer) -> Iterator[Text]:
    yield _line("", Text("nothing is in its way: it would fit now", "green"))
    for place in answer.would_go:
        yield _line("would go", _where(place, answer))
    yield _line("if it lasts", f"look whether the scheduler {answer.scheduler} runs, and for its events")


def _where(place: Place, answer: Answer) -> str:
    named = [f"{node} ({pods})" if pods > 1 else node for node, pods in list(place.nodes.items())[:_NODES]]
    nodes = ", ".join(named) + _more(len(place.nodes) - _NODES)
    of_group = f"{place.group}: " if place.group and len(answer.names) > 1 else ""
    domain = f", in {place.domain}" if place.domain else ""
    return f"{of_group}{count(sum(place.nodes.values()), 'pod')} on {nodes}{domain}"


# ---- why


def _why(told: Explanation, answer: Answer) -> Iterator[Text]:
    yield Text.assemble("  ", (str(told.reason), "bold yellow"), _proof(told))
    yield _line("", _named(told.detail, answer.names))
    yield from _evidence(told, answer.names)
    shown = [child for child in told.children if not _same(child, told)]
    culprit = told.culprit()
    if culprit is not told and culprit not in shown:
        yield from _below(culprit, answer.names)
    for child in shown[:_CHILDREN]:
        yield from _child(child, answer.names)
    if len(shown) > _CHILDREN:
        yield _line("", f"and {len(shown) - _CHILDREN} more groups", _DIM)


def _proof(told: Explanation) -> str:
    return "" if told.proven else "  (not found; it is not proven impossible)"


def _evidence(told: Explanation, names: Mapping[str, str], indent: int = 0) -> Iterator[Text]:
    if told.causes:
        yield _line("nodes", "; ".join(str(cause) for cause in told.causes), indent=indent)
    if told.nearest is not None:
        yield _line("closest", _named(str(told.nearest), names), indent=indent)
    for number, remedy in enumerate(told.remedies):
        label = "would fit" if not number else "or"
        yield _line(label, Text(str(remedy), "green"), indent=indent)


def _same(child: Explanation, parent: Explanation) -> bool:
    """Children that say nothing beyond what their parent said are not listed."""
    return child.reason is parent.reason and not child.remedies and child.nearest is None and not child.children


def _below(told: Explanation, names: Mapping[str, str]) -> Iterator[Text]:
    yield Text.assemble("    ", (_called(told, names), "bold"), (f"  (level {told.level} of the tree)", _DIM))
    yield _line("", _named(told.detail, names), indent=2)
    yield from _evidence(told, names, 2)


def _child(told: Explanation, names: Mapping[str, str]) -> Iterator[Text]:
    if told.ok or told.reason is None:
        yield Text.assemble("    ", (_called(told, names), "bold"), ("  ok", "green"))
        return
    reason = (f"  {told.reason}", "yellow")
    yield Text.assemble("    ", (_called(told, names), "bold"), reason, (f"  (level {told.level} of the tree)", _DIM))
    yield _line("", _named(told.detail, names), indent=2)
    yield from _evidence(told, names, 2)
    for child in [one for one in told.children if not _same(one, told)][:_CHILDREN]:
        yield from (Text.assemble("  ", line) for line in _child(child, names))


def _called(told: Explanation, names: Mapping[str, str]) -> str:
    return names.get(told.group, told.group)


def _named(text: str, names: Mapping[str, str]) -> str:
    """Keys of groups inside a text, as the API calls them; the longest first, for one may be a part of another."""
    for key in sorted(names, key=len, reverse=True):
        text = text.replace(key, names[key])
    return text


def _line(label: str, text: str | Text, style: str = "", *, indent: int = 0) -> Text:
    return Text.assemble(" " * (2 + indent), (f"{label:<{_WIDTH - 2}}  " if label else "", "cyan"), text, style=style)


def _more(number: int) -> str:
    return f" and {number} more" if number > 0 else ""
