"""Definitions and webhooks of a tenant who may make them: schemas and rules that every object of theirs pays for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.abuse.attack import Attack, Object, Sort, Source

_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
OBJECTS: Final = 5  # of a kind, after its definition


def definition(source: Source, schema: Object, values: list[Any]) -> Iterator[Attack]:
    """A kind with one field `spec`, and objects with such specs."""
    number = source.number + 1
    plural, group = f"t{number}s", f"{source.sort}.example"
    source.name()
    whole = {"type": "object", "properties": {"spec": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    names = {"plural": plural, "kind": f"T{number}", "singular": f"t{number}"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    meta = {"name": f"{plural}.{group}", "labels": {"abuse": "yes"}}
    yield source.send("POST", _PATH, {"metadata": meta, "spec": spec})
    for value in values * OBJECTS:
        yield source.create(f"{group}/v1", plural, f"T{number}", value)


def _patterns(source: Source) -> Iterator[Attack]:
    pattern = source.pick(r"^(\w+\s?)+!$", r"^(a+)+$", r"(x|xx)*y", "a{1,1000}{1,1000}")
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    yield from definition(source, schema, [{"a": "a" * 5000 + "?"}, {"a": "aaa"}, {"a": "word word!"}])


def _rules(source: Source) -> Iterator[Attack]:
    """CEL that costs about as much as a server lets a rule cost."""
    items = source.pick(10, 100, 1000)
    rule = source.pick(
        "self.all(a, self.all(b, a != b || a == b))",
        "self.all(a, self.exists_one(b, a == b))",
        "self.all(a, a.matches('^(a+)+$') || true)",
        "self.map(a, a + a).size() >= 0",
        "self.all(a, self.all(b, self.all(c, a + b != c)))",
    )
    words = {"type": "array", "maxItems": items, "items": {"type": "string", "maxLength": source.pick(10, 1000)}}
    words["x-kubernetes-validations"] = [{"rule": rule}]
    schema = {"type": "object", "properties": {"a": words}}
    yield from definition(source, schema, [{"a": [f"v{number}" for number in range(items)]}, {"a": ["a"]}])


def _deep(source: Source) -> Iterator[Attack]:
    depth = source.pick(5, 60, 150)
    schema: Object = {"type": "string"}
    value: Any = "x"
    for _ in range(depth):
        schema, value = {"type": "object", "properties": {"a": schema}}, {"a": value}
    yield from definition(source, schema, [value])


def _wide(source: Source) -> Iterator[Attack]:
    count = source.pick(50, 2000)
    field = {"type": "string", "enum": [f"v{number}" for number in range(20)], "default": "v0"}
    schema = {"type": "object", "properties": {f"f{number}": field for number in range(count)}}
    yield from definition(source, schema, [{"f0": "v1"}, {}])


def _sets(source: Source) -> Iterator[Attack]:
    """Lists whose items must differ: by value, and by key."""
    item = {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    values = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    schema = {"type": "object", "properties": {"m": keyed, "s": values}}
    count = source.pick(100, 5000)
    many = {"m": [{"k": f"v{number}"} for number in range(count)], "s": [f"v{number}" for number in range(count)]}
    yield from definition(source, schema, [many, {"s": ["a", "a"]}])


def _webhook(source: Source) -> Iterator[Attack]:
    """A webhook that takes the connection and never answers, for objects of this tenant that ask for it."""
    hook = {
        "name": "hole.abuse.example",
        "clientConfig": {"url": source.hole},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": source.namespace}},
        "objectSelector": {"matchLabels": {"hole": "yes"}},
        "failurePolicy": "Ignore",
        "timeoutSeconds": 1,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    meta = {"name": "hole.abuse.example", "labels": {"abuse": "yes"}}
    yield source.send("POST", _HOOKS, {"metadata": meta, "webhooks": [hook]})
    for _ in range(OBJECTS):
        yield source.config_map({"labels": {"hole": "yes"}})


SORTS: Final = (
    Sort("crd-pattern", _patterns),
    Sort("crd-rules", _rules),
    Sort("crd-deep", _deep),
    Sort("crd-wide", _wide),
    Sort("crd-sets", _sets),
    Sort("webhook", _webhook),
)
