"""What the JobSet project shows its users, in manifests of the same build and our own words: accepted, and they behave.

The list follows the project's samples (August 2026): `simple`, `depends-on`, `startup-policy`, `failure-policy`,
`in-place-restart`, `volume-claim-policy`, frameworks (`pytorch`, `tensorflow`, `tpu-multislice`, `argo-workflow`),
`workload-aware-scheduling` and the skeleton in `config/samples`. Left out: what has no JobSet in it (roles, monitoring,
queues of another project, definitions of test clusters).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from tests.e2e.jobsets import JOBSET, PREFIX, ended, group_of, has, jobset, live, pod, provide, rj

from kohort.api.kind import Object
from kohort.sim.cluster import Pool
from kohort.testing.cluster import Cluster

LATEST = pytest.mark.releases("1.37")
POOL = "cloud.example.com/pool"
Look = Callable[[Cluster, str], Awaitable[Any]]


@pytest.fixture
def pools() -> Sequence[Pool]:
    extra = {"cpu": "16", "memory": "64Gi", "pods": "110", "example.com/tpu": "4"}
    return [Pool(name=f"pool-{name}", count=4, labels={POOL: name}, capacity=extra) for name in "abc"]


def runs(seconds: float | None, code: int = 0, codes: str = "", **spec: Any) -> Object:
    """A template as most samples have it: restartPolicy is left to the default."""
    found = pod(seconds, code, **spec)
    if "restartPolicy" not in spec:
        del found["spec"]["restartPolicy"]
    if codes:
        found["metadata"]["annotations"]["sim.kohort.dev/exit-codes"] = codes
    return found


SHORT, LONG = runs(2), runs(None)
FIRST_FAILS = runs(3, codes="0=1")  # the pod with index 0 ends with 1


async def completes(cluster: Cluster, name: str) -> Any:
    return await ended(cluster, name)


async def fails(cluster: Cluster, name: str) -> Any:
    return await ended(cluster, name, "Failed")


async def restarts_twice(cluster: Cluster, name: str) -> Any:
    return await has(cluster, name, lambda found: found.get("restarts", 0) >= 2)


def keeps(count: int) -> Look:
    async def look(cluster: Cluster, name: str) -> Any:
        return await cluster.running(count)

    return look


def two(name: str, pods: Object, **more: Any) -> Object:
    return rj(name, 1, 2, runs=pods, **more)


def leader_and_workers(leader: Object, **policy: Any) -> Object:
    return jobset("sample", two("leader", leader), two("workers", LONG), failurePolicy=policy)


def rule(action: str, **more: Any) -> Object:
    return {"action": action, **more}


POD_RULE = {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [1]}}
NEVER: dict[str, Any] = {"restartPolicy": "Never"}
WORKERS = rj("workers", 1, 4, runs=SHORT)
DRIVER = rj("driver", 1, 1, runs=SHORT)

# sample -> (JobSet, what becomes of it)
SAMPLES: dict[str, tuple[Object, Look]] = {
    "simple/paralleljobs": (jobset("sample", WORKERS, DRIVER), completes),
    "argo-workflow": (jobset("sample", WORKERS, DRIVER), completes),
    "simple/coordinator": (
        jobset("sample", WORKERS, DRIVER, coordinator={"replicatedJob": "driver", "jobIndex": 0, "podIndex": 0}),
        completes,
    ),
    "simple/group": (jobset("sample", two("rj-1", SHORT), two("rj-2", SHORT, groupName="group-b")), completes),
    "simple/jobset-with-network": (
        jobset(
            "sample",
            rj("leader", 1, 1, runs=LONG),
            two("workers", LONG),
            network={"enableDNSHostnames": True, "subdomain": "example", "publishNotReadyAddresses": True},
        ),
        keeps(3),
    ),
    "simple/success-policy": (
        jobset(
            "sample",
            rj("leader", 1, 1, runs=LONG),
            two("workers", SHORT),
            successPolicy={"operator": "All", "targetReplicatedJobs": ["workers"]},
        ),
        completes,
    ),
    "simple/failure-policy": (
        leader_and_workers(FIRST_FAILS, restartStrategy="BlockingRecreate", maxRestarts=3),
        fails,
    ),
    "simple/ttl-after-finished": (jobset("sample", WORKERS, ttlSecondsAfterFinished=60), completes),
    "simple/exclusive-placement": (
        jobset(
            "sample",
            rj("workers", 3, 3, runs=LONG, job={"backoffLimit": 10}),
            notes={"alpha.jobset.sigs.k8s.io/exclusive-topology": POOL},
            failurePolicy={"maxRestarts": 3},
        ),
        keeps(9),
    ),
    "depends-on": (
        jobset(
            "sample",
            rj("initializer", 1, None, None, runs=SHORT),
            rj("launcher", 1, None, None, runs=runs(4), dependsOn=[{"name": "initializer", "status": "Complete"}]),
            rj("worker", 1, 4, runs=SHORT, dependsOn=[{"name": "launcher", "status": "Ready"}]),
        ),
        completes,
    ),
    "depends-on/multiple": (
        jobset(
            "sample",
            rj("dataset-initializer", 1, None, None, runs=SHORT),
            rj("model-initializer", 1, None, None, runs=runs(3)),
            rj(
                "worker",
                1,
                4,
                runs=SHORT,
                dependsOn=[
                    {"name": "dataset-initializer", "status": "Complete"},
                    {"name": "model-initializer", "status": "Complete"},
                ],
            ),
        ),
        completes,
    ),
    "startup-policy/driver-ready": (
        jobset("sample", rj("driver", 1, 1, runs=LONG), WORKERS, startupPolicy={"startupPolicyOrder": "InOrder"}),
        keeps(5),
    ),
    "failure-policy/failjobset": (
        leader_and_workers(FIRST_FAILS, maxRestarts=3, rules=[rule("FailJobSet", targetReplicatedJobs=["leader"])]),
        fails,
    ),
    "failure-policy/restartjobset": (
        leader_and_workers(FIRST_FAILS, maxRestarts=3, rules=[rule("RestartJobSet", targetReplicatedJobs=["leader"])]),
        fails,
    ),
    "failure-policy/restartjobsetandignoremaxrestarts": (
        leader_and_workers(
            FIRST_FAILS,
            maxRestarts=0,
            rules=[rule("RestartJobSetAndIgnoreMaxRestarts", targetReplicatedJobs=["leader"])],
        ),
        restarts_twice,
    ),
    "failure-policy/onjobfailurereasons": (
        leader_and_workers(
            FIRST_FAILS,
            maxRestarts=0,
            rules=[
                rule(
                    "RestartJobSetAndIgnoreMaxRestarts",
                    targetReplicatedJobs=["leader"],
                    onJobFailureReasons=["BackoffLimitExceeded"],
                )
            ],
        ),
        restarts_twice,
    ),
    "failure-policy/onjobfailurereasons-podfailurepolicy": (
        jobset(
            "sample",
            two("leader", runs(3, codes="0=1", **NEVER), job={"podFailurePolicy": {"rules": [POD_RULE]}}),
            two("workers", LONG),
            failurePolicy={
                "maxRestarts": 0,
                "rules": [
                    rule(
                        "RestartJobSetAndIgnoreMaxRestarts",
                        targetReplicatedJobs=["leader"],
                        onJobFailureReasons=["PodFailurePolicy"],
                    )
                ],
            },
        ),
        restarts_twice,
    ),
    "failure-policy/host-maintenance": (
        jobset(
            "sample",
            two(
                "leader",
                runs(3, codes="0=1", **NEVER),
                job={
                    "podFailurePolicy": {
                        "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]
                    }
                },
            ),
            two("workers", LONG),
            failurePolicy={
                "maxRestarts": 0,
                "rules": [
                    rule("RestartJobSetAndIgnoreMaxRestarts", onJobFailureReasons=["PodFailurePolicy"]),
                    rule("RestartJobSet", targetReplicatedJobs=["leader"]),
                ],
            },
        ),
        fails,  # it was no maintenance
    ),
    "pytorch": (
        jobset("sample", rj("workers", 1, 4, runs=runs(2, hostname=None))),
        completes,
    ),
    "tensorflow": (jobset("sample", rj("tensorflow", 1, 2, runs=SHORT, job={"backoffLimit": 5})), completes),
    "config/samples": (
        {"apiVersion": JOBSET[0], "kind": "JobSet", "metadata": {"name": "sample"}, "spec": None},
        keeps(0),
    ),
}
del SAMPLES["pytorch"][0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["hostname"]
_MAIN = SAMPLES["pytorch"][0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
_MAIN["ports"] = [{"containerPort": 3389}]
_MAIN["env"] = [
    {"name": "MASTER_ADDR", "value": "sample-workers-0-0.sample"},
    {
        "name": "RANK",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}},
    },
]


@LATEST
@pytest.mark.parametrize("sample", SAMPLES)
async def test_sample(cluster: Cluster, sample: str) -> None:
    body, becomes = SAMPLES[sample]
    await cluster.create(body)
    await becomes(cluster, "sample")


# ---- those that need more than a JobSet


class TestRestartJob:
    """As the project shows it, `rules` is not a list and every server refuses it; here it is one."""

    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"RestartJob": True}

    @LATEST
    @pytest.mark.parametrize("suffix", ["", "AndIgnoreMaxRestarts"])
    async def test_sample_restartjob(self, cluster: Cluster, suffix: str) -> None:
        rules = [
            rule(f"RestartJobSet{suffix}", targetReplicatedJobs=["rj-leader"]),
            rule(f"RestartJob{suffix}", targetReplicatedJobs=["rj-worker"]),
        ]
        worker = two("rj-worker", runs(3, codes="1=1", **NEVER))
        body = jobset("js", two("rj-leader", LONG), worker, failurePolicy={"maxRestarts": 2, "rules": rules})
        await cluster.create(body)

        def once_more(found: Object) -> bool:
            rows = {row["name"]: row for row in found.get("replicatedJobsStatus") or ()}
            return sum(rows.get("rj-worker", {}).get("jobRestarts") or [0]) >= 2

        found = await has(cluster, "js", once_more)
        assert found["restarts"] == 0
        wrong = jobset("bad", two("a", LONG), failurePolicy={"rules": {"action": "RestartJob"}})
        with pytest.raises(Exception, match="rules"):
            await cluster.create(wrong)


class TestInPlace:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"InPlaceRestart": True}

    @LATEST
    @pytest.mark.parametrize("sidecar", [False, True])
    async def test_sample_in_place_restart(self, cluster: Cluster, sidecar: bool) -> None:
        """The agent in the main container, or beside it."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}}
        await cluster.create(account)
        codes = {"operator": "NotIn", "values": [0]}
        template = runs(None, serviceAccountName="agent", terminationGracePeriodSeconds=0)
        main = template["spec"]["containers"][0]
        main |= {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart", "exitCodes": codes}]}
        if sidecar:
            whole = [{"action": "RestartAllContainers", "exitCodes": codes}]
            main["restartPolicyRules"] = whole
            probe = {"httpGet": {"path": "/down", "port": 8081}, "failureThreshold": 600, "periodSeconds": 1}
            agent = {"name": "agent", "image": "busybox", "restartPolicy": "Always", "startupProbe": probe}
            template["spec"]["initContainers"] = [{**agent, "restartPolicyRules": whole}]
        job = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed"}
        policy = {"maxRestarts": 3, "restartStrategy": "InPlaceRestart"}
        await cluster.create(jobset("js", rj("rj", 2, 2, runs=template, job=job), failurePolicy=policy))
        for found in await cluster.running(4):
            note = {"metadata": {"annotations": {f"{PREFIX}in-place-restart-attempt": "0"}}}
            await cluster.patch("v1", "Pod", found["metadata"]["name"], note)
        await has(cluster, "js", lambda found: found.get("currentInPlaceRestartAttempt") == 0)


@LATEST
async def test_sample_tpu_multislice(cluster: Cluster) -> None:
    template = runs(None, hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")
    main = template["spec"]["containers"][0]
    main |= {"securityContext": {"privileged": True}, "resources": {"limits": {"example.com/tpu": 4}}}
    notes = {"alpha.jobset.sigs.k8s.io/exclusive-topology": POOL}
    body = jobset("slices", rj("slice", 2, 4, runs=template), notes=notes, failurePolicy={"maxRestarts": 4})
    body["metadata"]["labels"] = {"queue.example.com/name": "multislice"}
    await cluster.create(body)
    by_job: dict[str, set[str]] = {}
    for found in await cluster.running(8):
        index = found["metadata"]["labels"][f"{PREFIX}job-index"]
        by_job.setdefault(index, set()).add(found["spec"]["nodeName"].rpartition("-")[0])
    assert sorted(map(len, by_job.values())) == [1, 1]
    assert by_job["0"] != by_job["1"]


@LATEST
async def test_sample_volume_claim_policy(cluster: Cluster) -> None:
    def claim(name: str) -> Object:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        return {"metadata": {"name": name}, "spec": spec}

    def mounting(*names: str) -> Object:
        found = runs(1)
        found["spec"]["containers"][0]["volumeMounts"] = [{"name": name, "mountPath": f"/{name}"} for name in names]
        return found

    policies = [
        {"templates": [claim("initializer")]},
        {"templates": [claim("checkpoints")], "retentionPolicy": {"whenDeleted": "Retain"}},
    ]
    first = rj("initializer", 1, None, None, runs=mounting("initializer"))
    needs = [{"name": "initializer", "status": "Complete"}]
    second = rj("node", 1, 3, runs=mounting("initializer", "checkpoints"), dependsOn=needs)
    await cluster.create(jobset("volumes", first, second, volumeClaimPolicies=policies))

    async def claimed() -> bool:
        return len(await cluster.every("v1", "PersistentVolumeClaim")) == 2

    await cluster.until(claimed)
    await provide(cluster)
    await ended(cluster, "volumes")
    await cluster.delete(*JOBSET, "volumes")

    async def kept() -> bool:
        left = [one["metadata"]["name"] for one in await cluster.every("v1", "PersistentVolumeClaim")]
        return left == ["checkpoints-volumes"]

    await cluster.until(kept, what="only the kept claim left")


# ---- groups of one's own, as 1.36 writes them


def own(jobset: str, least: int, **more: Any) -> tuple[Object, Object]:
    version = "scheduling.k8s.io/v1alpha2"
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
    reference = {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": jobset}
    claims = {name: more[name] for name in ("resourceClaims",) if name in more}
    plan = {"controllerRef": reference, "podGroupTemplates": [{"name": "workers", **policy, **claims}]}
    link = {"workload": {"workloadName": f"{jobset}-abc", "podGroupTemplateName": "workers"}}
    return (
        {"apiVersion": version, "kind": "Workload", "metadata": {"name": f"{jobset}-abc"}, "spec": plan},
        {
            "apiVersion": version,
            "kind": "PodGroup",
            "metadata": {"name": f"{jobset}-workers"},
            "spec": {"podGroupTemplateRef": link, **policy, **more},
        },
    )


def in_group(jobset: str, cpu: str, **more: Any) -> Object:
    link = {"podGroupName": f"{jobset}-workers"}
    template = runs(None, terminationGracePeriodSeconds=0, schedulingGroup=link, **more)
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return template


class TestWorkloadAware:
    pytestmark = pytest.mark.releases("1.36")

    @pytest.fixture
    def pools(self) -> Sequence[Pool]:
        sizes = {"cpu": "8", "memory": "64Gi", "pods": "110"}
        return [Pool(name=f"rack-{name}", count=2, labels={"example.com/rack": name}, capacity=sizes) for name in "ab"]

    async def test_sample_gang(self, cluster: Cluster) -> None:
        await cluster.create(*own("js", 6), jobset("js", rj("rj", 3, 2, runs=in_group("js", "4"))))
        assert {group_of(one) for one in await cluster.running(6)} == {"js-workers"}

    async def test_sample_topology(self, cluster: Cluster) -> None:
        topology = {"schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}}
        body = jobset("js", rj("rj", 2, 2, runs=in_group("js", "500m")), failurePolicy={"maxRestarts": 10})
        await cluster.create(*own("js", 4, **topology), body)
        racks = {one["spec"]["nodeName"].rpartition("-")[0] for one in await cluster.running(4)}
        assert len(racks) == 1

    async def test_sample_preemption(self, cluster: Cluster) -> None:
        for name, value in (("high", 100000), ("low", 1)):
            body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            await cluster.create({**body, "value": value})
        for name in ("low", "high"):
            more = {"priorityClassName": name, "disruptionMode": "PodGroup"}
            template = in_group(f"{name}-js", "6", priorityClassName=name)
            body = jobset(f"{name}-js", rj("rj", 2, 2, runs=template, job={"backoffLimit": 10}))
            await cluster.create(*own(f"{name}-js", 4, **more), body)
            await cluster.until(partial(all_run, cluster, f"{name}-js"), what=f"{name} running")
        waiting = [one for one in await live(cluster) if one["metadata"]["name"].startswith("low-")]
        assert not [one for one in waiting if one["status"].get("phase") == "Running"]

    async def test_sample_devices(self, cluster: Cluster) -> None:
        """Without a driver that allocates devices nobody starts, alone or together."""
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
        claim = {"spec": {"devices": {"requests": [request]}}}
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "gpu"}}
        await cluster.create({**kind, "spec": claim})
        shared = {"resourceClaims": [{"name": "shared", "resourceClaimTemplateName": "gpu"}]}
        template = in_group("js", "1", **shared)
        template["spec"]["containers"][0]["resources"] = {"claims": [{"name": "shared"}]}
        await cluster.create(*own("js", 6, **shared), jobset("js", rj("workers", 3, 2, runs=template)))

        async def there() -> bool:
            return len(await live(cluster)) == 6

        await cluster.until(there)
        assert not [one for one in await cluster.pods() if one["spec"].get("nodeName")]


async def all_run(cluster: Cluster, name: str) -> bool:
    found = [one for one in await cluster.pods() if one["metadata"]["name"].startswith(f"{name}-")]
    return sum(one["status"].get("phase") == "Running" for one in found) == 4
