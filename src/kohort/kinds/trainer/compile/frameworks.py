"""What torch, jax and xgboost put into the training's containers (spec trainjob 2.3)."""

from __future__ import annotations

from typing import Any, Final

from kohort.kinds.trainer.api import torchtune
from kohort.kinds.trainer.api.constants import PORT, containers_of
from kohort.kinds.trainer.api.fitting import node_resources
from kohort.kinds.trainer.api.resources import cpus, gpus
from kohort.kinds.trainer.api.runtime_validation import injection_targets
from kohort.kinds.trainer.compile.draft import Draft, set_variables, size

_RANK: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def variable(name: str, value: object) -> dict[str, Any]:
    return {"name": name, "value": str(value)}


def _rank(name: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": _RANK}}}


def _nodes(draft: Draft) -> int:
    return 1 if draft.first is None else draft.counts[draft.first]


def open_port(container: dict[str, Any]) -> None:
    """The port of the training. A port without name counts as the same one (quirk c of 2.4); others stay."""
    mine = {"containerPort": PORT, "protocol": "TCP"}
    ports = container.get("ports") or []
    taken = [index for index, port in enumerate(ports) if not port.get("name") or port.get("containerPort") == PORT]
    place = taken[0] if taken else len(ports)
    container["ports"] = [*ports[:place], mine, *ports[place + 1 :]]


# ---- torch


def torch(draft: Draft) -> None:
    size(draft)
    processes = torch_processes(draft)
    shared = [
        variable("PET_NNODES", _nodes(draft)),
        variable("PET_NPROC_PER_NODE", "auto" if processes is None else processes),
        _rank("PET_NODE_RANK"),
    ]
    meeting = [variable("PET_MASTER_ADDR", draft.leader), variable("PET_MASTER_PORT", PORT)]
    if draft.main is not None and draft.trainer is not None:
        set_variables(draft.main, draft.trainer.get("env") or [])
        set_variables(draft.main, shared if torchtune.is_torchtune(draft.job) else [*shared, *meeting])
        open_port(draft.main)
    for target in injection_targets(draft.runtime):
        for job in draft.jobs:
            if job.get("name") != target.get("jobName"):
                continue
            for container in [*containers_of(job), *containers_of(job, "initContainers")]:
                if container.get("name") in target.get("containerNames", ()):
                    set_variables(container, [*shared, *meeting])


def torch_processes(draft: Draft) -> int | None:
    """Processes per node; None means one per GPU, which torch finds out itself."""
    given = (draft.trainer or {}).get("numProcPerNode")
    if given is not None:
        return int(given)
    resources = node_resources(draft.job, draft.runtime)
    return None if gpus(resources) else cpus(resources)


def torchtune_command(draft: Draft) -> list[str]:
    """`tune run` completed with the recipe; the runtime's own settings stay at the end."""
    resources = node_resources(draft.job, draft.runtime)
    recipe, config = torchtune.recipe(draft.job, _nodes(draft), torch_processes(draft), resources)
    meeting = [] if recipe.endswith("single_device") else [f"--rdzv_endpoint={draft.leader}:{PORT}"]
    settings = [
        word for word in (draft.main or {}).get("command") or [] if word.split("=")[0] in torchtune.OWN_SETTINGS
    ]
    return [*torchtune.ENTRYPOINT, *meeting, recipe, "--config", config, *settings]


# ---- jax and xgboost


def jax(draft: Draft) -> None:
    """Not reserved: what the TrainJob says is written later and wins."""
    size(draft)
    if draft.main is None or draft.trainer is None:
        return
    set_variables(
        draft.main,
        [
            variable("JAX_NUM_PROCESSES", _nodes(draft)),
            _rank("JAX_PROCESS_ID"),
            variable("JAX_COORDINATOR_ADDRESS", f"{draft.leader}:{PORT}"),
        ],
    )
    open_port(draft.main)


def xgboost(draft: Draft) -> None:
    size(draft)
    if draft.main is None or draft.trainer is None:
        return
    workers = _nodes(draft) * (gpus(node_resources(draft.job, draft.runtime)) or 1)
    set_variables(draft.main, draft.trainer.get("env") or [])
    set_variables(
        draft.main,
        [
            variable("DMLC_TRACKER_URI", draft.leader),
            variable("DMLC_TRACKER_PORT", PORT),
            _rank("DMLC_TASK_ID"),
            variable("DMLC_NUM_WORKER", workers),
        ],
    )
    open_port(draft.main)
