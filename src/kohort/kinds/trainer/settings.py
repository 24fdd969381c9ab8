"""Settings of TrainJobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from kohort.gang.settings import KindSettings, about

OnSuspend = Literal["Delete", "Preserve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJobSettings(KindSettings):
    kind: ClassVar[str] = "trainjob"

    on_suspend: OnSuspend = field(
        default="Delete",
        metadata=about(
            "The groups of a suspended TrainJob: `Delete` them, made again when it resumes; `Preserve` them, and make "
            "them for a job that is created suspended."
        ),
    )
    flux_view_image: str = field(
        default="ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
        metadata=about(
            "The image that brings Flux along, for runtimes with `mlPolicy.flux`; the variable FLUX_VIEW_IMAGE of a "
            "job or a runtime wins."
        ),
    )


SETTINGS: Final = TrainJobSettings
