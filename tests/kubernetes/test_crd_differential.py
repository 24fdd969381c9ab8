"""The same definitions and the same custom resources to real Kubernetes 1.37 and to our server.

Compared: code, reason, the set of (cause, field), and what is stored. `KOHORT_SEED` chooses other objects.
"""

import copy
import json
import os
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.server.crd.documents import Object, crd, gizmo
from tests.server.crd.server import Running

from kohort.testing.client import Client, Response
from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import new_namespace

SEED = int(os.environ.get("KOHORT_SEED", "1"))
WRITES = int(os.environ.get("KOHORT_WRITES", "500"))
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[Client, str]]:
    with Environment("1.37") as env:
        namespace = new_namespace(env, "crd")
        yield namespace.client, namespace.name


@pytest.fixture(scope="module")
def ours() -> Iterator[Running]:
    with Running() as running:
        yield running


def verdict(answer: Response) -> tuple[int, str, frozenset[tuple[str, str]]]:
    if answer.ok:
        return answer.code, "", frozenset()
    status = answer.json()
    causes = (status.get("details") or {}).get("causes", [])
    return (
        answer.code,
        status.get("reason", ""),
        frozenset((one.get("reason", ""), one.get("field", "")) for one in causes),
    )


def until(client: Any, path: str) -> None:
    deadline = time.monotonic() + 20
    while not client.request("GET", path).ok:
        assert time.monotonic() < deadline, path
        time.sleep(0.1)


# ---- objects

# Upstream lets an empty list or object pass for a string with a format, and has two minds about 2.0 as an integer.
ODD: list[tuple[str, Any]] = [("when", []), ("when", {}), ("size", 2.0), ("even", 2.0)]
SCALARS: list[Any] = [0, 1, 5, 9, 11, 1.5, 2.0, "", "a", "ab", "abcdef", "t1", True, None, [], {}]


def spoiled(random: Random) -> Object:
    spec: Object = {
        "size": random.choice([1, 5, 9, 10]),
        "mode": random.choice(["fast", "slow"]),
        "name": random.choice(["ab", "abc"]),
        "when": "2026-01-01T00:00:00Z",
        "port": random.choice([1, "http"]),
        "tags": ["t1"],
        "parts": [{"name": "p", "weight": 2}, {"name": "q"}],
        "labels": {"a": "b"},
        "free": {"x": {"y": None}},
        "either": {"a": 1},
        "any": {"b": 1},
        "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "more": 1},
        "ratio": 1.5,
        "even": 2,
        "set": ["a", "b"],
        "maybe": None,
    }
    for name in random.sample(list(spec), random.randint(0, len(spec) - 2)):
        if name != "size":
            del spec[name]
    for _ in range(random.choice([0, 0, 1, 1, 2])):
        name = random.choice([*spec, "stray", "on", "maybe"])
        spec[name] = random.choice([one for one in SCALARS if (name, one) not in ODD])
    changes: list[tuple[str, Any]] = [
        ("tags", ["x"]), ("tags", ["t", "t", "t"]), ("set", ["a", "a"]), ("parts", [{"name": "p"}, {"name": "p"}]),
        ("parts", [{"weight": 1}]), ("parts", [{"name": "p", "stray": 1}]), ("labels", {"a": "long one"}),
        ("labels", {"a": "1", "b": "2", "c": "3"}), ("either", {}), ("either", {"a": 1, "b": 2}),
        ("any", {"a": 1, "b": 2}), ("any", {}), ("inner", {"kind": "x"}), ("when", "yesterday"),
        ("labels", {"a": 1}), ("either", {"a": "x"}), ("even", 3),
    ]  # fmt: skip
    if random.random() < 0.4:
        name, value = random.choice(changes)
        spec[name] = copy.deepcopy(value)
    return spec


def differ(one: Response, other: Response) -> bool:
    if verdict(one) != verdict(other):
        return True
    return one.ok and _content(one.json()) != _content(other.json())


def _content(obj: Object) -> Object:
    kept = copy.deepcopy(obj)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", "generation"):
        kept["metadata"].pop(name, None)
    return kept


@pytest.mark.timeout(300)
def test_objects_get_the_same_answer(real: tuple[Client, str], ours: Running) -> None:
    print(f"KOHORT_SEED={SEED} KOHORT_WRITES={WRITES}")
    client, name = real
    for one in (client, ours):
        assert one.request("POST", CRDS, crd()).code == 201
    there, here = f"/apis/kohort.test/v1/namespaces/{name}/gizmos", "/apis/kohort.test/v1/namespaces/default/gizmos"
    until(client, there)
    until(ours, here)
    old = gizmo("old", name="ab", parts=[{"name": "p", "weight": 2}])
    stored = [one.request("POST", path, old).json() for one, path in ((client, there), (ours, here))]
    failures: list[str] = []
    codes: set[int] = set()
    for number in range(WRITES):
        random = Random(f"{SEED}/{number}")
        spec = spoiled(random)
        strict = "&fieldValidation=Strict" if random.random() < 0.2 else ""
        if random.random() < 0.7:
            body = {**gizmo("new"), "spec": spec}
            first = client.request("POST", f"{there}?dryRun=All{strict}", body)
            second = ours.request("POST", f"{here}?dryRun=All{strict}", body)
        else:
            bodies = [{**one, "spec": spec} for one in stored]
            first = client.request("PUT", f"{there}/old?dryRun=All{strict}", bodies[0])
            second = ours.request("PUT", f"{here}/old?dryRun=All{strict}", bodies[1])
        codes.add(first.code)
        if differ(first, second):
            failures.append(f"#{number} {json.dumps(spec)}\n  real {told(first)}\n  ours {told(second)}")
    assert {201, 200, 422, 400} <= codes
    shown = "\n".join(failures[:12])
    assert not failures, f"{len(failures)} of {WRITES} answers differ (KOHORT_SEED={SEED}):\n{shown}"


def told(answer: Response) -> str:
    found = answer.json()
    return f"{answer.code} {found.get('message') or json.dumps(found.get('spec'))}"


# ---- definitions


def at(path: str, value: Any) -> Object:
    """A definition with a value put somewhere: "spec.versions.0.name"."""
    made = crd("widgets", "Widget")
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": {"type": "string"}}}}}
    made["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    place: Any = made
    *parents, last = path.split("/")
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
    if value is None:
        place.pop(int(last) if isinstance(place, list) else last, None)
    else:
        place[last] = value
    return made


V = "spec/versions/0"
X = f"{V}/schema/openAPIV3Schema/properties/spec/properties/x"
ROOT = f"{V}/schema/openAPIV3Schema"
KEYED = {"type": "object", "properties": {"k": {"type": "string"}}}
FROZEN = {"type": "string", "maxLength": 3, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
BAD: list[tuple[str, Any]] = [
    ("metadata/name", "other.kohort.test"),
    ("spec/group", None),
    ("spec/scope", "Galaxy"),
    ("spec/names/plural", "Widgets"),
    ("spec/names/kind", "wid get"),
    ("spec/names/shortNames", ["A"]),
    ("spec/names/listKind", "Widget"),
    (f"{V}/name", "V1"),
    (f"{V}/storage", False),
    (f"{V}/schema", None),
    (f"{V}/deprecationWarning", "old"),
    (f"{V}/subresources/scale", {"specReplicasPath": "spec.x", "statusReplicasPath": ".spec.y"}),
    (f"{V}/additionalPrinterColumns", [{"name": "", "type": "text", "jsonPath": "x"}]),
    (f"{ROOT}/type", "string"),
    (f"{ROOT}/type", None),
    (f"{ROOT}/nullable", True),
    (f"{ROOT}/properties/metadata", {"type": "object", "properties": {"labels": {"type": "object"}}}),
    (X, {}),
    (X, {"type": "text"}),
    (X, {"type": "array"}),
    (X, {"type": "array", "items": {}}),
    (X, {"type": "string", "default": 5}),
    (X, {"type": "string", "pattern": "("}),
    (X, {"type": "string", "x-kubernetes-list-type": "set"}),
    (X, {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}),
    (X, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (X, {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
    (X, {"type": "array", "items": KEYED, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
    (X, {"type": "object", "properties": {"y": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
    (X, {"type": "object", "properties": {}, "anyOf": [{"properties": {"y": {"minLength": 1}}}]}),
    (X, {"type": "string", "anyOf": [{"type": "string"}]}),
    (X, {"type": "object", "x-kubernetes-embedded-resource": True}),
    (X, {"type": "string", "x-kubernetes-int-or-string": True}),
    (X, {"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
    (X, {"type": "string", "x-kubernetes-validations": [{"rule": "self.size( > 1"}]}),
    (X, {"type": "string", "x-kubernetes-validations": [{"rule": ""}]}),
    (X, {"type": "string", "x-kubernetes-validations": [{"rule": "other > 1"}]}),
    (X, {**KEYED, "x-kubernetes-validations": [{"rule": "self.z == 'a'"}]}),
    (X, {"type": "array", "maxItems": 3, "items": FROZEN}),
    (X, {"$ref": "#/x"}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BAD)))
def test_definitions_get_the_same_refusal(real: tuple[Client, str], ours: Running, number: int) -> None:
    path, value = BAD[number]
    body = at(path, value)
    first, second = (one.request("POST", f"{CRDS}?dryRun=All", body) for one in (real[0], ours))
    assert verdict(first) == verdict(second), f"{path} = {value}\n  real {told(first)}\n  ours {told(second)}"


def test_a_good_definition_is_stored_alike(real: tuple[Client, str], ours: Running) -> None:
    body = at("spec/names/singular", "widget")
    first, second = (one.request("POST", CRDS, body) for one in (real[0], ours))
    assert (first.code, second.code) == (201, 201)
    assert _content(first.json()) == _content(second.json())
    time.sleep(2)
    first, second = (one.request("GET", f"{CRDS}/widgets.kohort.test") for one in (real[0], ours))
    assert _settled(first.json()) == _settled(second.json())


def _settled(obj: Object) -> Object:
    status = copy.deepcopy(obj["status"])
    for one in status["conditions"]:
        del one["lastTransitionTime"]
    return status
