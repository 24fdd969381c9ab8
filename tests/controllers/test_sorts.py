"""Who is not asked about an object has nothing to say about it: every watch with a predicate, whatever the object."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.api.kind import Context, Object
from kohort.controllermanager import registry
from kohort.controllers.controller import Controller, Watch, enqueue_nothing
from kohort.controllers.sorts import WatchedSorts, predicate
from kohort.gang.compile import CompileContext
from kohort.kinds.controllers import Setup, make, selected
from kohort.kinds.grove.api import constants as grove
from kohort.kinds.jobset.api import constants as jobset
from kohort.kinds.leaderworkerset.api import constants as lws

OWNERS = [
    ("batch/v1", "Job"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"),
    ("v1", "ReplicationController"), ("grove.io/v1alpha1", "PodClique"), (lws.API_VERSION, lws.KIND), ("x/v1", "Else"),
]  # fmt: skip
LABELS = [jobset.JOBSET_NAME, lws.NAME, grove.PODGANG, grove.PART_OF, "app"]
NOTES = [jobset.JOBSET_NAME, jobset.EXCLUSIVE_TOPOLOGY, "note"]


def controllers() -> list[Controller]:
    ours = [name for name in selected(None) if name not in registry.names()]
    base = Context.of("1.37")
    ctx = CompileContext(base.release, base.gates, base.options)
    return [*make(Setup(ctx), ours), *registry.make(registry.names())]


def owner(of: tuple[str, str], *, controls: bool) -> dict[str, Any]:
    return {"apiVersion": of[0], "kind": of[1], "name": "above", "uid": "u-above", "controller": controls}


def names(known: list[str]) -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(known), st.just("some"), max_size=3)


@st.composite
def pods(draw: st.DrawFn) -> Object:
    owners = draw(st.lists(st.builds(owner, st.sampled_from(OWNERS), controls=st.booleans()), max_size=2))
    meta = {
        "name": "pod", "namespace": "space", "uid": "u", "resourceVersion": str(draw(st.integers(1, 99))),
        "labels": draw(names(LABELS)), "annotations": draw(names(NOTES)), "ownerReferences": owners,
    }  # fmt: skip
    if draw(st.booleans()):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"containers": [{"name": "c"}], **({"nodeName": "n"} if draw(st.booleans()) else {})}
    phase = draw(st.sampled_from(["Pending", "Running", "Failed"]))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}


WATCHES = [(one.name, watch) for one in controllers() for watch in one.watches if predicate(watch)]


def test_the_controllers_of_pods_have_predicates() -> None:
    having = {name for name, watch in WATCHES if watch.kind == "Pod"}
    assert having >= {"job", "jobset", "podclique", "podgang", "replicaset", "statefulset", "daemonset"}


@pytest.mark.parametrize(("name", "watch"), WATCHES, ids=[name for name, _ in WATCHES])
@given(old=pods(), new=pods())
def test_who_is_not_asked_has_nothing_to_say(name: str, watch: Watch, old: Object, new: Object) -> None:
    sorts = WatchedSorts()
    sorts.want(watch, ())
    had, has = (sorts.concerns(predicate(watch), sorts.of(one)) for one in (old, new))
    if not has:
        assert all(not list(indexer(new)) for indexer in watch.indexers.values()), name
        assert not list(watch.handler(None, new)), name
    if not has and not had:
        assert not list(watch.handler(old, new)), name
        assert not list(watch.handler(old, None)), name


def test_sorts_are_few_and_told_by_what_somebody_wants() -> None:
    sorts = WatchedSorts()
    assert sorts.unless_all_alike() is None
    sorts.want(Watch("v1", "Pod", enqueue_nothing), ("all/index",))
    assert sorts.unless_all_alike() is None
    job = Watch("v1", "Pod", enqueue_nothing, controllers=("Job", ""))
    sorts.want(job, ("job/pods",))
    mine = {"metadata": {"ownerReferences": [owner(("batch/v1", "Job"), controls=True)], "labels": {"a": "b"}}}
    other = {"metadata": {"ownerReferences": [owner(("apps/v1", "ReplicaSet"), controls=True)]}}
    nobodys: Object = {"metadata": {}}
    third = {"metadata": {"ownerReferences": [owner(("x/v1", "Third"), controls=True)]}}
    assert sorts.of(other) == sorts.of(third) != sorts.of(mine) != sorts.of(nobodys)
    assert [sorts.concerns("job/pods", sorts.of(one)) for one in (mine, other, nobodys)] == [True, False, True]
    assert sorts.concerns("all/index", sorts.of(other))


@pytest.mark.parametrize(
    "broken", [{"metadata": {"labels": 5}}, {"metadata": {"ownerReferences": [3]}}, {"metadata": 7}]
)
def test_whoever_is_asked_says_that_an_object_cannot_be_read(broken: Object) -> None:
    sorts = WatchedSorts()
    watch = Watch("v1", "Pod", enqueue_nothing, controllers=("Job",), label="app")
    sorts.want(watch, ())
    sorts.of(broken)  # raises nothing
    assert sorts.concerns(predicate(watch), None)
