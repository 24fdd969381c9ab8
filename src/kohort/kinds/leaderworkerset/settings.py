"""Settings of LeaderWorkerSets: none so far; what may be chosen there is a feature gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from kohort.gang.settings import KindSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderWorkerSetSettings(KindSettings):
    kind: ClassVar[str] = "leaderworkerset"


SETTINGS: Final = LeaderWorkerSetSettings
