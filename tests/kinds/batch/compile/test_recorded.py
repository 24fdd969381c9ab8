"""What the real Job controllers of 1.36 and 1.37 made, object by object, against what we compile and render."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.kinds.batch.api.replay import cases, every_case, gates
from tests.kinds.batch.compile.recorded import Moment, as_served, asked, defaulted, moments, posted

from kohort.gang.compile import Compilation, CompileContext, Lookup
from kohort.gang.render import render
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.compile.existing import is_controlled
from kohort.kinds.batch.compile.job import compile_object
from kohort.kinds.batch.settings import JobSettings

Object = dict[str, Any]
ALL = list(moments())
GROUPED = [moment for moment in ALL if moment.workloads or moment.groups]
ALONE = [moment for moment in ALL if not moment.workloads and not moment.groups]

# Nothing was made although it was asked for: another object has the name, and every create is refused.
TAKEN = {"J-57", "T-84"}
# The Workload API is not served, and the real controller never starts: no answer to compare.
NOT_SERVED = {"T-48"}
# Seen while something else stood in the way, so that only the Workload could be compared.
NO_GROUP = {
    "T-28": "the PodGroup is refused: its priority class does not exist",
    "T-42": "creates of PodGroups fail",
    "T-47b": "the PodGroup was deleted by hand",
    "J-58": "a foreign object has the PodGroup's name",
    "T-33": "two own Workloads (seeded)",
    "T-34": "two templates (seeded)",
}
# The Job's own Workload or PodGroups were put there by hand: see test_discovery.
SEEDED = {"T-33", "T-33b", "T-34", "T-35", "T-37b", "J-59"}


# The Job was not created by a request: test_t_18, test_t_21. T-28: its PodGroup is refused each time.
BY_OTHER_MEANS = {"T-18", "T-21", "T-28"}
# Cases in which the gate was off in the controller while a Job was created, or the API was not there.
UNMANAGED = {"T-43", "T-44", "T-48", "J-60"}
NAMED = [pair for pair in every_case() if pair[1] not in UNMANAGED]


def compiled(moment: Moment, job: Object, others: tuple[Object, ...]) -> Compilation:
    ctx = moment.ctx
    settings = SettingsByKind(JobSettings(parity=True))
    context = CompileContext(ctx.release, ctx.gates, ctx.options, Lookup(others), settings)
    return compile_object(defaulted(job, ctx), context)


def trimmed(obj: Object) -> Object:
    """What a controller decides: no namespace, times, nulls, finalizers."""
    meta = {member: obj["metadata"][member] for member in ("name", "ownerReferences") if member in obj["metadata"]}
    return {"kind": obj["kind"], "metadata": meta, "spec": _without_nulls(obj["spec"])}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def test_the_recording_is_there() -> None:
    counted = Counter(moment.minor for moment in GROUPED)
    assert counted["1.37"] > 50
    assert counted["1.36"] > 20
    assert len(ALONE) > 20
    assert len(NAMED) > 100


@pytest.mark.parametrize("moment", [m for m in GROUPED if m.case not in SEEDED], ids=str)
def test_same_objects(moment: Moment) -> None:
    """Names, hashes, owners, templates and groups equal those of the real controller."""
    fresh = {**moment.job, "status": {}}
    done = compiled(moment, fresh, moment.others)
    assert not done.errors
    (plan,) = done.plans
    uids = {
        (owner["kind"], owner["name"]): owner["uid"]
        for group in moment.groups
        for owner in group["metadata"]["ownerReferences"]
    }
    ours = [trimmed(as_served(obj, moment)) for obj in render(plan, moment.minor, uids=uids).objects]
    theirs = [trimmed(obj) for obj in (*moment.workloads, *moment.groups)]
    if not moment.groups:
        assert moment.case in NO_GROUP, "a Workload without a PodGroup needs a reason"
        ours = ours[:1]
    assert ours == theirs


@pytest.mark.parametrize("moment", [m for m in ALONE if m.case not in NOT_SERVED | TAKEN], ids=str)
def test_nothing_where_nothing_was_made(moment: Moment) -> None:
    done = compiled(moment, moment.job, moment.others)
    assert not done.plans
    assert done.reason or done.errors


@pytest.mark.parametrize("moment", [m for m in ALONE if m.case in TAKEN], ids=str)
def test_nothing_where_the_name_is_taken(moment: Moment) -> None:
    (plan,) = compiled(moment, moment.job, moment.others).plans
    taken = {(obj["kind"], obj["metadata"]["name"]) for obj in moment.others}
    assert any((obj["kind"], obj["metadata"]["name"]) in taken for obj in render(plan, moment.minor).objects)


def made_by_controller(minor: str, case: str) -> set[str]:
    """Workloads and PodGroups of the timeline that no request created."""
    by_hand = {f"+{obj['kind']} {obj['metadata']['name']}" for obj in posted(minor, case)}
    timeline = {str(line) for line in cases(minor)[case].get("timeline", [])}
    return {line for line in timeline if line.startswith(("+Workload ", "+PodGroup "))} - by_hand


@pytest.mark.parametrize(("minor", "case"), NAMED)
def test_same_names_in_every_case(minor: str, case: str) -> None:
    """Also of the cases that never looked at the groups: each name carries a hash of the Job's real uid."""
    ctx = gates(minor, case)
    made: set[str] = set()
    for job, others in asked(minor, case):
        taken = {(obj["kind"], obj["metadata"]["name"]): obj for obj in others}
        context = CompileContext(
            ctx.release, ctx.gates, ctx.options, Lookup(others), SettingsByKind(JobSettings(parity=True))
        )
        for plan in compile_object(defaulted(job, ctx), context).plans:
            for obj in render(plan, minor).objects:
                known = taken.get((obj["kind"], obj["metadata"]["name"]))
                if known is not None and not is_controlled(known, job["metadata"]["uid"]):
                    break  # the name is taken: the create is refused, and all that follows never comes
                if known is None:
                    made.add(f"+{obj['kind']} {obj['metadata']['name']}")
    if case not in BY_OTHER_MEANS:
        assert made == made_by_controller(minor, case)
