"""The JobSet of a TrainJob: what the job says goes into containers, the counts into Jobs (spec trainjob 2.3)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from kohort.api.errors import FieldError, invalid
from kohort.api.kind import Object
from kohort.kinds.jobset.api import constants
from kohort.kinds.jobset.api.reading import pod_name
from kohort.kinds.trainer.api import torchtune
from kohort.kinds.trainer.api.constants import CONTAINERS, DATASET, MODEL, NODE, TRAINER, container_of, role_of
from kohort.kinds.trainer.api.fitting import ml_policy
from kohort.kinds.trainer.compile import frameworks
from kohort.kinds.trainer.compile.draft import Draft, Job, set_variables

_NOT_OURS: Final = ("scheduling", "gangConfig", "podGroupPolicies")  # the groups of a TrainJob are its own (3.11)
_LONGEST: Final = 63


def fill(draft: Draft) -> None:
    """Values of the TrainJob into the ReplicatedJobs, after the ML policy."""
    command = frameworks.torchtune_command(draft) if _is_torchtune(draft) else None
    for job in draft.jobs:
        role = role_of(job)
        if role == TRAINER:
            _trainer(draft, job, command)
        elif role in (DATASET, MODEL):
            _initializer(draft, job, role)
    mpi = ml_policy(draft.runtime).get("mpi") or {}
    if mpi.get("runLauncherAsNode"):
        for job in draft.jobs:
            node = container_of(job, NODE)
            if job.get("name") == NODE and role_of(job) is None and node is not None:
                _resources(draft, node)
                set_variables(node, (draft.trainer or {}).get("env") or [])


def build(draft: Draft) -> list[Object]:
    for index, job in enumerate(draft.jobs):
        _count(draft, index, job)
        if index in draft.links:
            job["template"]["spec"]["template"].setdefault("spec", {}).update(deepcopy(draft.links[index]))
    meta = draft.metadata(draft.name)
    given = draft.template.get("metadata") or {}
    for member in ("labels", "annotations"):
        if given.get(member):
            meta[member] = dict(given[member])
    spec = {name: value for name, value in draft.template["spec"].items() if name not in _NOT_OURS}
    spec["replicatedJobs"] = [{k: v for k, v in job.items() if k != "gangConfig"} for job in draft.jobs]
    spec["suspend"] = bool(draft.job["spec"].get("suspend"))
    return [{"apiVersion": constants.API_VERSION, "kind": constants.KIND, "metadata": meta, "spec": spec}]


def too_long(draft: Draft) -> list[FieldError]:
    """JobSet refuses what makes its pods' names too long; the TrainJob would wait for ever (1.1)."""
    for index, job in enumerate(draft.jobs):
        last = max(0, draft.replicas(index) - 1), max(0, draft.counts[index] - 1)
        pod = pod_name(draft.name, str(job.get("name")), *last) + constants.POD_SUFFIX
        if len(pod) > _LONGEST:
            fits = len(draft.name) - (len(pod) - _LONGEST)
            detail = f'must have at most {fits} characters, as its pods are called like "{pod}", which JobSet refuses'
            return [invalid("metadata.name", draft.name, detail)]
    return []


def _is_torchtune(draft: Draft) -> bool:
    return ml_policy(draft.runtime).get("torch") is not None and torchtune.is_torchtune(draft.job)


def _count(draft: Draft, index: int, job: Job) -> None:
    if role_of(job) is not None:
        job["replicas"] = 1
    spec = job.setdefault("template", {}).setdefault("spec", {})
    spec["parallelism"] = spec["completions"] = draft.counts[index]
    spec.setdefault("template", {})


def _trainer(draft: Draft, job: Job, command: list[str] | None) -> None:
    given, node = draft.trainer, container_of(job, NODE)
    if given is None or node is None:
        return
    if given.get("image"):
        node["image"] = given["image"]
    # Flux has put the command into its own; upstream then leaves command and args as they are.
    if ml_policy(draft.runtime).get("flux") is None:
        _words(node, "command", command if command is not None else given.get("command"))
        _words(node, "args", given.get("args"))
    set_variables(node, given.get("env") or [])
    if (draft.runtime.get("spec") or {}).get("mlPolicy") is not None:
        _resources(draft, node)


def _words(container: dict[str, Any], member: str, words: list[str] | None) -> None:
    """Replaced, not extended; an empty list clears."""
    if words:
        container[member] = list(words)
    elif words == []:
        container.pop(member, None)


def _resources(draft: Draft, container: dict[str, Any]) -> None:
    given = (draft.trainer or {}).get("resourcesPerNode") or {}
    if not given:
        return
    merged = dict(container.get("resources") or {})
    for member, values in given.items():
        merged[member] = {**(merged.get(member) or {}), **values} if isinstance(values, dict) else deepcopy(values)
    container["resources"] = merged


def _initializer(draft: Draft, job: Job, role: str) -> None:
    given = (draft.job["spec"].get("initializer") or {}).get("dataset" if role == DATASET else "model")
    container = container_of(job, CONTAINERS[role])
    if given is None or container is None:
        return
    if given.get("storageUri") is not None:
        set_variables(container, [frameworks.variable("STORAGE_URI", given["storageUri"])])
    set_variables(container, given.get("env") or [])
    if given.get("secretRef") is not None:
        container["envFrom"] = [*(container.get("envFrom") or []), {"secretRef": deepcopy(given["secretRef"])}]
