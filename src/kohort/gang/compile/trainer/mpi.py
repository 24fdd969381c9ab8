"""MPI: keys on launcher and nodes, the hostfile and OpenMPI's variables on the launcher (spec trainjob 2.3)."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.trainer.fitting import ml_policy
from kohort.api.trainer.resources import gpus
from kohort.api.trainer.words import LAUNCHER, MPI_ENV, NODE, container_of, pod_spec
from kohort.gang.compile.trainer.draft import Draft, Job, is_mpi_job, put, set_variables
from kohort.gang.compile.trainer.frameworks import variable

_KEYS: Final = "mpi-ssh-auth"
_HOSTS: Final = "mpi-hostfile"
_HOSTS_FOLDER: Final = "/etc/mpi"
_FILES: Final = (("ssh-privatekey", "id_rsa", 0o640), ("ssh-publickey", "id_rsa.pub", 0o644))
_AUTHORIZED: Final = ("ssh-publickey", "authorized_keys", 0o644)


def mpi(draft: Draft) -> None:
    policy = ml_policy(draft.runtime)["mpi"]
    slots = _slots(draft, policy)
    for job in draft.jobs:
        container = container_of(job, NODE)
        if not is_mpi_job(job) or container is None:
            continue
        put(pod_spec(job), "volumes", [_key_volume(draft)], "name")
        mount = {"name": _KEYS, "mountPath": policy.get("sshAuthMountPath") or "/root/.ssh"}
        put(container, "volumeMounts", [mount], "name")
        if job.get("name") == LAUNCHER:
            _launcher(draft, job, container, slots)
    draft.objects.append(_hostfile(draft, policy, slots))


def has_known_implementation(draft: Draft) -> bool:
    """The schema lets the empty string through, and nothing can be built from it (1.6)."""
    return bool((ml_policy(draft.runtime).get("mpi") or {}).get("mpiImplementation", "OpenMPI") == "OpenMPI")


def secret_name(draft: Draft) -> str:
    """The Secret with the keys. Whoever creates the JobSet generates them, once."""
    return f"{draft.name}-{_KEYS}"


def _launcher(draft: Draft, job: Job, container: dict[str, Any], slots: int) -> None:
    file = {"key": "hostfile", "path": "hostfile", "mode": 0o444}
    volume = {"name": _HOSTS, "configMap": {"name": f"{draft.name}-{_HOSTS}", "items": [file]}}
    put(pod_spec(job), "volumes", [volume], "name")
    put(container, "volumeMounts", [{"name": _HOSTS, "mountPath": _HOSTS_FOLDER}], "name")
    values = (f"{_HOSTS_FOLDER}/hostfile", "true", slots, "-o ConnectionAttempts=10")
    set_variables(container, [variable(name, value) for name, value in zip(MPI_ENV, values, strict=True)])


def _key_volume(draft: Draft) -> dict[str, Any]:
    items = [{"key": key, "path": path, "mode": mode} for key, path, mode in (*_FILES, _AUTHORIZED)]
    return {"name": _KEYS, "secret": {"secretName": secret_name(draft), "items": items, "defaultMode": 0o400}}


def _slots(draft: Draft, policy: dict[str, Any]) -> int:
    """Processes per node: said, else of the runtime, and only where that is 1 as many as GPUs."""
    given = (draft.trainer or {}).get("numProcPerNode")
    if given is not None:
        return int(given)
    slots = int(policy.get("numProcPerNode") or 1)
    return slots if slots > 1 else gpus(_resources(draft)) or 1


def _resources(draft: Draft) -> dict[str, Any] | None:
    given = (draft.trainer or {}).get("resourcesPerNode")
    if given is not None:
        return dict(given)
    first = next((job for job in draft.jobs if is_mpi_job(job)), {})
    return (container_of(first, NODE) or {}).get("resources")


def _hostfile(draft: Draft, policy: dict[str, Any], slots: int) -> dict[str, Any]:
    names = (LAUNCHER, NODE) if policy.get("runLauncherAsNode") else (NODE,)
    lines = [
        f"{draft.host(str(job['name']), replica, pod)} slots={slots}\n"
        for index, job in enumerate(draft.jobs)
        if job.get("name") in names
        for replica in range(draft.replicas(index))
        for pod in range(draft.counts[index])
    ]
    meta = draft.metadata(f"{draft.name}-{_HOSTS}")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"hostfile": "".join(lines)}}
