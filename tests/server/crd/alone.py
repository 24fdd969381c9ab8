"""One of our definitions without our own rules beside it: what a server makes of it that does not ask us."""

from __future__ import annotations

from copy import deepcopy

from kohort.api.kind import Context, Kind, Object
from kohort.server.crd.custom_kind import kind_of
from kohort.server.crd.shipped import shipped


def alone(name: str) -> Kind:
    """Of somebody else's group, so that its schema and its rules are all that counts."""
    spec = shipped()[name].whole
    (version,) = spec["versions"]
    return kind_of({"spec": {**spec, "group": "elsewhere.example.org"}}, version)


def judged(kind: Kind, obj: Object, old: Object | None = None) -> dict[str, str]:
    """What is wrong, by field."""
    new = deepcopy(obj)
    kind.default(new, Context())
    if old is None:
        return {one.field: one.detail for one in kind.validate(new, Context())}
    stored = deepcopy(old)
    kind.default(stored, Context())
    return {one.field: one.detail for one in kind.validate_update(new, stored, Context())}
