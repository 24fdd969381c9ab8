"""A report as one HTML file that needs nothing else: numbers side by side, plots, users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from kohort.simulate.metrics import Metrics, wait
from kohort.simulate.plots import Line, bars, length, lines
from kohort.simulate.run import Outcome

_SIZES: Final = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 10**9))
_CURVE: Final = 400  # points
_STYLE: Final = """
:root { color-scheme: light dark; --text: #1b2230; --dim: #5a6475; --line: #dde2ea; --back: #fff; --panel: #f6f7f9;
  --s0: #2454c4; --s1: #c4541a; --s2: #1a8a5a; --s3: #8a3ab0; }
@media (prefers-color-scheme: dark) { :root { --text: #e6eaf1; --dim: #a3adbd; --line: #313a48; --back: #12161d;
  --panel: #1a2029; --s0: #8fb1ff; --s1: #ffab7a; --s2: #6fd3a5; --s3: #d3a1f0; } }
body { margin: 0 auto; padding: 24px; max-width: 980px; background: var(--back); color: var(--text);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
h1 { font-size: 20px; } h2 { font-size: 15px; margin: 28px 0 8px; } p { color: var(--dim); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 5px 12px; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } thead th { color: var(--dim); font-size: 12.5px; }
figure { margin: 18px 0; background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 12px; }
figcaption { font-weight: 600; margin-bottom: 6px; display: flex; justify-content: space-between; gap: 16px; }
.key { font-weight: 400; color: var(--dim); display: flex; gap: 14px; font-size: 12.5px; }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 5px; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 11px; fill: var(--dim); }
.grid { stroke: var(--line); } .line { fill: none; stroke-width: 1.6; }
.s0 { --own: var(--s0); } .s1 { --own: var(--s1); } .s2 { --own: var(--s2); } .s3 { --own: var(--s3); }
.line { stroke: var(--own); } .bar { fill: var(--own); } i { background: var(--own); }
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One column of a report."""

    name: str
    outcome: Outcome
    metrics: Metrics


def html(title: str, runs: Sequence[Run], notes: Sequence[str] = ()) -> str:
    head = "".join(f"<th>{escape(one.name)}</th>" for one in runs)
    rows = "".join(
        f"<tr><td>{escape(label)}</td>{''.join(f'<td>{escape(shown(one.metrics))}</td>' for one in runs)}</tr>"
        for label, shown in rows_of(runs[0].metrics.resource)
    )
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{said}"
        f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<h2>Over time</h2>{_over_time(runs)}<h2>Waiting</h2>{_waiting(runs)}{_users(runs)}</body></html>\n"
    )


def rows_of(resource: str) -> list[tuple[str, Callable[[Metrics], str]]]:
    """The numbers of a run with their names, for the report and for the terminal."""
    return [
        ("jobs", lambda one: f"{one.jobs:,}"),
        ("finished", lambda one: f"{one.finished:,}"),
        ("never started", lambda one: f"{one.never_started:,}"),
        ("makespan", lambda one: length(one.makespan)),
        ("wait, mean", lambda one: length(one.wait.mean)),
        ("wait, median", lambda one: length(one.wait.median)),
        ("wait, 95 %", lambda one: length(one.wait.p95)),
        ("wait, longest", lambda one: length(one.wait.longest)),
        ("slowdown, mean", lambda one: f"{one.slowdown.mean:.2f}"),
        ("slowdown, 95 %", lambda one: f"{one.slowdown.p95:.2f}"),
        (f"{resource} in use", lambda one: f"{one.utilisation:.1%}"),
        (f"{resource} in use while something waited", lambda one: _waited(one, one.busy_utilisation)),
        ("free then, on partly used nodes", lambda one: _waited(one, one.fragmentation)),
        ("longest queue", lambda one: f"{one.longest_queue:,}"),
        ("preemptions", lambda one: f"{one.preemptions:,}"),
        ("restarts after lost nodes", lambda one: f"{one.restarts:,}"),
        ("fairness among users", lambda one: f"{one.fairness:.3f}"),
    ]


def _waited(one: Metrics, share: float) -> str:
    """Of the time in which something waited."""
    return f"{share:.1%}" if one.longest_queue else "–"


def _over_time(runs: Sequence[Run]) -> str:
    resource = runs[0].metrics.resource
    use = [
        Line(one.name, [(at, 100 * used / there if there else 0.0) for at, used, there, *_ in one.outcome.usage])
        for one in runs
    ]
    queue = [Line(one.name, [(point[0], float(point[3])) for point in one.outcome.usage]) for one in runs]
    return lines(f"{resource} in use", use, "%", top=100.0) + lines("Jobs that wait", queue, "")


def _waiting(runs: Sequence[Run]) -> str:
    curves = [Line(one.name, _curve(one.outcome), stepped=False) for one in runs]
    sizes = [(low, high) for low, high in _SIZES if any(low <= run.job.pods <= high for run in runs[0].outcome.runs)]
    labels = [f"{low}" if low == high else f"{low}+" if high == 10**9 else f"{low}–{high}" for low, high in sizes]
    means = [(one.name, [_mean_wait(one.outcome, *size) for size in sizes]) for one in runs]
    return lines("Share of jobs that had started after so long", curves, "%", top=100.0) + bars(
        "Mean wait by size, in pods", labels, means, "s"
    )


def _curve(outcome: Outcome) -> list[tuple[float, float]]:
    waits = sorted(wait(one) for one in outcome.runs if one.first_started >= 0)
    if not waits:
        return [(0.0, 0.0)]
    step = max(1, len(waits) // _CURVE)
    found = [(waits[place], 100 * (place + 1) / len(outcome.runs)) for place in range(0, len(waits), step)]
    return [(0.0, found[0][1] if waits[0] == 0 else 0.0), *found, (waits[-1], 100 * len(waits) / len(outcome.runs))]


def _mean_wait(outcome: Outcome, low: int, high: int) -> float:
    waits = [wait(one) for one in outcome.runs if one.first_started >= 0 and low <= one.job.pods <= high]
    return sum(waits) / len(waits) if waits else 0.0


def _users(runs: Sequence[Run]) -> str:
    if len(runs[0].metrics.users) < 2:
        return ""
    found = ["<h2>Users</h2>"]
    for run in runs:
        name = f"<p>{escape(run.name)}</p>" if len(runs) > 1 else ""
        rows = "".join(
            f"<tr><td>{escape(one.user or 'nobody')}</td><td>{one.jobs:,}</td><td>{length(one.wait)}</td>"
            f"<td>{one.slowdown:.2f}</td><td>{one.share:.1%}</td></tr>"
            for one in sorted(run.metrics.users, key=lambda one: -one.share)[:50]
        )
        head = "<tr><th>user</th><th>jobs</th><th>mean wait</th><th>mean slowdown</th><th>share of pod time</th></tr>"
        found.append(f"{name}<table><thead>{head}</thead><tbody>{rows}</tbody></table>")
    return "".join(found)
