"""What may be chosen about the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kohort.grouping.settings import Grouping
from kohort.place.profile import Profile, ProfileError, read_profile
from kohort.yamlread import ManifestError, load

KOHORT: Final = "kohort"


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Durations are seconds."""

    names: frozenset[str] = frozenset({KOHORT})  # schedulerName of the pods we place
    namespaces: frozenset[str] = frozenset()  # of the pods we place; empty: all
    groups_only: bool = False  # pods without a group are left to others
    profile: Profile = field(default_factory=Profile)
    grouping: Grouping = field(default_factory=Grouping)  # of pods that name no group
    first_backoff: float = 1.0
    longest_backoff: float = 10.0  # of a single pod; a group of n pods waits up to sqrt(n) times as long
    retry_after: float = 300.0  # a root that waits for an event is tried again after so long in any case
    surplus_wait: float = 10.0  # so long pods above a minimum wait for minimums of the same owner that are not ready
    explains: bool = True  # whether failures are told, with numbers and remedies, and starts; that decides nothing
    notice_after: float = 5.0  # a root that is not ready for so long gets an event that says why
    bind_concurrency: int = 64
    write_concurrency: int = 16
    volume_seconds: float = 600.0  # so long a decision waits for volumes that are being bound or made
    bind_attempts: int = 4  # calls for one binding whose answer did not arrive

    @property
    def patience(self) -> float:
        """So long a gang fails before free room is held for it; 0: never."""
        return self.profile.patience

    @property
    def hold_limit(self) -> float:
        """So long room is held, and so long it is not held again for the same root."""
        return self.profile.hold_limit

    def ours(self, scheduler: str, namespace: str, *, grouped: bool = True) -> bool:
        """Whether we place a pod; others only take room."""
        wanted = scheduler in self.names and (grouped or not self.groups_only)
        return wanted and (not self.namespaces or namespace in self.namespaces)


def told_grouping(settings: SchedulerSettings) -> Grouping:
    """With the names of the schedulers whose pods are grouped."""
    return replace(settings.grouping, schedulers=settings.grouping.schedulers or settings.names)


def read_profile_file(path: str | Path) -> Profile:
    """YAML or JSON. Every mistake is reported at once, each with its field."""
    try:
        document, _ = load(Path(path).read_text(), 1)
    except OSError as error:
        raise ProfileError([f"{path}: cannot be read: {error.strerror}"]) from None
    except (ManifestError, UnicodeDecodeError) as error:
        raise ProfileError([f"{path}: {error}"]) from None
    try:
        return read_profile({} if document is None else document)
    except ProfileError as error:
        raise ProfileError([f"{path}: {mistake}" for mistake in error.mistakes]) from None
