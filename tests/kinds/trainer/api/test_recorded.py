"""The 221 dry-run tries against real Trainer: same verdict, same fields. Where we decide otherwise, it is listed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.trainer.api.recorded import Store, answered, cases

_D14 = "D14: adding or dropping a frozen member is a change of it"
_GHOST = "spec trainjob 1.4: a patch may only name what the runtime has"
# Tries that we answer otherwise, on purpose.
DIFFERENT = {
    ("v-update", "trainer dropped"): _D14,
    ("v-update", "trainer added"): _D14,
    ("v-update", "trainer added, empty"): _D14,
    ("v-update", "trainer added while running"): _D14,
    ("v-update", "initializer dropped"): _D14,
    ("v-update", "initializer added"): _D14,
    ("v-update", "activeDeadlineSeconds dropped"): _D14,
    ("v-update", "activeDeadlineSeconds added"): _D14,
    ("v-patches", "job not in the runtime"): _GHOST,
    ("v-patches", "container not in the job"): _GHOST,
    ("v-patches", "init container not in the job"): _GHOST,
    ("v-patches", "init container named under containers: accepted"): _GHOST,
    ("v-patches", "container named under initContainers: accepted"): _GHOST,
    ("v-patches", "env for node under initContainers: accepted"): _GHOST,
    ("v-runtime", "TrainingRuntime: coscheduling and volcano"): "D3: at most one podGroupPolicy",
    (
        "s-snapshot",
        "suspend after the runtime is gone",
    ): "D19: updates are judged by the snapshot, which still has the runtime",
    (
        "s-snapshot",
        "a label after the runtime is gone",
    ): "D19: updates are judged by the snapshot, which still has the runtime",
}
# Accepted by both, stored differently.
STORED_OTHERWISE = {
    ("v-runtime", "TrainingRuntime: unknown podGroupPolicy member is dropped"): "workload is a member here",
    ("v-runtime", "TrainingRuntime: JobSet scheduling field"): "known here; kept and ignored, with a warning",
    ("v-runtime", "TrainingRuntime: spec.scheduling is dropped"): "an alias of podGroupPolicy.workload.scheduling here",
}
# Where upstream names the root of the object, or an item, we name the member.
_ROOT = "<nil>"


def _tries() -> list[Any]:
    return [
        pytest.param(case, attempt, id=f"{case}:{attempt['try']}".replace(" ", "-"))
        for case, recorded in cases().items()
        for attempt in recorded.get("tries", [])
    ]


@pytest.mark.parametrize(("case", "attempt"), _tries())
def test_try(case: str, attempt: Any) -> None:
    said = answered(Store(case), attempt)
    wanted = attempt["code"] < 300
    if (case, attempt["try"]) in DIFFERENT:
        assert said.accepted is not wanted
        return
    assert said.accepted is wanted, said.fields or said.message
    for field in _fields(attempt):
        assert field in said.fields
    if not wanted and attempt.get("causes"):
        assert set(said.fields) == set(_fields(attempt))
    if wanted and attempt.get("stored") is not None and (case, attempt["try"]) not in STORED_OTHERWISE:
        assert _holds(said.object, attempt["stored"]), said.object


def _fields(attempt: Any) -> list[str]:
    """The fields of the causes; one that only says that more might be wrong is left out."""
    return [
        "metadata.name" if cause["field"] == _ROOT else cause["field"]
        for cause in attempt.get("causes") or []
        if "some validation rules were not checked" not in cause["message"]
    ]


def _holds(value: Any, wanted: Any) -> bool:
    """Whether a part of the object is what was stored there."""
    if _like(value, wanted):
        return True
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds(part, wanted) for part in parts)


def _like(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(value, dict):
        return all(_like(value.get(name), item) for name, item in wanted.items())
    if isinstance(wanted, list) and isinstance(value, list):
        return len(wanted) == len(value) and all(map(_like, value, wanted))
    if isinstance(wanted, str) and wanted.startswith("<"):
        stamps = {"<t1>": "2026-08-21T10:00:00Z", "<t2>": "2026-08-21T11:00:00Z"}
        return value == stamps.get(wanted, "2020-02-02T02:02:02Z")
    return bool(value == wanted)


def test_every_difference_is_still_in_the_recordings() -> None:
    known = {(case, attempt["try"]) for case, recorded in cases().items() for attempt in recorded.get("tries", [])}
    assert set(DIFFERENT) | set(STORED_OTHERWISE) <= known


@pytest.mark.parametrize(
    ("attempt", "warning"),
    [
        ("deprecated cluster runtime", 'spec.runtimeRef: ClusterTrainingRuntime "v-ref-old" is deprecated'),
        ("deprecated namespaced runtime: no warning", None),
        ("label value with other case: no warning", None),
        ("creating a deprecated cluster runtime warns", 'ClusterTrainingRuntime "v-ref-old2" is deprecated'),
    ],
)
def test_deprecated_runtimes_warn(attempt: str, warning: str | None) -> None:
    found = next(one for one in cases()["v-ref"]["tries"] if one["try"] == attempt)
    said = answered(Store("v-ref"), found)
    assert said.warnings == ([warning] if warning else [])
