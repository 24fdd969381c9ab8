"""Which volumes a claim may have."""

from typing import Any

import pytest

from kohort.place.volumematch import fits, mismatch, storage_class_of

Json = dict[str, Any]


def claim(**spec: Any) -> Json:
    wanted = {"resources": {"requests": {"storage": "5Gi"}}, "accessModes": ["ReadWriteOnce"], **spec}
    return {"metadata": {"name": "c", "uid": "u1"}, "spec": wanted}


def volume(meta: Json | None = None, phase: str = "Available", **spec: Any) -> Json:
    has = {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], **spec}
    return {"metadata": {"name": "v", **(meta or {})}, "spec": has, "status": {"phase": phase}}


def reference(**more: str) -> Json:
    return {"namespace": "lab", "name": "c", **more}


@pytest.mark.parametrize(
    ("wanted", "has", "may"),
    [
        (claim(), volume(), True),
        (claim(), volume(phase="Bound"), False),
        (claim(), volume({"deletionTimestamp": "2026-01-01T00:00:00Z"}), False),
        (claim(), volume(claimRef=reference()), True),
        (claim(), volume(claimRef=reference(uid="u1")), True),
        (claim(), volume(claimRef=reference(uid="another")), False),
        (claim(), volume(claimRef={"namespace": "other", "name": "c"}), False),
        (claim(selector={"matchLabels": {"disk": "fast"}}), volume({"labels": {"disk": "fast"}}), True),
        (claim(selector={"matchLabels": {"disk": "fast"}}), volume(), False),
        (claim(storageClassName="x"), volume(), False),
    ],
)
def test_a_volume_may_be_a_claims(wanted: Json, has: Json, may: bool) -> None:
    assert fits("lab/c", wanted, has) is may


@pytest.mark.parametrize(
    ("has", "why"),
    [
        (volume(), ""),
        (volume(capacity={"storage": "1Gi"}), "requested PV is too small"),
        (volume(storageClassName="x"), "storageClassName does not match"),
        (volume(volumeMode="Block"), "incompatible volumeMode"),
        (volume(accessModes=["ReadOnlyMany"]), "incompatible accessMode"),
    ],
)
def test_why_one_that_is_named_cannot_be_used(has: Json, why: str) -> None:
    assert mismatch(claim(), has) == why


def test_the_old_annotation_names_the_class_even_if_it_is_empty() -> None:
    old = {
        "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": ""}},
        "spec": {"storageClassName": "x"},
    }
    assert storage_class_of(old) == ""
    assert storage_class_of({"metadata": {}, "spec": {"storageClassName": "x"}}) == "x"
