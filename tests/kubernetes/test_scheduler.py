"""The scheduler on a real API server of Kubernetes 1.37 without kube-scheduler: nodes are objects, nobody runs pods."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.scheduler.short import group_body, pod_body

from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.kube.lease import Leadership
from kohort.place.score import Profile
from kohort.scheduler import snapshot
from kohort.scheduler.loop import Scheduler, running
from kohort.scheduler.settings import SchedulerSettings
from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import require_binaries

Json = dict[str, Any]
NAME = "kohort"
SETTINGS = SchedulerSettings(
    names=frozenset({NAME, "second"}), profile=Profile(resources=("cpu",)), longest_backoff=1.0
)
GROUP = "scheduling.k8s.io"


@pytest.fixture(scope="module")
def env() -> Iterator[Environment]:
    """Of its own: one of the tests restarts its API server."""
    require_binaries("1.37")
    with Environment("1.37") as made:
        client = made.client()
        for value in (10, 100):
            body = {"apiVersion": f"{GROUP}/v1", "kind": "PriorityClass", "value": value}
            client.create(f"/apis/{GROUP}/v1/priorityclasses", {**body, "metadata": {"name": f"p{value}"}})
        yield made


class Cluster:
    """Short words for one namespace of a real server."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.nodes = client.resource("nodes")
        self.pods = client.resource("pods")
        self.groups = client.kind(f"{GROUP}/v1beta1", "PodGroup")
        self.composites = client.kind(f"{GROUP}/v1alpha3", "CompositePodGroup")

    async def node(self, name: str, cpu: str = "4", **labels: str) -> None:
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
        made = await self.nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": meta})
        amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
        made["status"] = {"allocatable": amounts, "capacity": amounts}
        await self.nodes.update(made, subresource="status")
        # The API server taints new nodes until a controller says that they are ready.
        await self.nodes.patch(name, {"spec": {"taints": None}})

    async def group(self, item: Json) -> None:
        composite = "composite" in item
        body = group_body(item, composite=composite)
        self._classes(body["spec"], item)
        if "preemptionPolicy" in item:
            body["spec"]["preemptionPolicy"] = item["preemptionPolicy"]
        if composite or "parent" in item:
            body["spec"]["workloadRef"] = {"workloadName": "w", "templateName": item.get("group") or item["composite"]}
        body["metadata"] = {"name": item.get("group") or item["composite"]}
        kind = "CompositePodGroup" if composite else "PodGroup"
        version = "v1alpha3" if composite else "v1beta1"
        resource = self.composites if composite else self.groups
        await resource.create({"apiVersion": f"{GROUP}/{version}", "kind": kind, **body}, self.namespace)

    async def pod(self, item: Json) -> None:
        body = pod_body({"schedulerName": NAME, **item})
        body.pop("status")
        self._classes(body["spec"], item)
        body["spec"]["terminationGracePeriodSeconds"] = item.get("grace", 0)
        body["spec"]["containers"][0]["image"] = "example.org/image"
        body["metadata"]["name"] = item["pod"]
        await self.pods.create({"apiVersion": "v1", "kind": "Pod", **body}, self.namespace)

    def _classes(self, spec: Json, item: Json) -> None:
        """Priorities are for the server to fill in."""
        spec.pop("priority")
        spec.pop("preemptionPolicy", None)
        if "priority" in item:
            spec["priorityClassName"] = item["priority"]

    async def gang(self, name: str, size: int, **more: Any) -> None:
        await self.group({"group": name, "gang": size, **more})
        more = {key: value for key, value in more.items() if key == "priority"}
        await asyncio.gather(*(self.pod({"pod": f"{name}-{i}", "in": name, "cpu": "1", **more}) for i in range(size)))

    async def bound(self) -> dict[str, str]:
        found = (await self.pods.list(self.namespace)).items
        return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in found if one["spec"].get("nodeName")}

    async def condition(self, resource: Any, name: str, kind: str) -> tuple[str, str] | None:
        status = (await resource.get(name, self.namespace)).get("status") or {}
        said = (one for one in status.get("conditions") or () if one["type"] == kind)
        return next(((one["status"], one["reason"]) for one in said), None)

    async def until(self, check: Callable[[], Any], seconds: float = 30.0) -> Any:
        """The answer of a check, once it is true."""
        answer = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (answer := await check()):
                    await asyncio.sleep(0.05)
        assert answer, f"not within {seconds} s; bound: {await self.bound()}"
        return answer


@contextlib.asynccontextmanager
async def cluster(env: Environment, name: str) -> AsyncIterator[Cluster]:
    """A namespace; all nodes go afterwards."""
    async with Client.connect(env.kubeconfig) as client:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await client.resource("namespaces").create(body)
        made = Cluster(client, name)
        try:
            yield made
        finally:
            await made.pods.delete_all(name, grace=0)
            for node in (await made.nodes.list()).items:
                await made.nodes.delete(node["metadata"]["name"])


async def test_a_gang_of_eight_waits_for_its_last_member_and_is_bound_as_one(env: Environment) -> None:
    async with cluster(env, "eight") as here, running(Scheduler(here.client, SETTINGS)) as scheduler:
        assert scheduler.release.minor == "1.37"
        for number in range(4):
            await here.node(f"n{number}", "2")
        await here.group({"group": "g", "gang": 8})
        for number in range(7):
            await here.pod({"pod": f"g-{number}", "in": "g", "cpu": "1"})
        await asyncio.sleep(0.5)
        assert await here.bound() == {}
        assert [one.reason for one in scheduler.core.pending()] == ["WaitingForMembers"]
        await here.pod({"pod": "g-7", "in": "g", "cpu": "1"})
        bound = await here.until(lambda: _when(here, 8))
        assert sorted(bound.values()) == sorted(f"n{n}" for n in range(4) for _ in range(2))
        said = await here.until(lambda: here.condition(here.groups, "g", "PodGroupInitiallyScheduled"))
        assert said == ("True", "Scheduled")
        text = scheduler.metrics.text().decode()
        assert 'scheduler_podgroup_schedule_attempts_total{profile="kohort,second",result="scheduled"} 1.0' in text
        events = (await here.client.kind("events.k8s.io/v1", "Event").list("eight")).items
        assert {"Scheduled"} <= {one["reason"] for one in events}


async def _when(here: Cluster, count: int) -> dict[str, str] | None:
    bound = await here.bound()
    return bound if len(bound) == count else None


async def test_a_gang_that_does_not_fit_says_why_and_is_woken_by_a_node(env: Environment) -> None:
    async with cluster(env, "why") as here, running(Scheduler(here.client, SETTINGS)):
        await here.node("n0", "2")
        await here.gang("g", 3)
        said = await here.until(lambda: here.condition(here.groups, "g", "PodGroupInitiallyScheduled"))
        assert said == ("False", "Unschedulable")
        said = await here.until(lambda: here.condition(here.pods, "g-0", "PodScheduled"))
        assert said == ("False", "Unschedulable")
        conditions = (await here.groups.get("g", "why"))["status"]["conditions"]
        (message,) = (one["message"] for one in conditions if one["type"] == "PodGroupInitiallyScheduled")
        assert "InsufficientResource" in message
        assert await here.bound() == {}
        await here.node("n1", "2")
        await here.until(lambda: _when(here, 3))

        async def true() -> bool:
            return await here.condition(here.groups, "g", "PodGroupInitiallyScheduled") == ("True", "Scheduled")

        await here.until(true)


async def test_a_tree_is_placed_rack_by_rack(env: Environment) -> None:
    async with cluster(env, "tree") as here, running(Scheduler(here.client, SETTINGS)):
        for zone in ("z1", "z2"):
            for rack in ("r1", "r2"):
                for number in range(2 if zone == "z2" else 1):
                    await here.node(f"{zone}-{rack}-{number}", "1", zone=zone, rack=f"{zone}-{rack}")
        await here.group({"composite": "root", "gang": 2, "topology": "zone"})
        for leaf in ("a", "b"):
            await here.gang(leaf, 2, parent="root", topology="rack")
        bound = await here.until(lambda: _when(here, 4))
        racks = {leaf: {bound[f"{leaf}-{n}"].rsplit("-", 1)[0] for n in range(2)} for leaf in ("a", "b")}
        assert sorted(rack for found in racks.values() for rack in found) == ["z2-r1", "z2-r2"]
        said = await here.until(lambda: here.condition(here.composites, "root", "CompositePodGroupInitiallyScheduled"))
        assert said == ("True", "Scheduled")


async def test_a_more_important_gang_preempts(env: Environment) -> None:
    async with cluster(env, "preempt") as here, running(Scheduler(here.client, SETTINGS)):
        await here.node("n0", "3")
        await here.gang("low", 3, priority="p10", disruption="all")
        await here.until(lambda: _when(here, 3))
        await here.gang("high", 2, priority="p100")

        async def taken() -> bool:
            return set(await here.bound()) == {"high-0", "high-1"}

        await here.until(taken)
        said = await here.condition(here.groups, "low", "DisruptionTarget")
        assert said == ("True", "PreemptionByScheduler")


async def test_a_restart_of_the_api_server_in_the_middle(env: Environment) -> None:
    async with cluster(env, "restart") as here, running(Scheduler(here.client, SETTINGS)):
        for number in range(10):
            await here.node(f"n{number}", "8")
        await here.gang("before", 4)
        await here.until(lambda: _when(here, 4))
        await here.group({"group": "across", "gang": 40})
        for number in range(39):
            await here.pod({"pod": f"across-{number}", "in": "across", "cpu": "1"})
        await here.pod({"pod": "across-39", "in": "across", "cpu": "1"})
        await asyncio.to_thread(env.restart, env.gates)
        await here.until(lambda: _when(here, 44), 90.0)
        await here.gang("after", 4)
        await here.until(lambda: _when(here, 48), 60.0)


async def test_a_scheduler_that_starts_later_finds_the_same(env: Environment) -> None:
    """Backlog: bound and waiting gangs, listed once; what it shows of its state can be loaded again."""
    async with cluster(env, "later") as here:
        await here.node("n0", "4")
        await here.gang("one", 3)
        await here.gang("two", 3)
        async with running(Scheduler(here.client, SETTINGS)):
            await here.until(lambda: _when(here, 3))
        first = await here.bound()
        async with running(Scheduler(here.client, SETTINGS)) as scheduler:

            async def tried() -> bool:
                return [one.reason for one in scheduler.core.pending()] == ["InsufficientResource"]

            await here.until(tried)
            assert await here.bound() == first
            loaded = snapshot.load(json.loads(json.dumps(scheduler.state())))
            loaded.sync(0.0)
            assert {entry.key for entry in loaded.queue} == {entry.key for entry in scheduler.core.queue}


async def test_of_two_schedulers_one_leads(env: Environment) -> None:
    async with cluster(env, "leading") as here, Client.connect(env.kubeconfig) as other:
        one, two = (Scheduler(client, SETTINGS, lease=_lease(client)) for client in (here.client, other))
        async with running(one):
            waiting = asyncio.create_task(two.run())
            try:
                await here.node("n0", "4")
                await here.gang("g", 2)
                await here.until(lambda: _when(here, 2))
                assert one.lease is not None
                assert one.lease.is_leader
                assert not two.started.is_set()
            finally:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)


def _lease(client: Client) -> Leadership:
    return Leadership(client, "kohort-scheduler", namespace="leading")


async def test_a_binding_of_a_pod_that_is_gone_is_refused_by_uid(env: Environment) -> None:
    """What makes repeated bindings safe: the server compares the uid."""
    async with cluster(env, "uid") as here:
        await here.node("n0", "4")
        await here.pod({"pod": "p", "cpu": "1"})
        with pytest.raises(ApiError) as refused:
            await here.pods.bind("p", "n0", "uid", uid="00000000-0000-0000-0000-000000000000")
        assert refused.value.conflict


async def test_python_m_kohort_scheduler(env: Environment, tmp_path: Path) -> None:
    """The entry: it schedules, shows its state and its numbers, and ends when told to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = (sys.executable, "-m", "kohort.scheduler", "--kubeconfig", str(env.kubeconfig))
    async with cluster(env, "entry") as here, aiohttp.ClientSession() as session:
        token = tmp_path / "token"
        token.write_text("secret")
        more = ("--listen", f"127.0.0.1:{port}", "--leader-elect", "--debug-token-file", str(token))
        process = await asyncio.create_subprocess_exec(*argv, *more)
        try:
            await here.node("n0", "4")
            await here.gang("g", 2)
            await here.until(lambda: _when(here, 2))
            headers = {"Authorization": "Bearer secret"}
            async with session.get(f"http://127.0.0.1:{port}/debug/state", headers=headers) as answer:
                state = await answer.json()
            assert (state["release"], state["leader"], state["pending"]) == ("1.37", True, [])
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                assert "scheduler_podgroup_schedule_attempts_total" in await answer.text()
            async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                assert answer.status == 200
        finally:
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 15) == 0


async def test_a_volume_is_chosen_and_waited_for_before_the_pod_is_bound(env: Environment) -> None:
    """The test stands for the volume controllers: nobody else runs here."""
    async with cluster(env, "volumes") as here, running(Scheduler(here.client, SETTINGS)):
        classes, volumes = (
            here.client.resource("storageclasses.storage.k8s.io"),
            here.client.resource("persistentvolumes"),
        )
        claims = here.client.resource("persistentvolumeclaims")
        for name in ("n0", "n1"):
            await here.node(name)
        wait = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
        kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
        await classes.create({**kind, "metadata": {"name": "local"}, **wait})
        rule = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
        spec = {
            "storageClassName": "local",
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}},
        }
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": spec}
        await volumes.create(volume)
        try:
            wanted = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}
            wanted["resources"] = {"requests": {"storage": "5Gi"}}  # type: ignore[assignment]
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": wanted}
            await claims.create(claim, "volumes")
            await here.pod({"pod": "p", "cpu": "1", "claim": "c"})

            async def given() -> Any:
                return (await volumes.get("disk"))["spec"].get("claimRef")

            assert (await here.until(given))["name"] == "c"
            assert await here.bound() == {}
            await claims.patch("c", {"spec": {"volumeName": "disk"}}, "volumes")
            assert await here.until(lambda: _when(here, 1)) == {"p": "n1"}
        finally:
            await volumes.delete("disk")
            await classes.delete("local")
