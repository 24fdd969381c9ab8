"""Our own definitions, as data and as they are served from the first answer on."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kohort.api.crd import crds
from kohort.kube.transport import ADMIN
from kohort.kube.wire import Request
from kohort.server.crd.shipped import DATA, made, shipped
from kohort.server.server import Server
from kohort.server.settings import Settings

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VARIABLE = ("uid", "creationTimestamp", "resourceVersion", "annotations", "managedFields")


async def ask(server: Server, method: str, path: str, body: Any = None) -> Any:
    raw = b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "test"}
    answer = await server.api.handle(Request(method, path, {}, headers, raw, ADMIN))
    assert isinstance(answer.body, bytes)
    assert answer.status < 300, answer.body
    return json.loads(answer.body)


def test_the_data_is_up_to_date() -> None:
    packed = files("kohort.server").joinpath(DATA).read_bytes()
    assert gzip.decompress(packed) == made(), "a schema has changed: run python hack/definitions.py"


async def documents(server: Server) -> dict[str, Any]:
    """All that a client can read about the custom kinds."""
    found = {path: await ask(server, "GET", path) for path in ("/apis", "/openapi/v2")}
    for crd in crds():
        name, group = crd["metadata"]["name"], crd["spec"]["group"]
        definition = await ask(server, "GET", f"{CRDS}/{name}")
        for one in VARIABLE:
            definition["metadata"].pop(one, None)
        for one in definition["status"]["conditions"]:
            assert one.pop("lastTransitionTime")
        found[name] = definition
        for version in crd["spec"]["versions"]:
            for path in (f"/apis/{group}/{version['name']}", f"/openapi/v3/apis/{group}/{version['name']}"):
                found[path] = await ask(server, "GET", path)
    return found


async def settled(server: Server) -> None:
    """Conditions of definitions that a client created come a moment later."""
    for crd in crds():
        for _ in range(500):
            found = await ask(server, "GET", f"{CRDS}/{crd['metadata']['name']}")
            if found["metadata"].get("finalizers"):  # written together with the conditions
                break
            await server.clock.sleep(0.01)


async def test_they_are_served_as_if_somebody_had_created_them(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path / "a", in_memory=True, listen=False, custom_kinds=False)) as server:
        for one in crds():
            await ask(server, "POST", CRDS, one)
        await settled(server)
        by_hand = await documents(server)
    settings = Settings(tmp_path / "b", listen=False)
    settings.data.mkdir()
    async with Server(settings) as server:
        first = await documents(server)
    async with Server(settings) as server:
        second = await documents(server)
    for name, wanted in by_hand.items():
        assert _ordered(first[name]) == _ordered(wanted), name
        assert second[name] == first[name], name


def _ordered(document: Any) -> Any:
    """Groups stand in the order in which they came."""
    if isinstance(document, dict) and "groups" in document:
        return {**document, "groups": sorted(document["groups"], key=lambda one: one["name"])}
    return document


@pytest.mark.parametrize("again", [False, True])
async def test_a_start_looks_at_no_schema(tmp_path: Path, again: bool) -> None:
    settings = Settings(tmp_path, listen=False)
    if again:
        async with Server(settings):
            pass
    async with Server(settings) as server:
        groups = {one.outline["group"] for one in shipped().values()}
        ours = [one for one in server.api.resources.every() if one.group in groups]
        assert len(ours) == len(crds())
        assert [one.full_name for one in ours if {"rules", "structure"} & set(vars(one))] == []
        path = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"
        assert (await ask(server, "GET", path))["items"] == []


async def test_one_that_somebody_changed_or_that_is_not_alone_is_looked_at(tmp_path: Path) -> None:
    settings, path = Settings(tmp_path, listen=False), f"{CRDS}/jobsets.jobset.x-k8s.io"
    async with Server(settings) as server:
        crd = await ask(server, "GET", path)
        crd["spec"]["names"]["shortNames"] = ["sets"]
        await ask(server, "PUT", path, crd)
        await ask(server, "DELETE", f"{CRDS}/podgangs.scheduler.grove.io")
        while any("podgangs" in one["metadata"]["name"] for one in (await ask(server, "GET", CRDS))["items"]):
            await server.clock.sleep(0.01)
    async with Server(settings) as server:
        listed = await ask(server, "GET", "/apis/jobset.x-k8s.io/v1alpha2")
        assert listed["resources"][0]["shortNames"] == ["sets"]
        back = await ask(server, "GET", f"{CRDS}/podgangs.scheduler.grove.io")
        assert [one["status"] for one in back["status"]["conditions"]] == ["True", "True"]
        assert (await ask(server, "GET", "/apis/scheduler.grove.io/v1alpha1/podgangs"))["items"] == []
