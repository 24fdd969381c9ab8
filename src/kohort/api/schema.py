"""How a kind says what its fields are: one declaration, from which decoding, defaults, rules, and OpenAPI follow.

A node describes a value; attributes that belong to the place where it stands (required, default, gate, update)
are on the node as well, so that a field reads as one line. Objects themselves stay plain dictionaries.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kohort.api.formats import Format


class Update(StrEnum):
    """What may happen to a field after creation."""

    FREE = "free"  # may change; the new value is validated
    FROZEN = "frozen"  # any difference is an error
    VARIANT = "variant"  # may not switch between set and unset
    KEYSET = "keyset"  # a list by key: items may change and move, none may come or go


class WhenOff(StrEnum):
    """What a gate that is off means for a stored field (on create such a field is always dropped)."""

    FORBID = "forbid"  # another value is forbidden, beside what `update` says
    SILENT = "silent"  # no rule of its own: only `update` speaks
    THAWED = "thawed"  # another value is forbidden, and `update` does not apply: the field may be removed


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What all fields have."""

    required: bool = False
    default: Any = UNSET
    gate: str | None = None  # the feature gate without which the field is dropped
    since: str | None = None  # the first minor that knows the field; to older ones it is an unknown field
    update: Update = Update.FREE
    description: str = ""
    nullable: bool = False
    when_off: WhenOff = WhenOff.FORBID
    shown: bool = False  # a server writes it even where it is absent: null, or the empty string


@dataclass(frozen=True, slots=True, kw_only=True)
class Str(Node):
    format: Format | None = None
    enum: tuple[str, ...] = ()
    max_bytes: int | None = None
    min_length: int = 0
    pattern: str | None = None  # for CRDs; `format` says it with a better message
    blank: bool = False  # the empty string counts as absent (a plain string in Go, not a pointer)
    most: int | None = None  # maxLength for CRDs, which makes rules cheap, of what a rule of the kind bounds anyway


@dataclass(frozen=True, slots=True, kw_only=True)
class Int(Node):
    minimum: int | None = None
    maximum: int | None = None
    bits: int = 32
    blank: bool = False  # zero counts as absent


@dataclass(frozen=True, slots=True, kw_only=True)
class Bool(Node):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class IntOrStr(Node):
    """An integer or a string such as a percentage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Time(Node):
    """RFC 3339 time. `micro`: with microseconds (metav1.MicroTime)."""

    micro: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration(Node):
    """A Go duration such as 4h or 90s (metav1.Duration)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obj(Node):
    """An object with known members. `union`: exactly one of these must be set (`union_optional`: at most one).

    `embedded`: never absent, a missing one counts as empty (a struct in Go, not a pointer).
    """

    fields: Mapping[str, Node] = field(default_factory=dict)
    union: tuple[str, ...] = ()
    union_optional: bool = False
    rules: tuple[Cel, ...] = ()  # CEL rules for the CRD, beside what the nodes say
    replaced: Mapping[str, str] = field(default_factory=dict)  # fields that people may know but are not served: instead
    preserve_unknown: bool = False
    embedded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Map(Node):
    """String keys, values of one sort."""

    value: Node = field(default_factory=Str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arr(Node):
    """A list. `key`: a map list, items told apart by these members; `unique`: a set of scalars.

    `by_position`: whether a gated field is in use is looked up at the same place of the stored list, not by key.
    """

    item: Node
    key: tuple[str, ...] = ()
    unique: bool = False
    max_items: int | None = None
    min_items: int = 0
    by_position: bool = False
    distinct: bool = True  # a repeated key is an error of this list; else a hand-written rule says so elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref(Node):
    """A type of Kubernetes itself, by its OpenAPI definition (`io.k8s.api.core.v1.PodTemplateSpec`).

    `gated`: members that are dropped without a feature gate, as {"spec.schedulingGroup": gate}.
    `parsed`: in a kind of the server itself, which reads quantities while it decodes (a CRD's schema does it later).
    """

    definition: str
    gated: Mapping[str, str] = field(default_factory=dict)
    parsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Anything(Node):
    """Any JSON value, kept as it is."""


@dataclass(frozen=True, slots=True)
class Cel:
    """A rule of the CRD in the Common Expression Language."""

    rule: str
    message: str
    field: str = ""  # below the place where the rule stands, with a leading dot: where the error is told
    once: bool = False  # for new objects only: what it is about may be wrong later


def label_name(why: str) -> Cel:
    """The rule of an object whose name begins the names of others."""
    return Cel(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",
        f"metadata.name must be a DNS label that begins with a letter: {why}",
    )


def known(node: Node, minor: str) -> bool:
    """Whether a minor such as "1.36" has the field."""
    return node.since is None or [*map(int, minor.split("."))] >= [*map(int, node.since.split("."))]


N = TypeVar("N", bound="Node")


def but(node: N, **changes: Any) -> N:
    """The same node at another place: `but(POLICY, required=True)`."""
    return replace(node, **changes)


EMPTY: Final = Obj()
