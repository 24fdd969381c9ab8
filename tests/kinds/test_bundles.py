"""What is written from the bundles is what they say now, and what they name is there."""

from __future__ import annotations

import importlib.util
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from kohort.api import registry
from kohort.api.bundle import FAMILIES, Bundle, bundles

ROOT = Path(__file__).parents[2]


def generated() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generated", ROOT / "hack" / "generated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_roles_and_the_table_of_kinds_are_up_to_date() -> None:
    stale = [str(path.relative_to(ROOT)) for path, text in generated().files().items() if path.read_text() != text]
    assert stale == [], "run python hack/generated.py"


def test_every_folder_is_registered() -> None:
    folders = {path.parent.name for path in (ROOT / "src" / "kohort" / "kinds").glob("*/__init__.py")}
    assert folders == {name.split(".")[2] for name in FAMILIES} == {one.name for one in bundles()}


@pytest.mark.parametrize("one", bundles(), ids=lambda one: one.name)
def test_what_a_bundle_names_is_there(one: Bundle) -> None:
    kinds = {(kind.group, kind.kind) for group in one.groups for kind in registry.kinds(group)}
    assert {group for group, _ in kinds} == set(one.groups)
    assert {kind.native for group in one.groups for kind in registry.kinds(group)} == {one.native}
    assert {*one.compilers, *one.admission, *(group.manages for group in one.controllers)} <= kinds
    assert set(one.explained) <= {kind for _, kind in kinds}
    for module in one.compilers.values():
        assert callable(import_module(module).compile_object)
    for module in one.admission.values():
        assert callable(import_module(module).validate)
    assert set(import_module(one.makers).MAKERS) == {name for group in one.controllers for name in group.controllers}
    assert one.page is not None
    assert (ROOT / one.page.path).is_file()
    assert (ROOT / "examples" / one.example).is_file()
