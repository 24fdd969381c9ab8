"""What must hold for any objects and any managers."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.apply import sequences
from tests.api.apply.sequences import KINDS, MANAGERS, WIDGET, api_version

from kohort.api import apply as ssa
from kohort.api.apply import fields as sets
from kohort.api.apply.compare import compare
from kohort.api.apply.values import field_set

Object = dict[str, Any]
TIMES = [f"2026-01-01T00:00:{second:02}Z" for second in range(60)]


def target(kind: str) -> ssa.Target:
    version = api_version(kind)
    made = kind == "Widget"
    structure = ssa.custom(WIDGET) if made else ssa.native("1.37", version, kind)
    assert structure is not None
    reset = ssa.reset_fields(version.rpartition("/")[0], kind, custom=made)
    return ssa.Target(version, kind, structure, reset=reset, dynamic=made)


def decoded(value: Any) -> Any:
    """As a server stores it: null and empty members are none (of labels; here of all)."""
    if isinstance(value, dict):
        members = {name: decoded(item) for name, item in value.items() if name != "managedFields"}
        kept = {name: item for name, item in members.items() if item is not None and item not in ({}, [])}
        return kept | {name: value[name] for name in ("managedFields",) if name in value}
    return [decoded(item) for item in value] if isinstance(value, list) else value


def wanted(random: Random, kind: str, *, first: bool) -> Object:
    body: Object = decoded(sequences.wanted(random, kind, "x", first=first))
    return body


def written(seed: int, kind: str, steps: int) -> tuple[Object | None, Random]:
    """An object after some applies and updates."""
    random, of = Random(seed), target(kind)
    live: Object | None = None
    for step in range(steps):
        body = wanted(random, kind, first=step == 0)
        manager = random.choice(MANAGERS)
        try:
            if live is None or random.random() < 0.7:
                live = ssa.apply(live, body, of=of, manager=manager, now=TIMES[step], force=True).object
                live = decoded(live)
            else:
                new = {**live, **{name: value for name, value in body.items() if name not in {"metadata", "kind"}}}
                live = ssa.update_managed_fields(live, new, of=of, manager=manager, now=TIMES[step])
        except ssa.ApplyError:
            continue
        live["metadata"]["uid"] = "u"
    return live, random


cases = given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), steps=st.integers(1, 5))


def attempt(live: Object | None, body: Object, of: ssa.Target, *, force: bool = True) -> ssa.Applied | None:
    try:
        done = ssa.apply(live, body, of=of, manager="alice", now=TIMES[50], force=force)
    except ssa.ApplyError:
        return None
    return ssa.Applied(decoded(done.object), done.conflicts)


@cases
@settings(max_examples=150, deadline=None)
def test_the_same_twice_changes_nothing(seed: int, kind: str, steps: int) -> None:
    live, random = written(seed, kind, steps)
    body = wanted(random, kind, first=True)
    once = attempt(live, body, target(kind))
    if once is not None:
        assert not once.conflicts
        again = ssa.apply(once.object, body, of=target(kind), manager="alice", now=TIMES[51])
        assert ssa.keep_times(once.object, decoded(again.object)) == once.object
        assert not again.conflicts


@cases
@settings(max_examples=150, deadline=None)
def test_force_removes_conflicts_and_applied_fields_are_there(seed: int, kind: str, steps: int) -> None:
    live, random = written(seed, kind, steps)
    body, of = wanted(random, kind, first=True), target(kind)
    asked = attempt(live, body, of, force=False)
    if asked is None:
        return
    done = asked if not asked.conflicts else attempt(live, body, of)
    assert done is not None
    assert not done.conflicts
    applied = sets.without(field_set(body, of.structure), of.reset)
    there = sets.with_parents(field_set(done.object, of.structure), of.structure)
    missing = sets.difference(applied, there)
    assert not missing
    # Nothing that was applied would have to be changed: applying it anew only adds what is already equal.
    change = compare(body, done.object, of.structure).without(of.reset)
    assert not change.modified
    # Whoever conflicted has lost the field.
    for conflict in asked.conflicts:
        entry = [one for one in done.object["metadata"]["managedFields"] if one["manager"] == conflict.manager.name]
        others = [one for one in entry if one["operation"] == conflict.manager.operation]
        assert not any(sets.has(one["fieldsV1"], conflict.path) for one in others)


@cases
@settings(max_examples=150, deadline=None)
def test_what_is_no_longer_applied_and_nobody_elses_goes(seed: int, kind: str, steps: int) -> None:
    live, random = written(seed, kind, steps)
    of = target(kind)
    first = attempt(live, wanted(random, kind, first=True), of)
    if first is None or live is None:
        return
    least = {"apiVersion": of.api_version, "kind": kind, "metadata": {"name": "x"}}
    left = ssa.apply(first.object, least, of=of, manager="alice", now=TIMES[51]).object
    mine = [
        one
        for one in left["metadata"].get("managedFields", ())
        if (one["manager"], one["operation"]) == ("alice", "Apply")
    ]
    assert mine == []
    others: dict[str, Any] = {}
    for one in left["metadata"].get("managedFields", ()):
        others = sets.union(others, one["fieldsV1"])
    entries = first.object["metadata"].get("managedFields", ())
    own: Object = next(
        (one["fieldsV1"] for one in entries if (one["manager"], one["operation"]) == ("alice", "Apply")), {}
    )
    gone = sets.difference(own, others)
    still = sets.intersection(gone, field_set(left, of.structure))
    # A key of a list stays as long as its item does: it is what the item is called.
    assert all(len(path) > 1 and path[-2].startswith("k:") for path in sets.paths(still)), list(sets.paths(still))


paths = st.lists(st.sampled_from(["f:a", "f:b", 'k:{"n":1}', 'v:"x"']), min_size=1, max_size=4).map(tuple)
field_sets = st.lists(paths, max_size=8).map(lambda found: sets.of(*found))


def members(fields: sets.Fields) -> set[sets.Path]:
    return set(sets.paths(fields))


@given(one=field_sets, other=field_sets)
def test_sets_are_sets(one: sets.Fields, other: sets.Fields) -> None:
    assert members(sets.union(one, other)) == members(one) | members(other)
    assert members(sets.intersection(one, other)) == members(one) & members(other)
    assert members(sets.difference(one, other)) == members(one) - members(other)
    covered = {path for path in members(one) if any(path[: len(cut)] == cut for cut in members(other))}
    assert members(sets.without(one, other)) == members(one) - covered
    assert sets.read(one) == one
    assert all(sets.has(one, path) == (path in members(one)) for path in members(one) | members(other))
    assert sets.of(*sets.paths(one)) == one
