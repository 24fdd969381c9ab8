"""DefaultStorageClass: which class a claim gets that names none."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api.core.storageclass import default_class, names_no_class

DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def storage_class(name: str, made: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": name, "creationTimestamp": made, "annotations": annotations or {}}}


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([], None),
        ([storage_class("a", "2026-01-01T00:00:00Z")], None),
        ([storage_class("a", "2026-01-01T00:00:00Z", DEFAULT)], "a"),
        ([storage_class("a", "2026-01-01T00:00:00Z", DEFAULT), storage_class("b", "2026-01-02T00:00:00Z")], "a"),
        (
            [storage_class("a", "2026-01-01T00:00:00Z", DEFAULT), storage_class("b", "2026-01-02T00:00:00Z", DEFAULT)],
            "b",
        ),
        (
            [storage_class("b", "2026-01-01T00:00:00Z", DEFAULT), storage_class("a", "2026-01-01T00:00:00Z", DEFAULT)],
            "a",
        ),
    ],
)
def test_the_newest_default_is_taken_and_the_first_by_name_of_equals(
    classes: list[dict[str, Any]], expected: str | None
) -> None:
    found = default_class(classes)
    assert (found["metadata"]["name"] if found else None) == expected


def test_an_empty_name_is_a_name() -> None:
    assert names_no_class({"metadata": {}, "spec": {}})
    assert not names_no_class({"metadata": {}, "spec": {"storageClassName": ""}})
    assert not names_no_class(
        {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}, "spec": {}}
    )
