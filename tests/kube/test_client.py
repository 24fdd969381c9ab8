"""The verbs: what is sent, what comes back, and discovery."""

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.fake import TYPES, FakeApi, answer_of, status

from kohort.kube.client import Client
from kohort.kube.codec import Meta, UnreadableError
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError, KubeError, TransportError
from kohort.kube.transport import InProcess, lines
from kohort.kube.wire import Request, Response, User


class Pod(msgspec.Struct):
    metadata: Meta
    phase: str


def both(api: FakeApi | None = None, **options: Any) -> tuple[Client, FakeApi]:
    api = api or FakeApi()
    return Client.within(api, **options), api


def last(api: FakeApi) -> tuple[str, str, dict[str, str]]:
    request = api.requests[-1]
    return request.method, request.path, {name: values[0] for name, values in request.query.items()}


async def test_create_get_update_patch_delete() -> None:
    client, api = both(manager="me")
    pods = client.resource("pods")
    made = await pods.create({"metadata": {"name": "a", "namespace": "team"}, "x": 1})
    assert last(api) == ("POST", "/api/v1/namespaces/team/pods", {"fieldManager": "me"})
    assert await pods.get("a", "team") == made
    changed = await pods.update({**made, "x": 2})
    assert changed["x"] == 2
    with pytest.raises(ApiError) as stale:
        await pods.update({**made, "x": 3})
    assert stale.value.conflict
    patched = await pods.patch("a", {"x": None, "y": 5}, "team", dry_run=True)
    assert ("x" in patched, patched["y"]) == (False, 5)
    assert last(api)[2] == {"fieldManager": "me", "dryRun": "All"}
    with pytest.raises(ApiError) as exists:
        await pods.create({"metadata": {"name": "a", "namespace": "team"}})
    assert exists.value.already_exists
    assert not exists.value.conflict
    assert (await pods.delete("a", "team"))["status"] == "Success"
    with pytest.raises(ApiError) as gone:
        await pods.get("a", "team")
    assert gone.value.not_found


@pytest.mark.parametrize(
    ("act", "method", "path", "query", "content_type", "body"),
    [
        (
            lambda pods: pods.patch("a", [{"op": "remove", "path": "/x"}], kind="json"),
            *("PATCH", "/api/v1/namespaces/here/pods/a", {"fieldManager": "kohort"}, "application/json-patch+json"),
            [{"op": "remove", "path": "/x"}],
        ),
        (
            lambda pods: pods.patch("a", {}, "team", kind="strategic", subresource="status"),
            *("PATCH", "/api/v1/namespaces/team/pods/a/status", {"fieldManager": "kohort"}),
            *("application/strategic-merge-patch+json", {}),
        ),
        (
            lambda pods: pods.apply({"metadata": {"name": "a"}}, manager="m", force=True),
            *("PATCH", "/api/v1/namespaces/here/pods/a", {"fieldManager": "m", "force": "true"}),
            *("application/apply-patch+yaml", {"metadata": {"name": "a"}}),
        ),
        (
            lambda pods: pods.apply({"metadata": {"name": "a", "namespace": "n"}}, subresource="status", dry_run=True),
            *("PATCH", "/api/v1/namespaces/n/pods/a/status"),
            {"fieldManager": "kohort", "force": "false", "dryRun": "All"},
            *("application/apply-patch+yaml", {"metadata": {"name": "a", "namespace": "n"}}),
        ),
        (
            lambda pods: pods.delete("a", propagation="Foreground", grace=0, uid="u", version="7", dry_run=True),
            *("DELETE", "/api/v1/namespaces/here/pods/a", {}, "application/json"),
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Foreground",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "dryRun": ["All"],
            },
        ),
        (
            lambda pods: pods.delete_all(labels="a=b", fields="c=d"),
            *("DELETE", "/api/v1/namespaces/here/pods", {"labelSelector": "a=b", "fieldSelector": "c=d"}),
            *("application/json", {"apiVersion": "v1", "kind": "DeleteOptions"}),
        ),
        (
            lambda pods: pods.bind("a", "n1", "team", uid="u"),
            *("POST", "/api/v1/namespaces/team/pods/a/binding", {"fieldManager": "kohort"}, "application/json"),
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "a", "uid": "u"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            },
        ),
        (
            lambda pods: pods.evict("a", grace=5),
            *("POST", "/api/v1/namespaces/here/pods/a/eviction", {}, "application/json"),
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "a"},
                "deleteOptions": {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 5},
            },
        ),
        (
            lambda pods: pods.scale("a", 3),
            *("PATCH", "/api/v1/namespaces/here/pods/a/scale", {"fieldManager": "kohort"}),
            *("application/merge-patch+json", {"spec": {"replicas": 3}}),
        ),
        (
            lambda pods: pods.create({"spec": {}}, "team", name="a", subresource="token"),
            *("POST", "/api/v1/namespaces/team/pods/a/token", {"fieldManager": "kohort"}, "application/json"),
            {"spec": {}},
        ),
    ],
)
async def test_what_is_sent(
    act: Callable[[Any], Any], method: str, path: str, query: dict[str, str], content_type: str, body: object
) -> None:
    client, api = both(namespace="here")
    await client.discovery.all()
    api.faults.append(answer_of(200, {"kind": "Status", "metadata": {}}))
    await act(client.resource("pods"))
    request = api.requests[-1]
    assert last(api) == (method, path, query)
    assert request.headers["content-type"] == content_type
    assert json.loads(request.body) == body


async def test_cluster_scoped_objects_have_no_namespace() -> None:
    client, api = both(namespace="here")
    await client.resource("nodes").create({"metadata": {"name": "n"}})
    assert last(api)[1] == "/api/v1/nodes"


async def test_a_name_is_needed_where_one_is() -> None:
    client, _ = both()
    with pytest.raises(KubeError, match=r"metadata\.name: missing"):
        await client.resource("pods").update({"metadata": {}})


@pytest.mark.parametrize("page", [0, 1, 2, 500])
async def test_lists_are_whole_whatever_the_page(page: int) -> None:
    client, api = both()
    for number in range(5):
        api.put(f"p{number}", namespace="n")
    api.put("other", namespace="m")
    found = await client.resource("pods").list("n", page=page, labels="a", version="0")
    assert [one["metadata"]["name"] for one in found.items] == [f"p{number}" for number in range(5)]
    assert found.version == str(api.revision)
    assert found.items[0]["kind"] == "Pod"
    first = next(one for one in api.requests if one.path.endswith("pods"))
    assert first.query["resourceVersion"] == ["0"]
    assert len((await client.resource("pods").list()).items) == 6


async def test_structs_and_bytes_are_read_and_written() -> None:
    client, _ = both()
    pods = client.resource("pods", Pod)
    made = await pods.create({"metadata": {"name": "a"}, "phase": "Pending"})
    assert isinstance(made, Pod)
    made.phase = "Running"
    assert (await pods.update(made)).phase == "Running"
    assert [one.phase for one in (await pods.list()).items] == ["Running"]
    raw = client.resource("pods", msgspec.Raw)
    text = await raw.get("a")
    assert (await raw.update(bytes(text).replace(b"Running", b"Failed"))) != text
    assert (await pods.get("a")).phase == "Failed"
    with pytest.raises(UnreadableError, match=r"the answer is not Pod: .*phase"):
        await pods.patch("a", {"phase": 5})
    with pytest.raises(UnreadableError, match="the answer is not a list of Pod"):
        await pods.list()


async def test_a_watch_is_read_event_by_event() -> None:
    client, api = both()
    pods = client.resource("pods", Pod)
    api.put("a", phase="x")
    api.put("a", phase="y")
    api.remove("a")
    seen = []
    async with aclosing(pods.watch("default", version="10", bookmarks=True)) as events:
        async for event in events:
            seen.append((event.type, event.object.phase if event.object else event.version))
            if len(seen) == 3:
                api.bookmark()
            if len(seen) == 4:
                break
    assert seen == [("ADDED", "x"), ("MODIFIED", "y"), ("DELETED", "y"), ("BOOKMARK", str(api.revision))]
    api.compact()
    with pytest.raises(ApiError) as expired:
        [event async for event in pods.watch(version="2")]
    assert expired.value.expired


async def test_warnings_are_told() -> None:
    told: list[str] = []
    client, api = both(warn=told.append)
    await client.discovery.all()
    header = '299 - "unknown field \\"spec.x\\"", 299 - "b is old"'
    api.faults.append(answer_of(200, {"metadata": {}}, warning=header))
    await client.resource("pods").get("a")
    assert told == ['unknown field "spec.x"', "b is old"]


async def test_the_user_of_the_transport_is_the_user_of_the_request() -> None:
    client, api = both()
    await client.discovery.all()
    assert api.requests[0].user is not None
    assert "system:masters" in api.requests[0].user.groups
    client, api = both(user=User("me"))
    await client.discovery.all()
    assert api.requests[0].user == User("me")


async def test_a_slow_api_in_process_is_given_up() -> None:
    class Slow:
        async def handle(self, request: Request) -> Response:
            await asyncio.sleep(10)
            return Response(200)

    with pytest.raises(TransportError, match=r"GET /x: no answer within 0\.01 s"):
        await InProcess(Slow()).request(Request("GET", "/x"), timeout=0.01)


# ---- discovery


@pytest.mark.parametrize("aggregated", [True, False])
@pytest.mark.parametrize(
    ("name", "api_version", "kind"),
    [
        ("pods", "v1", "Pod"),
        ("po", "v1", "Pod"),
        ("pod", "v1", "Pod"),
        ("Pod", "v1", "Pod"),
        ("jobs", "batch/v1", "Job"),
        ("jobs.batch", "batch/v1", "Job"),
        ("jobs.v1beta1.batch", "batch/v1beta1", "Job"),
        ("events", "v1", "Event"),
        ("events.events.k8s.io", "events.k8s.io/v1", "Event"),
        ("events.v1.events.k8s.io", "events.k8s.io/v1", "Event"),
        ("nodes", "v1", "Node"),
    ],
)
async def test_resources_are_found_as_kubectl_finds_them(
    aggregated: bool, name: str, api_version: str, kind: str
) -> None:
    client, api = both()
    api.aggregated = aggregated
    found = await client.resource(name).type()
    assert (found.api_version, found.kind) == (api_version, kind)
    assert await client.kind(api_version, kind).type() == found
    assert found.namespaced == (kind != "Node")
    if kind == "Pod":
        assert found.subresources == {"status", "binding"}


@pytest.mark.parametrize("aggregated", [True, False])
async def test_versions_come_in_the_servers_order(aggregated: bool) -> None:
    client, api = both()
    api.aggregated = aggregated
    assert await client.discovery.versions("batch", "Job") == ("v1", "v1beta1")
    assert await client.discovery.versions("batch", "Nothing") == ()


async def test_discovery_is_asked_once_and_again_on_a_miss() -> None:
    client, api = both(FakeApi(types=TYPES[:2]))
    await asyncio.gather(*(client.resource(name).type() for name in ("pods", "cm", "pods")))
    await client.of({"apiVersion": "v1", "kind": "Pod"}).type()
    assert len(api.requests) == 2
    api.types = TYPES
    assert (await client.resource("jobs").type()).kind == "Job"
    assert len(api.requests) == 4


async def test_what_is_not_served_is_named_with_what_is_near() -> None:
    client, _ = both()
    with pytest.raises(NotServedError, match=r"podz: the server does not have it; it has pods"):
        await client.resource("podz").get("a")
    with pytest.raises(NotServedError, match="Job of batch/v7: the server does not have it"):
        await client.kind("batch/v7", "Job").get("a")


async def test_a_group_whose_server_is_away_does_not_hide_the_others() -> None:
    client, api = both()
    api.aggregated = False
    api.away = {"batch/v1beta1"}
    assert (await client.resource("leases").type()).group == "coordination.k8s.io"
    assert await client.discovery.versions("batch", "Job") == ("v1",)
    with pytest.raises(NotServedError, match="no answer about batch/v1beta1"):
        await client.kind("batch/v1beta1", "Job").type()


async def test_one_who_gives_up_does_not_take_discovery_from_the_others() -> None:
    client, api = both()
    free = asyncio.Event()

    class Waiting(FakeApi):
        async def handle(self, request: Request) -> Response:
            await free.wait()
            return await super().handle(request)

    client, api = both(Waiting())
    first, second = (asyncio.create_task(client.resource("pods").type()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    free.set()
    assert (await second).kind == "Pod"
    assert len(api.requests) == 2


async def test_discovery_that_fails_after_everybody_gave_up_is_no_news() -> None:
    free = asyncio.Event()

    class Failing(FakeApi):
        async def handle(self, request: Request) -> Response:
            await free.wait()
            raise TransportError("cut")

    client, _ = both(Failing())
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    asked = asyncio.create_task(client.resource("pods").type())
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    free.set()
    async with asyncio.timeout(60):
        while client.discovery._asking is not None and not client.discovery._asking.done():
            await asyncio.sleep(0)
    client.discovery._asking = None
    gc.collect()
    assert told == []


async def test_failed_discovery_is_not_remembered() -> None:
    client, api = both()
    api.faults.append(answer_of(500, status(500, "InternalError")))
    with pytest.raises(ApiError):
        await client.resource("pods").type()
    assert (await client.resource("pods").type()).kind == "Pod"


# ---- lines


@given(st.lists(st.binary(max_size=8).map(lambda one: one.replace(b"\n", b"-")), max_size=12), st.data())
def test_property_lines_are_the_same_however_they_are_cut(found: list[bytes], data: st.DataObject) -> None:
    text = b"".join(line + b"\n" for line in found) + b"rest"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    async def read() -> list[bytes]:
        async def chunks() -> Any:
            for piece in pieces:
                yield piece

        return [line async for batch in lines(chunks()) for line in batch]

    assert asyncio.run(read()) == [line for line in found if line]


def test_who_only_asks_does_not_load_a_web_framework() -> None:
    """It reads every certificate that the machine trusts: a fifth of a second of each command."""
    code = "import sys, kohort.kube.client, kohort.scheduler.loop; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
