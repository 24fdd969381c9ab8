"""Existing objects, suspension, updates, snapshots (spec trainjob section 6, scenarios 11, 50 to 67 as objects)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml
from tests.kinds.trainer.compile.build import (
    UID,
    compiled,
    context,
    jobset,
    links,
    plan,
    rendered,
    runtime,
    sizes,
    trainer,
    trainjob,
)

from kohort.api import admit
from kohort.api.kind import Object

OTHER = "99999999-0000-0000-0000-000000000000"
MINE = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "name": "job",
    "uid": UID,
    "controller": True,
}


def _workload(
    name: str = "job", *, owner: Any = None, of: str = "job", minimum: int = 8, template: str = "trainer"
) -> Object:
    meta: dict[str, Any] = {"name": name, "namespace": "ml", "uid": "w"}
    if owner:
        meta["ownerReferences"] = [owner]
    policy = {"gang": {"minCount": minimum}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": meta,
        "spec": {
            "controllerRef": {"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob", "name": of},
            "podGroupTemplates": [{"name": template, "schedulingPolicy": policy}],
        },
    }


def test_50_51_what_is_there_is_found_again() -> None:
    found = plan(trainjob(8), runtime())
    once = rendered(found)
    for exist in (once[:1], once):
        assert rendered(plan(trainjob(8), runtime(), *exist)) == once


def test_53_born_suspended() -> None:
    result = compiled(trainjob(8, suspend=True), runtime())
    assert result.plans == ()
    assert result.reason.startswith("suspended")
    assert jobset(result)["spec"]["suspend"] is True
    # 54: the same names after the resume, as the Pod template cannot change.
    resumed = compiled(trainjob(8), runtime())
    assert links(result) == links(resumed)
    assert jobset(resumed)["spec"]["suspend"] is False


def test_57_preserved_over_a_suspension() -> None:
    kept = compiled(trainjob(8, suspend=True), runtime(), on_suspend="Preserve")
    assert kept.plans == compiled(trainjob(8), runtime()).plans


def test_60_predecessor_of_the_same_name() -> None:
    old = _workload(owner={**MINE, "uid": OTHER})
    result = compiled(trainjob(8), runtime(), old)
    assert (result.plans, result.objects) == ((), ())
    assert OTHER in str(result.errors[0])
    assert plan(trainjob(8), runtime()).groups[0].name != plan(trainjob(8, uid=OTHER), runtime()).groups[0].name


def test_60_group_of_the_predecessor() -> None:
    group = rendered(plan(trainjob(8, uid=OTHER), runtime()))[1]
    result = compiled(trainjob(8), runtime(), group)
    assert (result.plans, result.objects) == ((), ())
    assert "waiting until it is gone" in str(result.errors[0])


def test_61_foreign_workload_of_our_name() -> None:
    result = compiled(trainjob(8), runtime(), _workload(of="another"))
    assert [error.field for error in result.errors] == ["metadata.name"]
    assert result.objects == ()


def test_62_two_workloads() -> None:
    result = compiled(trainjob(8), runtime(), _workload("one"), _workload("two"))
    assert "one, two" in str(result.errors[0])
    assert result.objects == ()


def test_63_workload_of_a_user() -> None:
    found = plan(trainjob(8), runtime(), _workload("handmade", minimum=6))
    assert (found.workload, found.own_workload, sizes(found)) == ("handmade", False, {"trainer": 6})
    (group,) = rendered(found)
    assert group["spec"]["workloadRef"] == {"workloadName": "handmade", "templateName": "trainer"}
    assert group["metadata"]["ownerReferences"][1]["name"] == "handmade"


def test_63_workload_of_a_user_with_other_templates() -> None:
    result = compiled(trainjob(8), runtime(), _workload("handmade", template="workers"))
    assert "expected are templates trainer" in str(result.errors[0])
    assert (result.plans, result.objects) == ((), ())


def test_63_groups_are_found_by_reference() -> None:
    group = deepcopy(rendered(plan(trainjob(8), runtime()))[1])
    group["metadata"] = {"name": "mine", "namespace": "ml"}
    result = compiled(trainjob(8), runtime(), group)
    assert [one.name for one in result.plans[0].groups] == ["mine"]
    assert links(result) == {"node": "mine"}


def _update(old: Object, **changes: Any) -> list[str]:
    ctx = context()
    stored = admit.create({**old, "metadata": {"name": "job", "namespace": "ml"}}, ctx).object
    assert stored is not None
    stored["metadata"]["resourceVersion"] = "1"
    new = deepcopy(stored)
    new["spec"] |= changes
    return [cause.field for cause in admit.update(new, stored, ctx).causes]


def test_64_sizes_are_frozen() -> None:
    assert _update(trainjob(4), trainer={"numNodes": 5}) == ["spec.trainer"]
    assert _update(trainjob(), trainer={"numNodes": 5}) == ["spec.trainer"]
    assert _update(trainjob(4), trainer=None) == ["spec.trainer"]


@pytest.mark.parametrize("kind", ["TrainingRuntime", "ClusterTrainingRuntime"])
def test_11_updates_of_runtimes_are_checked(kind: str) -> None:
    ctx = context()
    stored = admit.create(runtime(kind=kind), ctx).object
    assert stored is not None
    stored["metadata"]["resourceVersion"] = "1"
    new = deepcopy(stored)
    new["spec"]["podGroupPolicy"]["coscheduling"] = {}
    assert [cause.field for cause in admit.update(new, stored, ctx).causes] == ["spec.podGroupPolicy"]


def _snapshot(of: Object, owner: Any = MINE) -> Object:
    meta = {"name": "job-runtime-snapshot", "namespace": "ml", "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"runtime": yaml.safe_dump(of)}}


def test_65_the_snapshot_counts_not_the_runtime() -> None:
    kept, edited = runtime(ml={"numNodes": 6}), runtime(ml={"numNodes": 9})
    assert sizes(plan(trainjob(), edited, _snapshot(kept))) == {"trainer": 6}
    assert sizes(plan(trainjob(), _snapshot(kept))) == {"trainer": 6}


@pytest.mark.parametrize(
    "snapshot",
    [
        _snapshot(runtime(), {**MINE, "uid": OTHER}),
        _snapshot({**runtime(), "metadata": {"name": "other"}}),
        _snapshot("text"),  # type: ignore[arg-type]
    ],
)
def test_65_a_snapshot_that_is_not_ours(snapshot: Object) -> None:
    result = compiled(trainjob(), runtime(), snapshot)
    assert [error.field for error in result.errors] == ["spec.runtimeRef"]


def _patch(**pod: Any) -> list[dict[str, Any]]:
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    return [{"manager": "acme.io/x", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}]


def test_66_patch_changes_pods_not_groups() -> None:
    patched = trainjob(8, runtimePatches=_patch(nodeSelector={"pool": "a"}))
    before, after = compiled(trainjob(8), runtime()), compiled(patched, runtime())
    assert before.plans == after.plans
    pod = jobset(after)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"pool": "a"}


def test_67_managed_elsewhere() -> None:
    result = compiled(trainjob(8, managedBy="kueue.x-k8s.io/multikueue"), runtime())
    assert (result.plans, result.objects, result.errors) == ((), (), ())
    assert "multikueue" in result.reason


# ---- finding the runtime


def test_missing_runtime_names_what_there_is() -> None:
    (error,) = compiled(trainjob(8, runtimeRef={"name": "nope"})).errors
    assert error.field == "spec.runtimeRef.name"
    for word in ("nope", "ClusterTrainingRuntime", "torch-distributed", "plain"):
        assert word in str(error)


def test_namespaced_runtime_of_another_namespace() -> None:
    rt = runtime(kind="TrainingRuntime")
    ref = {"name": "rt", "kind": "TrainingRuntime"}
    assert sizes(plan(trainjob(2, runtimeRef=ref), rt)) == {"trainer": 2}
    rt["metadata"]["namespace"] = "elsewhere"
    assert [error.field for error in compiled(trainjob(2, runtimeRef=ref), rt).errors] == ["spec.runtimeRef.name"]


def test_builtin_runtime_is_said() -> None:
    result = compiled(trainjob(4, runtimeRef={"name": "torch-distributed"}))
    assert sizes(result.plans[0]) == {"trainer": 4}
    assert any("built-in" in str(text) for text in result.warnings)


def test_runtime_that_went_unchecked_is_checked_now() -> None:
    """1.6: whoever switches the webhooks off gets the errors when a TrainJob is made."""
    rt = runtime(
        trainer(schedulingGroup={"podGroupName": "g"}), labels={"trainer.kubeflow.org/webhook-validation": "disabled"}
    )
    assert admit.create(rt, context()).accepted
    (error,) = compiled(trainjob(2), rt).errors
    assert error.field == "spec.runtimeRef"
    assert "schedulingGroup" in str(error)
