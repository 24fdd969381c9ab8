"""What is refused, or accepted and completed, when a PodCliqueSet is submitted or changed (spec grove 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.e2e.grove_short import GROVE, available, binding, clique, cliques, cliqueset, group, rack, refused, shared

from kohort.api.kind import Object
from kohort.api.releases import release
from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster

NEWEST = pytest.mark.releases("1.37")
FLAT = pytest.mark.releases("1.35", "1.36")


def preset(minor: str) -> dict[str, Any]:
    """A template that names its group itself."""
    link = {"workloadRef": {"name": "w", "podGroup": "g"}} if minor == "1.35" else {}
    return {"pod": link or {"schedulingGroup": {"podGroupName": "mine"}}}


async def test_g7_names_together_are_at_most_45_characters(cluster: Cluster) -> None:
    worker = "w" * 11
    told = await refused(cluster, cliqueset("s" * 20, clique(worker), groups=[group("g" * 15, [worker])]))
    assert "46" in told


async def test_g8_a_dot_in_a_name(cluster: Cluster) -> None:
    await refused(cluster, cliqueset("a", clique("x.y")))


async def test_g9_no_replicas(cluster: Cluster) -> None:
    """With a minimum they become one; the minimum that is not given is taken from them, and is nothing."""
    await refused(cluster, cliqueset("none", clique("x", 0)))
    await cluster.create(cliqueset("one", clique("x", 0, 1)))
    await cluster.running(1)
    (made,) = await cliques(cluster)
    assert made["spec"]["replicas"] == 1


async def test_g10_a_minimum_above_the_replicas(cluster: Cluster) -> None:
    told = await refused(cluster, cliqueset("a", clique("w"), groups=[group("g", ["w"], 2, 3)]))
    assert "minAvailable" in told


async def test_g11_a_set_whose_gangs_are_anothers(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("r"), clique("w"), groups=[group("b", ["w"], 2)]))
    await cluster.running(3)
    assert "a-0-b-0" in await refused(cluster, cliqueset("a-0-b", clique("x")))
    await cluster.running(3)


@FLAT
async def test_g18_nine_groups_do_not_fit(cluster: Cluster) -> None:
    body = cliqueset("a", clique("s"), clique("l"), clique("w"), groups=[group("g", ["l", "w"], 4, 4)])
    told = await refused(cluster, body)
    assert "9" in told
    assert "8" in told


@FLAT
async def test_g20_topology_needs_trees(cluster: Cluster) -> None:
    await shared(cluster, binding())
    for body in (
        cliqueset("a", clique("x"), template=rack()),
        cliqueset("a", clique("x", **rack())),
        cliqueset("a", clique("x"), groups=[group("g", ["x"], **rack())]),
    ):
        assert "KEP-5732" in await refused(cluster, body)


@NEWEST
async def test_g30_g31_lists_of_nine(cluster: Cluster) -> None:
    nine = [clique(f"c{index}") for index in range(9)]
    assert "8" in await refused(cluster, cliqueset("a", *nine))
    every = [f"c{index}" for index in range(9)]
    assert "8" in await refused(cluster, cliqueset("a", *nine, groups=[group("g", every)]))


@NEWEST
async def test_g37_g38_what_cannot_be_asked_for(cluster: Cluster) -> None:
    await shared(cluster, binding())
    wish: dict[str, Any] = {"topologyConstraint": {"topologyName": "fabric", "pack": {"preferred": "host"}}}
    assert "required" in await refused(cluster, cliqueset("a", clique("x", **wish)))
    host = {"topologyConstraint": {"topologyName": "fabric", "pack": {"required": "host"}}}
    assert "narrower" in await refused(cluster, cliqueset("a", clique("x", **rack()), template=host))
    assert "not found" in await refused(cluster, cliqueset("a", clique("x", **rack("nowhere"))))


@NEWEST
async def test_g39_a_priority_that_is_not_the_sets(cluster: Cluster) -> None:
    silver = clique("x", pod={"priorityClassName": "silver"})
    for name, value in (("gold", 7000), ("silver", 6000)):
        one = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        await shared(cluster, {**one, "value": value})
    assert "priority" in await refused(cluster, cliqueset("a", silver, template={"priorityClassName": "gold"}))


async def test_g41_a_minimum_of_nothing(cluster: Cluster) -> None:
    await refused(cluster, cliqueset("a", clique("x", 2, 0)))


async def changed(cluster: Cluster, change: Any) -> str:
    """What is said against a change of the template of set "a"."""
    found = await cluster.get(GROVE, "PodCliqueSet", "a")
    assert found is not None
    template: Object = found["spec"]["template"]
    change(template)
    with pytest.raises(ApiError) as error:
        await cluster.patch(GROVE, "PodCliqueSet", "a", {"spec": {"template": template}})
    assert error.value.code in (403, 422)
    return error.value.message


async def test_g56_g57_what_makes_gangs_is_frozen(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("x", 4, 2), clique("w"), groups=[group("g", ["w"], 2)]))
    await available(cluster, "a")
    assert "minAvailable" in await changed(cluster, lambda all_: all_["cliques"][0]["spec"].update(minAvailable=3))
    assert "added" in await changed(cluster, lambda all_: all_["cliques"].append(clique("late")))
    assert "removed" in await changed(cluster, lambda all_: all_["cliques"].pop(0))


@pytest.mark.releases("1.36", "1.37")
async def test_g61_all_cliques_or_none_name_their_group(cluster: Cluster, minor: str) -> None:
    await refused(cluster, cliqueset("a", clique("x", **preset(minor)), clique("y")))


async def test_g64_a_circle_counts_for_explicit_only(cluster: Cluster) -> None:
    circle = [clique(one, spec={"startsAfter": [other]}) for one, other in (("b", "c"), ("c", "b"))]
    explicit = {"cliqueStartupType": "CliqueStartupTypeExplicit"}
    assert "circular" in await refused(cluster, cliqueset("a", *circle, template=explicit))
    await cluster.create(cliqueset("any", *circle))
    await cluster.running(2)


async def test_g66_all_cliques_have_one_scheduler(cluster: Cluster) -> None:
    pair = [clique(name, pod={"schedulerName": name}) for name in ("kohort", "default-scheduler")]
    assert "schedulerName" in await refused(cluster, cliqueset("a", *pair))


class TestWithoutGroups:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {"GroveGangScheduling": False}

    async def test_g8_a_dot_is_fine_until_pods_are_made(self, cluster: Cluster) -> None:
        await cluster.create(cliqueset("a", clique("x.y")))

        async def told() -> bool:
            (found,) = await cliques(cluster) or [{}]
            return bool(found.get("status", {}).get("lastErrors"))

        await cluster.until(told, what="pods being refused")
        assert await cluster.pods() == []
        before = await cliques(cluster)
        await cluster.sleep(3)
        assert await cliques(cluster) == before  # tried again, and nothing new to tell

    @pytest.mark.admission
    async def test_g59_no_template_names_its_group(self, cluster: Cluster, minor: str) -> None:
        """Where nobody checks, the pods join a group that somebody else may make: nothing is wrong with them then."""
        await refused(cluster, cliqueset("a", clique("x", **preset(minor))))


class TestWithoutTheApi:
    @pytest.fixture
    def gates(self, minor: str) -> Mapping[str, bool]:
        return {str(gate): False for gate in release(minor).gates}

    @pytest.mark.admission
    async def test_g62_the_kind_that_is_not_served_is_named(self, cluster: Cluster) -> None:
        """Beside a server without rules, `kohort run` says at its start that nothing is grouped there."""
        assert "Workload" in await refused(cluster, cliqueset("a", clique("x")))
