"""What a kind refers to, it watches: whoever waited for it is enqueued when it comes, not when the next try is due."""

from __future__ import annotations

from typing import Any

from tests.controllers.world import World
from tests.kinds.batch.control.test_groups import delegated, owned, template, workload
from tests.kinds.trainer.control.training import NS, Training

from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.controllers.controller import Controller, Enqueue, Key
from kohort.gang.compile import CompileContext
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.grove.control.controller import (
    podclique_controller,
    podcliquescalinggroup_controller,
    podcliqueset_controller,
)
from kohort.kinds.leaderworkerset.control.controller import leaderworkerset_controller
from kohort.kinds.trainer.control.controller import trainjob_controller

LONG = 200.0  # seconds after which tries are a minute apart


def context() -> CompileContext:
    base = Context.of("1.37", options=DEFAULT_OPTIONS)
    return CompileContext(base.release, base.gates, base.options)


def changed(controller: Controller, new: Object, old: Object | None = None) -> list[Key]:
    """Which keys a change enqueues."""
    dues: list[Enqueue] = []
    for watch in controller.watches:
        if watch.kind == new["kind"]:
            dues += watch.handler(old, new)
    return [item.key for item in dues]


def thing(kind: str, name: str, space: str = "lab", spec: Any = None, **meta: Any) -> Object:
    found = {"name": name, **({"namespace": space} if space else {}), "uid": f"uid-{name}", **meta}
    return {"kind": kind, "metadata": found, "spec": spec or {}}


def owner(kind: str, name: str) -> list[Object]:
    return [{"apiVersion": "v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}]


def test_a_train_job_begins_when_its_runtime_comes() -> None:
    world = Training()
    for name in ("one", "two"):
        world.job(name, runtimeRef={"name": "rt"})
    world.job("other", runtimeRef={"name": "elsewhere"})
    world.run(LONG)
    assert world.names("JobSet") == []
    world.runtime()
    world.run(0.5)
    assert world.names("JobSet") == ["one", "two"]


def test_a_train_job_begins_when_a_stranger_gives_its_name_back() -> None:
    world = Training()
    world.runtime()
    name = "job-runtime-snapshot"
    world.make({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"runtime": "mine"}})
    world.job()
    world.run(LONG)
    assert world.names("JobSet") == []
    world.delete("ConfigMap", name)
    world.run(0.5)
    assert world.names("JobSet") == ["job"]


def test_a_runtime_of_a_namespace_concerns_jobs_there() -> None:
    controller = trainjob_controller(context())
    for space in ("lab", "ml"):
        changed(controller, thing("TrainJob", "t", space, {"runtimeRef": {"name": "rt", "kind": "TrainingRuntime"}}))
    changed(controller, thing("TrainJob", "c", "ml", {"runtimeRef": {"name": "rt"}}))
    assert changed(controller, thing("TrainingRuntime", "rt", "ml")) == [Key("ml", "t")]
    assert changed(controller, thing("ClusterTrainingRuntime", "rt", "")) == [Key("ml", "c")]
    assert changed(controller, thing("TrainingRuntime", "other", "ml")) == []


def test_a_delegated_job_begins_when_the_workload_of_its_owner_comes() -> None:
    world = World()
    delegated(world, "w", owned(world, "FleetJob", "f1"), "workers")
    world.run(8)
    assert world.active() == []
    world.make(workload("fleet-wl", ("lab.example", "FleetJob", "f1"), template("workers", 2)))
    world.run(0.1)
    assert len(world.active()) == 2


def test_also_that_of_an_owner_further_up() -> None:
    controller, notes = job_controller(context()), {"scheduling.k8s.io/group-template-name": "g"}
    changed(controller, thing("JobSet", "tune", ownerReferences=owner("TrainJob", "t")))
    changed(controller, thing("Job", "tune-node-0", annotations=notes, ownerReferences=owner("JobSet", "tune")))
    changed(controller, thing("Job", "tune-plain-0", ownerReferences=owner("JobSet", "tune")))
    for kind, name in (("TrainJob", "t"), ("JobSet", "tune")):
        assert changed(controller, thing("Workload", "w", spec={"controllerRef": {"kind": kind, "name": name}})) == [
            Key("lab", "tune-node-0")
        ]


def test_claim_templates_concern_sets_and_all_below_them() -> None:
    ctx = context()
    share = {"name": "gpus", "scope": "AllReplicas"}
    shape = {
        "resourceClaimTemplates": [{"name": "own", "templateSpec": {}}],
        "resourceSharing": [{"name": "own", "scope": "AllReplicas"}],
        "cliques": [{"name": "x", "resourceSharing": [share], "spec": {}}],
        "podCliqueScalingGroups": [{"name": "g", "resourceSharing": [{**share, "namespace": "far"}]}],
    }
    pcs = thing("PodCliqueSet", "a", spec={"template": shape})
    marks = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "a"}
    below = [
        (podcliqueset_controller(ctx), None, "a"),
        (podcliquescalinggroup_controller(ctx), thing("PodCliqueScalingGroup", "a-0-g", labels=marks), "a-0-g"),
        (podclique_controller(ctx), thing("PodClique", "a-0-x", labels=marks), "a-0-x"),
    ]
    for controller, child, name in below:
        changed(controller, pcs)
        if child is not None:
            changed(controller, child)
        kind = "ResourceClaimTemplate"
        assert (
            changed(controller, thing(kind, "gpus"))
            == changed(controller, thing(kind, "gpus", "far"))
            == [Key("lab", name)]
        )
        assert changed(controller, thing(kind, "own")) == changed(controller, thing(kind, "gpus", "near")) == []


def test_a_node_concerns_sets_whose_leaders_are_there() -> None:
    controller = leaderworkerset_controller(context())
    prefix = "leaderworkerset.sigs.k8s.io/"
    marks = {f"{prefix}name": "rig", f"{prefix}worker-index": "0"}
    leader: dict[str, Any] = {"labels": marks, "annotations": {f"{prefix}exclusive-topology": "example.com/rack"}}
    changed(controller, thing("Pod", "rig-0", spec={"nodeName": "n1"}, **leader))
    changed(controller, thing("Pod", "plain-0", spec={"nodeName": "n1"}, labels={**marks, f"{prefix}name": "plain"}))
    node = thing("Node", "n1", "")
    assert changed(controller, node) == [Key("lab", "rig")]
    assert changed(controller, thing("Node", "n1", "", labels={"example.com/rack": "r"}), node) == [Key("lab", "rig")]
    assert changed(controller, thing("Node", "n1", "", resourceVersion="2"), node) == []  # a sign of life


def test_groups_of_somebody_above_concern_sets_that_wait_for_them() -> None:
    controller = leaderworkerset_controller(context())
    notes = {"scheduling.k8s.io/group-template-name": "g"}
    changed(controller, thing("LeaderWorkerSet", "rig", annotations=notes, ownerReferences=owner("Flow", "f")))
    changed(controller, thing("LeaderWorkerSet", "own"))
    for kind in ("Workload", "CompositePodGroup"):
        assert changed(controller, thing(kind, "w")) == [Key("lab", "rig")]
        assert changed(controller, thing(kind, "w", NS)) == []
