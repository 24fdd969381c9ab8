"""The times of runtime patches, as Trainer's webhook stamps them."""

from __future__ import annotations

from typing import Any

from kohort.gang.settings import SettingsByKind
from kohort.kinds.trainer.api import builtin_runtime, stamp_patches
from kohort.kinds.trainer.settings import TrainJobSettings

NOW, GIVEN, BEFORE = "2026-11-16T12:00:00Z", "2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z"


def job(*patches: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"runtimePatches": list(patches)}}


def patch(manager: str, time: str | None = None, **spec: Any) -> dict[str, Any]:
    return {"manager": manager, "trainingRuntimeSpec": spec, **({"time": time} if time else {})}


def test_a_new_patch_keeps_the_time_that_it_brings_also_on_an_update() -> None:
    old = job(patch("a", BEFORE))
    new = job(patch("a", BEFORE), patch("b", GIVEN), patch("c"))
    stamp_patches(new, old, NOW)
    assert [one["time"] for one in new["spec"]["runtimePatches"]] == [BEFORE, GIVEN, NOW]


def test_a_changed_patch_gets_the_time_of_the_change_and_an_unchanged_one_keeps_its_own() -> None:
    old = job(patch("a", BEFORE), patch("b", BEFORE, x=1))
    new = job(patch("a", GIVEN), patch("b", GIVEN, x=2))
    stamp_patches(new, old, NOW)
    assert [one["time"] for one in new["spec"]["runtimePatches"]] == [BEFORE, NOW]


def test_the_image_of_flux_can_be_pulled() -> None:
    image = SettingsByKind().of(TrainJobSettings).flux_view_image
    assert image == "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy"


def test_the_keys_of_deepspeed_are_where_its_user_looks_for_them() -> None:
    runtime = builtin_runtime("deepspeed-distributed")
    assert runtime is not None
    assert runtime["spec"]["mlPolicy"]["mpi"]["sshAuthMountPath"] == "/home/mpiuser/.ssh"
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pods = [one["template"]["spec"]["template"]["spec"] for one in jobs]
    assert all(pod["securityContext"] == {"fsGroup": 1000} for pod in pods)
    assert all(pod["containers"][0]["securityContext"] == {"runAsUser": 1000} for pod in pods)
