"""The settings of Jobs as they hold on one Kubernetes minor: what was left open is filled in (job 1.3, 1.6)."""

from __future__ import annotations

from dataclasses import dataclass

from kohort.gang.compile import CompileContext
from kohort.kinds.batch.settings import DECLARED, IGNORE, INFERRED, SKIP, USE, ByoWorkload, JobSettings, PolicySource

_SOURCES: dict[str, PolicySource] = {"1.36": INFERRED, "1.37": DECLARED}


@dataclass(frozen=True, slots=True)
class Settings:
    """`parity`: exactly what upstream does, its traps included."""

    parity: bool
    source: PolicySource | None  # None: this minor knows no integration of Jobs
    byo: ByoWorkload
    cronjob_transparent: bool
    shrink: bool

    @property
    def declared(self) -> bool:
        return self.source == DECLARED

    @classmethod
    def of(cls, ctx: CompileContext) -> Settings:
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
