"""Rules that need other objects, asked through the API: what upstream's webhooks said in the recordings, ours says."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.kinds.grove.api.cases import FABRIC, case, clique, group, pcs, recording, whole
from tests.kinds.trainer.api.recorded import cases, typed
from tests.kinds.trainer.api.test_recorded import DIFFERENT
from tests.server.admission.world import Answer, Object, World

from kohort.api.crd import crds
from kohort.api.options import context
from kohort.server.crd import resources

TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
GROVE = "/apis/grove.io/v1alpha1"
PATHS = {
    "TrainJob": f"{TRAINER}/namespaces/default/trainjobs",
    "TrainingRuntime": f"{TRAINER}/namespaces/default/trainingruntimes",
    "ClusterTrainingRuntime": f"{TRAINER}/clustertrainingruntimes",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ConfigMap": "/api/v1/namespaces/default/configmaps",
}
MERGE = "application/merge-patch+json"


@cache
def definitions() -> tuple[Object, ...]:
    return crds()


async def made(minor: str = "1.37", **options: bool) -> World:
    """A world that serves the operators' kinds with our rules."""
    world = await World.make(minor, ctx=context(minor, options))
    for definition in definitions():
        for resource in resources.resources_of(definition):
            world.api.resources.add(resource)
    return world


def fields(answer: Answer) -> list[str]:
    return [cause["field"] for cause in answer.body.get("details", {}).get("causes", [])]


# ---- TrainJob


@pytest.mark.parametrize(
    "name", [name for name, found in cases().items() if name.startswith("v-") and "tries" in found]
)
async def test_recorded_tries_of_trainer(name: str) -> None:
    """Those that create something: same verdict, and 422 with fields where upstream's webhook says 403."""
    world, other = await made(), []
    for step in cases()[name]["timeline"]:
        if step.get("create") in PATHS and step["code"] == 201:
            await world.made(PATHS[step["create"]], typed(step["create"], step["object"], "default"))
    for attempt in cases()[name]["tries"]:
        if "patch" in attempt:
            continue
        kind = attempt.get("kind", "TrainJob")
        answer = await world.ask("POST", f"{PATHS[kind]}?dryRun=All", typed(kind, attempt["object"], "default"))
        same = (answer.code < 300) == (attempt["code"] < 300)
        if same == ((name, attempt["try"]) in DIFFERENT) or answer.code >= 500:
            other.append((attempt["try"], attempt["code"], answer.code, answer.message))
        if answer.code == 422 and attempt["code"] == 403:
            assert fields(answer), attempt["try"]
    assert other == []


def job(name: str, runtime: str = "flat", kind: str = "TrainingRuntime", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"runtimeRef": {"name": runtime, "kind": kind}, **spec}}


async def runtime(world: World, name: str = "flat") -> None:
    step = next(one for one in cases()["s-snapshot"]["timeline"] if one.get("create") == "TrainingRuntime")
    body = typed("TrainingRuntime", step["object"], "default")
    body["metadata"]["name"] = name
    await world.made(PATHS["TrainingRuntime"], body)


async def test_a_runtime_must_be_there() -> None:
    world = await made()
    answer = await world.ask("POST", PATHS["TrainJob"], job("a", "nope"))
    assert (answer.code, fields(answer)) == (422, ["spec.runtimeRef.name"])
    answer = await world.ask("POST", PATHS["TrainJob"], job("a", "torch-distributed", "ClusterTrainingRuntime"))
    assert answer.code == 201
    assert "built-in" in answer.headers["warning"]


async def test_an_update_is_judged_by_the_snapshot_and_a_label_by_nobody() -> None:
    """D19: upstream asks for the runtime as it is now, and refuses everything once it is gone."""
    world = await made()
    await runtime(world)
    body = await world.made(PATHS["TrainJob"], job("a", suspend=True))
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "a", "controller": True}
    live = (await world.ask("GET", f"{PATHS['TrainingRuntime']}/flat")).body
    await world.ask("DELETE", f"{PATHS['TrainingRuntime']}/flat")
    path = f"{PATHS['TrainJob']}/a"
    assert (await world.ask("PATCH", path, {"metadata": {"labels": {"x": "y"}}}, media=MERGE)).code == 200
    assert (await world.ask("PATCH", path, {"spec": {"suspend": False}}, media=MERGE)).code == 422
    await world.made(
        PATHS["ConfigMap"],
        {
            "metadata": {
                "name": "a-runtime-snapshot",
                "ownerReferences": [{**owner, "uid": body["metadata"]["uid"]}],
            },
            "data": {"runtime": json.dumps(live)},
        },
    )
    assert (await world.ask("PATCH", path, {"spec": {"suspend": False}}, media=MERGE)).code == 200


async def test_an_old_snapshot_of_the_same_name_does_not_stop_a_new_job() -> None:
    world = await made()
    await runtime(world)
    await world.made(PATHS["ConfigMap"], {"metadata": {"name": "a-runtime-snapshot"}, "data": {"runtime": "x"}})
    assert (await world.ask("POST", PATHS["TrainJob"], job("a"))).code == 201


def patch(manager: str, **labels: str) -> Object:
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"metadata": {"labels": labels}}}}


async def test_patches_are_stamped_and_wait_for_active_jobs() -> None:
    world = await made()
    await runtime(world)
    spec: Object = {"suspend": True, "runtimePatches": [{**patch("a.io/x", k="v"), "time": "2020-02-02T02:02:02Z"}]}
    first = await world.made(PATHS["TrainJob"], job("a", **spec))
    assert first["spec"]["runtimePatches"][0]["time"] == "2020-02-02T02:02:02Z"  # a given time is kept on create
    both = {"spec": {"runtimePatches": [patch("a.io/x", k="v"), patch("b.io/y", k="w")]}}
    path = f"{PATHS['TrainJob']}/a"
    second = (await world.ask("PATCH", path, both, media=MERGE)).body["spec"]["runtimePatches"]
    assert second[0]["time"] == "2020-02-02T02:02:02Z"
    assert second[1]["time"] > "2026"
    template = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}
    await world.made(
        JOBSETS, {"metadata": {"name": "a"}, "spec": {"replicatedJobs": [{"name": "node", "template": template}]}}
    )
    counters = {"name": "node", "active": 1, "ready": 0, "succeeded": 0, "failed": 0, "suspended": 0}
    answer = await world.ask(
        "PATCH", f"{JOBSETS}/a/status", {"status": {"replicatedJobsStatus": [counters]}}, media=MERGE
    )
    assert answer.code == 200, answer.body
    answer = await world.ask("PATCH", path, {"spec": {"runtimePatches": [patch("a.io/x", k="v")]}}, media=MERGE)
    assert (answer.code, fields(answer)) == (422, ["spec.runtimePatches"])


@pytest.mark.parametrize("patches", [3, [3], [None], [{"manager": 1}], [{"manager": "a.io/x", "time": []}]])
async def test_what_is_stamped_may_be_nonsense(patches: Any) -> None:
    world = await made()
    await runtime(world)
    answer = await world.ask("POST", PATHS["TrainJob"], job("a", runtimePatches=patches))
    assert 400 <= answer.code < 500, answer.body


# ---- JobSet


@cache
def volumes() -> Any:
    file = Path(__file__).parents[2] / "recorded" / "jobset.json"
    return json.loads(file.read_text())["cases"]["v-volumes"]


async def test_recorded_tries_of_claims_that_exist() -> None:
    world = await made()
    for step in volumes()["timeline"]:
        if step.get("create") == "pvc":
            await world.made("/api/v1/namespaces/default/persistentvolumeclaims", step["object"])
    tries = [one for one in volumes()["tries"] if one["try"].startswith("PVC exists")]
    assert {one["code"] for one in tries} == {201, 422}
    for attempt in tries:
        answer = await world.ask("POST", f"{JOBSETS}?dryRun=All", attempt["object"])
        assert answer.code == attempt["code"], (attempt["try"], answer.message)
        assert fields(answer) == [cause["field"] for cause in attempt.get("causes", [])]


# ---- PodCliqueSet

PCS = f"{GROVE}/namespaces/default/podcliquesets"


def here(obj: Object) -> Object:
    return {**obj, "metadata": {"name": obj["metadata"]["name"]}}


TOPOLOGIES = [name for name, found in recording()["cases"].items() if found["set"] == "tas" and found.get("tries")]


@pytest.mark.parametrize("name", TOPOLOGIES)
async def test_recorded_tries_of_grove_with_topology(name: str) -> None:
    world, other = await made(GroveGangScheduling=False), []
    for step in case(name).get("timeline", []):
        if isinstance(step, dict) and str(step.get("create", "")).startswith("ctb/"):
            await world.made(f"{GROVE}/clustertopologybindings", whole("ctb", step["object"]))
    for tried in case(name)["tries"]:
        if "patch" in tried or name == "p-ctb":
            continue
        answer = await world.ask("POST", f"{PCS}?dryRun=All", here(whole("pcs", tried["object"])))
        if (answer.code < 300) != (tried["code"] < 300):
            other.append((tried["try"], tried["code"], answer.code, answer.message))
    assert other == []


async def test_a_binding_is_asked_for_on_create_only() -> None:
    world = await made()
    body = here(pcs("a", clique("x"), pack="rack"))
    answer = await world.ask("POST", PCS, body)
    assert (answer.code, fields(answer)) == (422, ["spec.template.topologyConstraint.topologyName"])
    await world.made(f"{GROVE}/clustertopologybindings", deepcopy(FABRIC))
    await world.made(PCS, body)
    await world.ask("DELETE", f"{GROVE}/clustertopologybindings/fabric")
    assert (await world.ask("PATCH", f"{PCS}/a", {"spec": {"replicas": 2}}, media=MERGE)).code == 200


async def test_scenario_11_names_of_another_set() -> None:
    world = await made()
    await world.made(PCS, here(pcs("a-0-b", clique("x"))))
    scaled = here(pcs("a", clique("x"), groups=[group("b", ["x"], replicas=2)]))
    answer = await world.ask("POST", PCS, scaled)
    assert (answer.code, fields(answer)[0]) == (422, "metadata.name")
    assert "a-0-b-0" in answer.message
    # One that clashes only once it is larger is refused when it grows, also through its scale.
    grown = here(pcs("c", clique("y"), groups=[group("d", ["y"], replicas=2)]))
    await world.made(PCS, grown)
    assert (await world.ask("POST", PCS, here(pcs("c-1-d", clique("y"))))).code == 201
    answer = await world.ask("PUT", f"{PCS}/c/scale", {"metadata": {"name": "c"}, "spec": {"replicas": 2}})
    assert answer.code == 422, answer.body
    assert (await world.ask("PATCH", f"{PCS}/c", {"metadata": {"labels": {"l": "m"}}}, media=MERGE)).code == 200


# ---- Job


def gang(name: str, owner: Object) -> Object:
    return {
        "metadata": {
            "name": name,
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "controller": True, **owner}],
        },
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }


@pytest.mark.parametrize(("minor", "version", "code"), [("1.36", "v1alpha2", 403), ("1.37", "v1alpha3", 200)])
async def test_t_52_parallelism_of_a_gang(minor: str, version: str, code: int) -> None:
    world = await made(minor)
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    body = {"metadata": {"name": "j"}, "spec": {"parallelism": 2, "completions": 4, "template": {"spec": pod}}}
    job = await world.made(jobs, body)
    owner = {"name": "j", "uid": job["metadata"]["uid"]}
    await world.made(f"/apis/scheduling.k8s.io/{version}/namespaces/default/podgroups", gang("g", owner))
    answer = await world.ask("PATCH", f"{jobs}/j", {"spec": {"parallelism": 3}}, media=MERGE)
    assert answer.code == code, answer.body
    if code == 403:
        why = 'cannot change parallelism for a Job referencing gang-scheduled PodGroup "g"'
        assert answer.message == f'jobs.batch "j" is forbidden: {why}'
    assert (await world.ask("PATCH", f"{jobs}/j", {"spec": {"suspend": True}}, media=MERGE)).code == 200


# ---- the hook itself


async def test_somebody_elses_definition_has_no_rules_of_ours() -> None:
    world = await made()
    definition = deepcopy(next(one for one in definitions() if one["spec"]["names"]["kind"] == "TrainJob"))
    definition["spec"]["versions"][0]["schema"] = {
        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    }
    for resource in resources.resources_of(definition):
        world.api.resources.add(resource)
    assert (await world.ask("POST", PATHS["TrainJob"], job("a", "nope"))).code == 201


async def test_an_object_on_its_way_out_is_let_go() -> None:
    world = await made()
    await runtime(world)
    body = job("a", suspend=True)
    body["metadata"]["finalizers"] = ["a.io/b"]
    await world.made(PATHS["TrainJob"], body)
    path = f"{PATHS['TrainJob']}/a"
    await world.ask("DELETE", f"{PATHS['TrainingRuntime']}/flat")
    await world.ask("DELETE", path)
    last = {"metadata": {"finalizers": None}, "spec": {"suspend": False}}
    assert (await world.ask("PATCH", path, last, media=MERGE)).code == 200
    assert (await world.ask("GET", path)).code == 404
