"""TrainJobs that run torchtune: recipe and configuration follow from the runtime's name and the job's arguments.

A torch job whose command is exactly `tune run` is one (spec trainjob 2.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, forbidden, invalid
from kohort.api.kind import Object
from kohort.kinds.trainer.api.constants import spec_of
from kohort.kinds.trainer.api.resources import gpus

ENTRYPOINT: Final = ["tune", "run"]
MODELS: Final = ("llama3_2/1B", "llama3_2/3B", "llama3_3/70B", "qwen2_5/1.5B")
_SMALL: Final = ("llama3_2/1B", "llama3_2/3B")
_MULTI_NODE: Final = "llama3_3/70B"
_WITHOUT_QLORA: Final = "qwen2_5/1.5B"
# Settings that the runtime gives and a job may not.
OWN_SETTINGS: Final = ("output_dir", "tokenizer.path", "tokenizer.merges_file", "checkpointer.checkpoint_dir")


def is_torchtune(job: Object) -> bool:
    return (spec_of(job).get("trainer") or {}).get("command") == ENTRYPOINT


def model_of(job: Object) -> str:
    """`tune-llama3.2-1b` runs llama3_2/1B. Empty where the runtime is named otherwise."""
    parts = str((spec_of(job).get("runtimeRef") or {}).get("name") or "").split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def recipe(job: Object, nodes: int, processes: int | None, resources: dict[str, Any] | None) -> tuple[str, str]:
    """(recipe, configuration). `processes` None: as many as there are devices."""
    arguments = (spec_of(job).get("trainer") or {}).get("args") or []
    lora, qlora = _says(arguments, "model.lora_attn_modules"), _is_qlora(arguments)
    model = model_of(job)
    if nodes > 1:
        return "full_finetune_distributed", f"{model}_full_multinode"
    single = nodes == 1 and (processes == 1 or gpus(resources) == 1)
    method = "qlora" if qlora else "lora" if lora else "full"
    where = "single_device" if single else "distributed"
    return (
        f"{'full' if method == 'full' else 'lora'}_finetune_{where}",
        f"{model}_{method}{'_single_device' if single else ''}",
    )


def check(job: Object, resources: dict[str, Any] | None) -> Iterator[FieldError]:
    """What torchtune cannot do. `resources` are those of a node."""
    trainer = spec_of(job).get("trainer") or {}
    model, nodes, processes = model_of(job), trainer.get("numNodes", 1), trainer.get("numProcPerNode")
    runtime = (spec_of(job).get("runtimeRef") or {}).get("name")
    arguments = trainer.get("args") or []
    if model not in MODELS:
        yield invalid("spec.runtimeRef.name", runtime, f"must end in a model of torchtune: {', '.join(MODELS)}")
    if nodes > 1 and model != _MULTI_NODE:
        yield invalid("spec.trainer.numNodes", nodes, f"must be 1 for {model or 'this model'}")
    if nodes > 1 and _says(arguments, "model.lora_attn_modules"):
        yield invalid("spec.trainer.numNodes", nodes, "must be 1 for LoRA")
    if _is_qlora(arguments):
        yield from _qlora(job, resources, model, nodes, processes)
    for index, argument in enumerate(arguments):
        name = argument.split("=")[0]
        if name in OWN_SETTINGS:
            yield forbidden(f"spec.trainer.args[{index}]", f"{name} is given by the runtime")


def _qlora(
    job: Object, resources: dict[str, Any] | None, model: str, nodes: int, processes: int | None
) -> Iterator[FieldError]:
    name = (spec_of(job).get("runtimeRef") or {}).get("name")
    if nodes > 1:
        return
    if model == _WITHOUT_QLORA:
        yield invalid("spec.runtimeRef.name", name, f"QLoRA is not possible for {model}")
    if model in _SMALL and not recipe(job, nodes, processes, resources)[0].endswith("single_device"):
        shown = "auto" if processes is None else processes
        yield invalid("spec.trainer.numProcPerNode", shown, f"must be 1 for QLoRA of {model}")
        yield invalid("spec.trainer.resourcesPerNode", resources, f"must have one GPU for QLoRA of {model}")


def _says(arguments: list[str], setting: str) -> bool:
    return any(setting in argument for argument in arguments)


def _is_qlora(arguments: list[str]) -> bool:
    return _says(arguments, "model.quantize_base") and not _says(arguments, "model.use_dora")
