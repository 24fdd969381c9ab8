"""A definition whose versions differ: `host: a:1` in v1, which is stored, `hostname: a` and `port: 1` in v2."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kohort.kube.transport import ADMIN
from kohort.kube.wire import Request
from kohort.server.admission.reinvocation import MutatingAdmission
from kohort.server.admission.webhooks.matching import Hook
from kohort.server.admission.webhooks.review import WebhookCallError
from kohort.server.server import Server
from kohort.server.settings import Settings

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V1, V2 = (f"/apis/kohort.test/{version}/namespaces/default/gates" for version in ("v1", "v2"))
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


def _version(name: str, storage: bool, **properties: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": properties},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    }
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gates.kohort.test"},
    "spec": {
        "group": "kohort.test",
        "scope": "Namespaced",
        "names": {"kind": "Gate", "plural": "gates", "singular": "gate", "listKind": "GateList"},
        "versions": [
            _version("v1", True, host={"type": "string"}),
            _version("v2", False, hostname={"type": "string"}, port={"type": "integer", "minimum": 1}),
        ],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": "https://127.0.0.1:1/convert"},
                "conversionReviewVersions": ["v1"],
            },
        },
    },
}


def _convert(obj: dict[str, Any], to: str) -> dict[str, Any]:
    spec = dict(obj.get("spec") or {})
    if to == "kohort.test/v2" and "host" in spec:
        hostname, _, port = spec.pop("host").partition(":")
        spec |= {"hostname": hostname, "port": int(port)}
    elif to == "kohort.test/v1" and "hostname" in spec:
        spec["host"] = f"{spec.pop('hostname')}:{spec.pop('port', 80)}"
    return {**obj, "apiVersion": to, "spec": spec}


class Stage:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.asked: list[tuple[str, int]] = []
        self.result: dict[str, Any] = {"status": "Success"}
        self.change: dict[str, Any] = {}  # of the metadata, by the webhook

    async def call(self, hook: Hook, review: dict[str, Any]) -> bytes:
        assert hook.spec["clientConfig"]["url"] == "https://127.0.0.1:1/convert"
        request = review["request"]
        self.asked.append((request["desiredAPIVersion"], len(request["objects"])))
        made = [_convert(one, request["desiredAPIVersion"]) for one in request["objects"]]
        made = [{**one, "metadata": one["metadata"] | self.change} for one in made]
        response = {"uid": request["uid"], "convertedObjects": made, "result": self.result}
        return json.dumps({"kind": "ConversionReview", "response": response}).encode()

    async def ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        path, _, query = path.partition("?")
        parsed = {name: [value] for name, _, value in (part.partition("=") for part in query.split("&") if part)}
        sent = b"" if body is None else json.dumps(body).encode()
        answer = await self.server.api.handle(Request(method, path, parsed, {"content-type": media}, sent, ADMIN))
        assert isinstance(answer.body, bytes)
        return answer.status, json.loads(answer.body)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    settings = Settings(tmp_path, in_memory=True, listen=False, custom_kinds=False)
    async with Server(settings) as server:
        found = Stage(server)
        assert server.api.core.converter is not None
        server.api.core.converter.call = found.call
        assert (await found.ask("POST", CRDS, DEFINITION))[0] == 201
        while (await found.ask("GET", V2))[0] == 404:
            await asyncio.sleep(0.005)
        found.asked.clear()
        yield found


def gate(name: str, version: str = "v2", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"kohort.test/{version}", "kind": "Gate", "metadata": {"name": name}, "spec": spec}


async def test_what_is_written_in_one_version_is_read_in_the_other(stage: Stage) -> None:
    code, found = await stage.ask("POST", V2, gate("a", hostname="x", port=7))
    assert (code, found["apiVersion"], found["spec"]) == (201, "kohort.test/v2", {"hostname": "x", "port": 7})
    code, found = await stage.ask("GET", f"{V1}/a")
    assert (code, found["apiVersion"], found["spec"]) == (200, "kohort.test/v1", {"host": "x:7"})
    await stage.ask("POST", V1, gate("b", "v1", host="y:8"))
    code, found = await stage.ask("GET", V2)
    assert [one["spec"] for one in found["items"]] == [{"hostname": "x", "port": 7}, {"hostname": "y", "port": 8}]
    assert {one["apiVersion"] for one in found["items"]} == {"kohort.test/v2"}


async def test_schemas_of_the_version_that_is_written_count(stage: Stage) -> None:
    code, found = await stage.ask("POST", V2, gate("a", hostname="x", port=0))
    assert (code, found["details"]["causes"][0]["field"]) == (422, "spec.port")
    code, found = await stage.ask("POST", f"{V2}?fieldValidation=Strict", gate("a", host="x:1"))
    assert (code, 'unknown field "spec.host"' in found["message"]) == (400, True)


async def test_update_and_patches_are_of_the_version_that_is_asked_for(stage: Stage) -> None:
    _, made = await stage.ask("POST", V1, gate("a", "v1", host="x:1"))
    code, found = await stage.ask("PATCH", f"{V2}/a", {"spec": {"port": 2}}, MERGE)
    assert (code, found["spec"]) == (200, {"hostname": "x", "port": 2})
    found["spec"]["hostname"] = "z"
    code, found = await stage.ask("PUT", f"{V2}/a", found)
    assert (code, found["spec"], found["metadata"]["generation"]) == (200, {"hostname": "z", "port": 2}, 3)
    applied = gate("a", hostname="w")
    code, found = await stage.ask("PATCH", f"{V2}/a?fieldManager=m&force=true", applied, APPLY)
    assert (code, found["spec"]) == (200, {"hostname": "w", "port": 2})
    code, found = await stage.ask("PATCH", f"{V2}/a/status", {"status": {"phase": "open"}}, MERGE)
    assert (code, found["status"]) == (200, {"phase": "open"})
    code, found = await stage.ask("GET", f"{V1}/a")
    assert (found["spec"], found["status"]) == ({"host": "w:2"}, {"phase": "open"})
    assert found["metadata"]["uid"] == made["metadata"]["uid"]


async def test_nothing_is_written_where_nothing_changes(stage: Stage) -> None:
    _, made = await stage.ask("POST", V2, gate("a", hostname="x", port=1))
    code, found = await stage.ask("PATCH", f"{V2}/a", {"spec": {"port": 1}}, MERGE)
    assert (code, found["metadata"]["resourceVersion"]) == (200, made["metadata"]["resourceVersion"])
    assert found["spec"] == {"hostname": "x", "port": 1}


async def test_deletion(stage: Stage) -> None:
    held = gate("a", hostname="x", port=1)
    held["metadata"]["finalizers"] = ["kohort.test/held"]
    await stage.ask("POST", V2, held)
    code, found = await stage.ask("DELETE", f"{V2}/a")
    assert (code, found["apiVersion"], found["spec"]) == (200, "kohort.test/v2", {"hostname": "x", "port": 1})
    assert found["metadata"]["deletionTimestamp"]
    code, _ = await stage.ask("PATCH", f"{V2}/a", {"metadata": {"finalizers": None}}, MERGE)
    assert code == 200
    assert (await stage.ask("GET", f"{V1}/a"))[0] == 404
    await stage.ask("POST", V1, gate("b", "v1", host="y:1"))
    code, found = await stage.ask("DELETE", V2)
    assert (code, (await stage.ask("GET", V1))[1]["items"]) == (200, [])


async def test_a_watch_sends_the_version_that_is_watched(stage: Stage) -> None:
    await stage.ask("POST", V1, gate("a", "v1", host="x:1"))
    query = {"watch": ["true"], "timeoutSeconds": ["20"]}
    answer = await stage.server.api.handle(Request("GET", V2, query, {}, b"", ADMIN))
    assert not isinstance(answer.body, bytes)
    lines = answer.body
    first = json.loads(await anext(lines))
    assert (first["type"], first["object"]["spec"]) == ("ADDED", {"hostname": "x", "port": 1})
    await stage.ask("PATCH", f"{V1}/a", {"spec": {"host": "x:2"}}, MERGE)
    second = json.loads(await anext(lines))
    assert (second["type"], second["object"]["apiVersion"]) == ("MODIFIED", "kohort.test/v2")
    assert second["object"]["spec"] == {"hostname": "x", "port": 2}
    stage.result = {"status": "Failed", "message": "not today"}
    await stage.ask("PATCH", f"{V1}/a", {"spec": {"host": "x:3"}}, MERGE)
    third = json.loads(await anext(lines))
    assert (third["type"], "not today" in third["object"]["message"]) == ("ERROR", True)


async def test_readers_of_the_stored_version_ask_nobody_and_others_once(stage: Stage) -> None:
    for name in "abc":
        await stage.ask("POST", V1, gate(name, "v1", host="x:1"))
    await stage.ask("GET", V1)
    assert stage.asked == []
    for _ in range(2):
        await stage.ask("GET", V2)
    assert stage.asked == [("kohort.test/v2", 3)]


@pytest.mark.parametrize(
    ("result", "change", "said"),
    [
        ({"status": "Failed", "message": "not today"}, {}, "failed: not today"),
        ({"status": "Success"}, {"uid": "another"}, "returned another metadata.uid"),
        ({"status": "Success"}, {"name": "another"}, "returned another metadata.name"),
    ],
)
async def test_a_webhook_that_fails_is_named(stage: Stage, result: Any, change: Any, said: str) -> None:
    await stage.ask("POST", V1, gate("a", "v1", host="x:1"))
    stage.result, stage.change = result, change
    code, found = await stage.ask("GET", f"{V2}/a")
    assert code == 500
    assert "conversion webhook for kohort.test/v1, Kind=Gate failed" in found["message"]
    assert said in found["message"]
    assert (await stage.ask("GET", f"{V1}/a"))[0] == 200


async def test_a_webhook_that_cannot_be_called_is_named_in_the_words_of_conversion(stage: Stage) -> None:
    async def call(_hook: Hook, _review: dict[str, Any]) -> bytes:
        raise WebhookCallError('Post "https://127.0.0.1:1/convert": connection refused')

    await stage.ask("POST", V1, gate("a", "v1", host="x:1"))
    converter = stage.server.api.core.converter
    assert converter is not None
    converter.call = call
    code, found = await stage.ask("GET", f"{V2}/a")
    why = 'Post "https://127.0.0.1:1/convert": connection refused'
    assert code == 500
    assert found["message"] == (
        f"Internal error occurred: conversion webhook for kohort.test/v1, Kind=Gate failed: {why}"
    )


async def test_of_the_metadata_only_labels_and_annotations_are_the_webhooks(stage: Stage) -> None:
    await stage.ask("POST", V1, gate("a", "v1", host="x:1"))
    stage.change = {"labels": {"from": "webhook"}, "generation": 99, "finalizers": ["x"]}
    _, found = await stage.ask("GET", f"{V2}/a")
    assert found["metadata"]["labels"] == {"from": "webhook"}
    assert (found["metadata"]["generation"], found["metadata"].get("finalizers")) == (1, None)


async def test_admission_webhooks_see_the_version_of_their_rules(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is registered for v2 only is asked about v1, too (matchPolicy Equivalent), in v2; its patch is of v2."""
    seen: list[dict[str, Any]] = []

    async def admit(_hook: Hook, review: dict[str, Any]) -> bytes:
        seen.append(review["request"]["object"])
        patch = b64encode(b'[{"op":"replace","path":"/spec/port","value":9}]').decode()
        response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
        return json.dumps(
            {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
        ).encode()

    plugin = next(one for one in stage.server.admission.plugins if isinstance(one, MutatingAdmission))
    monkeypatch.setattr(plugin._webhooks, "_call_webhook", admit)
    rule = {"apiGroups": ["kohort.test"], "apiVersions": ["v2"], "operations": ["CREATE"], "resources": ["gates"]}
    hook = {
        "name": "h.kohort.test",
        "clientConfig": {"url": "https://127.0.0.1:1/admit"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    assert (await stage.ask("POST", path, {"metadata": {"name": "h"}, "webhooks": [hook]}))[0] == 201
    code, found = await stage.ask("POST", V1, gate("a", "v1", host="x:1"))
    assert (code, found["spec"]) == (201, {"host": "x:9"})
    assert [(one["apiVersion"], one["spec"]) for one in seen] == [("kohort.test/v2", {"hostname": "x", "port": 1})]
