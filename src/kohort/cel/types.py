"""Types of expressions. A type that came from a schema knows how large its values may become, for cost estimates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from kohort.cel.values import Duration, Optional, Timestamp, TypeValue, Uint


@dataclass(frozen=True, slots=True)
class Type:
    kind: str
    parts: tuple[Type, ...] = ()
    name: str = ""  # of an object or a parameter
    fields: Mapping[str, Type] | None = field(default=None, compare=False, repr=False)
    most: int | None = field(default=None, compare=False)  # characters, items or members
    least: int = field(default=1, compare=False)  # bytes that a value takes as JSON

    def __str__(self) -> str:
        if self.kind == "param":
            return self.name
        if self.kind == "object" and not self.name.startswith("self"):
            return self.name
        return f"{self.kind}({', '.join(map(str, self.parts))})" if self.parts else _SHOWN.get(self.kind, self.kind)


_SHOWN: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
BOOL, INT, UINT, DOUBLE = Type("bool", least=4), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL, DYN = Type("string", least=2), Type("bytes", least=2), Type("null"), Type("dyn")
DURATION, TIMESTAMP = Type("duration", least=3), Type("timestamp", least=21)
QUANTITY, URL, IP = Type("kubernetes.Quantity"), Type("kubernetes.URL"), Type("net.IP")
CIDR, FORMAT, SEMVER = Type("net.CIDR"), Type("kubernetes.NamedFormat"), Type("kubernetes.Semver")
AUTHORIZATION: Final = {
    name: Type(f"kubernetes.authorization.{name}")
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
}

_NAMED: Final = {
    **AUTHORIZATION,
    **{one.kind: one for one in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, DYN, DURATION, TIMESTAMP)},
    "Quantity": QUANTITY,
    "URL": URL,
    "IP": IP,
    "CIDR": CIDR,
    "Format": FORMAT,
    "Semver": SEMVER,
}
_KINDS: Final[dict[type, str]] = {
    bool: "bool",
    Uint: "uint",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null",
    Duration: "duration",
    Timestamp: "timestamp",
    Optional: "optional_type",
    TypeValue: "type",
    dict: "map",
}
# Whose variables are null when they are absent, so that they may be compared with it.
NULLABLE: Final = frozenset(
    {"object", "duration", "timestamp", "optional_type", "null", QUANTITY.kind, URL.kind, FORMAT.kind, SEMVER.kind}
)


def list_of(item: Type) -> Type:
    return Type("list", (item,), least=2)


def map_of(name: Type, item: Type) -> Type:
    return Type("map", (name, item), least=2)


def optional_of(item: Type) -> Type:
    return Type("optional_type", (item,))


@lru_cache(maxsize=1024)
def written(text: str) -> Type:
    """A type as declarations write it: int, list(A), map(string, list(A)), optional(A), Quantity."""
    found = re.fullmatch(r"\s*(\w+)(?:\((.*)\))?\s*", text)
    assert found is not None, text
    name, inner = found[1], found[2]
    if inner is not None:
        parts = tuple(written(part) for part in arguments(inner))
        return Type("optional_type" if name == "optional" else name, parts, least=2)
    return Type("param", name=name) if len(name) == 1 else _NAMED[name]


def arguments(text: str) -> list[str]:
    """Split at the commas that are not within parentheses."""
    found, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            found.append("")
        else:
            found[-1] += sign
    return [one for one in found if one.strip()]


def kind_of(value: Any) -> str:
    """The kind of a value at run time."""
    found = _KINDS.get(type(value))
    if found is not None:
        return found
    if isinstance(value, list):
        return "list"
    return getattr(value, "kind", "dyn")


def fits(wanted: Type, value: Any) -> bool:
    """Whether a value can be what a declaration wants, as far as its outer type tells."""
    return wanted.kind in {"dyn", "param"} or wanted.kind == kind_of(value)
