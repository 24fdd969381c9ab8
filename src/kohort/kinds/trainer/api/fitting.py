"""Whether a TrainJob fits its runtime: what Trainer's validating webhook asks once it has found the runtime.

Beyond upstream: a patch may only name ReplicatedJobs and containers that the runtime has (spec trainjob 1.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, forbidden, invalid
from kohort.api.kind import Object
from kohort.kinds.trainer.api import torchtune
from kohort.kinds.trainer.api.constants import (
    CLUSTER_RUNTIME,
    DATASET,
    FLUX_INSTALLER,
    INITIALIZER,
    LAUNCHER,
    MODEL,
    MPI_ENV,
    NODE,
    TORCH_ENV,
    TRAINER,
    VOLCANO_QUEUE,
    XGBOOST_ENV,
    container_of,
    containers_of,
    pod_spec,
    replicated_jobs,
    role_of,
    spec_of,
)
from kohort.kinds.trainer.api.runtime_validation import injection_targets, is_deprecated
from kohort.kinds.trainer.api.runtimes import builtin_names
from kohort.kinds.trainer.api.validation import patched_jobs, patched_pod, patches_of, pod_path

_RESERVED: Final = {"torch": TORCH_ENV, "mpi": MPI_ENV, "xgboost": XGBOOST_ENV}
_SYSTEM_CLASSES: Final = ("system-node-critical", "system-cluster-critical")


def check_fit(job: Object, runtime: Object | None, priority_classes: Collection[str] | None = None) -> list[FieldError]:
    """`runtime` None: there is none. `priority_classes`: those that exist; None where that is not known."""
    if runtime is None:
        return [missing_runtime(job)]
    return [
        *_initializers(job, runtime),
        *_patches(job, runtime),
        *_reserved(job, runtime),
        *_torch(job, runtime),
        *_mpi(job, runtime),
        *_flux(runtime),
        *_volcano(runtime, priority_classes),
    ]


def missing_runtime(job: Object) -> FieldError:
    ref = spec_of(job).get("runtimeRef") or {}
    kind = ref.get("kind", CLUSTER_RUNTIME)
    where = (
        "" if kind == CLUSTER_RUNTIME else f" in namespace {(job.get('metadata') or {}).get('namespace', 'default')}"
    )
    return invalid(
        "spec.runtimeRef.name",
        ref.get("name"),
        f"there is no {kind} of that name{where}; built in are, as {CLUSTER_RUNTIME}: {', '.join(builtin_names())}",
    )


def fit_warnings(job: Object, runtime: Object) -> list[str]:
    if runtime.get("kind") == CLUSTER_RUNTIME and is_deprecated(runtime):
        name = (spec_of(job).get("runtimeRef") or {}).get("name")
        return [f'spec.runtimeRef: {CLUSTER_RUNTIME} "{name}" is deprecated']
    return []


def ml_policy(runtime: Object) -> dict[str, Any]:
    return spec_of(runtime).get("mlPolicy") or {}


def node_resources(job: Object, runtime: Object) -> dict[str, Any] | None:
    """What a node has, as torch and xgboost count it: the job's resources instead of the runtime's, not beside them."""
    given = (spec_of(job).get("trainer") or {}).get("resourcesPerNode")
    if given is not None:
        return dict(given)
    trainer = next((found for found in replicated_jobs(runtime) if role_of(found) == TRAINER), {})
    return (container_of(trainer, NODE) or {}).get("resources")


def _ref(job: Object) -> str:
    ref = spec_of(job).get("runtimeRef") or {}
    return f"{ref.get('kind', CLUSTER_RUNTIME)} {ref.get('name')}"


def _initializers(job: Object, runtime: Object) -> Iterator[FieldError]:
    """Asked by name, although the values go by label: as upstream does."""
    wanted = spec_of(job).get("initializer") or {}
    jobs = {found.get("name"): found for found in replicated_jobs(runtime)}
    for member, name in (("dataset", DATASET), ("model", MODEL)):
        if wanted.get(member) is None:
            continue
        if name not in jobs:
            detail = f'must have a ReplicatedJob "{name}", as spec.initializer.{member} is given'
        elif (container := container_of(jobs[name], name)) is None:
            detail = f'must have a container "{name}" in ReplicatedJob "{name}"'
        elif not any(mount.get("name") == INITIALIZER for mount in container.get("volumeMounts") or []):
            detail = f'must mount a volume "{INITIALIZER}" in container "{name}" of ReplicatedJob "{name}"'
        else:
            continue
        yield invalid("spec.runtimeRef", _ref(job), detail)


def _patches(job: Object, runtime: Object) -> Iterator[FieldError]:
    jobs = {found.get("name"): found for found in replicated_jobs(runtime)}
    for index, patch in enumerate(patches_of(job)):
        for place, patched in enumerate(patched_jobs(patch)):
            name = patched.get("name")
            if name not in jobs:
                where = pod_path(index, place).removesuffix(".template.spec.template.spec") + ".name"
                yield invalid(where, name, f"is no ReplicatedJob of the runtime; there are {', '.join(map(str, jobs))}")
                continue
            for member in ("containers", "initContainers"):
                known = [container.get("name") for container in containers_of(jobs[name], member)]
                for number, container in enumerate(patched_pod(patched).get(member) or []):
                    if container.get("name") not in known:
                        where = f"{pod_path(index, place)}.{member}[{number}].name"
                        there = ", ".join(map(str, known)) or "none"
                        yield invalid(
                            where, container.get("name"), f"is not in the runtime's {member}; there are {there}"
                        )


def _reserved(job: Object, runtime: Object) -> Iterator[FieldError]:
    for policy, names in _RESERVED.items():
        if ml_policy(runtime).get(policy) is None:
            continue
        for index, variable in enumerate((spec_of(job).get("trainer") or {}).get("env") or []):
            if variable.get("name") in names:
                yield forbidden(f"spec.trainer.env[{index}].name", f"{variable['name']} is set by the {policy} policy")


def _torch(job: Object, runtime: Object) -> Iterator[FieldError]:
    if ml_policy(runtime).get("torch") is None:
        return
    jobs = {found.get("name"): found for found in replicated_jobs(runtime)}
    for target in injection_targets(runtime):
        found = jobs.get(target.get("jobName")) or {}
        known = [one.get("name") for member in ("containers", "initContainers") for one in containers_of(found, member)]
        for name in target.get("containerNames") or []:
            if name not in known:
                detail = f'envInjection names container "{name}" of "{target.get("jobName")}", which the runtime lacks'
                yield invalid("spec.runtimeRef", _ref(job), detail)
    if torchtune.is_torchtune(job):
        yield from torchtune.check(job, node_resources(job, runtime))


def _mpi(job: Object, runtime: Object) -> Iterator[FieldError]:
    mpi = ml_policy(runtime).get("mpi")
    nodes = (spec_of(job).get("trainer") or {}).get("numNodes")
    if mpi is None or not mpi.get("runLauncherAsNode") or (nodes or 0) < 2:
        return
    missing = {LAUNCHER, NODE} - {found.get("name") for found in replicated_jobs(runtime)}
    if missing:
        lacks = " and ".join(sorted(missing))
        yield invalid(
            "spec.trainer.numNodes", nodes, f"must be 1: the runtime runs its launcher as a node and has no {lacks}"
        )


def _flux(runtime: Object) -> Iterator[FieldError]:
    if ml_policy(runtime).get("flux") is None:
        return
    for found in replicated_jobs(runtime):
        if any(one.get("name") == FLUX_INSTALLER for one in containers_of(found, "initContainers")):
            yield invalid(
                "spec.runtimeRef", found.get("name"), f'init container "{FLUX_INSTALLER}" is added by the flux policy'
            )


def _volcano(runtime: Object, priority_classes: Collection[str] | None) -> Iterator[FieldError]:
    if (spec_of(runtime).get("podGroupPolicy") or {}).get("volcano") is None:
        return
    meta = (spec_of(runtime).get("template") or {}).get("metadata") or {}
    if (meta.get("annotations") or {}).get(VOLCANO_QUEUE) == "":
        yield invalid("spec.runtimeRef", "", f"the runtime's annotation {VOLCANO_QUEUE} must not be empty")
    for found in replicated_jobs(runtime):
        name = pod_spec(found).get("priorityClassName")
        if name in _SYSTEM_CLASSES:
            return  # upstream stops looking here
        if name and priority_classes is not None and name not in priority_classes:
            yield invalid("spec.runtimeRef", name, "there is no such PriorityClass")
