"""What a server makes of LeaderWorkerSets before anybody acts: defaults, refusals (spec lws 5, rows L-01 to L-13)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.lws import API, KIND, PREFIX, Sets, lws, template

from kohort.api.kind import Object
from kohort.kinds.leaderworkerset.api.revision import revision_key
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster


@pytest.fixture
def sets(cluster: Cluster) -> Sets:
    return Sets(cluster)


async def refused(cluster: Cluster, body: Object) -> str:
    with pytest.raises(ApiError) as error:
        await cluster.create(body)
    assert error.value.code in (400, 403, 422)
    return error.value.message


async def accepted(cluster: Cluster, body: Object) -> Object:
    """Without pods: what is stored is what counts here."""
    body["spec"].setdefault("replicas", 0)
    made = await cluster.create(body)
    await cluster.delete(API, KIND, body["metadata"]["name"])
    return made


def rolling(**configuration: Any) -> dict[str, Any]:
    return {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": configuration}}


async def test_l_01_l_02_defaults(cluster: Cluster, sets: Sets) -> None:
    """Members that only a webhook could fill in are read as if they were there."""
    body: Object = {
        "apiVersion": API,
        "kind": KIND,
        "metadata": {"name": "least"},
        "spec": {"leaderWorkerTemplate": {"workerTemplate": template()}},
    }
    made = (await cluster.create(body))["spec"]
    assert (made["replicas"], made["leaderWorkerTemplate"]["size"], made["startupPolicy"]) == (1, 1, "LeaderCreated")
    assert made["leaderWorkerTemplate"]["restartPolicy"] == "RecreateGroupOnPodRestart"
    await sets.available("least")
    empties: tuple[dict[str, Any] | None, ...] = (None, {})
    for empty in empties:
        body["metadata"]["name"] = "some"
        body["spec"] |= {"rolloutStrategy": empty, "networkConfig": empty, "replicas": None}
        await cluster.create(body)
        await sets.available("some")
        await cluster.delete(API, KIND, "some", propagation="Foreground")

        async def gone() -> bool:
            return await cluster.get(API, KIND, "some") is None

        await cluster.until(gone)
    assert "startupPolicy" in await refused(cluster, lws("no", startupPolicy=""))


async def test_l_02_the_old_name_of_no_restart(cluster: Cluster, sets: Sets) -> None:
    """`Default` means None: only the pod that went comes back."""
    await sets.create("old", restartPolicy="Default")
    await sets.available("old")
    before = await sets.uids()
    await cluster.delete("v1", "Pod", "old-0-1")
    await sets.renewed(before, {"old-0-1"})


async def test_l_03_l_04_l_05_numbers(cluster: Cluster) -> None:
    for wrong in ({"replicas": "3"}, {"replicas": 2**31}, {"replicas": -1}, {"replicas": 1_000_001}):
        await refused(cluster, lws("no", **wrong))
    for wrong in ({"size": 0}, {"replicas": 2, "size": 2**30}, {"replicas": 1_000_000, "size": 2148}):
        await refused(cluster, lws("no", **wrong))
    text = await refused(cluster, lws("no", size=0, **rolling(partition=-1, maxUnavailable="two")))
    assert all(word in text for word in ("size", "partition", "maxUnavailable"))


async def test_l_06_l_07_shares_of_groups(cluster: Cluster) -> None:
    for least in (0, "0%", "10%"):
        await refused(cluster, lws("no", replicas=3, **rolling(maxUnavailable=least, maxSurge=0)))
    for wrong in ("101%", "2", "two", -1):
        await refused(cluster, lws("no", replicas=3, **rolling(maxUnavailable=wrong, maxSurge=1)))
        await refused(cluster, lws("no", replicas=3, **rolling(maxUnavailable=1, maxSurge=wrong)))
    await refused(cluster, lws("no", replicas=3, **rolling(partition=-1)))
    for right in ({"maxUnavailable": "34%"}, {"maxUnavailable": 0, "maxSurge": "1%"}, {"partition": 7, "maxSurge": 9}):
        await accepted(cluster, lws("yes", replicas=3, size=1, **rolling(**right)))
    await accepted(cluster, lws("yes", replicas=0, **rolling(maxUnavailable=0, maxSurge=0)))


async def test_l_08_l_09_subgroups(cluster: Cluster) -> None:
    excluded = {"subGroupPolicyType": "LeaderExcluded"}
    for size, policy in ((8, {"subGroupSize": 4}), (9, {"subGroupSize": 4}), (9, {"subGroupSize": 4, **excluded})):
        await accepted(cluster, lws("yes", replicas=0, size=size, subGroupPolicy=policy))
    wrong: list[tuple[int, Object]] = [(8, {"subGroupSize": number}) for number in (3, -2, 0)]
    wrong += [(4, {"subGroupSize": 5}), (1, {"subGroupSize": 2}), (8, {"subGroupSize": 4, **excluded}), (8, {})]
    for size, policy in wrong:
        assert "subGroup" in await refused(cluster, lws("no", size=size, subGroupPolicy=policy)), policy


async def test_l_10_names(cluster: Cluster) -> None:
    for wrong in ("1st", "a.b", "n" * 64, "Upper", "end-"):
        assert "name" in await refused(cluster, lws(wrong))
    made = lws("x", replicas=0)
    made["metadata"] = {"generateName": "some-"}
    assert (await cluster.create(made))["metadata"]["name"].startswith("some-")


@pytest.mark.admission
async def test_l_11_subgroups_of_nothing(cluster: Cluster, sets: Sets) -> None:
    """A definition cannot look at annotations."""
    topology = {f"{PREFIX}subgroup-exclusive-topology": "rack"}
    await refused(cluster, lws("no", annotations=topology))
    await sets.create("yes", replicas=0)
    with pytest.raises(ApiError) as error:
        await cluster.patch(API, KIND, "yes", {"metadata": {"annotations": topology}})
    assert "subgroup-exclusive-topology" in error.value.message


async def test_l_12_what_may_change(cluster: Cluster, sets: Sets) -> None:
    await sets.create("set", replicas=0, size=4, subGroupPolicy={"subGroupSize": 2})
    await sets.create("bare", replicas=0, size=4)
    for name, refused_change in (
        ("set", {"subGroupPolicy": {"subGroupSize": 4}}),
        ("set", {"subGroupPolicy": None}),
        ("bare", {"subGroupPolicy": {"subGroupSize": 2}}),
        ("bare", {"size": 0}),
    ):
        with pytest.raises(ApiError) as error:
            await sets.patch(name, {"leaderWorkerTemplate": refused_change})
        assert error.value.code in (403, 422), refused_change
    changes: tuple[dict[str, Any], ...] = (
        {"startupPolicy": "LeaderReady", "networkConfig": {"subdomainPolicy": "UniquePerReplica"}},
        {"leaderWorkerTemplate": {"size": 6, "restartPolicy": "None", "leaderTemplate": template("tool:2")}},
        {"leaderWorkerTemplate": {"subGroupPolicy": {"subGroupPolicyType": "LeaderWorker"}}},
        {"rolloutStrategy": None, "networkConfig": None},
    )
    for change in changes:
        await sets.patch("set", change)
    assert (await sets.get("set"))["spec"]["leaderWorkerTemplate"]["size"] == 6


async def test_l_13_templates(cluster: Cluster) -> None:
    specs: tuple[dict[str, Any], ...] = ({}, {"containers": [{"image": "tool:1"}]}, {"containers": "one"})
    for wrong in ({"spec": spec} for spec in specs):
        assert "containers" in await refused(cluster, lws("no", workerTemplate=wrong))


@pytest.mark.admission
async def test_l_13_labels_that_tell_pods_apart(cluster: Cluster) -> None:
    """A definition takes the labels of a template as they are."""
    forged = template()
    forged["metadata"]["labels"] = {f"{PREFIX}worker-index": "0"}
    assert f"{PREFIX}worker-index" in await refused(cluster, lws("no", workerTemplate=forged))


async def test_l_16_pods_made_by_hand(cluster: Cluster, sets: Sets) -> None:
    """Whatever labels they carry, pods that are not of the set are neither changed nor counted."""
    plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": template()["spec"]}
    labels = {f"{PREFIX}name": "duo", f"{PREFIX}group-index": "0", f"{PREFIX}worker-index": "1"}
    marked = {**plain, "metadata": {"name": "marked", "labels": labels}}
    await cluster.create(plain, marked)
    await sets.create("duo", replicas=2, size=2)
    found = await sets.available("duo")
    assert [found["status"][key] for key in ("replicas", "readyReplicas")] == [2, 2]
    await cluster.sleep(2)
    pods = {pod["metadata"]["name"]: pod for pod in await cluster.pods()}
    assert set(pods) == {"plain", "marked", "duo-0", "duo-0-1", "duo-1", "duo-1-1"}
    for name, written in (("plain", {}), ("marked", labels)):
        assert pods[name]["metadata"].get("labels", {}) == written
        assert "ownerReferences" not in pods[name]["metadata"]
        assert "env" not in pods[name]["spec"]["containers"][0]


async def test_l_26_keys_of_revisions(cluster: Cluster, sets: Sets) -> None:
    """The key in names and labels is that of the stored contents, whoever computes it."""
    await sets.create("rev", replicas=1, size=2, **rolling(partition=1))
    await sets.available("rev")
    await sets.image("rev", "tool:2")

    async def both() -> list[Object]:
        found = await cluster.every("apps/v1", "ControllerRevision")
        return found if len(found) == 2 else []

    for one in await cluster.until(both, what="a second revision"):
        key = revision_key(one["data"])
        assert one["metadata"]["labels"][f"{PREFIX}template-revision-hash"] == key
        assert one["metadata"]["name"] == f"rev-{key}-{one['revision']}"
