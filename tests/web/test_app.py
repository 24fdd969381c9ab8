"""Who is let in, what they are sent, and that nothing else is: over HTTP, without a browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.web import stage
from tests.web.access import reader

from kohort.kube.client import Client
from kohort.plan.loading import load
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.web.follower import ClusterFollower
from kohort.web.serve import for_users, local


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """Forty nodes with gangs on them, and nobody who changes anything."""
    async with Server(Settings(tmp_path, "1.37", port=0, in_memory=True)) as server:
        await load(server, stage.full(40, 10))
        async with Client.within(server.api, clock=server.clock) as made:
            yield made


@pytest.fixture
async def visitor() -> AsyncIterator[aiohttp.ClientSession]:
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address, not only of names
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield session


async def get(visitor: aiohttp.ClientSession, url: str, **options: Any) -> tuple[int, Any, Any]:
    async with visitor.get(url, allow_redirects=False, **options) as answer:
        body = await answer.read()
        is_json = answer.content_type == "application/json"
        return answer.status, json.loads(body) if is_json else body.decode(), answer.headers


async def entered(visitor: aiohttp.ClientSession, link: str) -> str:
    """The address without the secret."""
    assert (await get(visitor, link))[0] == 303
    return link.partition("?")[0]


async def test_no_page_without_a_link(client: Client, visitor: aiohttp.ClientSession) -> None:
    async with local(client) as link:
        base = link.partition("?")[0]
        assert (await get(visitor, base))[2]["Location"] == "/login"
        for path in (
            "api/view",
            "api/stream",
            "api/unit/1",
            "api/node/gpu-00",
            "api/object",
            "static/app.js",
            "nothing",
        ):
            status, body, headers = await get(visitor, base + path)
            assert status == 401, path
            assert "gang" not in str(body)
            assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert (await get(visitor, f"{base}?link=guess"))[2]["Location"] == "/login?used=1"
        page = str((await get(visitor, base + "login?used=1"))[1])
        assert "each works once" in page
        assert "<form" not in page
        assert (await get(visitor, base + "api/view"))[0] == 401


async def test_a_link_works_once(client: Client, visitor: aiohttp.ClientSession) -> None:
    async with local(client) as link:
        status, _, headers = await get(visitor, link)
        assert status == 303
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert (await get(visitor, link.partition("?")[0] + "api/view"))[0] == 200
        async with aiohttp.ClientSession() as another:
            assert (await get(another, link))[2]["Location"] == "/login?used=1"


async def test_whoever_is_known_may_click_on_the_link_again(client: Client, visitor: aiohttp.ClientSession) -> None:
    """It stands in the terminal, and is what people click on when they want to see the page again."""
    async with local(client) as link:
        base = await entered(visitor, link)
        _, _, headers = await get(visitor, link)
        assert headers["Location"] == "/"
        assert "Set-Cookie" not in headers
        await get(visitor, base + "api/view")
        await visitor.post(base + "logout", allow_redirects=False)
        assert (await get(visitor, link))[2]["Location"] == "/login?used=1"


async def test_another_name_for_this_machine_is_refused(client: Client, visitor: aiohttp.ClientSession) -> None:
    """A site whose name is made to point at loopback cannot ask through a visitor's browser."""
    async with local(client) as link:
        base = await entered(visitor, link)
        status, body, _ = await get(visitor, base + "api/view", headers={"Host": "evil.example:80"})
        assert status == 403
        assert "accepted are 127.0.0.1" in body["error"]


async def test_many_nodes_are_shown_before_their_pods_have_been_read(
    client: Client, visitor: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()
    read = ClusterFollower.read_pods

    async def later(follower: ClusterFollower) -> None:
        await go_on.wait()
        await read(follower)

    monkeypatch.setattr(ClusterFollower, "read_pods", later)
    monkeypatch.setattr("kohort.web.view._MANY", 40)
    async with local(client) as link:
        base = await entered(visitor, link)
        _, first, _ = await get(visitor, base + "api/view")
        assert (len(first["nodes"]), first["units"], first["reading"]) == (40, [], 0)
        go_on.set()
        units: dict[int, Any] = {}
        async for one in deltas(visitor, base, first):
            units |= {unit["id"]: unit for unit in one["units"]}
            if one["reading"] is None and units:
                break
        _, view, _ = await get(visitor, base + "api/view")
        assert {one["name"]: one["placed"] for one in view["units"]} == {
            one["name"]: one["placed"] for one in units.values()
        }
        gang = next(unit for unit in units.values() if unit["name"] == "gang-2")
        assert (gang["state"], gang["placed"]) == ("Running", 64)


async def deltas(visitor: aiohttp.ClientSession, base: str, view: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    address = f"{base}api/stream?number={view['number']}&epoch={view['epoch']}&mark={view['mark']}"
    async with asyncio.timeout(60), visitor.get(address) as answer:
        async for line in answer.content:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


async def test_what_is_sent(client: Client, visitor: aiohttp.ClientSession) -> None:
    async with local(client) as link:
        base = await entered(visitor, link)
        _, view, _ = await get(visitor, base + "api/view")
        assert (len(view["nodes"]), view["device"]) == (40, "nvidia.com/gpu")
        assert view["levels"] == ["topology.kubernetes.io/zone", "topology.kubernetes.io/rack"]
        devices = sum(row[4] for row in view["nodes"])
        shares = sum(sum(row[-1][1::2]) for row in view["nodes"])
        assert devices == shares > 300
        gang = next(one for one in view["units"] if one["name"] == "gang-2")
        assert (gang["state"], gang["placed"], gang["gang"], gang["kind"]) == ("Running", 64, 64, "PodGroup")
        _, unit, _ = await get(visitor, f"{base}api/unit/{gang['id']}")
        assert len(unit["tree"]["members"]) == 64
        _, node, _ = await get(visitor, f"{base}api/node/gpu-00")
        assert node["resources"]["nvidia.com/gpu"][0] == 8
        _, shown, _ = await get(visitor, f"{base}api/object?kind=PodGroup&name=gang-1&namespace=lab")
        assert "minCount: 64" in shown["yaml"]
        status, wrong, _ = await get(visitor, f"{base}api/object?kind=Secret&name=s&namespace=lab")
        assert (status, "accepted are Pod" in wrong["error"]) == (400, True)
        assert (await get(visitor, base + "api/unit/99999"))[0] == 404


async def test_changes_come_as_events(client: Client, visitor: aiohttp.ClientSession) -> None:
    async with local(client) as link:
        base = await entered(visitor, link)
        _, view, _ = await get(visitor, base + "api/view")
        async with visitor.get(
            f"{base}api/stream?number={view['number']}&epoch={view['epoch']}&mark={view['mark']}"
        ) as stream:
            assert stream.content_type == "text/event-stream"
            pod = {
                "metadata": {"name": "late", "namespace": "lab"},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
            await client.kind("v1", "Pod").create({"apiVersion": "v1", "kind": "Pod", **pod}, "lab")
            waits = await _event(stream, lambda data: any(one["name"] == "late" for one in data["units"]))
            assert next(one for one in waits["units"] if one["name"] == "late")["state"] == "Waiting"
            await client.kind("v1", "Pod").delete("late", "lab", grace=0)
            gone = await _event(stream, lambda data: any(one["state"] == "Gone" for one in data["units"]))
            assert [one["name"] for one in gone["units"]] == ["late"]
        async with visitor.get(f"{base}api/stream?number=999999&epoch={view['epoch']}") as stream:
            assert await stream.content.readline() == b"event: reset\n"


async def _event(stream: aiohttp.ClientResponse, wanted: Any) -> Any:
    async with asyncio.timeout(20):
        while True:
            line = await stream.content.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                data = json.loads(line[6:])
                if "units" in data and wanted(data):
                    return data


async def test_why_something_waits_is_told(client: Client, visitor: aiohttp.ClientSession) -> None:
    wants = {"requests": {"cpu": "400"}}
    pod = {"metadata": {"name": "huge"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": wants}]}}
    await client.kind("v1", "Pod").create({"apiVersion": "v1", "kind": "Pod", **pod}, "default")
    async with local(client) as link:
        base = await entered(visitor, link)
        _, view, _ = await get(visitor, base + "api/view")
        unit = next(one for one in view["units"] if one["name"] == "huge")
        assert unit["needs"] == "1 × cpu 400"
        _, found, _ = await get(visitor, f"{base}api/unit/{unit['id']}")
        why = found["why"]["explanation"]
        assert "cpu" in why["closest"] or "cpu" in why["detail"]


async def test_users_see_what_they_may_read(client: Client, visitor: aiohttp.ClientSession) -> None:
    """Nodes belong to nobody's namespace; their load is shown without saying whose it is."""
    await stage.create(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    pod = {"metadata": {"name": "own"}, "spec": {"nodeName": "gpu-00", "containers": [{"name": "c", "image": "i"}]}}
    await client.kind("v1", "Pod").create({"apiVersion": "v1", "kind": "Pod", **pod}, "mine")
    token = await reader(client, "mine", "ana")
    async with for_users(client, "127.0.0.1", 0) as url:
        async with visitor.post(url + "login", data={"token": "wrong"}, allow_redirects=False) as answer:
            assert answer.headers["Location"] == "/login?refused=1"
        async with visitor.post(
            url + "login", data={"token": token}, headers={"Origin": "https://evil.example"}, allow_redirects=False
        ) as answer:
            assert answer.status == 403
        async with visitor.post(url + "login", data={"token": token}, allow_redirects=False) as answer:
            assert answer.headers["Location"] == "/"
        _, view, _ = await get(visitor, url + "api/view")
        assert [one["name"] for one in view["units"]] == ["own"]
        assert (view["nodes"], view["mayNodes"], view["everything"]) == ([], False, False)
        assert (await get(visitor, url + "api/node/gpu-00"))[0] == 404
        assert (await get(visitor, url + "api/object?kind=PodGroup&name=gang-1&namespace=lab"))[0] == 404
        assert (await get(visitor, url + "api/object?kind=Pod&name=own&namespace=mine"))[0] == 200

        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-lister"}
        rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
        api = "rbac.authorization.k8s.io/v1"
        subject = {"kind": "ServiceAccount", "name": "ana", "namespace": "mine"}
        await stage.create(
            client,
            {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": role["name"]}, "rules": rules},
            {
                "apiVersion": api,
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "ana-nodes"},
                "roleRef": role,
                "subjects": [subject],
            },
        )
    async with for_users(client, "127.0.0.1", 0) as url:  # answers hold for a minute: a new one has none
        async with visitor.post(url + "login", data={"token": token}, allow_redirects=False):
            pass
        _, view, _ = await get(visitor, url + "api/view")
        assert len(view["nodes"]) == 40
        own = view["units"][0]["id"]
        assert {unit for row in view["nodes"] for unit in row[-1][::2]} == {0, own}
        assert "gang-" not in json.dumps(view)
        _, node, _ = await get(visitor, url + "api/node/gpu-00")
        assert ([one["name"] for one in node["pods"]], node["others"] > 5) == (["own"], True)
