"""Kubeflow Trainer, trainer.kubeflow.org/v1alpha1: TrainJob and the two kinds of runtime."""

from __future__ import annotations

from typing import Final

from kohort.api.kind import Column, Kind
from kohort.kinds.trainer.api import runtime_schema, runtime_validation, schema, validation
from kohort.kinds.trainer.api.constants import CLUSTER_RUNTIME, COMPOSITE_GATE, GATE, GROUP, RUNTIME, VERSION
from kohort.kinds.trainer.api.fitting import check_fit, fit_warnings
from kohort.kinds.trainer.api.runtimes import builtin_names, builtin_runtime, builtin_runtimes
from kohort.kinds.trainer.api.validation import check_active, stamp_patches

__all__ = [
    "COMPOSITE_GATE",
    "GATE",
    "KINDS",
    "builtin_names",
    "builtin_runtime",
    "builtin_runtimes",
    "check_active",
    "check_fit",
    "fit_warnings",
    "stamp_patches",
]

_AGE: Final = Column("Age", "date", ".metadata.creationTimestamp")

KINDS: Final = (
    Kind(
        group=GROUP,
        version=VERSION,
        kind="TrainJob",
        plural="trainjobs",
        singular="trainjob",
        schema=schema.SCHEMA,
        # The last condition, whatever its status: Suspended also for a job that was resumed (1.5).
        columns=(Column("State", "string", ".status.conditions[-1:].type"), _AGE),
        validate=validation.validate,
        validate_update=validation.validate_update,
    ),
    Kind(
        group=GROUP,
        version=VERSION,
        kind=RUNTIME,
        plural="trainingruntimes",
        singular="trainingruntime",
        schema=runtime_schema.SCHEMA,
        columns=(_AGE,),
        status=False,
        validate=runtime_validation.validate,
        validate_update=runtime_validation.validate_update,
        warn=runtime_validation.warn,
    ),
    Kind(
        group=GROUP,
        version=VERSION,
        kind=CLUSTER_RUNTIME,
        plural="clustertrainingruntimes",
        singular="clustertrainingruntime",
        schema=runtime_schema.SCHEMA,
        namespaced=False,
        columns=(_AGE,),
        status=False,
        validate=runtime_validation.validate,
        validate_update=runtime_validation.validate_update,
        warn=runtime_validation.warn,
    ),
)
