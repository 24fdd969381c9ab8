"""A whole server, as `kohort up --bare` starts it: what a new one has, and what its parts do together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kohort.api.crd import crds
from kohort.kube.transport import ADMIN
from kohort.kube.wire import Request
from kohort.server.crd import shipped
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.server.store.sqlite import SqliteJournal


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as made:
        yield made


async def send(server: Server, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    raw = b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "user-agent": "test"}
    answer = await server.api.handle(Request(method, path, {}, headers, raw, ADMIN))
    assert isinstance(answer.body, bytes)
    return answer.status, json.loads(answer.body)


async def until(server: Server, path: str, code: int) -> Any:
    for _ in range(1500):
        found, body = await send(server, "GET", path)
        if found == code:
            return body
        await asyncio.sleep(0.02)
    raise AssertionError(f"{path}: {found} {body}")


async def test_what_a_new_cluster_has(server: Server) -> None:
    for path in (
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/kube-system",
        "/api/v1/namespaces/default/services/kubernetes",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
    ):
        assert (await send(server, "GET", path))[0] == 200, path


async def test_the_kinds_of_the_operators_are_there(server: Server) -> None:
    for one in crds():
        spec = one["spec"]
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        assert (await send(server, "GET", path))[0] == 200, path  # from the first moment on
    pod = {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}
    job = {"spec": {"template": {"spec": pod}}}
    spec = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": job}]}
    path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
    head = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "a"}}
    code, made = await send(server, "POST", path, {**head, "spec": spec})
    assert code == 201, made
    assert made["apiVersion"] == "jobset.x-k8s.io/v1alpha2"


async def test_the_definitions_that_are_put_in_unasked_are_valid(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path, in_memory=True, listen=False, custom_kinds=False)) as server:
        for one in crds():
            code, made = await send(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
            assert code == 201, made


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBSETS, SETS = f"{CRDS}/jobsets.jobset.x-k8s.io", f"{CRDS}/leaderworkersets.leaderworkerset.x-k8s.io"


def _older(one: shipped.Shipped) -> shipped.Shipped:
    return shipped.Shipped(one.name, msgspec.Raw(bytes(one.spec).replace(b'"Restarts"', b'"Starts"')))


async def test_definitions_of_an_older_version_are_brought_up_to_date_unless_somebody_changed_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, now = Settings(tmp_path, listen=False), shipped.shipped()
    monkeypatch.setattr(shipped, "shipped", lambda: {name: _older(one) for name, one in now.items()})
    async with Server(settings) as server:
        _, found = await send(server, "GET", JOBSETS)
        assert "Starts" in json.dumps(found)
        _, other = await send(server, "GET", SETS)
        other["spec"]["names"]["shortNames"] = ["mine"]
        assert (await send(server, "PUT", SETS, other))[0] == 200
    monkeypatch.setattr(shipped, "shipped", lambda: now)
    async with Server(settings) as server:
        _, fresh = await send(server, "GET", JOBSETS)
        assert "Starts" not in json.dumps(fresh)
        assert (fresh["metadata"]["uid"], fresh["metadata"]["generation"]) == (found["metadata"]["uid"], 2)
        _, kept = await send(server, "GET", SETS)
        assert kept["spec"]["names"]["shortNames"] == ["mine"]


async def test_a_namespace_takes_what_is_in_it_along(server: Server) -> None:
    await send(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    await send(server, "POST", "/api/v1/namespaces/n/configmaps", {"metadata": {"name": "c"}})
    assert (await send(server, "DELETE", "/api/v1/namespaces/n"))[0] == 200
    await until(server, "/api/v1/namespaces/n", 404)


async def test_what_is_owned_goes_with_its_owner(server: Server) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    _, owner = await send(server, "POST", maps, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await send(server, "POST", maps, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    assert (await send(server, "DELETE", f"{maps}/owner"))[0] == 200
    await until(server, f"{maps}/owned", 404)


async def test_old_history_is_forgotten(tmp_path: Path) -> None:
    settings = Settings(tmp_path, port=0, in_memory=True, history_seconds=0.1, custom_kinds=False)
    async with Server(settings) as server:
        for _ in range(600):
            if server.store.compacted:
                break
            await asyncio.sleep(0.05)
        assert server.store.compacted > 0
        code, _ = await send(server, "GET", "/api/v1/namespaces/default")
        assert code == 200


async def test_closing_leaves_no_task_behind(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    server = Server(Settings(tmp_path, port=0, in_memory=True))
    await server.start()
    await server.close()
    assert asyncio.all_tasks() == before


async def _get(server: Server, path: str) -> tuple[int, str]:
    answer = await server.api.handle(Request("GET", path, {}, {}, b"", ADMIN))
    assert isinstance(answer.body, bytes)
    return answer.status, answer.body.decode()


async def test_a_disk_that_cannot_be_written_is_told_and_got_over(tmp_path: Path) -> None:
    """Not ready, but alive; clients are told when to come again; the server's own loops go on afterwards."""
    async with Server(Settings(tmp_path, port=0)) as server:
        assert (await _get(server, "/readyz"))[0] == 200
        journal = server.store._journal
        assert isinstance(journal, SqliteJournal)
        journal._db.execute("PRAGMA query_only=1")
        headers = {"content-type": "application/json"}
        body = json.dumps({"metadata": {"name": "n"}}).encode()
        request = Request("POST", "/api/v1/namespaces", {}, headers, body, ADMIN)
        refused = await server.api.handle(request)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        code, text = await _get(server, "/readyz")
        assert code == 500
        assert "[-]store failed" in text
        assert (await _get(server, "/livez"))[0] == 200
        assert (await _get(server, "/api/v1/namespaces/default"))[0] == 200  # reading goes on
        journal._db.execute("PRAGMA query_only=0")
        await asyncio.wait_for(server.store.until_writable(), 30)
        assert (await _get(server, "/readyz"))[0] == 200
        assert (await server.api.handle(request)).status == 201
        await until(server, "/api/v1/namespaces/n/serviceaccounts/default", 200)
