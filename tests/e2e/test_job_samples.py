"""What Kubernetes' documentation shows of Jobs and CronJobs (examples/controllers and examples/application/job of its
website), told in our own manifests: all are accepted, and end as the pages say.

Covered: job, job-backoff-limit-per-index-example, -failindex, job-pod-failure-policy-config-issue, -example, -failjob,
-ignore, job-success-policy, -example; cronjob, indexed-job, indexed-job-vol, job-sidecar, job-sidecar-legacy, job-tmpl,
rabbitmq/job, redis/job.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.jobs import JOB, complete, cronjob, live, status

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster, condition

pytestmark = pytest.mark.releases("1.37")
FAIL_42 = {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}}
IGNORE = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}


def sample(
    name: str, *, codes: str = "", code: str = "", run: str = "2", pod: Object | None = None, **spec: Any
) -> Object:
    """`codes`, `code`: how containers end, by index or all."""
    notes = {"run-seconds": run, "start-seconds": "0", "stop-seconds": "0"}
    notes |= {key: value for key, value in (("exit-codes", codes), ("exit-code", code)) if value}
    template = {
        "metadata": {"annotations": {f"sim.kohort.dev/{key}": value for key, value in notes.items()}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}], **(pod or {})},
    }
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
    return {**body, "spec": {"template": template, **spec}}


async def ended(cluster: Cluster, name: str, kind: str) -> tuple[str, Object]:
    """Waits for Complete or Failed; its reason, and the status."""
    found = await cluster.until(lambda: cluster.condition(*JOB, name, kind), what=f"{name} {kind}")
    return str(found["reason"]), await status(cluster, name)


async def test_a_plain_job(cluster: Cluster) -> None:
    await cluster.create(sample("digits", backoffLimit=4))
    await complete(cluster, "digits")


async def test_backoff_limit_per_index(cluster: Cluster) -> None:
    """Every second index fails twice; the others are not disturbed by it."""
    limits: dict[str, Any] = {"backoffLimitPerIndex": 1, "maxFailedIndexes": 5}
    even = ",".join(f"{index}=1" for index in range(0, 10, 2))
    shape: dict[str, Any] = {"completions": 10, "parallelism": 3, "completionMode": "Indexed"}
    await cluster.create(sample("each", codes=even, **shape, **limits))
    reason, found = await ended(cluster, "each", "Failed")
    assert reason == "FailedIndexes"
    assert (found["completedIndexes"], found["failedIndexes"]) == ("1,3,5,7,9", "0,2,4,6,8")
    assert (found["succeeded"], found["failed"]) == (5, 10)


async def test_an_index_that_is_given_up_at_once(cluster: Cluster) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
    policy: dict[str, Any] = {"podFailurePolicy": {"rules": [rule]}, "backoffLimitPerIndex": 1}
    shape: dict[str, Any] = {"completions": 4, "parallelism": 2, "completionMode": "Indexed"}
    await cluster.create(sample("given-up", codes="0=1,1=42", **shape, **policy))
    reason, found = await ended(cluster, "given-up", "Failed")
    assert reason == "FailedIndexes"
    assert found["failedIndexes"] == "0,1"
    assert found["failed"] == 3, "two tries of index 0, one of index 1"


async def test_a_condition_that_somebody_sets_fails_the_job(cluster: Cluster) -> None:
    rule = {"action": "FailJob", "onPodConditions": [{"type": "ConfigIssue"}]}
    policy: dict[str, Any] = {"podFailurePolicy": {"rules": [rule]}}
    await cluster.create(sample("misconfigured", run="9999", completions=8, parallelism=2, **policy))
    await cluster.running(2)
    pod = (await live(cluster, "misconfigured"))[0]
    said = {"type": "ConfigIssue", "status": "True", "lastTransitionTime": pod["metadata"]["creationTimestamp"]}
    conditions = [*pod["status"]["conditions"], said]
    await cluster.patch("v1", "Pod", pod["metadata"]["name"], {"status": {"conditions": conditions}}, "status")
    await cluster.delete("v1", "Pod", pod["metadata"]["name"])
    reason, _ = await ended(cluster, "misconfigured", "Failed")
    assert reason == "PodFailurePolicy"


@pytest.mark.parametrize("rules", [[FAIL_42, IGNORE], [FAIL_42]], ids=["example", "failjob"])
async def test_an_exit_code_fails_the_job(cluster: Cluster, rules: list[Object]) -> None:
    policy: dict[str, Any] = {"podFailurePolicy": {"rules": rules}, "backoffLimit": 6}
    await cluster.create(sample("broken", code="42", completions=12, parallelism=3, **policy))
    reason, found = await ended(cluster, "broken", "Failed")
    assert reason == "PodFailurePolicy"
    assert found["failed"] <= 3


async def test_evictions_are_ignored(cluster: Cluster) -> None:
    policy: dict[str, Any] = {"podFailurePolicy": {"rules": [IGNORE]}, "backoffLimit": 0}
    await cluster.create(sample("moved", run="20", completions=4, parallelism=2, **policy))
    await cluster.running(2)
    pod = (await live(cluster, "moved"))[0]
    await cluster.client.kind("v1", "Pod").evict(pod["metadata"]["name"], cluster.namespace)
    reason, found = await ended(cluster, "moved", "Complete")
    assert reason == "CompletionsReached"
    assert found.get("failed", 0) == 0


@pytest.mark.parametrize(
    "rule", [{"succeededIndexes": "0,2-3", "succeededCount": 1}, {"succeededIndexes": "0,2-3"}], ids=["count", "all"]
)
async def test_success_without_everybody(cluster: Cluster, rule: Object) -> None:
    shape: Object = {"completions": 10, "parallelism": 10, "completionMode": "Indexed", "backoffLimitPerIndex": 1}
    codes = ",".join(f"{index}=1" for index in (1, 4, 5, 6, 7, 8, 9))
    await cluster.create(sample("enough", codes=codes, successPolicy={"rules": [rule]}, **shape))
    reason, _ = await ended(cluster, "enough", "Complete")
    assert reason == "SuccessPolicy"


async def test_a_cronjob_every_minute(cluster: Cluster) -> None:
    await cluster.create(cronjob("hello", "* * * * *", sample("x", pod={"restartPolicy": "OnFailure"})["spec"]))

    async def ran() -> Any:
        return [one for one in await cluster.every(*JOB) if condition(one, "Complete")]

    (run, *_) = await cluster.until(ran)
    assert run["metadata"]["ownerReferences"][0]["kind"] == "CronJob"


INIT = {"name": "choose", "image": "busybox", "command": ["sh", "-c", "echo $JOB_COMPLETION_INDEX > /input/index"]}
EMPTY = {
    "initContainers": [{**INIT, "volumeMounts": [{"name": "input", "mountPath": "/input"}]}],
    "volumes": [{"name": "input", "emptyDir": {}}],
}
DOWNWARD = {
    "volumes": [
        {
            "name": "input",
            "downwardAPI": {
                "items": [
                    {
                        "path": "index",
                        "fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"},
                    }
                ]
            },
        }
    ]
}


@pytest.mark.parametrize("pod", [EMPTY, DOWNWARD], ids=["indexed-job", "indexed-job-vol"])
async def test_static_work_by_index(cluster: Cluster, pod: Object) -> None:
    shape: dict[str, Any] = {"completions": 5, "parallelism": 3, "completionMode": "Indexed"}
    await cluster.create(sample("indexed", pod=pod, **shape))
    _, found = await ended(cluster, "indexed", "Complete")
    assert found["completedIndexes"] == "0-4"


SIDECAR = {"initContainers": [{"name": "logs", "image": "busybox", "restartPolicy": "Always"}]}
LEGACY = {"containers": [{"name": "main", "image": "busybox"}, {"name": "logs", "image": "busybox"}]}


@pytest.mark.parametrize("pod", [SIDECAR, LEGACY], ids=["job-sidecar", "job-sidecar-legacy"])
async def test_sidecars_do_not_keep_a_job(cluster: Cluster, pod: Object) -> None:
    await cluster.create(sample("beside", pod=pod))
    await complete(cluster, "beside")


async def test_jobs_from_one_template(cluster: Cluster) -> None:
    for item in ("apple", "banana", "cherry"):
        body = sample(f"process-{item}")
        body["metadata"]["labels"] = body["spec"]["template"]["metadata"]["labels"] = {"jobgroup": "fruit"}
        await cluster.create(body)
    for item in ("apple", "banana", "cherry"):
        await complete(cluster, f"process-{item}")
    assert len(await cluster.pods("jobgroup=fruit")) == 3


async def test_a_pod_for_each_item_of_a_queue(cluster: Cluster) -> None:
    await cluster.create(sample("one-each", completions=8, parallelism=2, pod={"restartPolicy": "OnFailure"}))
    _, found = await ended(cluster, "one-each", "Complete")
    assert found["succeeded"] == 8


async def test_pods_that_share_a_queue(cluster: Cluster) -> None:
    await cluster.create(sample("shared", parallelism=2, pod={"restartPolicy": "OnFailure"}))
    _, found = await ended(cluster, "shared", "Complete")
    assert found["succeeded"] == 2
