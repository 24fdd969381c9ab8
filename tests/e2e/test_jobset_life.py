"""Lives of JobSets on a whole cluster: suspended, restarted, scaled, ended (spec jobset 2, 4.5 and scenarios of 6)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from tests.e2e.jobsets import (
    GANG,
    JOB,
    JOBSET,
    PREFIX,
    REPLICAS,
    ended,
    group_of,
    groups,
    has,
    jobs,
    jobset,
    live,
    no_groups,
    pod,
    pods,
    provide,
    rj,
    status,
    told,
)

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster, condition

LATEST = pytest.mark.releases("1.37")
BOTH = pytest.mark.releases("1.36", "1.37")
LONG = pod(None)


def ready(name: str, count: int) -> Any:
    def look(found: Object) -> bool:
        return any(row["name"] == name and row["ready"] == count for row in found.get("replicatedJobsStatus") or ())

    return look


async def uids(cluster: Cluster) -> dict[str, str]:
    found = [*await cluster.workloads(), *await cluster.pod_groups()]
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}


async def suspend(cluster: Cluster, name: str, value: bool) -> None:
    await cluster.patch(*JOBSET, name, {"spec": {"suspend": value}})


async def fail_one(cluster: Cluster, job: str) -> None:
    """A pod of a Job ends badly, as if its node had said so."""
    found = next(one for one in await live(cluster) if one["metadata"]["name"].startswith(f"{job}-"))
    body = {"status": {"phase": "Failed", "reason": "Broken"}}
    await cluster.patch("v1", "Pod", found["metadata"]["name"], body, "status")


# ---- suspend and resume


async def test_jobset_40_created_suspended(cluster: Cluster) -> None:
    await cluster.create(jobset("nap", rj("p", 2, 2, runs=LONG), suspend=True, **GANG))
    await has(cluster, "nap", lambda found: condition({"status": found}, "Suspended"))

    async def asleep() -> dict[str, Object]:
        found = await jobs(cluster)
        return found if len(found) == 2 else {}

    for job in (await cluster.until(asleep)).values():
        assert job["spec"]["suspend"]
        assert group_of({"spec": job["spec"]["template"]["spec"]})
    assert await no_groups(cluster)
    assert not await cluster.pods()
    await suspend(cluster, "nap", False)
    await cluster.running(4)
    (plan,) = await cluster.workloads()
    started = [int(one["metadata"]["resourceVersion"]) for one in await cluster.pods()]
    assert int(plan["metadata"]["resourceVersion"]) < min(started)
    resumed = await has(
        cluster, "nap", lambda found: (condition({"status": found}, "Suspended") or {}).get("status") == "False"
    )
    assert resumed["conditions"][0]["reason"] == "ResumeJobs"


@BOTH
async def test_jobset_41_suspended_while_running(cluster: Cluster) -> None:
    await cluster.create(jobset("halt", rj("p", 2, 2, runs=LONG), **GANG))
    await cluster.running(4)
    await suspend(cluster, "halt", True)

    async def empty() -> bool:
        return await no_groups(cluster) and not await cluster.pods()

    await cluster.until(empty, what="pods and groups going")
    assert all(job["spec"]["suspend"] for job in (await jobs(cluster)).values())
    await told(cluster, "PodGroupDeleted")


@LATEST
async def test_jobset_42_resumed_while_its_group_is_going(cluster: Cluster) -> None:
    runs = pod(None)
    runs["metadata"]["annotations"]["sim.kohort.dev/stop-seconds"] = "5"
    await cluster.create(jobset("quick", rj("p", 1, 2, runs=runs), **GANG))
    await cluster.running(2)
    first = await uids(cluster)
    await suspend(cluster, "quick", True)

    async def going() -> bool:
        return any(one["metadata"].get("deletionTimestamp") for one in await cluster.pod_groups())

    await cluster.until(going, what="the group going")
    await suspend(cluster, "quick", False)
    await cluster.sleep(1)
    assert all(job["spec"]["suspend"] for job in (await jobs(cluster)).values())  # not before its group is there

    async def back() -> bool:
        found = [one for one in await live(cluster) if one["status"].get("phase") == "Running"]
        return len(found) == 2 and await groups(cluster) == {"pg-quick": 2} and await uids(cluster) != first

    await cluster.until(back, what="a new group of the same name")


# ---- restarts


@BOTH
async def test_jobset_43_a_restart_keeps_the_groups(cluster: Cluster) -> None:
    policy = {"maxRestarts": 2, "restartStrategy": "BlockingRecreate"}
    await cluster.create(jobset("again", rj("p", 2, 2, runs=LONG), failurePolicy=policy, **GANG))
    await cluster.running(4)
    first, old = await uids(cluster), {job["metadata"]["uid"] for job in (await jobs(cluster)).values()}
    await fail_one(cluster, "again-p-0")

    async def mixed() -> bool:
        """New Jobs beside old ones."""
        found = {job["metadata"]["uid"] for job in (await jobs(cluster)).values()}
        assert not (found & old and found - old)
        return len(found) == 2 and not found & old

    await cluster.until(mixed, what="new Jobs")
    found = await cluster.running(4)
    assert {group_of(one) for one in found} == {"pg-again"}
    assert await uids(cluster) == first
    after = await has(cluster, "again", ready("p", 2))
    assert (after["restarts"], after["restartsCountTowardsMax"]) == (1, 1)
    assert {one["metadata"]["labels"][f"{PREFIX}restart-attempt"] for one in found} == {"1"}


class TestRestartJob:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"RestartJob": True}

    @LATEST
    async def test_jobset_44_one_replica_is_restarted(self, cluster: Cluster) -> None:
        policy = {"maxRestarts": 2, "rules": [{"name": "one", "action": "RestartJob"}]}
        await cluster.create(jobset("few", rj("s", 3, 2, runs=LONG, **REPLICAS), failurePolicy=policy))
        first = {one["metadata"]["uid"]: group_of(one) for one in await cluster.running(6)}
        made = await uids(cluster)
        await fail_one(cluster, "few-s-1")
        after = await has(
            cluster, "few", lambda found: ready("s", 3)(found) and "jobRestarts" in found["replicatedJobsStatus"][0]
        )
        assert after["replicatedJobsStatus"][0]["jobRestarts"] == [0, 1, 0]
        assert after["replicatedJobsStatus"][0]["jobRestartsCountTowardsMax"] == [0, 1, 0]
        found = {one["metadata"]["uid"]: group_of(one) for one in await cluster.running(6)}
        assert sorted(found.values()) == sorted(first.values())
        new = [group for uid, group in found.items() if uid not in first]
        assert new == ["pg-few.s.1", "pg-few.s.1"]
        assert await uids(cluster) == made


@LATEST
async def test_restarts_are_used_up(cluster: Cluster) -> None:
    await cluster.create(jobset("bad", rj("p", 2, 1, runs=pod(0.5, 3)), failurePolicy={"maxRestarts": 2}, **GANG))
    why = await ended(cluster, "bad", "Failed")
    assert why["reason"] == "ReachedMaxRestarts"
    found = await status(cluster, "bad")
    assert (found["restarts"], found["terminalState"]) == (2, "Failed")

    async def gone() -> bool:
        return await no_groups(cluster)

    await cluster.until(gone, what="groups going")


# ---- elastic


class TestElastic:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"ElasticJobSet": True}

    async def _grow(self, cluster: Cluster) -> dict[str, str]:
        made = await cluster.create(jobset("el", rj("g", 2, 4, runs=LONG, **GANG)))
        await cluster.running(8)
        before = await uids(cluster)
        larger = deepcopy(made["spec"]["replicatedJobs"])
        larger[0]["template"]["spec"] |= {"parallelism": 6, "completions": 6}
        await cluster.patch(*JOBSET, "el", {"spec": {"replicatedJobs": larger}})
        return before

    @LATEST
    async def test_jobset_47_a_gang_grows(self, cluster: Cluster) -> None:
        before = await self._grow(cluster)
        await cluster.running(12)
        assert await groups(cluster) == {"pg-el.g": 12}
        (plan,) = await cluster.workloads()
        assert plan["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == {"gang": {"minCount": 12}}
        assert await uids(cluster) == before
        (event,) = await told(cluster, "PodGroupUpdated")
        assert "8 → 12" in event["message"]
        await told(cluster, "WorkloadUpdated")

    @pytest.mark.releases("1.36")
    async def test_jobset_48_minimums_of_136_do_not_change(self, cluster: Cluster) -> None:
        before = await self._grow(cluster)
        await told(cluster, "GangDrift")
        assert await groups(cluster) == {"pg-el.g": 8}
        assert await uids(cluster) == before
        assert len(await cluster.running(8)) == 8  # that minor freezes the size of Jobs in a gang, too


# ---- late in its life


@LATEST
async def test_jobset_60_a_late_replacement(cluster: Cluster) -> None:
    """Two of four pods are done, one is evicted. kube-scheduler would leave its replacement; Kohort counts the done."""
    runs = pod(2)
    runs["metadata"]["annotations"] |= {"sim.kohort.dev/run-seconds": "40"}
    await cluster.create(jobset("hal", rj("h", 1, 4, runs=runs, job={"backoffLimit": 5}), **GANG))
    first = sorted(await cluster.running(4), key=lambda one: str(one["metadata"]["name"]))
    for one in first[:2]:
        await cluster.patch("v1", "Pod", one["metadata"]["name"], {"status": {"phase": "Succeeded"}}, "status")

    async def counted() -> bool:
        return (await jobs(cluster))["hal-h-0"]["status"].get("succeeded") == 2

    await cluster.until(counted)
    await cluster.delete("v1", "Pod", first[2]["metadata"]["name"])

    async def replaced() -> bool:
        found = [one for one in await live(cluster) if one["status"].get("phase") == "Running"]
        names = {one["metadata"]["name"] for one in found}
        return len(found) == 2 and first[2]["metadata"]["name"] not in names

    await cluster.until(replaced, what="the replacement running")
    await ended(cluster, "hal")


@LATEST
async def test_groups_deleted_by_somebody_are_made_again(cluster: Cluster) -> None:
    await cluster.create(jobset("keep", rj("p", 1, 2, runs=pod(6)), failurePolicy={"maxRestarts": 1}, **GANG))
    await cluster.running(2)
    await cluster.delete("scheduling.k8s.io/v1beta1", "PodGroup", "pg-keep")
    await told(cluster, "GangDrift")
    assert len(await cluster.running(2)) == 2  # they go on
    await ended(cluster, "keep")


# ---- the rest of page 2


@LATEST
async def test_everything_of_a_jobset_in_one_life(cluster: Cluster) -> None:
    """Coordinator, network, volume claims of both policies, status, time to live."""
    mounts = [{"name": "logs", "mountPath": "/logs"}, {"name": "keep", "mountPath": "/keep"}]
    container = {"name": "main", "image": "busybox", "volumeMounts": mounts}
    runs = pod(2)
    runs["spec"]["containers"] = [container]

    def claim(name: str) -> Object:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        return {"metadata": {"name": name}, "spec": spec}

    await cluster.create(
        jobset(
            "whole",
            rj("driver", 1, 1, runs=runs),
            rj("worker", 2, 2, runs=pod(1), dependsOn=[{"name": "driver", "status": "Ready"}]),
            coordinator={"replicatedJob": "driver"},
            network={"subdomain": "crew", "publishNotReadyAddresses": False},
            volumeClaimPolicies=[
                {"templates": [claim("logs")]},
                {"templates": [claim("keep")], "retentionPolicy": {"whenDeleted": "Retain"}},
            ],
            ttlSecondsAfterFinished=30,
        )
    )

    async def claimed() -> bool:
        return len(await claims(cluster)) == 2

    await cluster.until(claimed, what="claims")
    await provide(cluster)
    await has(cluster, "whole", ready("driver", 1))
    (service,) = await cluster.every("v1", "Service")
    assert service["metadata"]["name"] == "crew"
    assert not service["spec"].get("publishNotReadyAddresses")
    kept = {one["metadata"]["name"]: bool(one["metadata"].get("ownerReferences")) for one in await claims(cluster)}
    assert kept == {"keep-whole": False, "logs-whole": True}
    for job in (await jobs(cluster)).values():
        assert job["metadata"]["labels"][f"{PREFIX}coordinator"] == "whole-driver-0-0.crew"
    driver = (await jobs(cluster))["whole-driver-0"]["spec"]["template"]["spec"]
    assert {one["name"] for one in driver["volumes"]} == {"logs", "keep"}
    await ended(cluster, "whole")
    found = await status(cluster, "whole")
    assert found["terminalState"] == "Completed"
    assert [(row["name"], row["succeeded"]) for row in found["replicatedJobsStatus"]] == [("worker", 2), ("driver", 1)]

    async def gone() -> bool:
        left = await cluster.get(*JOBSET, "whole") or await cluster.every(*JOB) or await cluster.every("v1", "Service")
        return not left and [one["metadata"]["name"] for one in await claims(cluster)] == ["keep-whole"]

    await cluster.until(gone, what="all but the kept claim going")


async def claims(cluster: Cluster) -> list[Object]:
    return await cluster.every("v1", "PersistentVolumeClaim")


@LATEST
async def test_in_order_startup_and_dependencies(cluster: Cluster) -> None:
    order = {"startupPolicyOrder": "InOrder"}
    await cluster.create(jobset("steps", rj("a", 1, 1, runs=LONG), rj("b", 2, 1, runs=LONG), startupPolicy=order))
    await has(
        cluster,
        "steps",
        lambda found: (condition({"status": found}, "StartupPolicyCompleted") or {}).get("status") == "True",
    )
    found = await jobs(cluster)
    begun = {name: int(job["metadata"]["resourceVersion"]) for name, job in found.items()}
    assert set(begun) == {"steps-a-0", "steps-b-0", "steps-b-1"}
    times = {name: job["metadata"]["creationTimestamp"] for name, job in found.items()}
    assert times["steps-a-0"] < times["steps-b-0"]


class TestInPlace:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"InPlaceRestart": True}

    @LATEST
    async def test_in_place_restarts_keep_pods_and_groups(self, cluster: Cluster) -> None:
        """The test plays the agents: it says to which attempt each pod has come."""
        more = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed"}
        policy = {"maxRestarts": 1, "restartStrategy": "InPlaceRestart"}
        await cluster.create(jobset("ivy", rj("a", 1, 2, runs=LONG, job=more), failurePolicy=policy, **GANG))
        one, two = [found["metadata"]["name"] for found in await cluster.running(2)]

        async def says(name: str, attempt: int) -> None:
            note = {"metadata": {"annotations": {f"{PREFIX}in-place-restart-attempt": str(attempt)}}}
            await cluster.patch("v1", "Pod", name, note)

        async def reaches(current: int, previous: int | None = None) -> None:
            await has(
                cluster,
                "ivy",
                lambda found: (
                    (found.get("currentInPlaceRestartAttempt"), found.get("previousInPlaceRestartAttempt"))
                    == (current, previous)
                ),
            )

        await says(one, 0)
        await says(two, 0)
        await reaches(0)
        await says(one, 1)
        await reaches(0, 0)
        await says(two, 1)
        await reaches(1, 0)
        assert {found["metadata"]["name"] for found in await live(cluster)} == {one, two}
        assert await groups(cluster) == {"pg-ivy": 2}
        await says(two, 2)
        assert (await ended(cluster, "ivy", "Failed"))["reason"] == "ReachedMaxRestarts"


@LATEST
async def test_pods_of_a_dead_jobset_do_not_come_back(cluster: Cluster) -> None:
    policy = {"maxRestarts": 5, "rules": [{"name": "no", "action": "FailJobSet", "targetReplicatedJobs": ["p"]}]}
    await cluster.create(jobset("dead", rj("p", 1, 1, runs=LONG), rj("q", 1, 2, runs=LONG), failurePolicy=policy))
    await pods(cluster, 3)
    await fail_one(cluster, "dead-p-0")
    assert (await ended(cluster, "dead", "Failed"))["reason"] == "FailJobSetFailurePolicyAction"

    async def stopped() -> bool:
        return not await live(cluster)

    await cluster.until(stopped, what="the others stopping")
