"""Which Jobs get a Workload and a PodGroup, and what stands in them: spec job 8.1 and 8.2."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.jobs import (
    BASIC,
    JOB,
    TEMPLATE,
    active,
    complete,
    controlled_by,
    cronjob,
    gang,
    group_of,
    in_group,
    job,
    least,
    live,
    one_group,
    owner,
    pod_template,
    policy,
    reasons,
    status,
    told,
    ungrouped,
)

from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster

only_36 = pytest.mark.releases("1.36")
only_37 = pytest.mark.releases("1.37")
ours = pytest.mark.jobs
both = pytest.mark.releases("1.36", "1.37")


@pytest.fixture
def pools() -> tuple[Pool, ...]:
    return (Pool(name="node", count=8, topology=(Level("example.com/rack", 2),)),)


# ---- 8.1


@only_36
async def test_t_01_a_job_of_the_gang_shape_is_a_gang(cluster: Cluster) -> None:
    await cluster.create(job("five", 5))
    workload, group = await in_group(cluster, "five", 5)
    assert least(workload) == least(group) == 5
    found = await reasons(cluster)
    assert found.count("WorkloadCreated") == 1


@only_36
@pytest.mark.parametrize(
    ("scenario", "pods", "more"),
    [
        ("T-02", 5, {"mode": "NonIndexed"}),
        ("T-03", 1, {}),
        ("T-04", 3, {"completions": 9}),
    ],
)
async def test_t_02_t_03_t_04_other_shapes_are_not(
    cluster: Cluster, scenario: str, pods: int, more: dict[str, Any]
) -> None:
    await cluster.create(job("plain", pods, **more))
    await ungrouped(cluster, "plain", pods)


@only_36
async def test_t_05_no_completion_mode_is_not_indexed(cluster: Cluster) -> None:
    body = job("modeless", 5)
    del body["spec"]["completionMode"]
    await cluster.create(body)
    await ungrouped(cluster, "modeless", 5)


@both
async def test_t_06_t_15_a_group_in_the_template_is_kept(cluster: Cluster) -> None:
    body = job("guest", 5, template=pod_template(schedulingGroup={"podGroupName": "ext"}))
    if await cluster.serves("scheduling.k8s.io/v1beta1", "PodGroup"):
        body["spec"]["scheduling"] = policy(2)
    await cluster.create(body)
    await ungrouped(cluster, "guest", 5, "ext")
    assert {group_of(pod) for pod in await live(cluster, "guest")} == {"ext"}


@only_36
async def test_t_07_an_owner_does_not_matter_in_1_36(cluster: Cluster) -> None:
    await cluster.create(job("child", 5, meta={"ownerReferences": [await owner(cluster)]}))
    await in_group(cluster, "child", 5)


@only_37
async def test_t_08_every_job_that_stands_alone_has_a_basic_group(cluster: Cluster) -> None:
    await cluster.create(job("five", 5))
    workload, group = await in_group(cluster, "five", 5)
    assert least(workload) is least(group) is None
    found = await reasons(cluster)
    assert found.count("WorkloadCreated") == found.count("PodGroupCreated") == 1


@only_37
async def test_t_09_also_a_single_pod(cluster: Cluster) -> None:
    await cluster.create(job("one", 1, mode="NonIndexed"))
    _, group = await in_group(cluster, "one", 1)
    assert least(group) is None


@only_37
async def test_t_10_a_work_queue_can_be_a_gang(cluster: Cluster) -> None:
    await cluster.create(gang("queue", 3, mode="NonIndexed", completions=None))
    _, group = await in_group(cluster, "queue", 3)
    assert least(group) == 3


@only_37
async def test_t_11_nothing_to_complete(cluster: Cluster) -> None:
    await cluster.create(job("nothing", 2, mode="NonIndexed", completions=0))
    await complete(cluster, "nothing")
    _, group = await one_group(cluster)
    assert least(group) is None
    assert await cluster.pods() == []


@only_37
async def test_t_12_a_gang_of_none(cluster: Cluster) -> None:
    await cluster.create(gang("none", 0, mode="NonIndexed", completions=1))
    await told(cluster, "PodGroupCreated")
    _, group = await one_group(cluster)
    assert least(group) == 1
    assert await cluster.pods() == []


@only_37
@pytest.mark.parametrize("block", [{}, BASIC])
async def test_t_13_no_policy_is_basic(cluster: Cluster, block: dict[str, Any]) -> None:
    await cluster.create(job("mild", 2, scheduling=block))
    _, group = await in_group(cluster, "mild", 2)
    assert least(group) is None


class TestGateOff:
    @pytest.fixture
    def gates(self) -> dict[str, bool]:
        return {"WorkloadWithJob": False}

    @only_37
    async def test_t_14_the_block_is_dropped(self, cluster: Cluster) -> None:
        made = await cluster.create(gang("five", 5))
        assert "scheduling" not in made["spec"]
        await ungrouped(cluster, "five", 5)


@only_37
async def test_t_16_an_owner_that_does_not_control(cluster: Cluster) -> None:
    reference = await owner(cluster, controller=False)
    await cluster.create(job("loose", 2, meta={"ownerReferences": [reference]}))
    await in_group(cluster, "loose", 2)


@only_37
async def test_t_17_a_controller_above_decides(cluster: Cluster) -> None:
    await cluster.create(gang("child", 2, meta={"ownerReferences": [await owner(cluster)]}))
    await ungrouped(cluster, "child", 2)


@only_37
@ours
async def test_t_18_runs_of_a_cronjob_have_groups(cluster: Cluster) -> None:
    await cluster.create(cronjob("tick", "* * * * *", gang("x", 2, run="1")["spec"]))

    async def ran() -> Any:
        return [one for one in await cluster.every(*JOB) if (one.get("status") or {}).get("succeeded") == 2]

    (run, *_) = await cluster.until(ran)
    owners = {one["metadata"]["ownerReferences"][0]["name"]: one for one in await cluster.pod_groups()}
    assert least(owners[run["metadata"]["name"]]) == 2


@only_37
async def test_t_19_the_annotation_means_nothing_without_an_owner(cluster: Cluster) -> None:
    await cluster.create(gang("alone", 2, meta={"annotations": {TEMPLATE: "workers"}}))
    workload, _ = await in_group(cluster, "alone", 2)
    assert workload["spec"]["controllerRef"]["name"] == "alone"


@both
async def test_t_20_another_manager_is_left_alone(cluster: Cluster) -> None:
    await cluster.create(job("theirs", 3, managedBy="corp.example/runner"))
    await cluster.sleep(3)
    assert await cluster.workloads() == []
    assert await cluster.pods() == []
    assert await status(cluster, "theirs") == {}


# ---- 8.2


def encoded_hash(*parts: str) -> str:
    """FNV-1a of 32 bit in decimal, with the digits that names may have (spec job 2.2)."""
    number = 2166136261
    for byte in "".join(parts).encode():
        number = (number ^ byte) * 16777619 % 2**32
    letters = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(letters[ord(digit) % 27] for digit in str(number))


@both
async def test_t_21_t_22_names_follow_from_the_uid(cluster: Cluster) -> None:
    assert encoded_hash("(types.UID)3f1c9a52-7d0e-4b61-8a43-0c5e2f9d1b77") == "8564d45897"
    seen = set()
    for _ in range(2):
        made = await cluster.create(job("trainer", 3))
        workload, group = await in_group(cluster, "trainer", 3)
        name = f"trainer-{encoded_hash('(types.UID)' + made['metadata']['uid'])}"
        assert workload["metadata"]["name"] == name
        (template,) = workload["spec"]["podGroupTemplates"]
        assert template["name"] == "trainer-pgt-0"
        assert group["metadata"]["name"] == f"{name}-trainer-pgt-0-{encoded_hash(name, 'trainer-pgt-0')}"
        seen.add(name)
        await cluster.delete(*JOB, "trainer", propagation="Background")
        await cluster.gone(*JOB)
        await cluster.gone("v1", "Pod")
        await cluster.until(lambda: _no_groups(cluster))
    assert len(seen) == 2


async def _no_groups(cluster: Cluster) -> bool:
    return not await cluster.workloads() and not await cluster.pod_groups()


@only_37
async def test_t_24_everything_at_once(cluster: Cluster) -> None:
    classes = cluster.client.kind("scheduling.k8s.io/v1", "PriorityClass")
    name = f"batch-high-{cluster.namespace}"
    await classes.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7000}
    )
    block = {
        **policy(),
        "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
        "disruptionMode": {"all": {}},
        "resourceClaims": [{"name": "nic", "resourceClaimTemplateName": "nic-tpl"}],
    }
    await cluster.create(job("solver", 6, scheduling=block, template=pod_template(priorityClassName=name)))
    workload, group = await in_group(cluster, "solver", 6)
    for found in (workload["spec"]["podGroupTemplates"][0], group["spec"]):
        assert found["schedulingPolicy"] == {"gang": {"minCount": 6}}
        assert found["schedulingConstraints"]["topology"] == [{"key": "example.com/rack"}]
        assert found["disruptionMode"] == {"all": {}}
        assert found["resourceClaims"] == [{"name": "nic", "resourceClaimTemplateName": "nic-tpl"}]
        assert found["priorityClassName"] == name
    assert group["spec"]["priority"] == 7000
    assert all("resourceClaims" not in pod["spec"] for pod in await live(cluster, "solver"))


@both
async def test_t_25_owners(cluster: Cluster) -> None:
    made = await cluster.create(job("solver", 2))
    workload, group = await in_group(cluster, "solver", 2)
    of_job = {**controlled_by(made), "blockOwnerDeletion": True}
    assert workload["metadata"]["ownerReferences"] == [of_job]
    names = {"apiVersion": workload["apiVersion"], "kind": "Workload"}
    of_workload = {**names, "name": workload["metadata"]["name"], "uid": workload["metadata"]["uid"]}
    assert group["metadata"]["ownerReferences"] == [of_job, of_workload]
    for pod in await live(cluster, "solver"):
        assert pod["metadata"]["ownerReferences"] == [of_job]


@both
async def test_t_26_what_the_server_adds_to_a_group(cluster: Cluster) -> None:
    await cluster.create(job("solver", 2))
    _, group = await in_group(cluster, "solver", 2)
    assert group["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    assert group["spec"]["disruptionMode"] in ({"single": {}}, "Pod")
    assert group["spec"]["priority"] == 0


class TestNoTopology:
    @pytest.fixture
    def gates(self) -> dict[str, bool]:
        return {"TopologyAwareWorkloadScheduling": False, "CompositePodGroup": False}

    @only_37
    async def test_t_27_the_job_keeps_what_its_groups_lose(self, cluster: Cluster) -> None:
        block = {**policy(), "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}}
        made = await cluster.create(job("solver", 2, scheduling=block))
        assert made["spec"]["scheduling"]["schedulingConstraints"] == block["schedulingConstraints"]
        workload, group = await in_group(cluster, "solver", 2)
        assert not group["spec"].get("schedulingConstraints")
        assert not workload["spec"]["podGroupTemplates"][0].get("schedulingConstraints")
        await cluster.running(2)


VIP = job("vip", 2, scheduling=policy(), template=pod_template(priorityClassName="no-such-class"))


@only_37
async def test_t_28_an_unknown_priority_class(cluster: Cluster) -> None:
    await cluster.create(VIP)
    await cluster.until(cluster.workloads)
    await cluster.sleep(5)
    assert await cluster.pods() == []
    assert await cluster.pod_groups() == []
    assert len(await cluster.workloads()) == 1


@only_37
@ours
async def test_t_28_an_unknown_priority_class_is_told(cluster: Cluster) -> None:
    await cluster.create(VIP)
    await told(cluster, "FailedPodGroupCreate")


@only_37
@pytest.mark.parametrize(
    "name", [pytest.param("nightly.report", marks=ours), pytest.param("b" * 60, marks=ours), "c" * 57]
)
async def test_t_29_names_that_make_no_label(cluster: Cluster, name: str) -> None:
    await cluster.create(gang(name, 2, mode="NonIndexed"))
    await active(cluster, name, 2)
    _, group = await one_group(cluster)
    assert {group_of(pod) for pod in await cluster.pods()} == {group["metadata"]["name"]}


@both
async def test_t_30_workload_then_group_then_pods(cluster: Cluster) -> None:
    await cluster.create(job("solver", 3))
    workload, group = await in_group(cluster, "solver", 3)
    pods = await live(cluster, "solver")
    assert workload["metadata"]["creationTimestamp"] <= group["metadata"]["creationTimestamp"]
    assert all(group["metadata"]["creationTimestamp"] <= pod["metadata"]["creationTimestamp"] for pod in pods)
    owners = group["metadata"]["ownerReferences"]
    assert workload["metadata"]["uid"] in {one["uid"] for one in owners}, "it was there to be named"
