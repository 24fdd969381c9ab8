"""A PodCliqueSet from its first pod to its last: expansion, gates, scaling, updates, termination (spec grove 6)."""

from __future__ import annotations

import pytest
from tests.e2e.grove_short import (
    GANGS,
    GATE,
    GROVE,
    available,
    clique,
    cliques,
    cliqueset,
    gangs,
    gates,
    gone,
    group,
    image,
    is_true,
    membership,
    names,
    new_image,
    of,
    scale,
    shared,
    uids,
    versions,
)

from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster

# ---- 6.1 expansion and naming


async def test_g1_a_set_of_no_replicas(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("x"), replicas=0))
    await available(cluster, "a", 0)
    assert [*await cliques(cluster), *await gangs(cluster), *await cluster.pods()] == []
    assert await cluster.every("v1", "Service") == []
    assert await cluster.get("v1", "ServiceAccount", "a") is not None


async def test_g2_a_gang_and_a_service_for_each_replica(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("x", 2), replicas=3))
    pods = await cluster.running(6)
    assert names(await gangs(cluster)) == names(await cluster.every("v1", "Service")) == ["a-0", "a-1", "a-2"]
    indices = {(pod["spec"]["hostname"], pod["spec"]["subdomain"]) for pod in pods}
    assert indices == {(f"a-{at}-x-{index}", f"a-{at}") for at in range(3) for index in range(2)}


async def test_g3_initialized_when_all_pods_exist(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("x", 5, 2)))
    await cluster.running(5)
    (gang,) = await gangs(cluster)
    assert [one["minReplicas"] for one in gang["spec"]["podgroups"]] == [2]
    assert len(gang["spec"]["podgroups"][0]["podReferences"]) == 5
    assert is_true(gang, "Initialized")


async def test_g4_base_and_scaled_gangs(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("r"), clique("w"), groups=[group("g", ["w"], 4, 2)]))
    await cluster.running(5)
    found = {
        one["metadata"]["name"]: [each["name"] for each in one["spec"]["podgroups"]] for one in await gangs(cluster)
    }
    assert found == {
        "a-0": ["a-0-r", "a-0-g-0-w", "a-0-g-1-w"],
        "a-0-g-0": ["a-0-g-2-w"],
        "a-0-g-1": ["a-0-g-3-w"],
    }


async def test_g6_a_template_is_found_by_its_whole_name(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("worker"), clique("pworker", 2, image="tool:p")))
    pods = await cluster.running(3)
    assert {image(pod) for pod in of(pods, "a-0-pworker")} == {"tool:p"}
    await available(cluster, "a")


# ---- 6.2 to 6.4: groups of a running set


async def test_g12_g13_pods_name_their_group(cluster: Cluster) -> None:
    """1.35: a group inside the Workload; from 1.36 on a PodGroup."""
    await cluster.create(cliqueset("a", clique("x", 3)))
    pods = await cluster.running(3)
    (workload,) = await cluster.workloads()
    groups = names(await cluster.pod_groups())
    assert workload["metadata"]["name"] == "a-0"
    assert workload["spec"]["controllerRef"] == {"apiGroup": "grove.io", "kind": "PodCliqueSet", "name": "a"}
    assert workload["metadata"]["ownerReferences"][0]["kind"] == "PodGang"
    assert {membership(pod) for pod in pods} == set(groups or ["a-0/a-0-x"])


@pytest.mark.releases("1.36", "1.37")
async def test_g19_a_scaled_gang_has_its_own_workload(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("r"), clique("w"), groups=[group("g", ["w"], 3, 2)]))
    await cluster.running(4)
    assert names(await cluster.workloads()) == ["a-0", "a-0-g-0"]
    assert "a-0-g-0-a-0-g-2-w" in names(await cluster.pod_groups())


async def test_g21_g39_the_priority_of_the_set_is_that_of_its_pods(cluster: Cluster) -> None:
    gold = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"}, "value": 7000}
    await shared(cluster, gold)
    await cluster.create(cliqueset("a", clique("x", 2), template={"priorityClassName": "gold"}))
    pods = await cluster.running(2)
    assert {(pod["spec"]["priorityClassName"], pod["spec"]["priority"]) for pod in pods} == {("gold", 7000)}


@pytest.mark.releases("1.37")
async def test_g28_g40_one_tree_made_from_the_root_down(cluster: Cluster) -> None:
    await cluster.create(_chat())
    await cluster.running(1 + 1 + 3 * 4 + 2 * 3)
    assert names(await cluster.workloads()) == ["chat-0", "chat-0-decode-0", "chat-0-prefill-0", "chat-0-prefill-1"]
    branches = {one["metadata"]["name"]: one["spec"] for one in await cluster.composites()}
    assert {name: spec.get("parentCompositePodGroupName") for name, spec in branches.items()} == {
        "chat-0": None,
        "chat-0-chat-0-prefill": "chat-0",
        "chat-0-chat-0-prefill-0": "chat-0-chat-0-prefill",
        "chat-0-chat-0-decode": "chat-0",
        "chat-0-chat-0-decode-0": "chat-0-chat-0-decode",
        "chat-0-prefill-0": None,
        "chat-0-prefill-1": None,
        "chat-0-decode-0": None,
    }
    assert branches["chat-0"]["schedulingPolicy"]["gang"]["minGroupCount"] == 3
    assert len(await cluster.pod_groups()) == 5 + 2 * 3
    made = [*await cluster.workloads(), *await cluster.composites(), *await cluster.pod_groups()]
    own = [one for one in made if one["metadata"]["labels"]["grove.io/podgang"] == "chat-0"]
    own.sort(key=lambda one: (one["metadata"]["creationTimestamp"], int(one["metadata"]["resourceVersion"])))
    assert [one["kind"] for one in own][:2] == ["Workload", "CompositePodGroup"]


def _chat() -> dict[str, object]:
    """Example B of the page."""
    return cliqueset(
        "chat",
        clique("router", 2, 1),
        clique("pf-lead"),
        clique("pf-work", 3),
        clique("dc-lead"),
        clique("dc-work", 2),
        groups=[group("prefill", ["pf-lead", "pf-work"], 3), group("decode", ["dc-lead", "dc-work"], 2)],
    )


@pytest.mark.releases("1.37")
async def test_g29_nine_replicas_of_one_structure(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("l"), clique("w"), groups=[group("g", ["l", "w"], 9, 9)]))
    await cluster.running(18)
    assert len(await cluster.composites()) == 1 + 1 + 9
    assert len(await cluster.pod_groups()) == 18


@pytest.mark.releases("1.37")
async def test_g67_leader_and_workers(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("lead"), clique("work", 7), groups=[group("g", ["lead", "work"], 2)]))
    await cluster.running(16)
    least = {one["metadata"]["name"]: one["spec"]["schedulingPolicy"]["gang"] for one in await cluster.pod_groups()}
    assert least == {
        "a-0-a-0-g-0-lead": {"minCount": 1},
        "a-0-a-0-g-0-work": {"minCount": 7},
        "a-0-g-0-a-0-g-1-lead": {"minCount": 1},
        "a-0-g-0-a-0-g-1-work": {"minCount": 7},
    }


async def test_g45_a_scaled_gang_waits_for_its_base(cluster: Cluster) -> None:
    """The router fits nowhere until a node has the label that it asks for."""
    await cluster.create(
        cliqueset(
            "a",
            clique("r", pod={"nodeSelector": {"place": "here"}}),
            clique("w"),
            groups=[group("g", ["w"], 2)],
        )
    )

    async def made() -> bool:
        return len(await cluster.pods()) == 3

    await cluster.until(made)
    await cluster.sleep(12)
    (waiting,) = of(await cluster.pods(), "a-0-g-1-w")
    assert gates(waiting) == [GATE]
    (node, *_) = (await cluster.client.kind("v1", "Node").list()).items
    change = {"metadata": {"labels": {"place": "here"}}}
    await cluster.client.kind("v1", "Node").patch(node["metadata"]["name"], change)
    await cluster.running(3)


async def test_g48_growing_touches_nothing_that_is_there(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("r"), clique("w"), groups=[group("g", ["w"], 3, 1)]))
    await cluster.running(4)
    before = await versions(cluster)
    await scale(cluster, "PodCliqueScalingGroup", "a-0-g", 4)
    await cluster.running(5)
    after = await versions(cluster)
    assert {name: after[name] for name in before if "Group/" not in name} == {
        name: version for name, version in before.items() if "Group/" not in name
    }
    assert {name for name in after if name not in before and name.startswith("Workload")} == {"Workload/a-0-g-2"}


async def test_g49_a_gang_of_the_same_name_waits_for_the_last_pod_of_the_old_one(cluster: Cluster) -> None:
    slow = {"sim.kohort.dev/stop-seconds": "20"}
    await cluster.create(cliqueset("a", clique("r"), clique("w", annotations=slow), groups=[group("g", ["w"], 4, 1)]))
    await cluster.running(5)
    before = await uids(cluster)
    await scale(cluster, "PodCliqueScalingGroup", "a-0-g", 3)

    async def going() -> bool:
        found = of(await cluster.pods(), "a-0-g-3-w")
        gang = await cluster.get(GANGS, "PodGang", "a-0-g-2")
        return bool(found) and "deletionTimestamp" in found[0]["metadata"] and gang is None

    await cluster.until(going)
    await scale(cluster, "PodCliqueScalingGroup", "a-0-g", 4)
    await cluster.sleep(3)
    if await cluster.pod_groups():
        assert len(of(await cluster.pods(), "a-0-g-3-w")) == 1  # the old one
        assert await cluster.events("PodGroupTerminating")

    async def anew() -> bool:
        found = of(await cluster.pods(), "a-0-g-3-w")
        return [pod["status"]["phase"] for pod in found if "deletionTimestamp" not in pod["metadata"]] == ["Running"]

    await cluster.until(anew)
    after = await uids(cluster)
    assert before["PodGang/a-0-g-2"] != after["PodGang/a-0-g-2"]
    assert before["Workload/a-0-g-2"] != after["Workload/a-0-g-2"]
    (workload,) = [one for one in await cluster.workloads() if one["metadata"]["name"] == "a-0-g-2"]
    assert workload["metadata"]["ownerReferences"][0]["uid"] == after["PodGang/a-0-g-2"]


async def test_g50_a_standalone_clique_grows_inside_its_group(cluster: Cluster) -> None:
    scaling = {"autoScalingConfig": {"minReplicas": 2, "maxReplicas": 6}}
    await cluster.create(cliqueset("a", clique("x", 2, 2, spec=scaling)))
    await cluster.running(2)
    before = await uids(cluster)
    autoscaler = await cluster.get("autoscaling/v2", "HorizontalPodAutoscaler", "a-0-x")
    assert autoscaler is not None
    assert autoscaler["spec"]["scaleTargetRef"] == {"apiVersion": GROVE, "kind": "PodClique", "name": "a-0-x"}
    await scale(cluster, "PodClique", "a-0-x", 6)
    pods = await cluster.running(6)
    assert len({membership(pod) for pod in pods}) == 1
    assert await uids(cluster) == before
    for found in await cluster.pod_groups():
        assert found["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2


async def test_d22_nobody_scales_below_the_minimum(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("x", 3, 2), clique("w"), groups=[group("g", ["w"], 2, 2)]))
    await cluster.running(5)
    for kind, name in (("PodClique", "a-0-x"), ("PodCliqueScalingGroup", "a-0-g")):
        with pytest.raises(ApiError) as error:
            await scale(cluster, kind, name, 1)
        assert "minAvailable" in error.value.message


async def test_g51_rolled_one_replica_after_the_other(cluster: Cluster) -> None:
    await cluster.create(
        cliqueset("a", clique("x", 2, 1), clique("l"), clique("w"), groups=[group("g", ["l", "w"], 2)], replicas=2)
    )
    await available(cluster, "a", 2)
    before = await uids(cluster)
    marks = {membership(pod) for pod in await cluster.pods()}
    for name in ("x", "w"):
        await new_image(cluster, "a", name, "tool:2")

    async def whole() -> bool:
        """All the time one replica of the set runs, but for a pod of x above its minimum: the next one does not wait
        for that.
        """
        pods = await cluster.pods()
        ready = {at: sum(1 for pod in pods if _index(pod) == at and is_true(pod, "Ready")) for at in ("0", "1")}
        assert max(ready.values()) >= 5, ready
        found = await cluster.get(GROVE, "PodCliqueSet", "a")
        status = (found or {})["status"]
        current = (found or {})["metadata"]["generation"] == status["observedGeneration"]
        return current and status["updatedReplicas"] == 2

    await cluster.until(whole)
    pods = await cluster.running(12)
    assert {image(pod) for pod in of(pods, "a-0-x") + of(pods, "a-1-g-1-w")} == {"tool:2"}
    assert {image(pod) for pod in of(pods, "a-0-g-0-l")} == {"tool:1"}
    assert await uids(cluster) == before
    assert {membership(pod) for pod in pods} == marks


def _index(pod: dict[str, object]) -> str:
    found: str = pod["metadata"]["labels"]["grove.io/podcliqueset-replica-index"]  # type: ignore[index]
    return found


async def test_g51_on_delete_waits_for_the_user(cluster: Cluster) -> None:
    await cluster.create(
        cliqueset("a", clique("x", 2, 1), clique("w"), groups=[group("g", ["w"])], updateStrategy={"type": "OnDelete"})
    )
    await available(cluster, "a")
    for name in ("x", "w"):
        await new_image(cluster, "a", name, "tool:2")
    await cluster.sleep(10)
    pods = await cluster.pods()
    assert {image(pod) for pod in pods} == {"tool:1"}
    chosen = of(pods, "a-0-x")[0]["metadata"]["name"]
    for name in (chosen, of(pods, "a-0-g-0-w")[0]["metadata"]["name"]):
        await cluster.delete("v1", "Pod", name)

    async def replaced() -> bool:
        return sorted(image(pod) for pod in await cluster.pods() if is_true(pod, "Ready")) == [
            "tool:1",
            "tool:2",
            "tool:2",
        ]

    await cluster.until(replaced)


async def test_g52_a_replica_below_its_minimum_for_too_long_is_made_again(cluster: Cluster) -> None:
    """Its pods lose their node, and no other has the label that they ask for."""
    await _label_nodes(cluster, 1)
    picky = clique("x", 2, pod={"nodeSelector": {"place": "here"}})
    await cluster.create(
        cliqueset("a", picky, clique("w"), groups=[group("g", ["w"], 2)], template={"terminationDelay": "20s"})
    )
    await available(cluster, "a")
    before, pods = await uids(cluster), {pod["metadata"]["uid"] for pod in await cluster.pods()}
    was = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await cliques(cluster)}
    await cluster.sleep(6)  # what is lost within five seconds counts as never had
    await _label_nodes(cluster, 0)
    for pod in of(await cluster.pods(), "a-0-x"):
        await cluster.delete("v1", "Pod", pod["metadata"]["name"])
    await cluster.sleep(10)
    assert {one["metadata"]["uid"] for one in await cliques(cluster)} == set(was.values())

    async def anew() -> bool:
        now = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await cliques(cluster)}
        return set(now) == set(was) and not set(now.values()) & set(was.values())

    await cluster.until(anew, 60)
    assert await cluster.events("PodCliqueSetReplicaDeleteSuccessful")
    await _label_nodes(cluster, 1)
    await available(cluster, "a")
    assert not pods & {pod["metadata"]["uid"] for pod in await cluster.pods()}
    assert await uids(cluster) == before


async def _label_nodes(cluster: Cluster, count: int) -> None:
    nodes = cluster.client.kind("v1", "Node")
    for index, node in enumerate(sorted((await nodes.list()).items, key=lambda one: str(one["metadata"]["name"]))):
        place = "here" if index < count else None
        await nodes.patch(node["metadata"]["name"], {"metadata": {"labels": {"place": place}}})


async def test_g53_only_the_ill_replica_of_a_scaling_group_is_made_again(cluster: Cluster) -> None:
    await cluster.create(
        cliqueset(
            "a", clique("w"), clique("v"), groups=[group("g", ["w", "v"], 3, 2)], template={"terminationDelay": "15s"}
        )
    )
    await available(cluster, "a")
    was = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await cliques(cluster)}
    await cluster.sleep(6)
    (pod,) = of(await cluster.pods(), "a-0-g-0-w")
    await _cordon(cluster, True)
    await cluster.delete("v1", "Pod", pod["metadata"]["name"])

    async def changed() -> set[str]:
        now = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await cliques(cluster)}
        return {name for name in was if now.get(name) != was[name]}

    await cluster.until(changed, 60)
    await _cordon(cluster, False)
    await available(cluster, "a")
    assert await changed() == {"a-0-g-0-w", "a-0-g-0-v"}


async def _cordon(cluster: Cluster, on: bool) -> None:
    nodes = cluster.client.kind("v1", "Node")
    for node in (await nodes.list()).items:
        await nodes.patch(node["metadata"]["name"], {"spec": {"unschedulable": on or None}})


async def test_g54_what_was_never_scheduled_is_left_alone(cluster: Cluster) -> None:
    nowhere = {"nodeSelector": {"place": "nowhere"}}
    await cluster.create(
        cliqueset(
            "a",
            clique("x", 2, pod=nowhere),
            clique("w", pod=nowhere),
            groups=[group("g", ["w"])],
            template={"terminationDelay": "5s"},
        )
    )

    async def made() -> bool:
        return len(await cluster.pods()) == 3

    await cluster.until(made)
    before = await uids(cluster, pods=True)
    await cluster.sleep(15)
    assert await uids(cluster, pods=True) == before


async def test_g55_nothing_is_left_of_a_deleted_set(cluster: Cluster) -> None:
    scaling = {"autoScalingConfig": {"minReplicas": 1, "maxReplicas": 6}}
    await cluster.create(
        cliqueset("a", clique("x", 2, 1, spec=scaling), clique("w"), groups=[group("g", ["w"], 2)], replicas=2)
    )
    await available(cluster, "a", 2)
    await cluster.delete(GROVE, "PodCliqueSet", "a")
    await gone(cluster)


async def test_g58_template_sizes_count_at_birth_only(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("r"), clique("w"), groups=[group("g", ["w"], 2)]))
    await available(cluster, "a")
    new = [group("g", ["w"], 5)]
    await cluster.patch(GROVE, "PodCliqueSet", "a", {"spec": {"template": {"podCliqueScalingGroups": new}}})
    await cluster.sleep(5)
    found = await cluster.get(GROVE, "PodCliqueScalingGroup", "a-0-g")
    assert found is not None
    assert found["spec"]["replicas"] == 2
    assert len(await cluster.pods()) == 3


async def test_g60_somebody_else_owns_the_groups(cluster: Cluster) -> None:
    """The templates name a group, which a person has made."""
    link, workload, podgroup = await _own_group(cluster)
    await cluster.create(*[one for one in (workload, podgroup) if one])
    nine = [clique(f"c{index}", pod=link) for index in range(9)]
    await cluster.create(cliqueset("a", *nine))
    await cluster.running(9)
    (gang,) = await gangs(cluster)
    assert gang["metadata"]["labels"]["grove.io/external-workload-managed"] == "true"
    assert names(await cluster.workloads()) == ["mine"]


async def _own_group(c: Cluster) -> tuple[dict[str, object], dict[str, object], dict[str, object]]:
    (version, *_) = await c.client.discovery.versions("scheduling.k8s.io", "Workload")
    api, gang = f"scheduling.k8s.io/{version}", {"gang": {"minCount": 9}}
    meta = {"name": "mine"}
    if version == "v1alpha1":
        spec: dict[str, object] = {"podGroups": [{"name": "all", "policy": gang}]}
        link: dict[str, object] = {"workloadRef": {"name": "mine", "podGroup": "all"}}
        return link, {"apiVersion": api, "kind": "Workload", "metadata": meta, "spec": spec}, {}
    spec = {"podGroupTemplates": [{"name": "all", "schedulingPolicy": gang}]}
    if version == "v1alpha2":
        ref: dict[str, object] = {
            "podGroupTemplateRef": {"workload": {"workloadName": "mine", "podGroupTemplateName": "all"}}
        }
    else:
        ref = {"workloadRef": {"workloadName": "mine", "templateName": "all"}}
    return (
        {"schedulingGroup": {"podGroupName": "mine"}},
        {"apiVersion": api, "kind": "Workload", "metadata": meta, "spec": spec},
        {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": {"schedulingPolicy": gang, **ref}},
    )


async def test_g65_cliques_wait_for_those_before_them(cluster: Cluster) -> None:
    await cluster.create(
        cliqueset(
            "a",
            clique("r"),
            clique("lead"),
            clique("work"),
            groups=[group("g", ["lead", "work"], 3, 2)],
            template={"cliqueStartupType": "CliqueStartupTypeInOrder"},
        )
    )
    pods = await cluster.running(7)
    waits = {
        pod["metadata"]["labels"]["grove.io/podclique"]: [
            argument for one in pod["spec"].get("initContainers") or () for argument in one["args"]
        ]
        for pod in pods
    }
    both = ["--podcliques=a-0-g-0-lead:1", "--podcliques=a-0-g-1-lead:1"]
    assert waits == {
        "a-0-r": [],
        "a-0-g-0-lead": ["--podcliques=a-0-r:1"],
        "a-0-g-1-lead": ["--podcliques=a-0-r:1"],
        "a-0-g-0-work": both,
        "a-0-g-1-work": both,
        "a-0-g-2-lead": [],
        "a-0-g-2-work": ["--podcliques=a-0-g-2-lead:1"],
    }


async def test_a_gang_that_does_not_fit_starts_no_pod(cluster: Cluster) -> None:
    """On 1.37 the gang as a whole; before, each clique (GangNotAtomic)."""
    large = {"containers": [{"name": "main", "image": "tool:1", "resources": {"requests": {"cpu": "12"}}}]}
    await cluster.create(cliqueset("a", clique("r"), clique("x", 20, pod=large)))

    async def made() -> bool:
        return len(await cluster.pods()) == 21

    await cluster.until(made)
    await cluster.sleep(10)
    bound = [pod for pod in await cluster.pods() if pod["spec"].get("nodeName")]
    assert of(bound, "a-0-x") == []
    if await cluster.composites():
        assert bound == []
        (gang,) = await cluster.every(GANGS, "PodGang")
        assert not is_true(gang, "Scheduled")
    else:
        assert await cluster.events("GangNotAtomic")
