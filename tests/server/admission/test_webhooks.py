"""Webhooks through the API, over real HTTPS: questions and refusals as recorded from Kubernetes 1.37."""

import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.admission.hook import Webhook, webhook
from tests.server.admission.world import World, pod

from kohort.kube.wire import User

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
FAILED = 'failed calling webhook "h.example.org": '


class Stage:
    """A server and a webhook."""

    def __init__(self, world: World, hook: Webhook, root: str) -> None:
        self.world, self.hook, self.root = world, hook, root

    def spec(self, path: str, name: str = "h.example.org", **more: Any) -> dict[str, Any]:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
        return {
            "name": name,
            "clientConfig": {"url": self.hook.url + path, "caBundle": self.hook.bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }

    async def register(self, kind: str, *specs: dict[str, Any], name: str = "t") -> None:
        body = {"metadata": {"name": name}, "webhooks": list(specs)}
        await self.world.made(f"{CONFIGURATIONS}/{kind}webhookconfigurations", body)

    async def write(self, name: str = "c", query: str = "", **body: Any) -> Any:
        path = f"{self.root}/configmaps{query}"
        return await self.world.ask("POST", path, {"metadata": {"name": name}, **body})


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    world = await World.make()
    root = await world.namespace("wh", team="a")
    async with webhook(tmp_path, "svc.wh.svc") as hook:
        yield Stage(world, hook, root)
        await world.admission.caller.close()


# ---- the question


async def test_what_a_webhook_is_asked(stage: Stage) -> None:
    await stage.register("validating", stage.spec("/ok"))
    made = (await stage.write(data={"a": "b"})).body
    url, review = stage.hook.asked[0]
    assert url == "/ok?timeout=10s"
    request = review["request"]
    assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert len(request.pop("uid")) == 36
    shown = request.pop("object")
    assert (shown["kind"], shown["apiVersion"], shown["data"]) == ("ConfigMap", "v1", {"a": "b"})
    assert shown["metadata"]["uid"] == made["metadata"]["uid"]
    request["options"].pop("fieldManager", None)
    request["options"].pop("fieldValidation", None)
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    assert request == {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "c",
        "namespace": "wh",
        "operation": "CREATE",
        "userInfo": {"username": "root", "groups": ["system:masters", "system:authenticated"]},
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


async def test_updates_and_deletions(stage: Stage) -> None:
    await stage.write()
    await stage.register("validating", stage.spec("/ok"))
    path = f"{stage.root}/configmaps/c"
    change = {"data": {"a": "b"}}
    await stage.world.ask("PATCH", path, change, media="application/merge-patch+json")
    await stage.world.ask("DELETE", f"{path}?dryRun=All")
    await stage.world.ask("DELETE", path)
    update, dry, gone = stage.hook.requests
    assert (update["operation"], update["object"]["data"], update["options"]["kind"]) == (
        "UPDATE",
        {"a": "b"},
        "UpdateOptions",
    )
    assert "data" not in update["oldObject"]
    assert (dry["operation"], dry["dryRun"], dry["object"], dry["oldObject"]["data"]) == (
        "DELETE",
        True,
        None,
        {"a": "b"},
    )
    assert (gone["dryRun"], gone["options"]["kind"]) == (False, "DeleteOptions")


async def test_webhooks_see_what_the_server_added(stage: Stage) -> None:
    pods = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    await stage.register("mutating", stage.spec("/ok", rules=pods))
    await stage.world.made(f"{stage.root}/pods", pod("p"))
    shown = stage.hook.requests[0]["object"]["spec"]
    assert shown["priority"] == 0
    assert len(shown["tolerations"]) == 2
    assert shown["containers"][0]["terminationMessagePath"] == "/dev/termination-log"


# ---- the answer

REFUSED = [
    ("/deny", 400, 'admission webhook "h.example.org" denied the request without explanation', None),
    ("/teapot", 418, 'admission webhook "h.example.org" denied the request: no way', "Teapot"),
    ("/no", 400, 'admission webhook "h.example.org" denied the request: no way', None),
]


@pytest.mark.parametrize("kind", ["validating", "mutating"])
@pytest.mark.parametrize(("path", "code", "message", "reason"), REFUSED)
async def test_refusals(stage: Stage, kind: str, path: str, code: int, message: str, reason: str | None) -> None:
    await stage.register(kind, stage.spec(path))
    answer = await stage.write()
    assert (answer.code, answer.message, answer.body.get("reason")) == (code, message, reason)
    assert (await stage.world.ask("GET", f"{stage.root}/configmaps/c")).code == 404


async def test_warnings_reach_the_client(stage: Stage) -> None:
    await stage.register("validating", stage.spec("/warn"))
    answer = await stage.write()
    assert answer.code == 201
    assert "be careful" in answer.headers["warning"]
    assert "twice" in answer.headers["warning"]


FAILURES = [
    ("validating", "/patch/k", "received invalid webhook response: validating webhook may not return response.patch"),
    ("validating", "/uid", "received invalid webhook response: expected response.uid="),
    ("validating", "/absent", "received invalid webhook response: webhook response was absent"),
    ("validating", "/v2", "failed to call webhook: "),
    ("validating", "/html", "failed to call webhook: "),
    ("validating", "/500", "failed to call webhook: an error on the server"),
    ("validating", "/redirect", "failed to call webhook: "),
    ("mutating", "/untyped", "webhook returned response.patch but not response.patchType"),
    ("mutating", "/rubbish-patch", "response.patch is not a JSON patch in base64"),
]


@pytest.mark.parametrize(("kind", "path", "message"), FAILURES)
async def test_a_failure_refuses_or_is_ignored(stage: Stage, kind: str, path: str, message: str) -> None:
    stage.hook.patches["k"] = []
    await stage.register(kind, stage.spec(path))
    answer = await stage.write()
    assert (answer.code, answer.body["reason"]) == (500, "InternalError")
    assert answer.message.startswith(f"Internal error occurred: {FAILED}")
    assert message in answer.message
    await stage.world.ask("DELETE", f"{CONFIGURATIONS}/{kind}webhookconfigurations/t")
    await stage.register(kind, stage.spec(path, failurePolicy="Ignore"))
    assert (await stage.write()).code == 201


async def test_a_slow_webhook_is_not_waited_for(stage: Stage) -> None:
    await stage.register("validating", stage.spec("/slow", timeoutSeconds=1))
    answer = await stage.write()
    assert answer.message == (
        f'Internal error occurred: {FAILED}failed to call webhook: Post "{stage.hook.url}/slow?timeout=1s": context '
        "deadline exceeded"
    )


async def test_a_webhook_with_another_certificate_is_not_trusted(stage: Stage, tmp_path: Path) -> None:
    async with webhook(tmp_path / "other") as other:
        config = {"url": f"{other.url}/ok", "caBundle": stage.hook.bundle}
        await stage.register("validating", stage.spec("/ok", clientConfig=config))
        answer = await stage.write()
        assert answer.code == 500
        assert "certificate verify failed" in answer.message
        assert not other.asked


async def test_a_webhooks_own_certificate_is_bundle_enough(stage: Stage) -> None:
    """As envtest writes it: the certificate itself in the bundle, two slashes in the URL."""
    own = b64encode(stage.hook.pki.server.certificate_pem).decode()
    config = {"url": f"{stage.hook.url}//deny/", "caBundle": own}
    await stage.register("validating", stage.spec("/deny", clientConfig=config))
    assert (await stage.write()).code == 400
    assert [path for path, _ in stage.hook.asked] == ["/deny?timeout=10s"]


# ---- mutation


async def test_a_patch_changes_what_is_stored(stage: Stage) -> None:
    stage.hook.patches["k"] = [{"op": "add", "path": "/data", "value": {"k": "v"}}]
    await stage.register("mutating", stage.spec("/patch/k"))
    assert (await stage.write()).body["data"] == {"k": "v"}
    stored = (await stage.world.ask("GET", f"{stage.root}/configmaps/c")).body
    assert stored["data"] == {"k": "v"}


async def test_a_patch_that_does_not_apply(stage: Stage) -> None:
    stage.hook.patches["k"] = [{"op": "remove", "path": "/nope"}]
    await stage.register("mutating", stage.spec("/patch/k"))
    answer = await stage.write()
    assert (answer.code, answer.body["reason"]) == (500, "InternalError")


async def test_what_a_webhook_adds_gets_defaults_and_is_judged(stage: Stage) -> None:
    pods = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    sidecar = {"name": "side", "image": "side:1"}
    stage.hook.patches["side"] = [{"op": "add", "path": "/spec/containers/-", "value": sidecar}]
    stage.hook.patches["bad"] = [{"op": "replace", "path": "/spec/containers/0/name", "value": "Not A Name"}]
    stage.hook.patches["type"] = [{"op": "replace", "path": "/spec/containers", "value": "none"}]
    await stage.register("mutating", stage.spec("/patch/side", rules=pods))
    made = await stage.world.made(f"{stage.root}/pods", pod("p"))
    assert made["spec"]["containers"][1]["imagePullPolicy"] == "IfNotPresent"
    await stage.register("mutating", stage.spec("/patch/bad", rules=pods), name="u")
    assert (await stage.world.ask("POST", f"{stage.root}/pods", pod("q"))).code == 422
    await stage.register("mutating", stage.spec("/patch/type", rules=pods), name="v")
    answer = await stage.world.ask("POST", f"{stage.root}/pods", pod("q"))
    assert answer.code == 500
    assert "does not fit" in answer.message


async def test_order_and_reinvocation(stage: Stage) -> None:
    """b changes after a was asked; a wants to know, z does not."""
    stage.hook.patches["data"] = [{"op": "add", "path": "/data", "value": {"k": "v"}}]
    first = stage.spec("/a", "a.example.org", reinvocationPolicy="IfNeeded")
    await stage.register("mutating", stage.spec("/patch/data", "b.example.org"), name="2")
    await stage.register("mutating", first, stage.spec("/z", "z.example.org"), name="1")
    await stage.write()
    assert [url.split("?")[0] for url, _ in stage.hook.asked] == ["/a", "/z", "/patch/data", "/a"]
    assert stage.hook.requests[-1]["object"]["data"] == {"k": "v"}


async def test_nothing_changed_nobody_is_asked_again(stage: Stage) -> None:
    stage.hook.patches["same"] = []
    first = stage.spec("/a", "a.example.org", reinvocationPolicy="IfNeeded")
    await stage.register("mutating", first, stage.spec("/patch/same", "b.example.org"))
    await stage.write()
    assert len(stage.hook.asked) == 2


async def test_the_servers_own_plugins_look_again(stage: Stage) -> None:
    """A container that a webhook added gets the defaults of the namespace's LimitRange."""
    limits = [{"type": "Container", "default": {"cpu": "1"}}]
    await stage.world.made(f"{stage.root}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    pods = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    side = {"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "side:1"}}
    stage.hook.patches["side"] = [side]
    await stage.register("mutating", stage.spec("/patch/side", rules=pods))
    made = await stage.world.made(f"{stage.root}/pods", pod("p"))
    assert [one["resources"]["limits"]["cpu"] for one in made["spec"]["containers"]] == ["1", "1"]


# ---- which writes


async def test_selectors(stage: Stage) -> None:
    other = await stage.world.namespace("other")
    await stage.register(
        "validating",
        stage.spec(
            "/deny", namespaceSelector={"matchLabels": {"team": "a"}}, objectSelector={"matchLabels": {"x": "y"}}
        ),
    )
    labelled = {"metadata": {"name": "d", "labels": {"x": "y"}}}
    assert (await stage.write()).code == 201
    assert (await stage.world.ask("POST", f"{stage.root}/configmaps", labelled)).code == 400
    assert (await stage.world.ask("POST", f"{other}/configmaps", labelled)).code == 201


async def test_a_webhook_cannot_lock_its_own_removal(stage: Stage) -> None:
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
    await stage.register("validating", stage.spec("/deny", rules=everything))
    assert (await stage.write()).code == 400
    path = f"{CONFIGURATIONS}/validatingwebhookconfigurations/t"
    assert (await stage.world.ask("DELETE", path)).code == 200
    assert (await stage.write()).code == 201


@pytest.mark.parametrize(("policy", "code"), [("Equivalent", 400), ("Exact", 201)])
async def test_another_version_of_the_same_resource(stage: Stage, policy: str, code: int) -> None:
    rule = {"apiGroups": ["scheduling.k8s.io"], "apiVersions": ["v1alpha3"], "operations": ["*"]}
    await stage.register(
        "validating", stage.spec("/deny", rules=[{**rule, "resources": ["podgroups"]}], matchPolicy=policy)
    )
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    answer = await stage.world.ask("POST", "/apis/scheduling.k8s.io/v1beta1/namespaces/wh/podgroups", group)
    assert answer.code == code, answer.body
    if code == 400:
        request = stage.hook.requests[0]
        assert request["kind"]["version"] == "v1alpha3"
        assert request["requestKind"]["version"] == "v1beta1"
        assert request["object"]["apiVersion"] == "scheduling.k8s.io/v1alpha3"


# ---- services, dry runs, what is not supported


async def test_a_service_leads_to_its_port_on_this_machine(stage: Stage) -> None:
    service = {"namespace": "wh", "name": "svc", "path": "/deny"}
    config = {"service": service, "caBundle": stage.hook.bundle}
    await stage.register("validating", stage.spec("", clientConfig=config))
    missing = await stage.write()
    assert missing.message == (
        f'Internal error occurred: {FAILED}failed to call webhook: Post "https://svc.wh.svc:443/deny?timeout=10s": '
        'service "svc" not found'
    )
    ports = [{"port": 443, "targetPort": stage.hook.port}]
    await stage.world.made(f"{stage.root}/services", {"metadata": {"name": "svc"}, "spec": {"ports": ports}})
    assert (await stage.write()).code == 400


async def test_where_nobody_listens_the_message_says_where_to_listen(stage: Stage) -> None:
    service = {"namespace": "wh", "name": "svc", "path": "/deny"}
    await stage.register("validating", stage.spec("", clientConfig={"service": service, "caBundle": stage.hook.bundle}))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    ports = [{"port": 443, "targetPort": port}]
    await stage.world.made(f"{stage.root}/services", {"metadata": {"name": "svc"}, "spec": {"ports": ports}})
    assert (await stage.write()).message == (
        f'Internal error occurred: {FAILED}failed to call webhook: Post "https://svc.wh.svc:443/deny?timeout=10s": '
        f"dial tcp 127.0.0.1:{port}: connect: connection refused (here a Service leads to its target port on the "
        "server's own machine: run the operator there, or delete its webhook configuration)"
    )


async def test_a_url_where_nobody_listens(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    config = {"url": f"https://127.0.0.1:{port}/ok", "caBundle": stage.hook.bundle}
    await stage.register("validating", stage.spec("", clientConfig=config))
    assert (await stage.write()).message.endswith(
        f'Post "https://127.0.0.1:{port}/ok?timeout=10s": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )


async def test_a_resolver_of_ones_own(tmp_path: Path) -> None:
    async with webhook(tmp_path, "svc.wh.svc") as hook:
        world = await World.make(resolver=lambda *_: ("127.0.0.1", hook.port))
        stage = Stage(world, hook, await world.namespace("wh"))
        config = {"service": {"namespace": "wh", "name": "svc", "path": "/deny"}, "caBundle": hook.bundle}
        await stage.register("validating", stage.spec("", clientConfig=config))
        assert (await stage.write()).code == 400
        await world.admission.caller.close()


async def test_dry_run_is_told(stage: Stage) -> None:
    await stage.register("validating", stage.spec("/ok"))
    assert (await stage.write(query="?dryRun=All")).code == 201
    request = stage.hook.requests[0]
    assert (request["dryRun"], request["options"]["dryRun"]) == (True, ["All"])


@pytest.mark.parametrize(
    ("expressions", "policy", "code"),
    [
        (("true",), "Fail", 400),
        (("true", "false"), "Fail", 201),
        (("request.operation == 'UPDATE'",), "Fail", 201),
        (("!has(object.metadata.deletionTimestamp)", "request.userInfo.username != 'nobody'"), "Fail", 400),
        (("object.data.nothing == 'x'",), "Ignore", 201),
        (("object.data.nothing == 'x'",), "Fail", 403),
        (("object.data.nothing == 'x'", "false"), "Fail", 201),
    ],
)
async def test_match_conditions_decide_who_is_asked(
    stage: Stage, expressions: tuple[str, ...], policy: str, code: int
) -> None:
    conditions = [{"name": f"c{place}", "expression": text} for place, text in enumerate(expressions)]
    await stage.register("validating", stage.spec("/deny", matchConditions=conditions, failurePolicy=policy))
    assert (await stage.write()).code == code
    assert len(stage.hook.requests) == (1 if code == 400 else 0)


async def test_match_conditions_that_cannot_be_meant(stage: Stage) -> None:
    conditions = [{"name": "a b", "expression": "object."}, {"name": "", "expression": ""}]
    body = {"metadata": {"name": "t"}, "webhooks": [stage.spec("/ok", matchConditions=conditions)]}
    answer = await stage.world.ask("POST", f"{CONFIGURATIONS}/validatingwebhookconfigurations", body)
    assert answer.code == 422
    for field in ("[0].expression", "[0].name", "[1].expression", "[1].name"):
        assert f"webhooks[0].matchConditions{field}" in answer.message


async def test_status_is_another_resource(stage: Stage) -> None:
    status = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/status"]}]
    await stage.register("validating", stage.spec("/deny", rules=status))
    await stage.world.made(f"{stage.root}/pods", pod("p"))
    path, media = f"{stage.root}/pods/p", "application/merge-patch+json"
    assert (await stage.world.ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, media=media)).code == 200
    assert (await stage.world.ask("PATCH", f"{path}/status", {"status": {"phase": "Running"}}, media=media)).code == 400
    assert stage.hook.requests[0]["subResource"] == "status"


async def test_who_asks_is_told(stage: Stage) -> None:
    await stage.register("validating", stage.spec("/ok"))
    who = User("eve", "7", ("system:masters",), {"foo": ("1",)})
    await stage.world.ask("POST", f"{stage.root}/configmaps", {"metadata": {"name": "c"}}, user=who)
    assert stage.hook.requests[0]["userInfo"] == {
        "username": "eve",
        "uid": "7",
        "groups": ["system:masters"],
        "extra": {"foo": ["1"]},
    }


async def test_a_configuration_that_recorded_servers_refused(stage: Stage) -> None:
    wrong = {
        "name": "h.example.org",
        "clientConfig": {"url": "http://foo"},
        "rules": [{"operations": ["FOO"]}],
        "sideEffects": "Some",
        "admissionReviewVersions": ["v9"],
        "timeoutSeconds": 99,
        "failurePolicy": "Eh",
        "matchPolicy": "x",
    }
    body = {"metadata": {"name": "bad"}, "webhooks": [{"name": "x"}, wrong]}
    answer = await stage.world.ask("POST", f"{CONFIGURATIONS}/validatingwebhookconfigurations", body)
    assert answer.code == 422
    assert [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]] == [
        'webhooks[0].name: Invalid value: "x": should be a domain with at least three segments separated by dots',
        "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
        (
            'webhooks[1].rules[0].operations[0]: Unsupported value: "FOO": supported values: "*", "CONNECT", "CREATE", '
            '"DELETE", "UPDATE"'
        ),
        "webhooks[1].rules[0].apiGroups: Required value",
        "webhooks[1].rules[0].apiVersions: Required value",
        "webhooks[1].rules[0].resources: Required value",
        'webhooks[1].failurePolicy: Unsupported value: "Eh": supported values: "Fail", "Ignore"',
        'webhooks[1].matchPolicy: Unsupported value: "x": supported values: "Equivalent", "Exact"',
        'webhooks[1].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
        "webhooks[1].timeoutSeconds: Invalid value: 99: the timeout value must be between 1 and 30 seconds",
        (
            "webhooks[1].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired "
            "format: https://host[/path]"
        ),
        'webhooks[1].admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1',
    ]
