"""What kubectl and other clients that nobody here wrote found, each as a small test of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.crd.server import Running

from kohort.api.crd import crds

APPLY = "application/apply-patch+yaml"


@pytest.fixture(scope="module")
def talk() -> Iterator[Running]:
    with Running(shipped=True) as one:
        one.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
        yield one


# ---- bodies


def _applied(talk: Running, text: str, name: str = "c", query: str = "") -> Any:
    path = f"/api/v1/namespaces/d/configmaps/{name}?fieldManager=me{query}"
    return talk.request("PATCH", path, text=text, content_type=APPLY)


@pytest.mark.parametrize("data", ['{"level": "info"}', " *foo", '{"level": "info"}\n *foo\n- *bar\n', '"a": "b", *c'])
def test_text_that_looks_like_json_or_an_alias_is_text(talk: Running, data: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": data}}
    answer = _applied(talk, json.dumps(body))
    assert answer.code in (200, 201), answer.body
    assert answer.json()["data"]["k"] == data
    block = "".join(f"    {line}\n" for line in data.splitlines())
    written = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: y}}\ndata:\n  k: |2\n{block}"
    answer = _applied(talk, written, "y")
    assert answer.code in (200, 201), answer.body
    assert answer.json()["data"]["k"].split() == data.split()


def test_keys_that_repeat_are_found_beside_text_with_colons(talk: Running) -> None:
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"{\\"a\\": 1}","k":"2"}}'
    answer = _applied(talk, text, query="&fieldValidation=Strict")
    assert answer.code == 400
    assert 'key "k" already set in map' in answer.json()["message"]
    answer = talk.request("POST", "/api/v1/namespaces/d/configmaps?fieldValidation=Strict", text=text)
    assert answer.code == 400
    assert 'duplicate field "data.k"' in answer.json()["message"]


def test_an_alias_is_refused_with_its_line(talk: Running) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z, labels: &l {a: b}, annotations: *l}\n"
    answer = _applied(talk, text, "z")
    assert answer.code == 400
    assert answer.json()["message"] == "line 3: YAML aliases (*l) are not accepted in a request"


# ---- OpenAPI: kubectl apply and diff choose their patches by it

PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")


def _patch_paths(talk: Running) -> Iterator[tuple[str, list[str]]]:
    for name in talk.get("/openapi/v3")["paths"]:
        for path, entry in talk.get(f"/openapi/v3/{name}")["paths"].items():
            if "patch" in entry:
                yield path, list(entry["patch"]["requestBody"]["content"])


def test_the_patches_that_openapi_lists_are_those_that_are_accepted(talk: Running) -> None:
    seen = 0
    for path, listed in _patch_paths(talk):
        at = path.replace("{namespace}", "d").replace("{name}", "nobody") + "?fieldManager=me&force=true"
        kinds = [f"application/{one}" for one in PATCHES]
        if at.partition("?")[0].endswith("/nobody"):  # an apply would create it
            kinds = kinds[:3]
        taken = [kind for kind in kinds if talk.request("PATCH", at, text="[]", content_type=kind).code != 415]
        assert taken == [kind for kind in kinds if kind in listed], path
        assert "application/apply-patch+yaml" in listed, path
        seen += 1
    assert seen > 120


def test_openapi_says_what_a_subresource_takes(talk: Running) -> None:
    core = talk.get("/openapi/v3/api/v1")
    for path, kind in (("status", "Pod"), ("binding", "Binding"), ("eviction", "Eviction")):
        entry = core["paths"][f"/api/v1/namespaces/{{namespace}}/pods/{{name}}/{path}"]
        operation = entry["put" if path == "status" else "post"]
        (body,) = operation["requestBody"]["content"].values()
        name = body["schema"]["$ref"].rpartition("/")[2]
        assert name.endswith(f".{kind}")
        assert name in core["components"]["schemas"]
        assert operation["x-kubernetes-group-version-kind"]["kind"] == kind
    custom = talk.get("/openapi/v3/apis/leaderworkerset.x-k8s.io/v1")
    scale = custom["paths"]["/apis/leaderworkerset.x-k8s.io/v1/namespaces/{namespace}/leaderworkersets/{name}/scale"]
    assert scale["put"]["requestBody"]["content"]["*/*"]["schema"]["$ref"].endswith(".autoscaling.v1.Scale")


# ---- definitions


def test_a_definition_that_comes_with_us_belongs_to_whoever_applies_it(talk: Running) -> None:
    """Upstream's own JobSet definition has other words than ours; nobody else claims them."""
    theirs: Any = next(one for one in crds() if one["spec"]["names"]["kind"] == "JobSet")
    theirs["spec"]["names"]["shortNames"] = ["js"]
    theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "theirs"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{theirs['metadata']['name']}"
    assert [one["manager"] for one in talk.get(path)["metadata"]["managedFields"]] == ["kohort"]
    answer = talk.request("PATCH", f"{path}?fieldManager=kubectl", theirs, content_type=APPLY)
    assert answer.code == 200, answer.body
    assert answer.json()["spec"]["names"]["shortNames"] == ["js"]


# ---- answers


def test_every_json_body_ends_with_a_newline(talk: Running) -> None:
    """The official Python client's tests compare bodies of errors with it."""
    body = {"metadata": {"name": "line"}}
    path = "/api/v1/namespaces/d/configmaps"
    for answer in (
        talk.request("GET", f"{path}/missing"),
        talk.request("POST", path, body),
        talk.request("POST", path, body),
        talk.request("GET", f"{path}/line"),
        talk.request("PUT", f"{path}/line", body),
        talk.request("GET", path),
        talk.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io"),
        talk.request("DELETE", f"{path}/line"),
    ):
        assert answer.body.endswith(b"}\n"), answer.body
        assert not answer.body.endswith(b"\n\n")


COLUMNS = json.loads((Path(__file__).parents[1] / "recorded" / "columns-1.37.json").read_text())


@pytest.mark.parametrize("path", sorted(COLUMNS))
def test_kubectl_get_has_the_columns_of_kubernetes(talk: Running, path: str) -> None:
    answer = talk.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    if answer.code == 404:
        pytest.skip("behind a gate that is off here, or not served at all (docs/server.md)")
    found = answer.json()["columnDefinitions"]
    assert [[one[name] for name in ("name", "type", "format", "priority")] for one in found] == COLUMNS[path]


def test_an_event_shows_its_age_first_and_its_name_when_asked(talk: Running) -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "d"}}
    talk.create("/api/v1/namespaces/d/events", {**event, "reason": "Tried", "message": "m", "type": "Normal"})
    path = "/api/v1/namespaces/d/events"
    found = talk.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io").json()
    cells = [one["cells"] for one in found["rows"] if one["object"]["metadata"]["name"] == "e"]
    assert cells == [["<unknown>", "Normal", "Tried", "pod/p", "", "", "m", "<unknown>", 1, "e"]]


def test_endpoints_come_with_the_warning_that_they_are_deprecated(talk: Running) -> None:
    for answer in (talk.request("GET", "/api/v1/endpoints"), talk.request("GET", "/api/v1/namespaces/d/endpoints/no")):
        assert "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice" in str(answer.headers)


def test_feature_gates_are_in_the_metrics(talk: Running) -> None:
    lines = talk.request("GET", "/metrics").body.decode().splitlines()
    assert 'kubernetes_feature_enabled{name="GenericWorkload",stage="BETA"} 1.0' in lines
    assert 'kubernetes_feature_enabled{name="CompositePodGroup",stage="ALPHA"} 1.0' in lines
    assert 'kubernetes_feature_enabled{name="PodGroupPreemptionPolicy",stage="ALPHA"} 0.0' in lines


# ---- endpoint slices


@pytest.mark.parametrize(
    ("kind", "address", "problem"),
    [
        ("IPv4", "", '[0]: Invalid value: "": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'),
        ("IPv4", "fd00::1", ': Invalid value: "fd00::1": must be an IPv4 address'),
        ("IPv6", "10.0.0.1", ': Invalid value: "10.0.0.1": must be an IPv6 address'),
        ("IPv4", "010.0.0.1", '[0]: Invalid value: "010.0.0.1": must not have leading 0s'),
        ("IPv4", "0.0.0.0", '[0]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)'),
        ("IPv4", "127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("IPv4", "169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("IPv4", "224.0.0.1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ("FQDN", "nope", "should be a domain with at least two segments separated by dots"),
        ("IPv4", "10.0.0.1", ""),
        ("IPv6", "fd00::1", ""),
        ("FQDN", "a.example.com", ""),
    ],
)
def test_addresses_of_endpoint_slices(talk: Running, kind: str, address: str, problem: str) -> None:
    body = {"metadata": {"name": "s"}, "addressType": kind, "endpoints": [{"addresses": [address]}]}
    answer = talk.request("POST", "/apis/discovery.k8s.io/v1/namespaces/d/endpointslices?dryRun=All", body)
    assert answer.code == (422 if problem else 201), answer.body
    assert problem in answer.json().get("message", "")
    assert ("endpoints[0].addresses" in answer.json().get("message", "")) is bool(problem)


def test_an_endpoint_slice_keeps_its_type(talk: Running) -> None:
    path = "/apis/discovery.k8s.io/v1/namespaces/d/endpointslices"
    made = talk.create(path, {"metadata": {"name": "t"}, "addressType": "IPv4", "endpoints": []})
    answer = talk.request("PUT", f"{path}/t", {**made, "addressType": "IPv6"})
    assert (answer.code, answer.json()["details"]["causes"][0]["field"]) == (422, "addressType")


# ---- pods

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
PODS = "/api/v1/namespaces/d/pods"


def _pod(talk: Running, name: str) -> Any:
    spec = {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [{"name": "c", "image": "i:1"}]}
    return talk.create(PODS, {"metadata": {"name": name}, "spec": spec})


def _debug(talk: Running, name: str, container: dict[str, Any], **more: Any) -> Any:
    change = {"spec": {"ephemeralContainers": [container], **more}}
    return talk.request("PATCH", f"{PODS}/{name}/ephemeralcontainers", change, content_type=STRATEGIC)


def test_kubectl_debug_adds_a_container(talk: Running) -> None:
    _pod(talk, "debugged")
    answer = _debug(talk, "debugged", {"name": "d", "image": "busybox", "targetContainerName": "c", "stdin": True})
    assert answer.code == 200, answer.body
    more = {"containers": [{"name": "c", "image": "other"}]}
    found = _debug(talk, "debugged", {"name": "e", "image": "busybox"}, **more).json()
    assert [one["name"] for one in found["spec"]["ephemeralContainers"]] == ["e", "d"]
    assert found["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "Always"
    assert found["spec"]["containers"][0]["image"] == "i:1"  # nothing else is written here
    assert found["metadata"]["generation"] == 3
    owners = {one["manager"]: one.get("subresource") for one in found["metadata"]["managedFields"]}
    assert "ephemeralcontainers" in owners.values()
    assert talk.get(f"{PODS}/debugged/ephemeralcontainers")["spec"] == found["spec"]


@pytest.mark.parametrize(
    ("container", "problem"),
    [
        ({"name": "c", "image": "b"}, 'spec.ephemeralContainers[0].name: Duplicate value: "c"'),
        ({"name": "e"}, "spec.ephemeralContainers[0].image: Required value"),
        ({"name": "d", "image": "other"}, 'existing ephemeral containers "d" may not be changed'),
        ({"targetContainerName": "no"}, 'spec.ephemeralContainers[0].targetContainerName: Not found: "no"'),
        ({"ports": [{"containerPort": 1}]}, "[0].ports: Forbidden: cannot be set for an Ephemeral Container"),
        ({"resources": {"limits": {"cpu": "1"}}}, "[0].resources: Forbidden: cannot be set for an Ephemeral Container"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "b"}]},
            "volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container",
        ),
        ({"volumeMounts": [{"name": "w", "mountPath": "/a"}]}, 'volumeMounts[0].name: Not found: "w"'),
    ],
)
def test_what_an_ephemeral_container_may_not_be(talk: Running, container: dict[str, Any], problem: str) -> None:
    if talk.request("GET", f"{PODS}/odd").code == 404:
        _pod(talk, "odd")
        assert _debug(talk, "odd", {"name": "d", "image": "b"}).code == 200
    answer = _debug(talk, "odd", container if "name" in container else {"name": "e", "image": "b", **container})
    assert answer.code == 422, answer.body
    assert problem in answer.json()["message"]


def test_ephemeral_containers_have_an_endpoint_of_their_own(talk: Running) -> None:
    _pod(talk, "whole")
    assert _debug(talk, "whole", {"name": "d", "image": "b"}).code == 200
    gone: dict[str, Any] = {"spec": {"ephemeralContainers": []}}
    answer = talk.request("PATCH", f"{PODS}/whole/ephemeralcontainers", gone, content_type=MERGE)
    assert 'existing ephemeral containers "d" may not be removed' in answer.json()["message"]
    plain = {"spec": {"ephemeralContainers": [{"name": "e", "image": "b"}]}}
    assert talk.request("PATCH", f"{PODS}/whole", plain, content_type=STRATEGIC).code == 422
    spec = {"containers": [{"name": "c", "image": "b"}], "ephemeralContainers": [{"name": "e", "image": "b"}]}
    answer = talk.request("POST", PODS, {"metadata": {"name": "never"}, "spec": spec})
    assert "spec.ephemeralContainers: Forbidden: cannot be set on create" in answer.json()["message"]


def _tell(talk: Running, name: str, **status: Any) -> Any:
    return talk.request("PATCH", f"{PODS}/{name}/status", {"status": status}, content_type=MERGE)


def test_binding_clears_the_nomination_and_nobody_brings_it_back(talk: Running) -> None:
    _pod(talk, "bound")
    assert _tell(talk, "bound", nominatedNodeName="N_1").code == 422
    assert _tell(talk, "bound", nominatedNodeName="n1").json()["status"]["nominatedNodeName"] == "n1"
    target = {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n2"}}
    assert talk.request("POST", f"{PODS}/bound/binding", target).code == 201
    assert "nominatedNodeName" not in talk.get(f"{PODS}/bound")["status"]
    answer = _tell(talk, "bound", nominatedNodeName="n1")
    assert answer.code == 422
    wanted = "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    assert wanted in answer.json()["message"]
    assert _tell(talk, "bound", nominatedNodeName="", message="m").code == 200


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"podIPs": [{"ip": "no"}]}, 'status.podIPs[0]: Invalid value: "no": must be a valid IP address'),
        (
            {"hostIPs": [{"ip": "10.0.0.1"}]},
            'status.hostIPs[0].ip: Invalid value: "10.0.0.1": must be equal to `hostIP`',
        ),
        ({"qosClass": "Guaranteed"}, 'status.qosClass: Invalid value: "Guaranteed": field is immutable'),
        ({"observedGeneration": -1}, "status.observedGeneration: Invalid value: -1: must be a non-negative integer"),
        ({"resourceClaimStatuses": [{"name": "x"}]}, "must match the name of an entry in `spec.resourceClaims`"),
    ],
)
def test_a_status_that_a_pod_cannot_have(talk: Running, status: dict[str, Any], problem: str) -> None:
    if talk.request("GET", f"{PODS}/told").code == 404:
        _pod(talk, "told")
    answer = _tell(talk, "told", **status)
    assert answer.code == 422, answer.body
    assert problem in answer.json()["message"]


def test_a_new_status_keeps_the_class_of_service(talk: Running) -> None:
    made = _pod(talk, "classy")
    answer = talk.request("PUT", f"{PODS}/classy/status", {**made, "status": {"phase": "Running"}})
    assert answer.json()["status"] == {"phase": "Running", "qosClass": "BestEffort"}


# ---- kinds that few people make


def test_a_trust_bundle_of_a_signer_has_its_name(talk: Running) -> None:
    path = "/apis/certificates.k8s.io/v1/clustertrustbundles?dryRun=All"
    spec = {"signerName": "example.com/s", "trustBundle": "-----BEGIN CERTIFICATE-----\n"}
    assert talk.request("POST", path, {"metadata": {"name": "example.com:s:a"}, "spec": spec}).code == 201
    answer = talk.request("POST", path, {"metadata": {"name": "a"}, "spec": spec})
    assert "must be named with prefix example.com:s:" in answer.json()["message"]
    del spec["signerName"]
    answer = talk.request("POST", path, {"metadata": {"name": "example.com:s:a"}, "spec": spec})
    assert 'without signer name must not have ":" in its name' in answer.json()["message"]


PATCH = '[JSONPatch{op: "remove", path: "/spec/hostname"}]'
POLICIES: dict[str, dict[str, Any]] = {
    "Validating": {"validations": [{"expression": "true"}]},
    "Mutating": {
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": PATCH}}],
    },
}


@pytest.mark.parametrize("kind", POLICIES)
def test_admission_policies_have_defaults(talk: Running, kind: str) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}admissionpolicies?dryRun=All"
    given = {"matchConstraints": {"resourceRules": [rule]}, **POLICIES[kind]}
    spec = talk.create(path, {"metadata": {"name": "p"}, "spec": given})["spec"]
    assert spec == {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [{**rule, "scope": "*"}],
        },
        **POLICIES[kind],
    }
