"""The object that people wrote says why its gang waits, and that it no longer does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e import training
from tests.e2e.grove_short import clique, cliqueset
from tests.e2e.lws import lws
from tests.e2e.test_gang_quota import gang, quota
from tests.e2e.test_whole_cluster import JOBSET, job

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

NOWHERE = {"pool": "nowhere"}


async def told(c: Cluster, kind: str, reason: str) -> str:
    """Waits for an event of the reason on an object of the kind."""

    async def look() -> Any:
        found = await c.events(reason)
        texts = [one.get("note") or one.get("message") for one in found if _regarding(one)["kind"] == kind]
        return texts[-1] if texts else None

    return str(await c.until(look, what=f"{reason} on a {kind}"))


def _regarding(event: Object) -> Object:
    found: Object = event.get("regarding") or event["involvedObject"]
    return found


def _jobset(**pod: Any) -> Object:
    spec = job("unused", 2, "1")["spec"]
    spec["template"]["spec"] |= pod
    jobs = [{"name": "wrk", "replicas": 1, "template": {"spec": spec}}]
    gang = {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": jobs}
    return {"apiVersion": JOBSET, "kind": "JobSet", "metadata": {"name": "aurora"}, "spec": gang}


@pytest.mark.releases("1.37")
@pytest.mark.parametrize("kind", ["JobSet", "PodCliqueSet"])
async def test_the_top_object_says_why_its_gang_waits(cluster: Cluster, kind: str) -> None:
    stuck = {
        "JobSet": _jobset(nodeSelector=NOWHERE),
        "PodCliqueSet": cliqueset("a", clique("w", 2, pod={"nodeSelector": NOWHERE})),
    }
    await cluster.create(stuck[kind])
    text = await told(cluster, kind, "FailedScheduling")
    assert "not selected (pool=nowhere)" in text
    assert "would fit on nodes labelled pool=nowhere (there is none)" in text
    node = (await cluster.client.kind("v1", "Node").list()).items[0]["metadata"]["name"]
    await cluster.client.kind("v1", "Node").patch(node, {"metadata": {"labels": NOWHERE}}, kind="merge")
    assert await told(cluster, kind, "Scheduled")


GANG: Object = {"replica": {"schedulingPolicy": {"gang": {}}}}
BY_QUOTA = {
    "Job": ([gang("aurora", 2)], "QuotaExceeded", "QuotaAvailable"),
    "JobSet": ([_jobset()], "QuotaExceeded", "QuotaAvailable"),
    "TrainJob": ([training.runtime(), training.trainjob(2)], "QuotaExceeded", "QuotaAvailable"),
    "LeaderWorkerSet": ([lws("aurora", 1, 2, scheduling=GANG)], "Waiting", "Scheduled"),
    "PodCliqueSet": ([cliqueset("aurora", clique("w", 2))], "FailedScheduling", "Scheduled"),
}


@pytest.mark.releases("1.37")
@pytest.mark.parametrize("kind", BY_QUOTA)
async def test_the_top_object_names_the_quota_that_its_gang_waits_for(cluster: Cluster, kind: str) -> None:
    await quota(cluster, {"pods": "1"})
    objects, reason, better = BY_QUOTA[kind]
    await cluster.create(*objects)
    text = await told(cluster, kind, reason)
    assert "ResourceQuota team leaves" in text
    assert "raise pods of ResourceQuota team to 2" in text
    await cluster.patch("v1", "ResourceQuota", "team", {"spec": {"hard": {"pods": "2"}}})
    assert await told(cluster, kind, better)
    await cluster.running(2)
