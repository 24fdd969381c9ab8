"""Flux: the command is started by a Flux instance that an init container brings along (spec trainjob 2.3)."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.kinds.trainer.api.constants import FLUX_INSTALLER, NODE, pod_spec
from kohort.kinds.trainer.api.fitting import ml_policy, node_resources
from kohort.kinds.trainer.api.resources import gpus
from kohort.kinds.trainer.compile import flux_scripts
from kohort.kinds.trainer.compile.draft import Draft, put

_SCRIPTS: Final = "/etc/flux-config"
_DEFAULTS: Final = {"FLUX_NETWORK_DEVICE": "eth0", "FLUX_QUEUE_POLICY": "fcfs"}


def enforce(draft: Draft) -> None:
    if draft.first is None or draft.main is None:
        return
    job, container = draft.jobs[draft.first], draft.main
    scripts = scripts_name(draft.name)
    trainer = draft.trainer or {}
    given = trainer.get("command")
    words = [*given, *(trainer.get("args") or [])] if given else container.get("command") or []
    view = _chosen(draft, "FLUX_VIEW_IMAGE", draft.settings.flux_view_image)
    container["command"] = ["/bin/bash", f"{_SCRIPTS}/entrypoint.sh", " ".join(words)]
    put(container, "volumeMounts", _mounts(scripts), "name")
    pod = pod_spec(job)
    put(pod, "volumes", _volumes(draft, scripts), "name")
    put(pod, "initContainers", [_installer(scripts, view)], "name")


def build(draft: Draft) -> list[Object]:
    """The two scripts. The key of the brokers is secret: the controller generates it, once."""
    if draft.first is None:
        return []
    nodes = draft.counts[draft.first]
    given = (draft.trainer or {}).get("numProcPerNode")
    tasks = int(given if given is not None else ml_policy(draft.runtime)["flux"].get("numProcPerNode") or 1)
    devices = gpus(node_resources(draft.job, draft.runtime))
    hosts = f"{draft.name}-{NODE}-0-[{flux_scripts.span(nodes)}]"
    broker = flux_scripts.broker(
        hosts=hosts,
        device=_chosen(draft, "FLUX_NETWORK_DEVICE"),
        domain=f"{draft.name}.{namespace_or_default(draft.job)}.svc.cluster.local",
        queue=_chosen(draft, "FLUX_QUEUE_POLICY"),
    )
    entry = flux_scripts.entrypoint(leader=f"{draft.name}-{NODE}-0-0", nodes=nodes, tasks=tasks, devices=devices)
    data = {"entrypoint.sh": entry, "init.sh": flux_scripts.init(hosts=hosts, broker=broker)}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": draft.metadata(scripts_name(draft.name)), "data": data}
    ]


def secret_name(job: str) -> str:
    return f"{job}-flux-curve"


def scripts_name(job: str) -> str:
    return f"{job}-flux-entrypoint"


def _chosen(draft: Draft, name: str, default: str = "") -> str:
    """What the variables of the training say, the job's before the runtime's."""
    variables = [*((draft.main or {}).get("env") or []), *((draft.trainer or {}).get("env") or [])]
    values = [one.get("value") for one in variables if one.get("name") == name]
    return str(values[-1]) if values else default or _DEFAULTS[name]


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
        {"name": "flux-curve", "secret": {"secretName": secret_name(draft.name), "defaultMode": 0o400}},
    ]


def _installer(scripts: str, view: str) -> dict[str, Any]:
    return {
        "name": FLUX_INSTALLER,
        "image": view,
        "command": ["/bin/bash", f"{_SCRIPTS}/init.sh"],
        "volumeMounts": [_mounts(scripts)[0], _mounts(scripts)[2]],
    }
