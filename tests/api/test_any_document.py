"""Any document of the right shape gets an answer, whatever its kind, and defaults settle at once."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kohort.api import admit, decode, definitions
from kohort.api.kind import Context, Kind
from kohort.api.registry import every_kind
from kohort.api.schema import Arr, Bool, Duration, Int, IntOrStr, Map, Node, Obj, Ref, Str, Time

_TEXTS = ["", "a", "b", "a.b", "A_", "x/y", "50%", "batch/v1", "Job", "x" * 70]
_NUMBERS = [0, 1, 2, 3, -1, 100, 2**31 - 1]
_TIMES = ["2026-11-01T08:00:00Z", "2026-11-01T09:30:00+02:00"]
_LIKELY = ("containers", "name", "image", "template", "spec", "metadata", "labels", "restartPolicy")
_DEPTH = 9


@st.composite
def _value(draw: st.DrawFn, node: Node, minor: str, depth: int) -> Any:
    """A value that decodes: members may be missing, null, or strange."""
    if depth > _DEPTH or draw(st.integers(0, 11)) == 0:
        return None
    if isinstance(node, Obj):
        chosen = [name for name in node.fields if draw(st.integers(0, 3))]
        return {name: draw(_value(node.fields[name], minor, depth + 1)) for name in chosen}
    if isinstance(node, Arr):
        return [draw(_value(node.item, minor, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
    if isinstance(node, Map):
        return {key: draw(_value(node.value, minor, depth + 1)) for key in _TEXTS[1:3][: draw(st.integers(0, 2))]}
    if isinstance(node, Ref):
        return draw(_typed(definitions.definition(minor, node.definition), minor, depth))
    return draw(_scalar(node))


def _scalar(node: Node) -> st.SearchStrategy[Any]:
    if isinstance(node, Str):
        return st.sampled_from([*_TEXTS, *node.enum])
    if isinstance(node, Int):
        return st.sampled_from(_NUMBERS)
    if isinstance(node, Bool):
        return st.booleans()
    if isinstance(node, IntOrStr):
        return st.sampled_from([*_NUMBERS, *_TEXTS])
    if isinstance(node, Time):
        return st.sampled_from(_TIMES)
    return st.sampled_from(["30s", "1h", "0s"] if isinstance(node, Duration) else [None, {}, {"a": 1}, [1], "a", 1])


@st.composite
def _typed(draw: st.DrawFn, schema: dict[str, Any], minor: str, depth: int) -> Any:
    """The same for a type of the OpenAPI document."""
    name = definitions.target(schema)
    if name is not None:
        schema = definitions.definition(minor, name)
    kind = schema.get("type")
    if "properties" in schema or kind == "object":
        properties = schema.get("properties") or {}
        every = [member for member in properties if member in _LIKELY or draw(st.integers(0, 5)) == 0]
        chosen = every if depth <= _DEPTH else []
        return {member: draw(_typed(properties[member], minor, depth + 1)) for member in chosen}
    if kind == "array":
        return [draw(_typed(schema["items"], minor, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
    node = decode._scalar(kind or "string", schema.get("format", ""), name)
    return draw(_value(node, minor, depth + 1))


KINDS = [
    pytest.param(kind, minor, id=f"{minor}-{kind.group}-{kind.version}-{kind.kind}")
    for kind in every_kind()
    for minor in kind.minors[-1:]
]


@pytest.mark.parametrize(("kind", "minor"), KINDS)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_document_gets_an_answer(kind: Kind, minor: str, data: st.DataObject) -> None:
    ctx = Context.of(minor)
    body = data.draw(_value(kind.schema, minor, 0)) or {}
    other = data.draw(_value(kind.schema, minor, 0)) or {}
    document = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a", "uid": "u"}, **body}
    before = deepcopy(document)
    admit.check(document, ctx, kind)
    answer = admit.create(document, ctx, kind=kind)
    assert document == before
    if answer.code == 400:
        return
    full = admit.defaulted(document, kind, ctx)
    assert admit.defaulted(full, kind, ctx) == full
    full["metadata"]["resourceVersion"] = "1"
    changed = {**deepcopy(full), **{name: value for name, value in other.items() if value is not None}}
    for subresource in ("", "status"):
        admit.update(changed, full, ctx, subresource=subresource, kind=kind)
    if answer.object is not None:
        again = {**answer.object, "metadata": {**answer.object["metadata"], "resourceVersion": "1"}}
        repeated = admit.update(again, again, ctx, kind=kind)
        assert repeated.object == again, repeated.message
