"""How a Job is treated where upstream's releases differ, and where Kohort decides otherwise (spec job 1.3, 1.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kohort.gang.compile import CompileContext

DECLARED: Final = "declared"  # 1.37: the user says it in spec.scheduling
INFERRED: Final = "inferred"  # 1.36: the Job's shape says it
USE, SKIP, IGNORE = "use", "skip", "ignore"

_ACCEPTED: Final[Mapping[str, tuple[Any, ...]]] = {
    "policy_source": (DECLARED, INFERRED),
    "byo_workload": (USE, SKIP, IGNORE),
    "parity": (True, False),
    "cronjob_transparent": (True, False),
    "shrink_min_count": (True, False),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """`parity`: exactly what upstream does, its traps included."""

    parity: bool
    source: str | None  # None: this minor knows no integration of Jobs
    byo: str
    cronjob_transparent: bool
    shrink: bool

    @property
    def declared(self) -> bool:
        return self.source == DECLARED

    @classmethod
    def of(cls, ctx: CompileContext) -> Settings:
        given = {name: ctx.settings[name] for name in _ACCEPTED if ctx.settings.get(name) is not None}
        for name, value in given.items():
            if value not in _ACCEPTED[name]:
                words = ", ".join(str(word).lower() for word in _ACCEPTED[name])
                raise ValueError(f'setting {name}: "{value}" is not known; accepted are {words}')
        parity = bool(given.get("parity", False))
        source = given.get("policy_source", {"1.36": INFERRED, "1.37": DECLARED}.get(ctx.release.minor))
        usual = SKIP if source == INFERRED else IGNORE if parity else USE
        return cls(
            parity=parity,
            source=source,
            byo=str(given.get("byo_workload", usual)),
            cronjob_transparent=bool(given.get("cronjob_transparent", not parity)),
            shrink=bool(given.get("shrink_min_count", not parity)) and source == DECLARED,
        )
