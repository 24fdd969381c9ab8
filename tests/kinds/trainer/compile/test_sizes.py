"""Sizes, membership and wiring (spec trainjob section 6, scenarios 1 to 29, 48, 49, 68 to 70)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.trainer.compile.build import (
    compiled,
    initializer,
    jobset,
    links,
    plan,
    refused,
    rendered,
    rjob,
    runtime,
    sizes,
    trainer,
    trainjob,
)

from kohort.kinds.trainer.compile.names import Namer

W = "spec.podGroupPolicy.workload"
JOBS = "spec.template.spec.replicatedJobs"
MPI = {"numNodes": 1, "mpi": {}}
AS_NODE = {"mpi": {"runLauncherAsNode": True}}
LAUNCHER, NODE = trainer("launcher"), rjob("node")
LATE_LAUNCHER = trainer("launcher", after=[("node", "Ready")])
DATASET, MODEL = initializer("dataset-initializer"), initializer("model-initializer")


@pytest.mark.parametrize(
    ("job", "rt", "wanted"),
    [
        pytest.param(trainjob(8), runtime(), {"trainer": 8}, id="1"),
        pytest.param(trainjob(), runtime(ml={"numNodes": 6}), {"trainer": 6}, id="2"),
        pytest.param(trainjob(), runtime(ml={}), {"trainer": 1}, id="3"),
        pytest.param(trainjob(3), runtime(ml={"numNodes": 9, "torch": {}}), {"trainer": 3}, id="4"),
        pytest.param(trainjob(0), runtime(), {"trainer": 1}, id="5"),
        pytest.param(trainjob(12), runtime(LAUNCHER, NODE, ml=MPI), {"trainer": 13}, id="12"),
        pytest.param(trainjob(12), runtime(NODE, LATE_LAUNCHER, ml=MPI), {"trainer": 12}, id="13"),
        pytest.param(trainjob(12), runtime(LAUNCHER, NODE, ml=AS_NODE), {"trainer": 12}, id="14"),
        pytest.param(trainjob(50), runtime(NODE, LATE_LAUNCHER, ml=AS_NODE), {"trainer": 49}, id="14-late"),
        pytest.param(trainjob(1), runtime(LAUNCHER, NODE, ml=AS_NODE), {"trainer": 2}, id="15"),
        pytest.param(trainjob(), runtime(LAUNCHER, NODE, ml={"numNodes": 5, "mpi": {}}), {"trainer": 6}, id="16"),
        pytest.param(trainjob(4), runtime(DATASET, MODEL, trainer()), {"initializer": None, "trainer": 4}, id="18"),
        pytest.param(trainjob(), runtime(DATASET, trainer()), {"initializer": None, "trainer": 1}, id="19"),
        pytest.param(
            trainjob(4),
            runtime(DATASET, trainer(), rjob("evaluator", parallelism=2, after=[("node", "Complete")])),
            {"initializer": None, "trainer": 4, "evaluator": 2},
            id="20",
        ),
        pytest.param(
            trainjob(2),
            runtime(trainer(), rjob("helper", replicas=3, parallelism=2)),
            {"trainer": 2, "helper": 6},
            id="23",
        ),
        pytest.param(trainjob(5), runtime(ml={"flux": {}}), {"trainer": 5}, id="68"),
        pytest.param(trainjob(4), runtime(ml={"jax": {}}), {"trainer": 4}, id="69-jax"),
        pytest.param(trainjob(3), runtime(ml={"xgboost": {}}), {"trainer": 3}, id="69-xgboost"),
    ],
)
def test_minimum(job: Any, rt: Any, wanted: dict[str, int | None]) -> None:
    found = plan(job, rt)
    assert sizes(found) == wanted
    assert [group.template for group in found.groups] == list(wanted)
    assert all(links(compiled(job, rt)).values())


def test_1_objects_and_wiring() -> None:
    result = compiled(trainjob(8), runtime())
    (found,) = result.plans
    workload, group = rendered(found)
    assert workload["spec"]["podGroupTemplates"] == [{"name": "trainer", "schedulingPolicy": {"gang": {"minCount": 8}}}]
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 8}}
    job = jobset(result)["spec"]["replicatedJobs"][0]
    assert (job["replicas"], job["template"]["spec"]["parallelism"], job["template"]["spec"]["completions"]) == (
        1,
        8,
        8,
    )
    assert links(result) == {"node": group["metadata"]["name"]}


def test_5_no_nodes_at_all() -> None:
    spec = jobset(compiled(trainjob(0), runtime()))["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (spec["parallelism"], spec["completions"]) == (0, 0)


def test_6_without_policy_nothing_is_grouped() -> None:
    result = compiled(trainjob(8), runtime(groups=False))
    assert (result.plans, result.reason) == ((), 'runtime "rt" has no podGroupPolicy.workload')
    assert links(result) == {"node": None}


@pytest.mark.parametrize("other", ["volcano", "coscheduling"])
def test_7_one_policy_only(other: str) -> None:
    assert refused(runtime(podGroupPolicy={"workload": {}, other: {}})) == ["spec.podGroupPolicy"]


def test_8_policy_and_alias() -> None:
    rt = runtime(podGroupPolicy={"workload": {}}, scheduling={})
    assert refused(rt) == ["spec.scheduling"]


def test_9_gate_off_runtime_refused() -> None:
    assert refused(runtime(), options=()) == [W]


def test_10_gate_off_stored_runtime_makes_a_plain_jobset() -> None:
    result = compiled(trainjob(8), runtime(), options=())
    assert (result.plans, result.errors) == ((), ())
    assert result.reason == "gate TrainJobWorkloadAwareScheduling is off"
    assert links(result) == {"node": None}


def test_79_group_not_served() -> None:
    assert W in refused(runtime(), without=["GenericWorkload", "CompositePodGroup"])
    assert refused(runtime(groups=False), without=["GenericWorkload"]) == []
    assert compiled(trainjob(8), runtime(), without=["GenericWorkload"]).plans == ()


def test_12_and_13_launcher_and_nodes_share_a_group() -> None:
    for jobs in ((LAUNCHER, NODE), (NODE, LATE_LAUNCHER)):
        result = compiled(trainjob(12), runtime(*jobs, ml=MPI))
        assert len(set(links(result).values())) == 1
        counts = {
            job["name"]: job["template"]["spec"]["parallelism"] for job in jobset(result)["spec"]["replicatedJobs"]
        }
        assert counts == {"launcher": 1, "node": 12}


@pytest.mark.parametrize(
    ("number", "nodes", "ml", "wanted"),
    [(14, 12, AS_NODE, 11), (15, 1, AS_NODE, 1), (16, None, {"numNodes": 5, "mpi": {}}, 5)],
)
def test_14_to_16_sizes_of_mpi(number: int, nodes: int | None, ml: Any, wanted: int) -> None:
    jobs = jobset(compiled(trainjob(nodes), runtime(LAUNCHER, NODE, ml=ml)))["spec"]["replicatedJobs"]
    assert {job["name"]: job["template"]["spec"]["parallelism"] for job in jobs} == {"launcher": 1, "node": wanted}


def test_17_completion_inside_a_gang() -> None:
    jobs = rjob("prep"), trainer("train", after=[("prep", "Complete")])
    entry = {"targetReplicatedJobs": ["prep", "train"]}
    rt = runtime(*jobs, workload={"scheduling": {"replicatedJobs": [entry]}})
    assert refused(rt) == [f"{JOBS}[1].dependsOn"]
    basic = {**entry, "schedulingPolicy": {"basic": {}}}
    assert refused(runtime(*jobs, workload={"scheduling": {"replicatedJobs": [basic]}})) == []


def test_17_completion_on_a_detour() -> None:
    jobs = rjob("prep"), rjob("check", after=[("prep", "Complete")]), trainer("train", after=[("check", "Ready")])
    entries = [{"targetReplicatedJobs": ["prep", "train"]}, {"targetReplicatedJobs": ["check"]}]
    assert refused(runtime(*jobs, workload={"scheduling": {"replicatedJobs": entries}})) == [f"{JOBS}[2].dependsOn"]


def test_18_two_groups_and_the_basic_one_has_no_minimum() -> None:
    result = compiled(trainjob(4), runtime(DATASET, MODEL, trainer()))
    workload, first, second = rendered(result.plans[0])
    assert [one["name"] for one in workload["spec"]["podGroupTemplates"]] == ["initializer", "trainer"]
    assert first["spec"]["schedulingPolicy"] == {"basic": {}}
    assert second["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
    assert links(result) == {
        "dataset-initializer": first["metadata"]["name"],
        "model-initializer": first["metadata"]["name"],
        "node": second["metadata"]["name"],
    }


def test_21_label_on_the_pod_template() -> None:
    job = rjob("node")
    job["template"]["spec"]["template"]["metadata"] = {
        "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    }
    result = compiled(trainjob(9), runtime(job))
    assert sizes(result.plans[0]) == {"node": 1}
    assert any("none is labelled as the trainer" in str(text) for text in result.warnings)


def test_22_name_of_a_stage() -> None:
    assert refused(runtime(trainer(), rjob("trainer"))) == [f"{JOBS}[1].name"]
    assert refused(runtime(rjob("initializer"), DATASET, trainer())) == [f"{JOBS}[0].name"]


def test_24_nine_groups() -> None:
    helpers = [rjob(f"h{number}") for number in range(8)]
    assert refused(runtime(trainer(), *helpers)) == [W]
    assert refused(runtime(trainer(), *helpers[1:])) == []


HELPER_5 = rjob("helper", parallelism=2), trainer()


@pytest.mark.parametrize(
    ("number", "rt", "wanted"),
    [
        (25, runtime(*HELPER_5, workload={"scheduling": {"schedulingPolicy": {"gang": {}}}}), {"job": 7}),
        (
            26,
            runtime(
                rjob("helper", parallelism=2),
                trainer(after=[("helper", "Ready")]),
                workload={"scheduling": {"schedulingPolicy": {"gang": {}}}},
            ),
            {"helper": 2, "node": 5},
        ),
        (27, runtime(*HELPER_5, workload={"scheduling": {}}), {"job": 7}),
        ("27-alias", runtime(*HELPER_5, scheduling={}), {"job": 7}),
        (
            "in-order",
            runtime(
                *HELPER_5, workload={"scheduling": {}}, template={"startupPolicy": {"startupPolicyOrder": "InOrder"}}
            ),
            {"helper": 2, "node": 5},
        ),
        (
            "in-order, one group",
            runtime(
                *HELPER_5,
                workload={"scheduling": {"replicatedJobs": [{"targetReplicatedJobs": ["helper", "node"]}]}},
                template={"startupPolicy": {"startupPolicyOrder": "InOrder"}},
            ),
            {"helper-node": 2},
        ),
    ],
)
def test_25_to_27_whole_job(number: Any, rt: Any, wanted: dict[str, int]) -> None:
    assert sizes(plan(trainjob(5), rt)) == wanted


def test_28_someone_is_left_out() -> None:
    rt = runtime(*HELPER_5, workload={"scheduling": {"replicatedJobs": [{"targetReplicatedJobs": ["node"]}]}})
    assert refused(rt) == [f"{W}.scheduling.replicatedJobs"]


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ([["helper", "node", "ghost"]], "replicatedJobs[0].targetReplicatedJobs[2]"),
        ([["helper", "node"], ["node"]], "replicatedJobs[1].targetReplicatedJobs[0]"),
    ],
)
def test_29_targets(entries: list[list[str]], field: str) -> None:
    asked = [{"targetReplicatedJobs": names} for names in entries]
    assert f"{W}.scheduling.{field}" in refused(runtime(*HELPER_5, workload={"scheduling": {"replicatedJobs": asked}}))


@pytest.mark.parametrize(
    ("namespace", "job", "uid", "template", "wanted"),
    [
        ("ml-east", "resnet-gang", "11111111-2222-3333-4444-555555555555", "trainer", "resnet-gang-trainer-3024ca3565"),
        ("hpc", "weather-mpi", "22222222-0000-0000-0000-00000000000a", "trainer", "weather-mpi-trainer-ba2077df7f"),
        ("nlp", "staged", "55555555-0000-0000-0000-00000000000d", "staged", "staged-699aadfcad"),
        ("x", "a" * 63, "66666666-0000-0000-0000-00000000000e", "trainer", "a" * 44 + "-trainer-c8d9726f8e"),
        (
            "x",
            "long",
            "66666666-0000-0000-0000-00000000000f",
            "dataset-initializer-model-initializer",
            "long-dataset-initializer-mode-97ce6f9693",
        ),
    ],
)
def test_48_49_names(namespace: str, job: str, uid: str, template: str, wanted: str) -> None:
    assert Namer(namespace, job, uid).group(template) == wanted
    assert len(wanted) <= 63


def test_long_joined_names_fit_into_a_label() -> None:
    names = [f"quite-a-long-name-{letter}" for letter in "abcd"]
    rt = runtime(
        *[rjob(name) for name in names], workload={"scheduling": {"replicatedJobs": [{"targetReplicatedJobs": names}]}}
    )
    (template,) = plan(trainjob(), rt).templates
    full = "-".join(names)
    assert template.name == f"{full[:52]}-{Namer('ml', 'job', '11111111-2222-3333-4444-555555555555').digest(full)}"


def test_duplicate_template_names() -> None:
    entries = [{"targetReplicatedJobs": ["a", "b"]}, {"targetReplicatedJobs": ["a-b"]}]
    rt = runtime(rjob("a"), rjob("b"), rjob("a-b"), workload={"scheduling": {"replicatedJobs": entries}})
    assert refused(rt) == [f"{W}.scheduling.replicatedJobs[1]"]


@pytest.mark.parametrize(("nodes", "wanted"), [(None, 4), (3, 3)])
def test_70_resources_without_ml_policy(nodes: int | None, wanted: int) -> None:
    rt = runtime(trainer(parallelism=4))
    del rt["spec"]["mlPolicy"]
    result = compiled(trainjob(nodes, trainer={"resourcesPerNode": {"requests": {"cpu": "2"}}}), rt)
    assert sizes(result.plans[0]) == {"trainer": wanted}
    pod = jobset(result)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert "resources" not in pod["containers"][0]
