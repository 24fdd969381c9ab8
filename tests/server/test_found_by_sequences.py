"""What random requests to a real server showed (tests/kubernetes/test_protocol_differential.py), one by one and without
a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.crd.server import Running
from tests.server.talk import Talk
from tests.server.widgets import APPLY, JSON_PATCH, MERGE, WIDGETS, serve, widget

MAPS = "/api/v1/namespaces/d/configmaps"
PODS = "/api/v1/namespaces/d/pods"
SERVICES = "/api/v1/namespaces/d/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/d/deployments"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/d/podgroups"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture(scope="module")
def custom() -> Iterator[Running]:
    with Running() as running:
        serve(running)
        yield running


def config_map(name: str = "x", **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}


def deployment(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    return {"metadata": {"name": "w"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}}


# ---- deletions

FOREGROUND, BACKGROUND = {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Background"}


@pytest.mark.parametrize(
    ("path", "body", "empty"),
    [
        (MAPS, {}, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}),
        (
            PODS,
            pod("x"),
            {"kind": "Pod", "apiVersion": "v1", "metadata": {}, "spec": {"containers": None}, "status": {}},
        ),
    ],
)
def test_a_dry_run_that_would_take_the_last_finalizer_shows_an_empty_object(
    talk: Talk, path: str, body: dict[str, Any], empty: dict[str, Any]
) -> None:
    talk.create(path, {**body, "metadata": {"name": "x"}})
    talk.request("DELETE", f"{path}/x", FOREGROUND)
    assert talk.request("DELETE", f"{path}/x", {**BACKGROUND, "dryRun": ["All"]}).json() == empty
    assert talk.get(f"{path}/x")["metadata"]["finalizers"] == ["foregroundDeletion"]


def test_a_second_deletion_with_another_policy_shows_the_pod_as_it_was(talk: Talk) -> None:
    talk.create(PODS, pod("x"))
    marked = talk.request("DELETE", f"{PODS}/x", FOREGROUND).json()["metadata"]
    assert (marked["finalizers"], marked["deletionGracePeriodSeconds"]) == (["foregroundDeletion"], 0)
    gone = talk.request("DELETE", f"{PODS}/x", {**BACKGROUND, "gracePeriodSeconds": 30}).json()["metadata"]
    assert gone["finalizers"] == ["foregroundDeletion"]
    assert talk.request("GET", f"{PODS}/x").code == 404


def test_a_pod_that_uses_its_time_can_only_be_hurried(talk: Talk) -> None:
    talk.create(PODS, pod("x", nodeName="n"))
    first = talk.request("DELETE", f"{PODS}/x", {"gracePeriodSeconds": 20}).json()["metadata"]
    again = talk.request("DELETE", f"{PODS}/x", FOREGROUND).json()["metadata"]
    assert again == first, "nothing about it can be changed any more"
    hurried = talk.request("DELETE", f"{PODS}/x", {**FOREGROUND, "gracePeriodSeconds": 5}).json()["metadata"]
    assert (hurried["deletionGracePeriodSeconds"], hurried["finalizers"]) == (5, ["foregroundDeletion"])
    assert hurried["deletionTimestamp"] < first["deletionTimestamp"]
    assert hurried["generation"] == first["generation"]


@pytest.mark.parametrize("dry", [{}, {"dryRun": ["All"]}])
def test_what_goes_at_once_was_never_marked(talk: Talk, dry: dict[str, Any]) -> None:
    talk.create(SERVICES, {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}})
    answer = talk.request("DELETE", f"{SERVICES}/x", dry or None).json()
    assert (answer["kind"], answer["metadata"].get("deletionTimestamp")) == ("Service", None)


def test_the_policy_of_an_event_does_not_count(talk: Talk) -> None:
    events = "/api/v1/namespaces/d/events"
    body = {"metadata": {"name": "x", "namespace": "d"}, "involvedObject": {"namespace": "d"}}
    assert talk.request("POST", events, body).code == 201
    assert talk.request("DELETE", f"{events}/x", FOREGROUND).json()["status"] == "Success"
    assert talk.request("GET", f"{events}/x").code == 404


# ---- warnings

UNHEARD = ['unknown field "spec.unheardOf"']


def test_a_body_is_remarked_on_whatever_refuses_it(talk: Talk) -> None:
    talk.create(DEPLOYMENTS, deployment())
    odd = deployment(unheardOf=1)
    for conflicting in ({"uid": "0"}, {"resourceVersion": "1"}, {"name": "other"}):
        answer = talk.request("PUT", f"{DEPLOYMENTS}/w", {**odd, "metadata": {"name": "w", **conflicting}})
        assert (answer.ok, answer.warnings) == (False, UNHEARD), conflicting
    elsewhere = talk.request("PUT", f"{DEPLOYMENTS}/none", odd)
    assert (elsewhere.code, elsewhere.warnings) == (400, UNHEARD)
    patch = {"metadata": {"resourceVersion": "1"}, "spec": {"unheardOf": 1}}
    stale = talk.request("PATCH", f"{DEPLOYMENTS}/w", patch, content_type=STRATEGIC)
    assert (stale.code, stale.warnings) == (409, UNHEARD)


def test_a_group_that_admission_denies_is_remarked_on(talk: Talk) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, "priority": 2, "unheardOf": 1}
    answer = talk.request("POST", GROUPS, {"metadata": {"name": "x"}, "spec": spec})
    assert (answer.code, answer.warnings) == (403, UNHEARD)


def test_a_remark_is_made_once_though_the_name_is_tried_again(talk: Talk) -> None:
    text = '{"metadata":{"generateName":"x-"},"data":{"a":"1","a":"2"},"unheardOf":1}'
    answer = talk.request("POST", MAPS, text=text)
    assert (answer.code, len(answer.warnings)) == (201, 2)


# ---- apply


def test_conflicts_and_mistakes_of_apply_count_before_a_stale_version(talk: Talk) -> None:
    first = talk.request("PATCH", f"{MAPS}/x?fieldManager=a", {**config_map(), "data": {"k": "1"}}, content_type=APPLY)
    version = first.json()["metadata"]["resourceVersion"]
    talk.request("PATCH", f"{MAPS}/x?fieldManager=a", {**config_map(), "data": {"k": "2"}}, content_type=APPLY)
    stale = config_map(resourceVersion=version)

    def asked(**more: Any) -> Any:
        return talk.request("PATCH", f"{MAPS}/x?fieldManager=b", {**stale, **more}, content_type=APPLY)

    assert asked(unheardOf=1).code == 400
    assert asked(data={"k": "3"}).json()["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    assert asked(data={"l": "3"}).json()["reason"] == "Conflict"
    assert "causes" not in asked(data={"l": "3"}).json()["details"]


def test_a_dry_run_of_apply_that_would_create_keeps_the_version_it_was_given(talk: Talk) -> None:
    path = f"{MAPS}/x?fieldManager=a"
    dry = talk.request("PATCH", f"{path}&dryRun=All", config_map(resourceVersion="1"), content_type=APPLY)
    assert (dry.code, dry.json()["metadata"]["resourceVersion"]) == (201, "1")
    made = talk.request("PATCH", path, config_map(resourceVersion="1"), content_type=APPLY)
    assert (made.code, made.json()["metadata"]["resourceVersion"] != "1") == (201, True)


def test_a_strategic_patch_merges_with_what_is_there_not_with_itself(talk: Talk) -> None:
    talk.create(DEPLOYMENTS, deployment())
    twice = [{"containerPort": 80, "name": "p"}, {"containerPort": 80, "protocol": "TCP"}]
    change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "ports": twice}]}}}}
    found = talk.request("PATCH", f"{DEPLOYMENTS}/w", change, content_type=STRATEGIC).json()
    assert [port.get("name") for port in found["spec"]["template"]["spec"]["containers"][0]["ports"]] == ["p", None]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{nested", "invalid JSON patch"),  # a word of the body decides nothing
        ("[" * 300 + "]" * 300, "the body is nested deeper than 200 levels"),
    ],
)
def test_a_patch_that_cannot_be_read_is_refused_by_what_is_wrong_with_it(talk: Talk, body: str, said: str) -> None:
    talk.create(MAPS, config_map())
    found = talk.request("PATCH", f"{MAPS}/x", text=body, content_type=JSON_PATCH)
    assert (found.code, found.json()["message"]) == (400, said)


# ---- lists


def test_selectors_are_read_before_options_are_judged_and_understood_after(talk: Talk) -> None:
    assert talk.request("GET", f"{MAPS}?labelSelector=a=1=2&resourceVersion=1&resourceVersionMatch=Other").code == 400
    assert talk.request("GET", f"{MAPS}?fieldSelector=no=1&resourceVersion=1&resourceVersionMatch=Other").code == 422
    assert talk.request("GET", f"{MAPS}?resourceVersion=x&resourceVersionMatch=Other").code == 422


def test_a_list_of_one_name_has_no_more_pages(talk: Talk) -> None:
    version = [talk.create(MAPS, config_map(name))["metadata"]["resourceVersion"] for name in ("x", "y", "z")][1]
    query = f"fieldSelector=metadata.name=x&limit=1&resourceVersion={version}&resourceVersionMatch=Exact"
    found = talk.get(f"{MAPS}?{query}")
    assert [one["metadata"]["name"] for one in found["items"]] == ["x"]
    assert "continue" not in found["metadata"]


# ---- scale


def test_a_scale_of_nothing_leaves_the_number_out(talk: Talk) -> None:
    talk.create(DEPLOYMENTS, deployment(replicas=0))
    assert talk.get(f"{DEPLOYMENTS}/w/scale")["spec"] == {}
    three = talk.request("PATCH", f"{DEPLOYMENTS}/w/scale", {"spec": {"replicas": 3}}, content_type=MERGE)
    assert three.json()["spec"] == {"replicas": 3}
    none = talk.request("PATCH", f"{DEPLOYMENTS}/w/scale", {"spec": {"replicas": 0}}, content_type=MERGE)
    assert (none.code, none.json()["spec"]) == (200, {})
    assert talk.get(f"{DEPLOYMENTS}/w")["spec"]["replicas"] == 0


def test_a_scale_that_changes_nothing_does_not_lose_who_owns_the_rest(talk: Talk) -> None:
    talk.create(f"{DEPLOYMENTS}?fieldManager=maker", deployment(replicas=2))
    for _ in range(2):
        path = f"{DEPLOYMENTS}/w/scale?fieldManager=scaler"
        assert talk.request("PATCH", path, {"spec": {"replicas": 2}}, content_type=MERGE).code == 200
        entries = talk.get(f"{DEPLOYMENTS}/w")["metadata"]["managedFields"]
        assert any("f:template" in one["fieldsV1"]["f:spec"] for one in entries if one["manager"] == "maker")


# ---- defaults


def test_a_claim_of_a_volume_that_lives_with_its_pod_has_defaults(talk: Talk) -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    made = talk.create(PODS, pod("x", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}]))
    found = made["spec"]["volumes"][0]["ephemeral"]["volumeClaimTemplate"]
    assert found == {"metadata": {}, "spec": {**claim["spec"], "volumeMode": "Filesystem"}}


@pytest.mark.parametrize(
    ("minor", "given", "found"),
    [
        ("1.37", {}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}}),
        ("1.36", {}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ("1.37", {"type": "RollingUpdate"}, {"type": "RollingUpdate"}),
        ("1.37", {"type": "OnDelete"}, {"type": "OnDelete"}),
    ],
)
def test_how_a_stateful_set_is_updated(minor: str, given: dict[str, Any], found: dict[str, Any]) -> None:
    talk = Talk(minor)
    talk.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
    body = deployment(updateStrategy=given, serviceName="s")
    made = talk.create("/apis/apps/v1/namespaces/d/statefulsets", body)
    talk.close()
    assert made["spec"]["updateStrategy"] == found


# ---- custom resources


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/x", {}, 400),
        ("POST", "/x", widget("y"), 201),
        ("POST", "", {"metadata": {"name": "y"}}, 400),
        ("POST", "", {"kind": "Widget", "metadata": {"name": "y"}}, 400),
        ("POST", "", {**widget("y"), "kind": ""}, 400),
        ("PUT", "/y", {"metadata": {"name": "y"}}, 400),
        ("PUT", "", widget("y"), 400),
        ("PATCH", "", {}, 400),
    ],
)
def test_a_custom_resource_says_what_it_is_and_a_path_only_who(
    custom: Running, method: str, path: str, body: dict[str, Any], code: int
) -> None:
    media = MERGE if method == "PATCH" else "application/json"
    answer = custom.request(method, f"{WIDGETS}{path}?dryRun=All", body, content_type=media)
    assert answer.code == code, answer.body
    if code == 201:
        assert answer.json()["metadata"]["name"] == "y"


def test_a_refused_kind_is_told_with_the_name_that_was_made(custom: Running) -> None:
    body = {"apiVersion": "kohort.test/v1", "kind": "Other", "metadata": {"generateName": "a-"}}
    told = custom.request("POST", WIDGETS, body).json()
    assert (told["code"], told["details"]["kind"], len(told["details"]["name"])) == (422, "Other", 7)
