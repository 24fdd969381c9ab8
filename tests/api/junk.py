"""Objects of the right JSON types and no sense: what a rule must survive."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from kohort.api import definitions
from kohort.api.schema import Anything, Arr, Bool, Duration, Int, IntOrStr, Map, Node, Obj, Ref, Str, Time

_WORDS: Final = ("", "a", "x-0", "Not Ok", "10%", "-1", "a.b/c", "n" * 64, "1Gi", "äöü", "replica", "leader")
_NUMBERS: Final = (-1, 0, 1, 2, 7, 2**31 - 1, -(2**31))
_QUANTITIES: Final = ("0", "-1", "500m", "2", "4Gi", "1e3", 3)
_TIME: Final = "2026-01-01T00:00:00Z"
_DEEPEST: Final = 10


class Maker:
    """Draws values for schema nodes; a seed gives the same value again. The deeper, the less is written."""

    def __init__(self, seed: int, minor: str) -> None:
        self._random = Random(seed)
        self._minor = minor

    def value(self, node: Node, depth: int = 0) -> Any:
        if depth > 1 and self._random.random() < 0.05:
            return None  # null counts as absent, and must not surprise anybody
        if isinstance(node, Obj):
            return {name: self.value(member, depth + 1) for name, member in node.fields.items() if self._write(depth)}
        if isinstance(node, Arr):
            return [self.value(node.item, depth + 1) for _ in range(self._count(depth))]
        if isinstance(node, Map):
            return {word or "k": self.value(node.value, depth + 1) for word in self._some(_WORDS, self._count(depth))}
        if isinstance(node, Ref):
            return self._defined({"$ref": f"#/definitions/{node.definition}"}, depth)
        return self._scalar(node)

    def _scalar(self, node: Node) -> Any:
        choices: dict[type[Node], tuple[Any, ...]] = {
            Int: _NUMBERS,
            Bool: (True, False),
            IntOrStr: (*_NUMBERS, *_WORDS),
            Time: (_TIME,),
            Duration: ("0s", "90s", "4h", "-1m"),
            Anything: ({}, [], "", 0, {"a": [1]}),
        }
        if isinstance(node, Str):  # mostly a word that is accepted, so that the rules behind it are reached
            return self._random.choice(node.enum if node.enum and self._random.random() < 0.7 else _WORDS)
        return self._random.choice(choices[type(node)])

    def _defined(self, schema: dict[str, Any], depth: int) -> Any:
        """A type of Kubernetes itself, from its OpenAPI definition."""
        name = definitions.target(schema)
        if name is not None:
            schema = definitions.definition(self._minor, name)
        kind, form = schema.get("type"), schema.get("format", "")
        if kind == "object" or "properties" in schema:
            return self._properties(schema, depth)
        if kind == "array":
            return [self._defined(schema["items"], depth + 1) for _ in range(self._count(depth))]
        if (name or "").endswith(".Quantity"):
            return self._random.choice(_QUANTITIES)
        if form == "int-or-string":
            return self._scalar(IntOrStr())
        if form == "date-time":
            return _TIME
        plain = {"integer": Int(), "boolean": Bool(), "string": Str()}.get(str(kind), Anything())
        return self._scalar(plain)

    def _properties(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
        made = {name: self._defined(item, depth + 1) for name, item in properties.items() if self._write(depth)}
        if extra is not None and not properties:
            made |= {word or "k": self._defined(extra, depth + 1) for word in self._some(_WORDS, self._count(depth))}
        return made

    def _write(self, depth: int) -> bool:
        return depth < _DEEPEST and self._random.random() < max(0.9 - 0.15 * depth, 0.08)

    def _count(self, depth: int) -> int:
        return 0 if depth >= _DEEPEST else self._random.choice([0, 1, 1, 2])

    def _some(self, words: tuple[str, ...], count: int) -> list[str]:
        return self._random.sample(words, count)
