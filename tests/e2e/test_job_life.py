"""A Job's life with its group, and what a server says to mistakes: spec job 8.4 to 8.6.

Scenarios that need a fault, a restart of the controller or a gate that changes are in tests/controllers.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.jobs import (
    BASIC,
    CRONJOB,
    JOB,
    WORKLOADS,
    active,
    change,
    complete,
    cronjob,
    fields,
    gang,
    group_of,
    in_group,
    job,
    least,
    live,
    one_group,
    pod_template,
    policy,
    reasons,
    refused,
    refused_change,
    status,
    told,
)

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster

only_36 = pytest.mark.releases("1.36")
only_37 = pytest.mark.releases("1.37")
ours = pytest.mark.jobs
both = pytest.mark.releases("1.36", "1.37")


def uids(*found: Object) -> list[str]:
    return [str(one["metadata"]["uid"]) for one in found]


async def fail(cluster: Cluster, pod: Object, code: int = 1) -> None:
    """As its kubelet would say it."""
    ended = {"exitCode": code, "finishedAt": pod["metadata"]["creationTimestamp"]}
    state = {
        "name": "main",
        "image": "busybox",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    body = {"status": {"phase": "Failed", "containerStatuses": [state]}}
    await cluster.patch("v1", "Pod", pod["metadata"]["name"], body, "status")


async def minimum(cluster: Cluster, count: int) -> tuple[Object, Object]:
    """Waits until Workload and PodGroup ask for so many."""

    async def look() -> Any:
        found = await one_group(cluster)
        return found if [least(one) for one in found] == [count, count] else None

    found: tuple[Object, Object] = await cluster.until(look, what=f"minCount {count}")
    return found


# ---- 8.4, 8.5


@both
async def test_t_47_a_group_that_is_deleted_under_running_pods_is_still_used(cluster: Cluster) -> None:
    await cluster.create(job("solver", 3, backoffLimit=6))
    _, group = await in_group(cluster, "solver", 3)
    await cluster.running(3)
    name = group["metadata"]["name"]
    await cluster.client.kind(group["apiVersion"], "PodGroup").delete(name, cluster.namespace)
    first = (await live(cluster, "solver"))[0]
    await fail(cluster, first)

    async def replaced() -> Any:
        found = await live(cluster, "solver")
        return len(found) == 3 and first["metadata"]["name"] not in {pod["metadata"]["name"] for pod in found} and found

    pods = await cluster.until(replaced)
    assert {group_of(pod) for pod in pods} == {name}
    (left,) = await cluster.pod_groups()
    assert left["metadata"]["deletionTimestamp"]


@both
async def test_t_49_seven_hundred_pods_are_all_in_the_group(cluster: Cluster) -> None:
    await cluster.create(job("many", 700, template=pod_template(schedulerName="nobody")))
    await in_group(cluster, "many", 700)


@both
async def test_t_50_created_suspended(cluster: Cluster) -> None:
    await cluster.create(job("nap", 3, suspend=True))
    await cluster.until(lambda: cluster.condition(*JOB, "nap", "Suspended"))
    before = await one_group(cluster)
    assert await cluster.pods() == []
    await change(cluster, "nap", {"suspend": False})
    after = await in_group(cluster, "nap", 3)
    assert uids(*before) == uids(*after)


@both
async def test_t_51_suspend_and_resume(cluster: Cluster) -> None:
    await cluster.create(job("nap", 3))
    before = await in_group(cluster, "nap", 3)
    await cluster.running(3)
    await change(cluster, "nap", {"suspend": True})
    await cluster.gone("v1", "Pod")
    await cluster.until(lambda: cluster.condition(*JOB, "nap", "Suspended"))
    assert (await status(cluster, "nap")).get("failed", 0) == 0
    await change(cluster, "nap", {"suspend": False})
    after = await in_group(cluster, "nap", 3)
    assert uids(*before) == uids(*after)
    assert (await status(cluster, "nap")).get("failed", 0) == 0


@only_36
async def test_t_52_a_gang_is_not_scaled_in_1_36(cluster: Cluster) -> None:
    await cluster.create(job("fixed", 4))
    await in_group(cluster, "fixed", 4)
    error = await refused_change(cluster, "fixed", {"parallelism": 6, "completions": 6})
    assert error.code == 403
    found = await cluster.get(*JOB, "fixed")
    assert found is not None
    assert found["spec"]["parallelism"] == 4


@only_36
async def test_t_53_others_are(cluster: Cluster) -> None:
    await cluster.create(job("plain", 4, mode="NonIndexed", completions=9))
    await active(cluster, "plain", 4)
    await change(cluster, "plain", {"parallelism": 6})
    await active(cluster, "plain", 6)


@only_37
async def test_t_54_an_explicit_minimum_is_edited(cluster: Cluster) -> None:
    await cluster.create(gang("solver", 8, 4))
    before = await in_group(cluster, "solver", 8)
    await change(cluster, "solver", {"scheduling": policy(6)})
    after = await minimum(cluster, 6)
    assert uids(*before) == uids(*after)
    for old, new in zip(before, after, strict=True):
        block = new["spec"] if new["kind"] == "PodGroup" else new["spec"]["podGroupTemplates"][0]
        block["schedulingPolicy"]["gang"]["minCount"] = 4
        assert new["spec"] == old["spec"], "nothing else changes"


@only_37
async def test_t_55_a_minimum_left_open_follows(cluster: Cluster) -> None:
    await cluster.create(gang("solver", 4))
    await in_group(cluster, "solver", 4)
    await change(cluster, "solver", {"parallelism": 7, "completions": 7})
    await minimum(cluster, 7)
    await active(cluster, "solver", 7)
    found = await cluster.get(*JOB, "solver")
    assert found is not None
    assert found["spec"]["scheduling"] == policy()


@only_37
async def test_t_56_an_explicit_minimum_stays(cluster: Cluster) -> None:
    await cluster.create(gang("solver", 8, 3, mode="NonIndexed"))
    await in_group(cluster, "solver", 8)
    await change(cluster, "solver", {"parallelism": 5})
    await active(cluster, "solver", 5)
    await minimum(cluster, 3)


@only_37
async def test_t_57_basic_is_left_alone(cluster: Cluster) -> None:
    await cluster.create(job("mild", 3, mode="NonIndexed", completions=9, scheduling=BASIC))
    before = await in_group(cluster, "mild", 3)
    await change(cluster, "mild", {"parallelism": 9})
    await active(cluster, "mild", 9)
    after = await one_group(cluster)
    assert [one["spec"] for one in before] == [one["spec"] for one in after]
    assert before[0]["metadata"]["resourceVersion"] == after[0]["metadata"]["resourceVersion"]


@only_37
@pytest.mark.parametrize("kind", ["Workload", "PodGroup"])
async def test_t_58_an_edit_by_hand_is_taken_back(cluster: Cluster, kind: str) -> None:
    await cluster.create(gang("solver", 4))
    workload, group = await in_group(cluster, "solver", 4)
    edited = workload if kind == "Workload" else group
    block = edited["spec"]["podGroupTemplates"][0] if kind == "Workload" else edited["spec"]
    block["schedulingPolicy"]["gang"]["minCount"] = 2
    await cluster.client.kind(WORKLOADS, kind).update(edited, cluster.namespace)
    await minimum(cluster, 4)


@only_37
async def test_t_59_the_last_retry_is_not_alone(cluster: Cluster) -> None:
    """Three of four succeed; the fourth fails, is tried again by itself, and fits the smaller gang."""
    template = pod_template(run="5")
    await cluster.create(gang("solver", 4, template=template, backoffLimit=6))
    await cluster.running(4)
    await fail(cluster, (await live(cluster, "solver"))[-1])
    await complete(cluster, "solver")
    found = await status(cluster, "solver")
    assert (found["succeeded"], found["failed"]) == (4, 1)


@only_37
@ours
async def test_t_60_fewer_completions_than_parallelism_start(cluster: Cluster) -> None:
    await cluster.create(gang("few", 8, mode="NonIndexed", completions=3, run="1"))
    await cluster.running(3)
    assert least((await one_group(cluster))[1]) == 3
    await complete(cluster, "few")


@both
async def test_t_61_what_is_complete_keeps_its_objects_until_it_goes(cluster: Cluster) -> None:
    await cluster.create(job("short", 2, run="1"))
    await complete(cluster, "short")
    await cluster.sleep(5)
    await one_group(cluster)
    await cluster.delete(*JOB, "short", propagation="Background")
    await _collected(cluster)


async def _collected(cluster: Cluster) -> None:
    await cluster.gone(*JOB)
    await cluster.gone("v1", "Pod")

    async def look() -> bool:
        return not await cluster.workloads() and not await cluster.pod_groups()

    await cluster.until(look, what="the last group going")


@both
async def test_t_62_a_delete_without_a_word_orphans(cluster: Cluster) -> None:
    await cluster.create(job("old", 2))
    before = await in_group(cluster, "old", 2)
    await cluster.delete(*JOB, "old")
    await cluster.gone(*JOB)
    await cluster.sleep(3)
    assert uids(*before) == uids(*await one_group(cluster))
    assert len(await cluster.pods()) == 2


@both
async def test_t_63_time_to_live(cluster: Cluster) -> None:
    await cluster.create(job("brief", 2, run="1", ttlSecondsAfterFinished=3))
    await complete(cluster, "brief")
    await _collected(cluster)


@both
async def test_t_64_deleted_while_pods_run(cluster: Cluster) -> None:
    await cluster.create(job("solver", 3, template=pod_template(stop="2", terminationGracePeriodSeconds=5)))
    await in_group(cluster, "solver", 3)
    await cluster.running(3)
    await cluster.delete(*JOB, "solver", propagation="Background")

    async def stopping() -> bool:
        found = await cluster.pod_groups()
        return bool(found and found[0]["metadata"].get("deletionTimestamp") and await cluster.pods())

    await cluster.until(stopping, what="the group waiting for its pods")
    await _collected(cluster)


@only_37
@ours
async def test_t_65_each_run_has_a_gang_that_goes_with_it(cluster: Cluster) -> None:
    body = cronjob("tick", "* * * * *", gang("x", 2, run="1")["spec"])
    body["spec"]["successfulJobsHistoryLimit"] = 1
    await cluster.create(body)

    async def third_run() -> Any:
        runs = [one for one in await cluster.events("SuccessfulCreate") if "Created job" in one["message"]]
        return len(runs) >= 3

    await cluster.until(third_run, seconds=300)
    await cluster.sleep(20)
    jobs = {one["metadata"]["name"] for one in await cluster.every(*JOB)}
    assert len(jobs) <= 2
    for found in (*await cluster.workloads(), *await cluster.pod_groups()):
        assert found["metadata"]["ownerReferences"][0]["name"] in jobs
        assert least(found) == 2


@only_37
@ours
async def test_minimums_out_of_reach_are_told(cluster: Cluster) -> None:
    await cluster.create(gang("high", 4, 4, mode="NonIndexed", completions=2))
    await told(cluster, "MinCountUnreachable")
    assert "WorkloadCreated" in await reasons(cluster)


# ---- 8.6


@only_37
@pytest.mark.parametrize(
    ("scenario", "body", "field"),
    [
        ("T-70", gang("x", 4, 5), "spec.scheduling.schedulingPolicy.gang.minCount"),
        ("T-71", gang("x", 0, 1, mode="NonIndexed"), "spec.scheduling.schedulingPolicy.gang.minCount"),
        ("T-73", job("x", 2, scheduling={"schedulingPolicy": {}}), "spec.scheduling.schedulingPolicy"),
        (
            "T-73",
            job("x", 2, scheduling={"schedulingPolicy": {"basic": {}, "gang": {}}}),
            "spec.scheduling.schedulingPolicy",
        ),
        ("T-74", job("x", 2, scheduling={"disruptionMode": {"all": {}}}), "spec.scheduling.disruptionMode"),
        (
            "T-77",
            job("x", 2, scheduling={**policy(), "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}),
            "spec.scheduling.schedulingConstraints.topology",
        ),
        (
            "T-77",
            job("x", 2, scheduling={**policy(), "schedulingConstraints": {"topology": [{"key": ""}]}}),
            "spec.scheduling.schedulingConstraints.topology[0].key",
        ),
        (
            "T-77",
            job(
                "x",
                2,
                scheduling={
                    **policy(),
                    "resourceClaims": [{"name": f"c{n}", "resourceClaimName": "r"} for n in range(5)],
                },
            ),
            "spec.scheduling.resourceClaims",
        ),
        (
            "T-77",
            job("x", 2, scheduling={**policy(), "resourceClaims": [{"name": "c", "resourceClaimName": "r"}] * 2}),
            "spec.scheduling.resourceClaims[1]",
        ),
        (
            "T-77",
            job("x", 2, scheduling={**policy(), "resourceClaims": [{"name": "c"}]}),
            "spec.scheduling.resourceClaims[0]",
        ),
    ],
)
async def test_t_70_t_71_t_73_t_74_t_77_mistakes_are_refused_with_their_field(
    cluster: Cluster, scenario: str, body: Object, field: str
) -> None:
    error = await refused(cluster, body)
    assert error.code == 422, scenario
    assert field in fields(error)


@only_37
async def test_t_72_minimum_and_parallelism_change_together(cluster: Cluster) -> None:
    await cluster.create(gang("solver", 6, 4, mode="NonIndexed"))
    error = await refused_change(cluster, "solver", {"parallelism": 3})
    assert "spec.scheduling.schedulingPolicy.gang.minCount" in fields(error)
    await change(cluster, "solver", {"parallelism": 3, "scheduling": policy(3)})


@only_37
async def test_t_75_the_sort_of_policy(cluster: Cluster) -> None:
    await cluster.create(job("mild", 2, scheduling=BASIC))
    other: dict[str, Any] = {"scheduling": {"schedulingPolicy": {"basic": None, "gang": {}}}}
    error = await refused_change(cluster, "mild", other)
    assert "spec.scheduling.schedulingPolicy" in fields(error)
    await cluster.create(cronjob("tick", "0 0 1 1 *", job("x", 2, scheduling=BASIC)["spec"]))
    await cluster.patch(*CRONJOB, "tick", {"spec": {"jobTemplate": {"spec": other}}})


@only_37
async def test_t_76_the_block_neither_comes_nor_goes(cluster: Cluster) -> None:
    await cluster.create(job("without", 2), gang("with", 2))
    for name, block in (("without", policy()), ("with", None)):
        error = await refused_change(cluster, name, {"scheduling": block})
        assert "spec.scheduling" in fields(error)
    await cluster.create(cronjob("tick", "0 0 1 1 *", job("x", 2)["spec"]))
    block = {"jobTemplate": {"spec": {"scheduling": policy()}}}
    error = await refused_change(cluster, "tick", block, CRONJOB)
    assert "spec.jobTemplate.spec.scheduling" in fields(error)


@only_37
async def test_t_78_completions_of_an_elastic_job(cluster: Cluster) -> None:
    await cluster.create(gang("solver", 4))
    error: ApiError = await refused_change(cluster, "solver", {"completions": 6})
    assert "spec.completions" in fields(error)
    await change(cluster, "solver", {"completions": 6, "parallelism": 6})
