"""The types that users of the library see. mypy and pyright read this file (`make lint`); pytest runs it.

A line that a type checker must refuse carries an ignore for both of them: if one of them stops refusing it, the ignore
is unused, and that is an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, assert_type

import pytest

import kohort
from kohort import Compiled, Converted, Document, Problem
from kohort.gang.settings import SettingsByKind
from kohort.kinds.jobset.settings import JobSetSettings
from kohort.testing.client import Client, Response
from kohort.testing.cluster import Cluster
from kohort.testing.server import ServerThread

GROUP: dict[str, Any] = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "ring"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 0}}},
}
EXAMPLE = Path(__file__).parents[2] / "examples" / "jobset-gang.yaml"


def test_validate() -> None:
    problems = assert_type(kohort.validate(GROUP, kubernetes="1.36", gates={"GenericWorkload": True}), list[Problem])
    (problem,) = kohort.validate(GROUP)
    assert_type(problem.field, str)
    assert_type(problem.line, int | None)
    assert_type(problem.severity == "error", bool)
    assert problem.severity == "error"
    assert problems


def test_compile() -> None:
    (compiled,) = assert_type(kohort.compile(str(EXAMPLE), to="1.37"), list[Compiled])
    assert_type(compiled.objects, tuple[dict[str, Any], ...])
    assert_type(compiled.errors, tuple[Problem, ...])
    assert_type(compiled.links, Mapping[str, Any])
    assert_type(compiled.document, Document)
    assert_type(compiled.ok, bool)
    assert compiled.ok


def test_settings_are_a_mapping_or_typed() -> None:
    kohort.compile(str(EXAMPLE), settings={"jobset": {"gangRendering": "Composite"}})
    typed = SettingsByKind(JobSetSettings(gang_rendering="Composite"))
    assert_type(typed.of(JobSetSettings), JobSetSettings)
    assert kohort.compile(str(EXAMPLE), settings=typed)


def test_convert_and_read() -> None:
    converted = assert_type(kohort.convert(GROUP, to="1.36"), Converted)
    assert_type(converted.problems, tuple[Problem, ...])
    (document,) = assert_type(kohort.read([str(EXAMPLE)]), list[Document])
    assert_type(document.name, str)


def test_what_is_refused() -> None:
    with pytest.raises(TypeError):
        kohort.compile(GROUP, kubernetes="1.37")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(AttributeError):
        kohort.translate  # type: ignore[attr-defined]  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    (problem,) = kohort.validate(GROUP)
    with pytest.raises(AttributeError):
        problem.field = "x"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def fixtures(kohort_server: ServerThread, kohort_client: Client) -> None:
    """What the fixtures of `kohort.testing.pytest_plugin` give; their behaviour is tested in tests/testing."""
    assert_type(kohort_server.url, str)
    assert_type(kohort_server.kubeconfig, Path)
    response = assert_type(kohort_client.request("GET", "/api"), Response)
    assert_type(response.ok, bool)
    assert_type(response.code, int)


async def waiting(cluster: Cluster) -> None:
    """What may be absent at first is there when `until` returns."""

    def look() -> Awaitable[dict[str, Any] | None]:
        return cluster.condition("batch/v1", "Job", "a", "Complete")

    assert_type(await cluster.until(look), dict[str, Any])
