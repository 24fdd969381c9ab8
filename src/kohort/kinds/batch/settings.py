"""Settings of Jobs and the Jobs of CronJobs: where upstream's generations differ, and where this project decides
otherwise (job 1.3, 1.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from kohort.gang.compile import CompileContext
from kohort.gang.settings import KindSettings, about

PolicySource = Literal["Declared", "Inferred"]
ByoWorkload = Literal["Use", "Skip", "Ignore"]
DECLARED: Final = "Declared"  # 1.37: the user says it in spec.scheduling
INFERRED: Final = "Inferred"  # 1.36: the Job's shape says it
USE: Final = "Use"
SKIP: Final = "Skip"
IGNORE: Final = "Ignore"
_SOURCES: Final[Mapping[str, PolicySource]] = {"1.36": INFERRED, "1.37": DECLARED}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings(KindSettings):
    kind: ClassVar[str] = "job"

    policy_source: PolicySource | None = field(
        default=None,
        metadata=about(
            "Whether a Job is a gang is said by: `Declared`, its `spec.scheduling`; `Inferred`, its shape, as on 1.36.",
            default="`Inferred` on 1.36, `Declared` on 1.37; on 1.35 Jobs have no groups unless one is named",
        ),
    )
    byo_workload: ByoWorkload | None = field(
        default=None,
        metadata=about(
            "A Workload that the user made for the Job: `Use` it, `Skip` the Job (make nothing), or `Ignore` it and "
            "make one of our own.",
            default="`Use`; `Skip` where the policy is inferred; `Ignore` with `parity`",
        ),
    )
    cronjob_transparent: bool | None = field(
        default=None,
        metadata=about(
            "Whether a CronJob's run counts as standing alone, so that it gets groups.",
            default="`true`; `false` with `parity`",
        ),
    )
    shrink_min_count: bool | None = field(
        default=None,
        metadata=about(
            "Whether a `minCount` that was left open never exceeds the pods still to come.",
            default="`true` where the policy is declared; `false` with `parity`",
        ),
    )
    parity: bool = field(
        default=False, metadata=about("Exactly what kube-controller-manager does, its traps included.")
    )


SETTINGS: Final = JobSettings


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """What holds for a Job on one Kubernetes minor: what was left open is filled in."""

    parity: bool  # exactly what upstream does, its traps included
    source: PolicySource | None  # None: this minor knows no integration of Jobs
    byo: ByoWorkload
    cronjob_transparent: bool
    shrink: bool

    @property
    def declared(self) -> bool:
        return self.source == DECLARED

    @classmethod
    def of(cls, ctx: CompileContext) -> EffectiveSettings:
        given = ctx.settings.of(JobSettings)
        parity = given.parity
        source = given.policy_source or _SOURCES.get(ctx.release.minor)
        transparent = not parity if given.cronjob_transparent is None else given.cronjob_transparent
        shrink = not parity if given.shrink_min_count is None else given.shrink_min_count
        return cls(
            parity=parity,
            source=source,
            byo=given.byo_workload or (SKIP if source == INFERRED else IGNORE if parity else USE),
            cronjob_transparent=transparent,
            shrink=shrink and source == DECLARED,
        )
