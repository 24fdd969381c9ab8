"""Runtimes from which no TrainJob can be built (spec trainjob 6): refused, or told when a job wants one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e import training as t
from tests.e2e.test_trainjob_sizes import explicit, of
from tests.kinds.trainer.compile.build import rjob, trainer

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

GANG: Object = {"schedulingPolicy": {"gang": {}}}
CLAIM = {"name": "slice", "resourceClaimTemplateName": "ring"}
TWO = rjob("helper", parallelism=2), trainer()


def mpi(launcher: dict[str, Any], node: dict[str, Any]) -> Object:
    return t.runtime(trainer("launcher", **launcher), rjob("node", **node), ml={"mpi": {}})


async def test_17_22_24_members_of_groups(cluster: Cluster) -> None:
    prep = rjob("prep"), trainer("train", after=[("prep", "Complete")])
    await t.refused(cluster, t.runtime(*prep, workload=explicit(of("prep", "train"))))
    await t.refused(cluster, t.runtime(trainer(), rjob("trainer")))
    await t.refused(cluster, t.runtime(trainer(), *(rjob(f"h{number}") for number in range(8))))


async def test_28_29_targets(cluster: Cluster) -> None:
    for entries in ([of("node")], [of("helper", "node", "ghost")], [of("helper", "node"), of("node")]):
        await t.refused(cluster, t.runtime(*TWO, workload=explicit(*entries)))


async def test_30_explicit_minimum(cluster: Cluster) -> None:
    four = {"schedulingPolicy": {"gang": {"minCount": 4}}}
    for workload in ({"scheduling": four}, explicit(of("node", **four)), explicit(of("node", job=four))):
        await t.refused(cluster, t.runtime(workload=workload))


async def test_31_32_34_levels(cluster: Cluster) -> None:
    """Trees need a gate; a group for each of several Jobs needs names that JobSet does not give."""
    await t.refused(cluster, t.runtime(*TWO, workload=explicit(of("helper"), of("node"), **GANG)))
    await t.refused(cluster, t.runtime(rjob("a"), trainer(), workload=explicit(of("a", "node", job={}))))
    slices = trainer(), rjob("slice", replicas=3)
    await t.refused(cluster, t.runtime(*slices, workload=explicit(of("node"), of("slice", job={}))))


async def test_36_43_wishes_that_cannot_be_met(cluster: Cluster) -> None:
    two = {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}
    await t.refused(cluster, t.runtime(workload={"scheduling": two}))
    await t.refused(cluster, t.runtime(workload=explicit(of("node", resourceClaims=[CLAIM]))))


@pytest.mark.parametrize("field", ["priorityClassName", "schedulerName"])
async def test_38_40_one_class_and_one_scheduler_in_a_gang(cluster: Cluster, field: str) -> None:
    await t.refused(cluster, mpi({field: "one"}, {field: "two"}))


@pytest.mark.releases("1.36", "1.37")
async def test_44_a_pod_template_with_a_group(cluster: Cluster) -> None:
    await t.refused(cluster, t.runtime(trainer(schedulingGroup={"podGroupName": "mine"})))


async def test_45_a_jobset_with_groups_of_its_own(cluster: Cluster) -> None:
    await t.refused(cluster, t.runtime(template={"scheduling": {}}))
