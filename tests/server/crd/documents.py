"""Definitions for tests: one with everything in it, and ways to spoil one."""

from typing import Any

Object = dict[str, Any]

SPEC: Object = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
        "even": {"type": "integer", "multipleOf": 2},
        "mode": {"type": "string", "enum": ["fast", "slow"], "maxLength": 8, "default": "slow"},
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "when": {"type": "string", "format": "date-time"},
        "on": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": True},
        "maybe": {"type": "string", "nullable": True},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "minItems": 1},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "maxItems": 8,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 20},
                    "weight": {"type": "integer", "default": 1},
                },
                "x-kubernetes-validations": [
                    {"rule": "self.weight >= oldSelf.weight", "message": "weight may not shrink"}
                ],
            },
        },
        "labels": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string", "maxLength": 3}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        "any": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            "not": {"required": ["a", "b"]},
        },
        "inner": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.tags) || self.tags.all(t, t.startsWith('t'))", "message": "tags begin with t"},
        {
            "rule": "self.size < 9 || self.mode == 'fast'",
            "messageExpression": "'this is ' + self.mode",
        },
        {
            "rule": "!has(oldSelf.name) || (has(self.name) && self.name == oldSelf.name)",
            "reason": "FieldValueForbidden",
        },
    ],
}
STATUS: Object = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "conditions": {
            "type": "array",
            "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}},
        },
    },
}


def crd(plural: str = "gizmos", kind: str = "Gizmo", group: str = "kohort.test") -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "shortNames": [kind[:2].lower() + "z"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}},
                    },
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.size",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                        {
                            "name": "Ready",
                            "type": "string",
                            "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                        },
                        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
                    ],
                }
            ],
        },
    }


def gizmo(called: str = "g", **spec: Any) -> Object:
    return {"apiVersion": "kohort.test/v1", "kind": "Gizmo", "metadata": {"name": called}, "spec": {"size": 1, **spec}}
