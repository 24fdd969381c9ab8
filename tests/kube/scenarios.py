"""What a client does all day, as functions: the tests run them against real Kubernetes and against the embedded server.

Each takes a client whose namespace is new and empty.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from kohort.kube.client import Client
from kohort.kube.codec import Meta
from kohort.kube.discovery import Discovery
from kohort.kube.errors import ApiError
from kohort.kube.events import Recorder
from kohort.kube.informer import Informer
from kohort.kube.lease import Leadership

CONTAINERS = [{"name": "c", "image": "example.org/c"}]


class Pod(msgspec.Struct):
    metadata: Meta


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str) -> dict[str, Any]:
    spec = {"containers": CONTAINERS, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


async def eventually(true: Callable[[], bool], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.05)


async def create_read_update_patch_delete(client: Client) -> None:
    maps = client.resource("configmaps")
    made = await maps.create(config_map("a", x="1"))
    assert made == await maps.get("a")
    changed = await maps.update({**made, "data": {"x": "2"}})
    with pytest.raises(ApiError) as stale:
        await maps.update({**made, "data": {"x": "3"}})
    assert (stale.value.conflict, stale.value.reason) == (True, "Conflict")
    assert (await maps.patch("a", {"data": {"y": "3"}}))["data"] == {"x": "2", "y": "3"}
    assert (await maps.patch("a", [{"op": "remove", "path": "/data/x"}], kind="json"))["data"] == {"y": "3"}
    assert (await maps.patch("a", {"data": {"z": "4"}}, kind="strategic"))["data"] == {"y": "3", "z": "4"}
    assert (await maps.patch("a", {"data": None}, dry_run=True)).get("data") is None
    assert (await maps.get("a"))["data"] == {"y": "3", "z": "4"}
    with pytest.raises(ApiError) as exists:
        await maps.create(config_map("a"))
    assert exists.value.already_exists
    with pytest.raises(ApiError) as other:
        await maps.delete("a", uid="00000000-0000-0000-0000-000000000000")
    assert other.value.code == 409
    assert (await maps.delete("a", uid=changed["metadata"]["uid"], propagation="Background"))["status"] == "Success"
    with pytest.raises(ApiError) as gone:
        await maps.get("a")
    assert gone.value.not_found


async def refusals_carry_causes(client: Client) -> None:
    with pytest.raises(ApiError) as caught:
        await client.resource("pods").create({"metadata": {"name": "X"}, "spec": {"containers": []}})
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert {cause.field for cause in caught.value.causes} >= {"metadata.name", "spec.containers"}


async def lists_in_pages_and_by_selector(client: Client) -> None:
    maps = client.resource("configmaps")
    for number in range(7):
        body = config_map(f"m{number}")
        body["metadata"]["labels"] = {"odd": str(number % 2)}
        await maps.create(body)
    space = client.namespace
    whole = await maps.list(space, labels="odd", page=3)
    assert [one["metadata"]["name"] for one in whole.items] == [f"m{number}" for number in range(7)]
    assert len((await maps.list(space, labels="odd=1", page=1)).items) == 3
    assert len((await maps.list(space, fields="metadata.name=m3")).items) == 1
    listed = next(one for one in whole.items if one["metadata"]["name"] == "m3")
    assert listed == await maps.get("m3"), "the same object however it was read"
    await maps.delete_all(labels="odd=1")
    assert len((await maps.list(space, labels="odd")).items) == 4


async def bind_evict_scale_and_status(client: Client) -> None:
    pods = client.resource("pods")
    node = f"node-of-{client.namespace}"
    await client.resource("nodes").create({"metadata": {"name": node}})
    made = await pods.create(pod("p"))
    with pytest.raises(ApiError) as other:
        await pods.bind("p", node, uid="00000000-0000-0000-0000-000000000000")
    assert other.value.code == 409
    await pods.bind("p", node, uid=made["metadata"]["uid"])
    assert (await pods.get("p"))["spec"]["nodeName"] == node
    await pods.patch("p", {"status": {"phase": "Running"}}, subresource="status")
    assert (await pods.get("p"))["status"]["phase"] == "Running"
    await pods.evict("p", grace=0)
    with pytest.raises(ApiError):
        await pods.get("p")
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": CONTAINERS}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    sets = client.kind("apps/v1", "ReplicaSet")
    await sets.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "w"}, "spec": spec})
    assert (await sets.scale("w", 4))["spec"]["replicas"] == 4
    assert (await sets.scale("w"))["spec"]["replicas"] == 4


async def apply_owns_conflicts_and_takes_over(client: Client) -> None:
    maps = client.resource("configmaps")
    await maps.apply(config_map("a", x="1", y="1"), manager="first")
    await maps.apply(config_map("a", z="1"), manager="second")
    with pytest.raises(ApiError) as caught:
        await maps.apply(config_map("a", x="2"), manager="second")
    assert caught.value.conflict
    assert [(cause.reason, cause.field) for cause in caught.value.causes] == [("FieldManagerConflict", ".data.x")]
    assert '"first"' in caught.value.causes[0].message
    taken = await maps.apply(config_map("a", x="2"), manager="second", force=True)
    assert taken["data"] == {"x": "2", "y": "1"}, "z is no longer applied by anybody"
    after = await maps.apply(config_map("a", y="1"), manager="first")
    assert after["data"] == {"x": "2", "y": "1"}


async def both_forms_of_discovery_say_the_same(client: Client) -> None:
    class Plain(Discovery):
        async def _document(self, path: str, accept: str = "") -> dict[str, Any]:
            return await super()._document(path, "application/json")

    aggregated, plain = await client.discovery.all(), await Plain(client.calls).all()
    assert {(one.api_version, one.plural): one for one in plain} == {
        (one.api_version, one.plural): one for one in aggregated
    }
    assert (await client.discovery.versions("scheduling.k8s.io", "PodGroup"))[0] == "v1beta1"
    assert (await client.resource("po").type()).kind == "Pod"


async def a_watch_goes_on_from_any_version(client: Client) -> None:
    maps = client.resource("configmaps")
    first = await maps.create(config_map("a", x="1"))
    await maps.patch("a", {"data": {"x": "2"}})
    await maps.delete("a")

    async def three() -> list[tuple[str, str]]:
        seen = []
        version = str(int(first["metadata"]["resourceVersion"]) - 1)
        # By name: the namespace gets a ConfigMap with the authority of the cluster, a moment before or after ours.
        watch = maps.watch(client.namespace, fields="metadata.name=a", version=version, seconds=5)
        async with aclosing(watch) as events:
            async for event in events:
                assert event.object is not None
                seen.append((event.type, event.object["data"]["x"]))
                if len(seen) == 3:
                    break
        return seen

    for _ in range(2):
        assert await three() == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


async def an_informer_follows(client: Client, *, streaming: bool = True) -> None:
    pods = client.resource("pods", Pod)
    for number in range(5):
        await pods.create(pod(f"p{number}"))
    diary: list[str] = []
    informer = Informer(pods, namespace=client.namespace, streaming=streaming, page=2)
    informer.handle(
        added=lambda one: diary.append(f"+{one.metadata.name}"),
        updated=lambda old, new: diary.append(f"~{new.metadata.name}"),
        deleted=lambda one: diary.append(f"-{one.metadata.name}"),
    )
    async with informer:
        await informer.ready()
        assert sorted(diary) == ["+p0", "+p1", "+p2", "+p3", "+p4"]
        await pods.patch("p1", {"metadata": {"labels": {"x": "y"}}})
        await pods.create(pod("p9"))
        await pods.delete("p0", grace=0)
        # Real Kubernetes writes the deletion timestamp first, as a change of its own.
        await eventually(lambda: [one for one in diary[5:] if one != "~p0"] == ["~p1", "+p9", "-p0"])
    assert informer.counts.lists == 1
    assert informer._streaming is streaming, "1.37 does streaming lists"
    assert informer.counts.failures == 0


async def an_informer_follows_pages(client: Client) -> None:
    await an_informer_follows(client, streaming=False)


async def events_are_taken_by_the_server_and_counted(client: Client) -> None:
    made = await client.resource("pods").create(pod("p"))
    recorder = Recorder(client, "kohort.example/scheduler")
    async with recorder:
        for _ in range(3):
            recorder.event(made, "Warning", "Unschedulable", "no room", action="Scheduling")
        await eventually(lambda: recorder.counts.written == 1)
        for _ in range(2):
            recorder.event(made, "Warning", "Unschedulable", "no room", action="Scheduling")
        recorder.event(made, "Normal", "Placed", "n" * 5000)
    assert recorder.counts.dropped == 0
    events = (await client.kind("events.k8s.io/v1", "Event").list(client.namespace)).items
    assert {one["reason"]: one.get("series", {}).get("count") for one in events} == {"Unschedulable": 5, "Placed": None}
    assert {one["regarding"]["uid"] for one in events} == {made["metadata"]["uid"]}


async def of_two_candidates_one_leads_and_the_other_follows_it(client: Client) -> None:
    pair = [
        Leadership(client, "leader", namespace=client.namespace, identity=name, duration=5, deadline=4, retry=0.5)
        for name in ("a", "b")
    ]

    async def lead() -> None:
        await asyncio.Event().wait()

    tasks = [asyncio.create_task(one.run(lead)) for one in pair]
    await eventually(lambda: any(one.is_leader for one in pair))
    for _ in range(20):
        assert sum(one.is_leader for one in pair) <= 1, "never two, however slow the machine"
        await asyncio.sleep(0.1)
    await eventually(lambda: any(one.is_leader for one in pair))
    leader = 0 if pair[0].is_leader else 1
    other = 1 - leader
    tasks[leader].cancel()
    await asyncio.gather(tasks[leader], return_exceptions=True)
    found = await client.resource("leases").get("leader")
    assert found["spec"].get("holderIdentity") in {None, pair[other].identity}, "released"
    await eventually(lambda: pair[other].is_leader)
    assert pair[other].epoch >= 1
    tasks[other].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


ALL = (
    create_read_update_patch_delete,
    refusals_carry_causes,
    lists_in_pages_and_by_selector,
    bind_evict_scale_and_status,
    apply_owns_conflicts_and_takes_over,
    both_forms_of_discovery_say_the_same,
    a_watch_goes_on_from_any_version,
    an_informer_follows,
    an_informer_follows_pages,
    events_are_taken_by_the_server_and_counted,
    of_two_candidates_one_leads_and_the_other_follows_it,
)
