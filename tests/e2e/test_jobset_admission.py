"""What a server says to JobSets before anything is made (spec jobset 4.2 and the scenarios of 6 that end there)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.e2e.conftest import REAL
from tests.e2e.jobsets import GANG, JOB, JOBSET, REPLICAS, jobset, no_groups, pod, refused, rj

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.sim.cluster import Pool
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")
OFF: dict[str, Any] = {"gangConfig": {"gangMode": "Off"}}
MINE: dict[str, Any] = {"schedulingGroup": {"podGroupName": "mine"}}
MANY = 2**31 - 1
RACK = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
SELECTOR = {**RACK, "alpha.jobset.sigs.k8s.io/node-selector": "true"}


@pytest.fixture
def pools() -> Sequence[Pool]:
    """None: this is about what happens before."""
    return ()


def policies(*given: Object) -> Object:
    return {"podGroupPolicies": list(given)}


def after(name: str, status: str = "Ready") -> Object:
    return {"dependsOn": [{"name": name, "status": status}]}


def mode(word: str) -> Object:
    return {"gangConfig": {"gangMode": word}}


IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
TOP: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}

# scenario -> (JobSet, the field that is named)
REFUSED: dict[str, tuple[Object, str]] = {
    "4": (jobset("t", rj("p"), **REPLICAS), "spec.gangConfig.gangMode"),
    "5": (jobset("t", rj("p", **mode("gang"))), "spec.replicatedJobs[0].gangConfig.gangMode"),
    "6": (jobset("t", rj("p"), gangConfig={}), "spec.gangConfig.gangMode"),
    "7": (jobset("t", rj("p", **GANG), **GANG), "spec.replicatedJobs[0].gangConfig.gangMode"),
    "10": (jobset("t", rj("p"), **GANG, **policies({"name": "all"})), "spec"),
    "11": (jobset("t", rj("p"), scheduleAtOnce=True), "spec.scheduleAtOnce"),
    "16": (jobset("t", *(rj(f"r{n}", **GANG) for n in range(9))), "spec.replicatedJobs"),
    "22": (jobset("t", rj("p", 1, MANY), rj("q", 1, MANY), **GANG), "spec.replicatedJobs[1]"),
    "23": (jobset("t", rj("p"), rj("q"), **GANG, **IN_ORDER), "spec.gangConfig"),
    "25": (
        jobset(
            "t",
            rj("x"),
            rj("y", **after("x")),
            rj("z", **after("y")),
            **policies({"name": "both", "targetReplicatedJobs": ["x", "z"]}),
        ),
        "spec.podGroupPolicies[0]",
    ),
    "28": (
        jobset("t", rj("a"), rj("b", 1, 4, **after("a")), scheduling={"schedulingPolicy": {"gang": {"minCount": 5}}}),
        "spec.scheduling.schedulingPolicy.gang.minCount",
    ),
    "29": (jobset("t", rj("e", 2, 4, notes=RACK, **GANG)), "spec.replicatedJobs[0].template.metadata.annotations"),
    "32": (
        jobset("t", rj("a", runs=pod(**MINE)), rj("b"), **GANG),
        "spec.replicatedJobs[0].template.spec.template.spec.schedulingGroup",
    ),
    "33": (jobset("t", rj("a", job={"scheduling": TOP}), **GANG), "spec.replicatedJobs[0].template.spec.scheduling"),
    "34": (
        jobset(
            "t", rj("a", runs=pod(priorityClassName="hi"), **GANG), rj("b", runs=pod(priorityClassName="lo"), **GANG)
        ),
        "spec.replicatedJobs[1].template.spec.template.spec.priorityClassName",
    ),
    "55": (
        jobset("t", rj("a"), rj("b"), **policies({"name": "all"}, {"name": "more", "targetReplicatedJobs": ["a"]})),
        "spec.podGroupPolicies[0].targetReplicatedJobs",
    ),
    "64": (jobset("t", rj("z"), rj("a", **after("a"))), "spec.replicatedJobs[1].dependsOn"),
    # what users get wrong most
    "unknown target": (
        jobset("t", rj("a"), **policies({"name": "all", "targetReplicatedJobs": ["nobody"]})),
        "spec.podGroupPolicies[0].targetReplicatedJobs[0]",
    ),
    "unknown target of success": (
        jobset("t", rj("a"), successPolicy={"operator": "All", "targetReplicatedJobs": ["nobody"]}),
        "spec.successPolicy.targetReplicatedJobs[0]",
    ),
    "unknown target of a rule": (
        jobset(
            "t",
            rj("a"),
            failurePolicy={"rules": [{"name": "r", "action": "FailJobSet", "targetReplicatedJobs": ["nobody"]}]},
        ),
        "spec.failurePolicy.rules[0].targetReplicatedJobs[0]",
    ),
    "unknown target of scheduling": (
        jobset("t", rj("a"), scheduling={"replicatedJobs": [{"targetReplicatedJobs": ["nobody", "a"]}]}),
        "spec.scheduling.replicatedJobs[0].targetReplicatedJobs[0]",
    ),
    "cycle": (
        jobset("t", rj("a"), rj("b", **after("c")), rj("c", **after("b"))),
        "spec.replicatedJobs[1].dependsOn",
    ),
    "minCount": (
        jobset("t", rj("a", 2, 3), scheduling={"schedulingPolicy": {"gang": {"minCount": 7}}}),
        "spec.scheduling.schedulingPolicy.gang.minCount",
    ),
    "two forms": (jobset("t", rj("a"), **policies({"name": "all"}), scheduling={}), "spec"),
}


# What the definition cannot refuse
UNDEFINED = {
    "11": "a field that nobody knows is dropped, and what is left is fine",
    "29": "a rule does not see the annotations of the JobSet, which can make it right",
    "34": "one definition serves all minors, and before 1.37 it is right",
}


def names(found: str, field: str) -> bool:
    """Whether an error is about a field. Rules of a definition cannot name the item of a list, only the list."""
    if REAL:
        return f"{field}.".startswith((f"{found}.", f"{found}["))
    return found == field or found.startswith(f"{field}[")


@pytest.mark.parametrize(
    "scenario", [pytest.param(one, marks=pytest.mark.admission) if one in UNDEFINED else one for one in REFUSED]
)
async def test_jobset_refused(cluster: Cluster, scenario: str) -> None:
    obj, field = REFUSED[scenario]
    causes = await refused(cluster, obj)
    assert any(names(found, field) for found in causes), causes
    assert await cluster.get(*JOBSET, "t") is None


async def test_what_is_not_refused_is_told_and_starts_nothing(cluster: Cluster) -> None:
    """Where no rule at admission stands in the way, the controller says the same."""
    accepted: dict[str, str] = {}
    for scenario, (obj, field) in REFUSED.items():
        if scenario == "11":
            continue  # a field that nobody knows: a definition drops it, and what is left is fine
        name = f"t-{re.sub(r'[^a-z0-9]', '-', scenario)}"
        try:
            await cluster.create({**obj, "metadata": {**obj["metadata"], "name": name}})
            accepted[name] = field
        except ApiError as error:
            if error.code != 422:
                raise

    async def told() -> bool:
        found = {one["involvedObject"]["name"]: one["message"] for one in await cluster.events("InvalidJobSet")}
        return all(field in found.get(name, "") for name, field in accepted.items())

    assert not REAL or len(accepted) == len(UNDEFINED) - 1  # all but 11
    await cluster.until(told, what=f"every field being named: {accepted}")
    assert await cluster.every(*JOB) == []
    assert await no_groups(cluster)


# scenario -> JobSet that is fine although it looks much like one above
ACCEPTED: dict[str, Object] = {
    "24": jobset("t", rj("p", 1, 2), **GANG, **IN_ORDER),
    "26": jobset(
        "t",
        rj("init"),
        rj("x"),
        rj("y", **after("init", "Complete")),
        **policies({"name": "both", "targetReplicatedJobs": ["x", "y"]}),
    ),
    "29 by node selectors": jobset("t", rj("e", 2, 4, notes=SELECTOR, **GANG)),
    "29 of single pods": jobset("t", rj("e", 2, 1, notes=RACK, **GANG)),
    "34 with the second Off": jobset(
        "t", rj("a", runs=pod(priorityClassName="hi"), **GANG), rj("b", runs=pod(priorityClassName="lo"), **OFF)
    ),
}


@pytest.mark.parametrize("scenario", ACCEPTED)
async def test_jobset_accepted(cluster: Cluster, scenario: str) -> None:
    await cluster.create(ACCEPTED[scenario])


async def test_jobset_35_front_ends_are_frozen(cluster: Cluster) -> None:
    await cluster.create(jobset("on", rj("p"), **GANG))
    await cluster.create(jobset("none", rj("p")), jobset("asleep", rj("p"), suspend=True, **GANG))
    for name, change in (
        ("on", {"spec": {"gangConfig": {"gangMode": "Off"}}}),
        ("on", {"spec": {"gangConfig": None}}),
        ("none", {"spec": dict(GANG)}),
        ("asleep", {"spec": {"gangConfig": {"gangMode": "Off"}}}),
    ):
        with pytest.raises(ApiError) as error:
            await cluster.patch(*JOBSET, name, change)
        assert error.value.code == 422
        assert "gangConfig" in error.value.message


@pytest.mark.admission
async def test_claims_that_are_there_already(cluster: Cluster) -> None:
    """They are used only if they are the same, and never deleted with the JobSet."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "keep-t"}, "spec": spec}
    stored = (await cluster.create(claim))["spec"]
    runs = pod()
    runs["spec"]["containers"][0]["volumeMounts"] = [{"name": "keep", "mountPath": "/keep"}]

    def with_claim(spec: Object, kept: str) -> Object:
        policy = {"templates": [{"metadata": {"name": "keep"}, "spec": spec}], "retentionPolicy": {"whenDeleted": kept}}
        return jobset("t", rj("a", runs=runs), volumeClaimPolicies=[policy])

    causes = await refused(cluster, with_claim(spec, "Delete"))
    assert set(causes) == {
        "spec.volumeClaimPolicies[0].template[0].spec",
        "spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted",
    }
    await cluster.create(with_claim(stored, "Retain"))


@pytest.mark.admission
class TestGates:
    """Options that are off."""

    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"GangScheduling": False, "GangOfGangs": False}

    async def test_jobset_3_gate_off(self, cluster: Cluster) -> None:
        causes = await refused(cluster, jobset("t", rj("p"), **OFF))
        assert "spec.gangConfig" in causes
        await cluster.create(jobset("t", rj("p", 2, 3)))
        assert await no_groups(cluster)


@pytest.mark.admission
class TestNoTrees:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"GangOfGangs": False}

    async def test_jobset_54_no_gangs_of_gangs(self, cluster: Cluster) -> None:
        tree = {**TOP, "replicatedJobs": [{"targetReplicatedJobs": ["p"]}]}
        assert "spec.scheduling.replicatedJobs" in await refused(cluster, jobset("t", rj("p"), scheduling=tree))


@pytest.mark.admission
class TestElastic:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"ElasticJobSet": True}

    async def test_jobset_49_not_below_its_own_minimum(self, cluster: Cluster) -> None:
        body = jobset("g", rj("g", 2, 4), suspend=True, scheduling={"schedulingPolicy": {"gang": {"minCount": 7}}})
        made = await cluster.create(body)
        smaller = made["spec"]["replicatedJobs"]
        smaller[0]["template"]["spec"] |= {"parallelism": 3, "completions": 3}
        with pytest.raises(ApiError) as error:
            await cluster.patch(*JOBSET, "g", {"spec": {"replicatedJobs": smaller}})
        assert error.value.code == 422
        assert "spec.replicatedJobs[0].template.spec.completions" in error.value.message
