"""MPI: keys on launcher and nodes, the hostfile and OpenMPI's variables on the launcher (spec trainjob 2.3)."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.errors import invalid
from kohort.api.kind import Object
from kohort.kinds.trainer.api.constants import LAUNCHER, MPI_ENV, NODE, container_of, pod_spec
from kohort.kinds.trainer.api.fitting import ml_policy
from kohort.kinds.trainer.api.resources import gpus
from kohort.kinds.trainer.compile.draft import Draft, Job, is_mpi_job, put, set_variables
from kohort.kinds.trainer.compile.frameworks import variable

_KEYS: Final = "mpi-ssh-auth"
_HOSTS: Final = "mpi-hostfile"
MAX_HOSTS: Final = 20_000  # the hostfile is a ConfigMap, and holds no more than 1 MiB
_HOSTS_FOLDER: Final = "/etc/mpi"
_FILES: Final = (("ssh-privatekey", "id_rsa", 0o640), ("ssh-publickey", "id_rsa.pub", 0o644))
_AUTHORIZED: Final = ("ssh-publickey", "authorized_keys", 0o644)


def enforce(draft: Draft) -> None:
    policy = ml_policy(draft.runtime)["mpi"]
    _size(draft, policy)
    if policy.get("mpiImplementation", "OpenMPI") != "OpenMPI":
        # The schema lets the empty string through, and nothing can be built from it (1.6).
        detail = "mlPolicy.mpi.mpiImplementation is empty; accepted is OpenMPI"
        draft.errors.append(invalid("spec.runtimeRef", draft.job["spec"]["runtimeRef"]["name"], detail))
    slots = _slots(draft, policy)
    hosts = sum(draft.replicas(index) * draft.counts[index] for index in _hosting(draft, policy))
    if hosts > MAX_HOSTS:
        detail = f"{hosts} hosts, the hostfile of MPI lists at most {MAX_HOSTS}"
        draft.errors.append(invalid("spec.trainer.numNodes", (draft.trainer or {}).get("numNodes"), detail))
    for job in draft.jobs:
        container = container_of(job, NODE)
        if not is_mpi_job(job) or container is None:
            continue
        put(pod_spec(job), "volumes", [_key_volume(draft)], "name")
        mount = {"name": _KEYS, "mountPath": policy.get("sshAuthMountPath") or "/root/.ssh"}
        put(container, "volumeMounts", [mount], "name")
        if job.get("name") == LAUNCHER:
            _launcher(draft, job, container, slots)


def build(draft: Draft) -> list[Object]:
    """The hostfile. The keys are secret: the controller generates them, once, under the name that is mounted here."""
    policy = ml_policy(draft.runtime)["mpi"]
    return [_hostfile(draft, policy, _slots(draft, policy))]


def secret_name(job: str) -> str:
    return f"{job}-{_KEYS}"


def hostfile_name(job: str) -> str:
    return f"{job}-{_HOSTS}"


def _size(draft: Draft, policy: dict[str, Any]) -> None:
    """numNodes, of the job or else of the runtime, are the nodes'; the launcher stays one (D11)."""
    asked, given = (draft.trainer or {}).get("numNodes"), ml_policy(draft.runtime).get("numNodes")
    nodes = asked if asked is not None else None if given is None else max(1, given)
    for index, job in enumerate(draft.jobs):
        if job.get("name") == NODE and nodes is not None:
            draft.counts[index] = max(nodes - 1, 1) if policy.get("runLauncherAsNode") else nodes


def _launcher(draft: Draft, job: Job, container: dict[str, Any], slots: int) -> None:
    file = {"key": "hostfile", "path": "hostfile", "mode": 0o444}
    volume = {"name": _HOSTS, "configMap": {"name": hostfile_name(draft.name), "items": [file]}}
    put(pod_spec(job), "volumes", [volume], "name")
    put(container, "volumeMounts", [{"name": _HOSTS, "mountPath": _HOSTS_FOLDER}], "name")
    values = (f"{_HOSTS_FOLDER}/hostfile", "true", slots, "-o ConnectionAttempts=10")
    set_variables(container, [variable(name, value) for name, value in zip(MPI_ENV, values, strict=True)])


def _key_volume(draft: Draft) -> dict[str, Any]:
    items = [{"key": key, "path": path, "mode": mode} for key, path, mode in (*_FILES, _AUTHORIZED)]
    return {"name": _KEYS, "secret": {"secretName": secret_name(draft.name), "items": items, "defaultMode": 0o400}}


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


def _hosting(draft: Draft, policy: dict[str, Any]) -> list[int]:
    """The ReplicatedJobs whose pods are hosts."""
    names = (LAUNCHER, NODE) if policy.get("runLauncherAsNode") else (NODE,)
    return [index for index, job in enumerate(draft.jobs) if job.get("name") in names]


def _hostfile(draft: Draft, policy: dict[str, Any], slots: int) -> Object:
    lines = [
        f"{draft.host(str(draft.jobs[index]['name']), replica, pod)} slots={slots}\n"
        for index in _hosting(draft, policy)
        for replica in range(draft.replicas(index))
        for pod in range(draft.counts[index])
    ]
    meta = draft.metadata(hostfile_name(draft.name))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"hostfile": "".join(lines)}}
