"""The rest of a Job's life (spec job 6) where this project differs from upstream, and rules that no recording shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.controllers.cluster import job_of
from tests.controllers.world import World

from kohort.api.kind import Object
from kohort.kinds.batch.api.indexes import IndexSet
from kohort.kinds.batch.control.job import backoff, wanted
from kohort.kinds.batch.control.job.backoff import Record
from kohort.kinds.batch.control.job.counting import read_indexes, tally
from kohort.kinds.batch.control.job.failure_policy import meaning
from kohort.kinds.batch.control.job.finish import matched_success_rule
from kohort.kinds.batch.control.job.pod import finished
from kohort.kinds.batch.control.job.template import generate_name, new_pod

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def at(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(name: str = "p", phase: str = "Pending", **more: Any) -> Object:
    meta: dict[str, Any] = {"name": name, "namespace": "lab", "uid": name, "creationTimestamp": at(0)}
    meta |= {"finalizers": ["batch.kubernetes.io/job-tracking"], **more.pop("meta", {})}
    return {"metadata": meta, "spec": more.pop("spec", {}), "status": {"phase": phase, **more}}


def ended(name: str, phase: str, seconds: float, code: int = 0) -> Object:
    state = {"terminated": {"exitCode": code, "finishedAt": at(seconds)}}
    return pod(name, phase, containerStatuses=[{"name": "main", "state": state}])


def test_a_suspended_job_that_is_done_ends() -> None:
    """Upstream retries for ever until it is resumed (J-62)."""
    world = World()
    world.job("limbo", parallelism=3, completions=3, completionMode="Indexed")
    world.run()
    for one in world.active()[:2]:
        world.pod_does(one, "succeed")
    world.run()
    world.patch("Job", "limbo", {"spec": {"suspend": True}})
    world.run()
    world.patch("Job", "limbo", {"spec": {"parallelism": 2, "completions": 2}})
    world.run(5)
    assert world.conditions("limbo")[-1] == "Complete=True CompletionsReached"
    assert not world.driver.errors


@pytest.mark.parametrize(
    ("failures", "passed", "left"),
    [(0, 0, 0), (1, 0, 10), (1, 9, 1), (1, 10, 0), (2, 0, 20), (3, 5, 35), (7, 0, 600), (99, 0, 600)],
)
def test_waits_double_to_ten_minutes(failures: int, passed: float, left: float) -> None:
    assert backoff.remaining(failures, NOW, NOW + timedelta(seconds=passed)) == left


def test_failures_before_a_success_are_forgotten() -> None:
    old = Record(3, NOW)
    failed = [ended("a", "Failed", 5, 1), ended("b", "Failed", 20, 1)]
    assert old.after([], failed) == Record(5, NOW + timedelta(seconds=20))
    assert old.after([ended("c", "Succeeded", 10)], failed) == Record(1, NOW + timedelta(seconds=20))
    assert old.after([ended("c", "Succeeded", 30)], failed) == Record(0, None)
    assert old.after([], []) == old


def test_when_a_pod_ended() -> None:
    assert finished(ended("a", "Failed", 7)) == NOW + timedelta(seconds=7)
    not_ready = pod(conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": at(3)}])
    assert finished(not_ready) == NOW + timedelta(seconds=3)
    told = pod(meta={"deletionTimestamp": at(40), "deletionGracePeriodSeconds": 30})
    assert finished(told) == NOW + timedelta(seconds=10)
    assert finished(pod()) == NOW


def test_the_first_rule_that_matches_decides() -> None:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "other", "operator": "In", "values": [1]}},
        {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [2]}},
    ]
    job = {"spec": {"podFailurePolicy": {"rules": rules}}}
    disrupted = ended("a", "Failed", 0, 1)
    disrupted["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    assert (meaning(job, disrupted).action, meaning(job, disrupted).counts) == ("Ignore", False)
    assert meaning(job, ended("a", "Failed", 0, 1)).action == "Count"
    assert meaning(job, ended("a", "Failed", 0, 2)).action == ""
    assert meaning({"spec": {}}, disrupted).counts


def test_success_rules() -> None:
    def job(*rules: Object) -> Object:
        return {"spec": {"completions": 10, "successPolicy": {"rules": list(rules)}}}

    assert not matched_success_rule(job({"succeededIndexes": "0-2"}), IndexSet.of({0, 1}))
    assert matched_success_rule(job({"succeededIndexes": "0-2"}), IndexSet.of({0, 1, 2}))
    assert matched_success_rule(job({"succeededIndexes": "0-2", "succeededCount": 2}), IndexSet.of({0, 1}))
    assert not matched_success_rule(job({"succeededIndexes": "0-2", "succeededCount": 2}), IndexSet.of({0, 5}))
    found = matched_success_rule(job({"succeededIndexes": "9"}, {"succeededCount": 2}), IndexSet.of({0, 5}))
    assert found == "Matched rules at index 1"
    assert not matched_success_rule({"spec": {"completions": 1}}, IndexSet.of({0}))


@pytest.mark.parametrize(
    ("text", "completions", "found"),
    [("", 5, set()), ("0,2-4", 9, {0, 2, 3, 4}), ("0,2-4", 3, {0, 2}), ("7", 3, set()), (None, 3, set())],
)
def test_index_lists_forget_what_is_out_of_range(text: str | None, completions: int, found: set[int]) -> None:
    assert read_indexes(text, completions) == IndexSet.of(found)


def test_which_pods_go_first() -> None:
    """Not bound, pending, not ready, younger."""
    ready = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at(1)}]}
    bound: dict[str, Any] = {"spec": {"nodeName": "n"}}
    pods = [
        pod("ready", "Running", **ready, **bound),
        pod("running", "Running", **bound),
        pod("younger", "Running", **bound, meta={"creationTimestamp": at(9)}),
        pod("pending", **bound),
        pod("unbound"),
    ]
    job = job_of("x", parallelism=0, completions=9) | {"status": {}}
    found = wanted.wanted(tally(job, pods), Record(), NOW)
    assert [one["metadata"]["name"] for one in found.remove] == ["unbound", "pending", "younger", "running", "ready"]


def test_generated_names_fit() -> None:
    assert generate_name("train", 3) == "train-3-"
    assert generate_name("i" * 60, 10) == "i" * 54 + "-10-"
    assert generate_name("n" * 63, None) == "n" * 63 + "-"


def test_a_pod_keeps_what_the_template_says() -> None:
    env = [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]
    body = job_of(
        "x", template={"metadata": {"finalizers": ["a/b"]}, "spec": {"containers": [{"name": "c", "env": env}]}}
    )
    body["metadata"]["uid"] = "u"
    made = new_pod(body, 4, {"schedulingGroup": {"podGroupName": "g"}})
    assert made["spec"]["containers"][0]["env"] == env
    assert made["spec"]["hostname"] == "x-4"
    assert made["metadata"]["finalizers"] == ["a/b", "batch.kubernetes.io/job-tracking"]
    assert "schedulingGroup" not in body["spec"]["template"]["spec"]


def test_many_pods_that_end_at_once_are_counted_in_portions() -> None:
    """At most 500 are noted in one status."""
    world = World()
    world.job("crowd", parallelism=620, completions=620, completionMode="Indexed")
    world.run(5)
    world.pods_do("succeed")
    world.run(5)
    assert world.status("crowd")["succeeded"] == 620
    assert world.status("crowd")["completedIndexes"] == "0-619"
    assert world.conditions("crowd")[-1] == "Complete=True CompletionsReached"


def test_refused_deletes_postpone_the_verdict() -> None:
    world = World()
    world.job("brittle", parallelism=2, completions=2, backoffLimit=0)
    world.run()
    world.api.refusals.append(("delete", "Pod", 1))
    world.pod_does(world.active()[0], "fail", exit=1)
    world.run(1.2)
    assert "conditions" not in world.status("brittle")
    world.run(5)
    assert world.conditions("brittle")[-1] == "Failed=True BackoffLimitExceeded"
    assert "FailedDelete" in world.reasons()


def test_a_pod_without_an_owner_is_not_held() -> None:
    """Deleting a Job without its pods takes their owner away; a finalizer that stays would hold them for ever."""
    world = World()
    tracking = "batch.kubernetes.io/job-tracking"
    template: Object = {"containers": [{"name": "c", "image": "x"}]}
    meta: dict[str, Any] = {"name": "left", "finalizers": [tracking, "a.io/hold"], "labels": {"x": "y"}}
    world.make({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template})
    world.run(2)
    assert world.find("Pod", "left")["metadata"]["finalizers"] == ["a.io/hold"]


def test_a_pod_without_an_owner_that_a_job_adopts_is_held() -> None:
    world = World()
    meta: dict[str, Any] = {"name": "old", "finalizers": ["batch.kubernetes.io/job-tracking"], "labels": {"x": "y"}}
    world.make(
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    )
    template = {
        "metadata": {"labels": {"x": "y"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
    }
    world.job("keeper", manualSelector=True, selector={"matchLabels": {"x": "y"}}, template=template)
    world.run(5)
    (pod,) = world.every("Pod")
    assert pod["metadata"]["ownerReferences"][0]["name"] == "keeper"
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]


def test_a_pod_that_gets_its_label_back_is_adopted_again() -> None:
    """Although nothing else happens to the Job (J-36, with time between the steps)."""
    world = World()
    template = {
        "metadata": {"labels": {"crew": "b"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
    }
    selector = {"matchLabels": {"crew": "b"}}
    world.job("leash", manualSelector=True, selector=selector, template=template)
    world.run(30)
    (pod,) = world.every("Pod")
    world.patch("Pod", pod["metadata"]["name"], {"metadata": {"labels": {"crew": "c"}}})
    world.run(30)
    assert len(world.every("Pod")) == 2
    world.patch("Pod", pod["metadata"]["name"], {"metadata": {"labels": {"crew": "b"}}})
    world.run(30)
    assert len(world.every("Pod")) == 1  # both are the Job's now, and one is too many
    assert "SuccessfulDelete" in world.reasons()


def test_a_group_that_somebody_made_as_a_gang_follows_the_job() -> None:
    """Also where the Job's own Workload beside it is not one."""
    world = World(start=False)
    job = world.gang("w", 3)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "w", "uid": job["metadata"]["uid"], "controller": True}
    version = "scheduling.k8s.io/v1beta1"
    template: Object = {"name": "grp", "schedulingPolicy": {"basic": {}}}
    reference = {"apiGroup": "batch", "kind": "Job", "name": "w"}
    workload = {"controllerRef": reference, "podGroupTemplates": [template]}
    group = {
        "workloadRef": {"workloadName": "own", "templateName": "grp"},
        "schedulingPolicy": {"gang": {"minCount": 2}},
    }
    for kind, name, spec in (("Workload", "own", workload), ("PodGroup", "g", group)):
        meta: dict[str, Any] = {"name": name, "ownerReferences": [owner]}
        world.make({"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec})
    world.start()
    world.run(5)
    assert world.minimum() == 3
    assert world.minimum("Workload") is None
    assert {world.group_of(pod) for pod in world.active()} == {"g"}


def test_pods_that_go_with_their_job_have_not_failed() -> None:
    """A foreground deletion takes the pods first; whoever looks then does not count them (T-64f)."""
    world = World(start=False)
    world.job("busy", parallelism=2, completions=2)
    world.start()
    world.run()
    world.pods_do("bind", "run")
    world.run()
    world.driver.stop()
    world.patch("Job", "busy", {"metadata": {"finalizers": ["a.io/hold"]}})
    world.delete("Job", "busy", "Foreground")
    for pod in world.every("Pod"):
        world.delete("Pod", pod["metadata"]["name"])
    world.start()
    world.run(5)
    assert "failed" not in world.status("busy")
    assert all(
        "batch.kubernetes.io/job-tracking" not in pod["metadata"].get("finalizers", ()) for pod in world.every("Pod")
    )
