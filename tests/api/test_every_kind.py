"""What holds for every kind that the registry knows, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.junk import Maker

from kohort.api import admit, decode, definitions
from kohort.api.errors import ErrorKind
from kohort.api.kind import Context, Kind, Object
from kohort.api.options import DEFAULT_OPTIONS, own_gates
from kohort.api.registry import every_kind, find, groups
from kohort.api.releases import RELEASES
from kohort.api.schema import UNSET, Anything, Arr, Bool, Duration, Int, IntOrStr, Map, Node, Obj, Ref, Str, Time

KINDS = every_kind()
EACH = pytest.mark.parametrize("kind", KINDS, ids=[f"{kind.api_version} {kind.kind}" for kind in KINDS])
NODES = (Anything, Arr, Bool, Duration, Int, IntOrStr, Map, Obj, Ref, Str, Time)
META = Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")


def context(kind: Kind) -> Context:
    return Context.of(kind.minors[-1], options=DEFAULT_OPTIONS)


def places(node: Node, path: str = "", above: tuple[Node, ...] = ()) -> Iterator[tuple[str, Node]]:
    """Every node with its path; a schema that contains itself is followed once around."""
    if any(node is one for one in above):
        return
    yield path, node
    above = (*above, node)
    if isinstance(node, Obj):
        for name, member in node.fields.items():
            yield from places(member, f"{path}.{name}", above)
    elif isinstance(node, Arr):
        yield from places(node.item, f"{path}[]", above)
    elif isinstance(node, Map):
        yield from places(node.value, f"{path}[*]", above)


# ---- names


def test_each_kind_is_found_by_its_name_and_only_once() -> None:
    assert len({(kind.api_version, kind.kind) for kind in KINDS}) == len(KINDS)
    assert all(find(kind.api_version, kind.kind) is kind for kind in KINDS)
    assert {kind.group for kind in KINDS} == set(groups())


@EACH
def test_names(kind: Kind) -> None:
    assert re.fullmatch(r"[A-Z][A-Za-z]+", kind.kind)
    assert re.fullmatch(r"[a-z]+", kind.plural)
    assert kind.plural != kind.kind.lower()
    assert (kind.singular or kind.kind.lower()) == kind.kind.lower()
    assert re.fullmatch(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?", kind.version)
    assert all(re.fullmatch(r"[a-z]+", name) for name in (*kind.short_names, *kind.categories))
    assert kind.minors
    assert set(kind.minors) <= set(RELEASES)


def test_no_short_name_means_two_resources() -> None:
    owners: dict[str, set[tuple[str, str]]] = {}
    for kind in KINDS:
        for name in (*kind.short_names, kind.plural):
            owners.setdefault(f"{kind.group}/{name}", set()).add((kind.group, kind.kind))
    assert [name for name, found in owners.items() if len(found) > 1] == []


@EACH
def test_one_version_is_stored(kind: Kind) -> None:
    versions = [other for other in KINDS if (other.group, other.kind) == (kind.group, kind.kind)]
    for minor in kind.minors:
        assert sum(other.storage for other in versions if minor in other.minors) == 1, minor


# ---- schema


@EACH
def test_schema_nodes(kind: Kind) -> None:
    for path, node in places(kind.schema):
        assert isinstance(node, NODES), path
        if isinstance(node, Obj):
            assert set(node.union) <= set(node.fields), path
            assert all(re.fullmatch(r"\$?[a-z][A-Za-z0-9]*", name) for name in node.fields), path
        if isinstance(node, Arr) and node.key:
            assert set(node.key) <= members(node.item, kind.minors[-1]), path
        if isinstance(node, Str):
            assert len(set(node.enum)) == len(node.enum), path


@EACH
def test_what_the_schema_refers_to_exists(kind: Kind) -> None:
    for path, node in places(kind.schema):
        if isinstance(node, Ref):
            missing = [m for m in kind.minors if node.definition not in definitions.document(m)["definitions"]]
            assert missing == [], path


@EACH
def test_declared_defaults_are_of_their_type(kind: Kind) -> None:
    for path, node in places(kind.schema):
        if node.default is not UNSET:
            assert list(decode.check(node, node.default, path, kind.minors[-1])) == []


@EACH
def test_gates_are_known(kind: Kind) -> None:
    known = {str(gate) for minor in kind.minors for gate in RELEASES[minor].gates} | set(own_gates())
    gates = {node.gate for _, node in places(kind.schema) if node.gate} | ({kind.gate} if kind.gate else set())
    assert {str(gate) for gate in gates} <= known


# ---- columns and scale


def members(node: Node, minor: str) -> set[str]:
    if isinstance(node, Obj):
        return set(node.fields)
    return set(definitions.definition(minor, node.definition)["properties"]) if isinstance(node, Ref) else set()


def resolve(kind: Kind, path: str) -> bool:
    """Whether a JSON path such as .status.conditions[?(@.type=="Ready")].status points at something declared."""
    root = Obj(fields={"metadata": META, **kind.schema.fields})
    minor = kind.minors[-1]
    here: Any = root
    for name, index in re.findall(r"\.([A-Za-z]+)|(\[[^\]]*\])", path):
        here = _item(here, minor) if index else _member(here, name, minor)
        if here is None:
            return False
    return bool(re.fullmatch(r"(\.[A-Za-z]+|\[[^\]]*\])+", path))


def _member(here: Any, name: str, minor: str) -> Any:
    if isinstance(here, Obj):
        return here.fields.get(name)
    if isinstance(here, Map):
        return here.value
    return (_written(here, minor).get("properties") or {}).get(name)


def _item(here: Any, minor: str) -> Any:
    return here.item if isinstance(here, Arr) else _written(here, minor).get("items")


def _written(here: Any, minor: str) -> dict[str, Any]:
    if isinstance(here, Ref):
        return definitions.definition(minor, here.definition)
    if not isinstance(here, dict):
        return {}
    name = definitions.target(here)
    return definitions.definition(minor, name) if name else here


@EACH
def test_columns_point_at_declared_fields(kind: Kind) -> None:
    assert len({column.name for column in kind.columns}) == len(kind.columns)
    for column in kind.columns:
        assert column.type in {"string", "integer", "boolean", "date", "number"}, column.name
        assert column.path or column.cell, column.name
        assert not column.path or resolve(kind, column.path), column.path


@EACH
def test_columns_of_an_object_that_says_nothing(kind: Kind) -> None:
    for column in kind.columns:
        if column.cell is not None:
            column.cell(empty(kind))


@EACH
def test_scale_points_at_declared_fields(kind: Kind) -> None:
    if kind.scale is not None:
        paths = [kind.scale.spec_replicas, kind.scale.status_replicas, kind.scale.selector]
        assert [path for path in paths if path and not resolve(kind, path)] == []


# ---- defaults and rules survive anything that decodes


def empty(kind: Kind, **members: Any) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}, **members}


@EACH
@pytest.mark.parametrize("more", [{}, {"spec": {}}], ids=["nothing", "empty spec"])
def test_defaults_of_an_object_that_says_nothing(kind: Kind, more: Object) -> None:
    ctx, obj = context(kind), empty(kind, **more)
    kind.default(obj, ctx)
    once = deepcopy(obj)
    kind.default(obj, ctx)
    assert obj == once


@EACH
@pytest.mark.parametrize("more", [{}, {"spec": {}}], ids=["nothing", "empty spec"])
def test_rules_of_an_object_that_says_nothing(kind: Kind, more: Object) -> None:
    ctx = context(kind)
    found = admit.check(empty(kind, **more), ctx, kind)
    assert all(isinstance(str(error), str) for error in found)
    obj = admit.defaulted(empty(kind, **more), kind, ctx)
    kind.validate_update(obj, deepcopy(obj), ctx)
    kind.warn(obj, ctx)


@pytest.mark.parametrize(("version", "name"), [(kind.api_version, kind.kind) for kind in KINDS])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(seeds=st.tuples(st.integers(0, 2**32), st.integers(0, 2**32)))
def test_junk_of_the_right_types(version: str, name: str, seeds: tuple[int, int]) -> None:
    """Rules may find as much as they like; they may not fall over."""
    kind = find(version, name)
    assert kind is not None
    ctx = context(kind)
    first, second = (junk(kind, seed) for seed in seeds)
    found = decode.decode(kind.schema, first, ctx.release.minor)
    assert [error for error in found if error.kind is ErrorKind.DECODE] == []
    for error in admit.check(first, ctx, kind):
        assert str(error)
    once = admit.defaulted(first, kind, ctx)
    assert admit.defaulted(once, kind, ctx) == once
    kind.warn(once, ctx)
    kind.validate_update(once, admit.defaulted(second, kind, ctx), ctx)
    kind.validate_status(once, admit.defaulted(second, kind, ctx), ctx)


def junk(kind: Kind, seed: int) -> Object:
    made = Maker(seed, kind.minors[-1]).value(kind.schema)
    return empty(kind, **made)


# ---- custom resource definitions


def test_custom_resource_definitions() -> None:
    from kohort.api.crd import crds

    made = {definition["metadata"]["name"]: definition for definition in crds()}
    assert set(made) == {f"{kind.plural}.{kind.group}" for kind in KINDS if not kind.native}
    for definition in made.values():
        versions = definition["spec"]["versions"]
        assert sum(version["storage"] for version in versions) == 1
        for version in versions:
            assert version["schema"]["openAPIV3Schema"]["type"] == "object"
