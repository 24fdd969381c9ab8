"""Settings of JobSets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal

from kohort.gang.settings import KindSettings, about

GangRendering = Literal["Flat", "Composite"]
ExclusivePlacement = Literal["Template", "Admission"]
OnSuspend = Literal["Delete", "Preserve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetSettings(KindSettings):
    kind: ClassVar[str] = "jobset"

    gang_rendering: GangRendering = field(
        default="Flat",
        metadata=about(
            "How a gang over the whole JobSet is written: `Flat`, one PodGroup; `Composite`, a CompositePodGroup with "
            "a PodGroup for each ReplicatedJob, where the minor has them. Both let the same pods start."
        ),
    )
    exclusive_placement: ExclusivePlacement | None = field(
        default=None,
        metadata=about(
            "Who keeps the Jobs of an exclusive placement apart: `Template`, affinity terms in their pod templates; "
            "`Admission`, the API server as it admits their pods (`kohort up`, or the webhooks of JobSet).",
            default="`Admission` in `kohort up`, `Template` elsewhere",
        ),
    )
    on_suspend: OnSuspend = field(
        default="Delete",
        metadata=about("The groups of a suspended JobSet: `Delete` them, made again when it resumes; `Preserve` them."),
    )
    parity: bool = field(
        default=False,
        metadata=about("Exactly what JobSet's controller does: exclusive placement is left to its webhooks."),
    )

    def embedded(self) -> JobSetSettings:
        """The server itself keeps exclusive Jobs apart: their templates need not, unless somebody says so."""
        return self if self.exclusive_placement is not None else replace(self, exclusive_placement="Admission")


SETTINGS: Final = JobSetSettings
