"""Flux: the training's command is started by a Flux instance that an init container brings along (spec trainjob 2.3).

Only the JobSet is made here. The two scripts (ConfigMap) and the key (Secret) that it mounts are not.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.api.trainer.words import FLUX_INSTALLER, pod_spec
from kohort.gang.compile.trainer.draft import Draft, put

DEFAULT_VIEW: Final = "flux-view"  # which registry has it is for the cluster's operator to say
_SCRIPTS: Final = "/etc/flux-config"


def flux(draft: Draft, view: str = DEFAULT_VIEW) -> None:
    if draft.first is None or draft.main is None:
        return
    job, container = draft.jobs[draft.first], draft.main
    scripts = f"{draft.name}-flux-entrypoint"
    trainer = draft.trainer or {}
    given = trainer.get("command")
    words = [*given, *(trainer.get("args") or [])] if given else container.get("command") or []
    container["command"] = ["/bin/bash", f"{_SCRIPTS}/entrypoint.sh", " ".join(words)]
    put(container, "volumeMounts", _mounts(scripts), "name")
    pod = pod_spec(job)
    put(pod, "volumes", _volumes(draft, scripts), "name")
    put(pod, "initContainers", [_installer(draft, scripts, view)], "name")
    draft.warnings.append(
        f"flux: ConfigMap {scripts} and Secret {draft.name}-flux-curve, which the JobSet mounts, are not made by Kohort"
    )


def _mounts(scripts: str) -> list[dict[str, Any]]:
    return [
        {"name": "flux-install", "mountPath": "/mnt/flux"},
        {"name": "spack-install", "mountPath": "/opt/software"},
        {"name": scripts, "mountPath": _SCRIPTS, "readOnly": True},
        {"name": "flux-curve", "mountPath": "/curve", "readOnly": True},
        {"name": "shared-memory", "mountPath": "/dev/shm", "readOnly": True},
    ]


def _volumes(draft: Draft, scripts: str) -> list[dict[str, Any]]:
    return [
        {"name": "spack-install", "emptyDir": {}},
        {"name": "flux-install", "emptyDir": {}},
        {"name": scripts, "configMap": {"name": scripts, "defaultMode": 0o755}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {"name": "flux-curve", "secret": {"secretName": f"{draft.name}-flux-curve", "defaultMode": 0o400}},
    ]


def _installer(draft: Draft, scripts: str, view: str) -> dict[str, Any]:
    variables = [*((draft.main or {}).get("env") or []), *((draft.trainer or {}).get("env") or [])]
    chosen = [one.get("value") for one in variables if one.get("name") == "FLUX_VIEW_IMAGE"]
    return {
        "name": FLUX_INSTALLER,
        "image": chosen[-1] if chosen else view,
        "command": ["/bin/bash", f"{_SCRIPTS}/init.sh"],
        "volumeMounts": [_mounts(scripts)[0], _mounts(scripts)[2]],
    }
