"""Namespaces, pods and pod groups on their way out."""

import json
from typing import Any

import pytest
from tests.server.controllers.world import Object, World

from kohort.server.controllers import ALL, ControllerManager, GarbageCollector, NamespaceController, PodGroupProtection

POD: Object = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
PODS = "/api/v1/namespaces/ns/pods"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/ns/podgroups"


def pod(name: str, **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {**POD["spec"], **spec}}


# ---- namespaces


async def test_a_namespace_is_emptied_and_goes() -> None:
    async with World() as world:
        await world.config_map("a")
        await world.post(PODS, pod("p"))
        answer = await world.delete("/api/v1/namespaces/ns")
        assert answer["status"]["phase"] == "Terminating"
        await world.quiet()
        assert await world.get("/api/v1/namespaces/ns") is None
        assert await world.get("/api/v1/namespaces/ns/configmaps/a") is None


async def test_pods_of_a_namespace_go_first() -> None:
    async with World() as world:
        await world.config_map("a")
        await world.post(PODS, {**POD, "metadata": {"name": "p", "finalizers": ["a.io/hold"]}})
        await world.delete("/api/v1/namespaces/ns")
        await world.quiet()
        held = await world.get(f"{PODS}/p")
        assert held is not None
        assert held["metadata"]["deletionTimestamp"]
        kept = await world.get("/api/v1/namespaces/ns/configmaps/a")
        assert kept is not None
        assert "deletionTimestamp" not in kept["metadata"]
        await world.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
        await world.quiet()
        assert await world.get("/api/v1/namespaces/ns") is None


async def test_a_namespace_says_what_it_waits_for() -> None:
    async with World() as world:
        for name in ("a", "b"):
            await world.config_map(name, finalizers=["a.io/hold"])
        await world.delete("/api/v1/namespaces/ns")
        await world.quiet()
        found = await world.get("/api/v1/namespaces/ns")
        assert found is not None
        conditions = {
            one["type"]: (one["status"], one["reason"], one["message"]) for one in found["status"]["conditions"]
        }
        assert conditions == {
            "NamespaceDeletionDiscoveryFailure": (
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            "NamespaceDeletionGroupVersionParsingFailure": (
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            "NamespaceDeletionContentFailure": (
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            "NamespaceContentRemaining": (
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 2 resource instances",
            ),
            "NamespaceFinalizersRemaining": (
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: a.io/hold in 2 resource instances",
            ),
        }
        code, refused = await world.ask("POST", "/api/v1/namespaces/ns/configmaps", {"metadata": {"name": "late"}})
        assert (code, refused["reason"]) == (403, "Forbidden")
        for name in ("a", "b"):
            await world.patch(f"/api/v1/namespaces/ns/configmaps/{name}", {"metadata": {"finalizers": None}})
        await world.quiet()
        assert await world.get("/api/v1/namespaces/ns") is None


async def test_a_namespace_with_a_finalizer_of_its_own_stays_empty() -> None:
    async with World() as world:
        await world.patch("/api/v1/namespaces/ns", {"metadata": {"finalizers": ["a.io/hold"]}})
        await world.delete("/api/v1/namespaces/ns")
        await world.quiet()
        found = await world.get("/api/v1/namespaces/ns")
        assert found is not None
        assert not found["spec"].get("finalizers")
        await world.patch("/api/v1/namespaces/ns", {"metadata": {"finalizers": None}})
        await world.quiet()
        assert await world.get("/api/v1/namespaces/ns") is None


async def test_an_ending_namespace_is_found_after_a_restart() -> None:
    async with World() as world:
        await world.config_map("a")
        await world.controllers.stop()
        await world.delete("/api/v1/namespaces/ns")
        world.controllers = type(world.controllers)(world.api, world.clock)
        world.controllers.start()
        await world.quiet()
        assert await world.get("/api/v1/namespaces/ns") is None


# ---- pods


async def test_a_pod_on_a_node_has_its_time() -> None:
    async with World() as world:
        await world.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        await world.post(PODS, pod("p", nodeName="n", terminationGracePeriodSeconds=30))
        answer = await world.delete(f"{PODS}/p")
        assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
        await world.quiet(30)
        assert await world.names("pods") == {"p"}
        await world.quiet(2)
        assert await world.names("pods") == set()


async def test_less_time_may_be_given_later_not_more() -> None:
    async with World() as world:
        await world.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        await world.post(PODS, pod("p", nodeName="n", terminationGracePeriodSeconds=300))
        await world.delete(f"{PODS}/p")
        await world.quiet(10)
        await world.delete(f"{PODS}/p", gracePeriodSeconds=5)
        await world.quiet(4)
        assert await world.names("pods") == {"p"}
        await world.quiet(3)
        assert await world.names("pods") == set()


async def test_a_pod_on_a_node_that_is_not_there_goes_at_once() -> None:
    async with World() as world:
        await world.post(PODS, pod("p", nodeName="gone", terminationGracePeriodSeconds=30))
        await world.delete(f"{PODS}/p")
        await world.quiet()
        assert await world.names("pods") == set()


async def test_a_pod_with_a_finalizer_waits_for_it_after_its_time() -> None:
    async with World() as world:
        await world.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        body = pod("p", nodeName="n", terminationGracePeriodSeconds=3)
        body["metadata"]["finalizers"] = ["a.io/hold"]
        await world.post(PODS, body)
        await world.delete(f"{PODS}/p")
        await world.quiet(5)
        found = await world.get(f"{PODS}/p")
        assert found is not None
        assert found["metadata"]["deletionGracePeriodSeconds"] == 0
        await world.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
        await world.quiet()
        assert await world.names("pods") == set()


async def test_without_the_pod_job_somebody_else_must_end_it() -> None:
    async with World((GarbageCollector, NamespaceController, PodGroupProtection)) as world:
        await world.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        await world.post(PODS, pod("p", nodeName="n", terminationGracePeriodSeconds=3))
        await world.delete(f"{PODS}/p")
        await world.quiet(60)
        assert await world.names("pods") == {"p"}


# ---- pod groups


def group(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}


async def test_a_group_without_pods_goes_at_once() -> None:
    async with World() as world:
        made = await world.post(GROUPS, group("g"))
        assert made["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
        await world.delete(f"{GROUPS}/g")
        await world.quiet()
        assert await world.get(f"{GROUPS}/g") is None


@pytest.mark.parametrize("end", ["Succeeded", "Failed", "deleted"])
async def test_a_group_waits_for_its_pods(end: str) -> None:
    async with World() as world:
        await world.post(GROUPS, group("g"))
        for name in ("p", "q"):
            await world.post(PODS, pod(name, schedulingGroup={"podGroupName": "g"}))
        await world.post(PODS, pod("other", schedulingGroup={"podGroupName": "h"}))
        await world.delete(f"{GROUPS}/g")
        await world.delete(f"{PODS}/q")
        await world.quiet()
        assert await world.get(f"{GROUPS}/g") is not None
        if end == "deleted":
            await world.delete(f"{PODS}/p")
        else:
            await world.patch(f"{PODS}/p/status", {"status": {"phase": end}})
        await world.quiet()
        assert await world.get(f"{GROUPS}/g") is None


async def test_a_group_keeps_other_finalizers() -> None:
    async with World() as world:
        body = group("g")
        body["metadata"]["finalizers"] = ["a.io/hold"]
        await world.post(GROUPS, body)
        await world.delete(f"{GROUPS}/g")
        await world.quiet()
        found = await world.get(f"{GROUPS}/g")
        assert found is not None
        assert found["metadata"]["finalizers"] == ["a.io/hold"]


@pytest.mark.parametrize("finalizers", [[], ["a.io/hold"]])
async def test_a_server_that_was_killed_between_mark_and_deletion_deletes_at_its_next_start(
    finalizers: list[str],
) -> None:
    async with World() as world:
        body = pod("p")
        body["metadata"]["finalizers"] = finalizers
        await world.post(PODS, body)
        await world.controllers.stop()
        head = world.store.table("pods").head("ns", "p")
        assert head is not None
        stored = json.loads(head.value)
        stored["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
        await world.store.write("pods", "ns", "p", lambda _: json.dumps(stored).encode(), expect=head)
        world.controllers = ControllerManager(world.api, world.clock, ALL)
        world.controllers.start()
        await world.quiet(2)
        assert await world.names("pods") == ({"p"} if finalizers else set())


# ---- pods that nobody runs


async def test_a_pod_that_never_had_a_node_and_is_held_has_failed_after_a_while() -> None:
    async with World() as world:
        await world.post(PODS, {**POD, "metadata": {"name": "p", "finalizers": ["a.io/hold"]}})
        await world.delete(f"{PODS}/p")
        await world.quiet(15)
        found = await world.get(f"{PODS}/p")
        assert found is not None
        assert found["status"]["phase"] == "Pending"
        await world.quiet(10)
        found = await world.get(f"{PODS}/p")
        assert found is not None
        assert (found["status"]["phase"], found["status"]["observedGeneration"]) == ("Failed", 2)


async def test_a_pod_that_has_a_node_is_left_to_its_kubelet() -> None:
    async with World() as world:
        await world.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        await world.post(PODS, {**pod("p", nodeName="n"), "metadata": {"name": "p", "finalizers": ["a.io/hold"]}})
        await world.delete(f"{PODS}/p")
        await world.quiet(25)
        found = await world.get(f"{PODS}/p")
        assert found is not None
        assert found["status"]["phase"] == "Pending"
