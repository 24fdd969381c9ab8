"""`kohort explain` on a cluster: from what people wrote down to the groups that wait."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e import training
from tests.e2e.test_gang_quota import quota
from tests.e2e.test_whole_cluster import JOBSET, gang, job

from kohort.cli.common import UsageError
from kohort.cli.lookup import find_in_cluster
from kohort.cli.targets import Question, answer
from kohort.scheduler.clusterlist import list_cluster
from kohort.scheduler.rootstatus import RootState, RootStatus, reason_and_message, root_status
from kohort.testing.cluster import Cluster


async def asked(cluster: Cluster, kind: str, name: str) -> tuple[list[RootStatus], str]:
    found = await find_in_cluster(cluster.client, await list_cluster(cluster.client), kind, name, cluster.namespace)
    assert found.unread == []
    return [root_status(found.core, root, member) for root, member in found.roots], found.note


@pytest.mark.releases("1.36", "1.37")
async def test_a_job_that_waits_and_one_that_runs(cluster: Cluster) -> None:
    await gang(cluster, "giant", 100, "4")
    await gang(cluster, "ring", 4, "1")

    async def there() -> Any:
        return len(await cluster.pods()) == 104

    await cluster.until(there)
    (waits,), _ = await asked(cluster, "", "giant")
    assert (waits.kind, waits.state, waits.pending) == ("PodGroup", RootState.WAITING, 100)
    assert waits.explanation is not None
    assert waits.explanation.reason == "InsufficientResource"
    assert {remedy.kind for remedy in waits.explanation.remedies} >= {"nodes", "minimum"}
    (other,), _ = await asked(cluster, "jobs", "ring")
    assert other.pending + other.placed + other.finished == 4


@pytest.mark.releases("1.37")
async def test_a_jobset_is_asked_about_through_its_jobs(cluster: Cluster) -> None:
    worker = job("unused", 8, "640")["spec"]
    jobs = [{"name": name, "replicas": 1, "template": {"spec": worker}} for name in ("ctl", "wrk")]
    spec = {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": jobs}
    await cluster.create({"apiVersion": JOBSET, "kind": "JobSet", "metadata": {"name": "aurora"}, "spec": spec})

    async def there() -> Any:
        return len(await cluster.pods()) == 16

    await cluster.until(there)
    pod = (await cluster.pods())[0]["metadata"]["name"]
    for kind, name in (("jobset", "aurora"), ("job", "aurora-wrk-0"), ("pod", pod)):
        (answer,), _ = await asked(cluster, kind, name)
        assert (answer.kind, answer.pending) == ("PodGroup", 16)


@pytest.mark.releases("1.37")
async def test_what_has_no_pods_says_why(cluster: Cluster) -> None:
    body = job("sleepy", 2, "1")
    body["spec"]["suspend"] = True
    await cluster.create(body)
    answers, note = await asked(cluster, "", "sleepy")
    assert answers == []
    assert note.startswith("it is suspended")
    with pytest.raises(UsageError, match="nobody: not found in namespace"):
        await asked(cluster, "", "nobody")


@pytest.mark.jobs
@pytest.mark.releases("1.37")
async def test_a_gang_without_a_pod_that_waits_for_a_quota_is_in_the_list(cluster: Cluster) -> None:
    await quota(cluster, {"pods": "1"})
    jobs = [{"name": name, "replicas": 1, "template": {"spec": job("unused", 2, "1")["spec"]}} for name in "ab"]
    spec = {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": jobs}
    await cluster.create({"apiVersion": JOBSET, "kind": "JobSet", "metadata": {"name": "aurora"}, "spec": spec})

    async def listed() -> Any:
        reply = await answer(cluster.client, Question((), namespace=cluster.namespace))
        return [one.status for one in reply.uncreated if len(one.uids) == 3]  # both Jobs, and what they are of

    (status,) = await cluster.until(listed, what="a JobSet that waits for the quota")
    assert (status.kind, status.name) == ("JobSet", "aurora")
    reason, message = reason_and_message(status)
    assert reason == "WaitingForMembers"
    assert "before all 4 fit: ResourceQuota team leaves" in message
    for kind, name in (("jobset", "aurora"), ("job", "aurora-b-0")):
        _, note = await asked(cluster, kind, name)
        assert note == f"it waits for a quota: {message}"


@pytest.mark.releases("1.37")
async def test_a_gang_that_lost_pods_names_who_took_them(cluster: Cluster) -> None:
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    await training.put(cluster, {**urgent, "value": 1000})
    low = job("low", 8, "9")
    low["spec"] |= {"scheduling": {"schedulingPolicy": {"gang": {}}}, "backoffLimit": 100}
    low["spec"]["template"]["metadata"]["annotations"]["sim.kohort.dev/run-seconds"] = "600"
    await cluster.create(low)
    await cluster.running(8)
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "9"}}}
    pod = {"priorityClassName": "urgent", "containers": [container]}
    await cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "high"}, "spec": pod})

    async def lost() -> Any:
        seen = await list_cluster(cluster.client)
        return (await find_in_cluster(cluster.client, seen, "job", "low", cluster.namespace)).preempted

    (said,) = await cluster.until(lost, what="a word on who preempted it")
    assert said.startswith(f"1 of its pods was preempted by pod {cluster.namespace}/high (priority 1000")


@pytest.mark.releases("1.37")
async def test_what_is_no_workload_is_not_said_to_have_a_controller(cluster: Cluster) -> None:
    node = (await cluster.client.kind("v1", "Node").list()).items[0]["metadata"]["name"]
    answers, note = await asked(cluster, "node", node)
    assert answers == []
    assert note.startswith("no pod and no group belongs to it; accepted are ")
    assert "JobSet" in note


@pytest.mark.releases("1.37")
async def test_words_as_kubectl_takes_them(cluster: Cluster) -> None:
    for name, team in (("first", "a"), ("second", "b")):
        body = job(name, 2, "640")
        body["metadata"]["labels"] = {"team": team}
        body["spec"]["template"].setdefault("metadata", {})["labels"] = {"team": team}
        await cluster.create(body)

    async def there() -> Any:
        return len(await cluster.pods()) == 4

    await cluster.until(there)

    async def found(*words: str, **options: Any) -> list[str]:
        reply = await answer(cluster.client, Question(words, **({"namespace": cluster.namespace} | options)))
        assert reply.missing == []
        return [one.asked.replace(f"{cluster.namespace}/", "") for one in reply.found]

    both = ["Job first", "Job second"]
    assert await found("job", "second", "first") == both[::-1]
    assert await found("jobs.batch/first", "job/second") == both
    assert await found("first", "second") == both
    assert await found("jobs") == both
    assert await found("jobs", labels="team=b") == both[1:]
    assert await found("jobs", namespace="", everywhere=True, labels="team in (a,b)") == both

    async def waiting(**options: Any) -> set[str]:
        reply = await answer(cluster.client, Question((), **options))
        statuses = [root_status(reply.core, *root) for root in reply.waiting if reply.core is not None]
        assert all(one.namespace == cluster.namespace for one in statuses)
        return {one.name.split("-")[0] for one in statuses}

    assert await waiting(namespace=cluster.namespace) == {"first", "second"}
    assert await waiting(everywhere=True, labels="team=a") == {"first"}
    assert await waiting(namespace="kube-system") == set()
