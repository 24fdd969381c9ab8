"""What a gang wants done when it loses members, as annotations of its group or of its pods say it.

    kohort.dev/replacement: Move          a member comes back and the group's domain is full
    kohort.dev/below-minimum: Restart     the group has been below its minimum for longer than its grace
    kohort.dev/grace: 2m
    kohort.dev/match-policy: once-satisfied
    kohort.dev/spares: "1"

`read_healing` tells all mistakes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kohort.apimachinery.duration import DurationError, nanoseconds

REPLACEMENT: Final = "kohort.dev/replacement"
BELOW_MINIMUM: Final = "kohort.dev/below-minimum"
GRACE: Final = "kohort.dev/grace"
MATCH_POLICY: Final = "kohort.dev/match-policy"
SPARES: Final = "kohort.dev/spares"
SPARE_OF: Final = "kohort.dev/spare-of"  # of a spare pod: the key of its group
SPARE_COMMAND: Final = "kohort.dev/spare-command"  # what its containers run, instead of sleep infinity
_KOORDINATOR_MATCH: Final = (
    "gang.scheduling.koordinator.sh/match-policy",
    "pod-group.scheduling.sigs.k8s.io/match-policy",
)
KEYS: Final = frozenset({REPLACEMENT, BELOW_MINIMUM, GRACE, MATCH_POLICY, SPARES, SPARE_OF, *_KOORDINATOR_MATCH})

WAIT: Final = "Wait"
WIDEN: Final = "Widen"  # to a neighbouring domain
MOVE: Final = "Move"  # the whole group, to a domain that takes all of it
FAIL: Final = "Fail"  # its pods: what follows is their owner's policy
RESTART: Final = "Restart"  # all of its pods go, and their owner makes them anew
REPLACEMENTS: Final = (WAIT, WIDEN, MOVE, FAIL)
ENDINGS: Final = (WAIT, RESTART, FAIL)
ONCE_SATISFIED: Final = "once-satisfied"  # Koordinator's words: a gang that had its minimum needs it no more
WAITING_AND_RUNNING: Final = "waiting-and-running"  # survivors and replacements together, as kube-scheduler
MATCH_POLICIES: Final = (WAITING_AND_RUNNING, ONCE_SATISFIED)
GANG_FAILED: Final = "kohort.dev/GangFailed"  # condition of pods that failed with their gang, for podFailurePolicy
MOST_SPARES: Final = 16
DEFAULT_GRACE: Final = 60.0  # seconds

Wrong = Callable[[str, object, str], None]


class HealingError(ValueError):
    """Annotations that cannot be meant."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


@dataclass(frozen=True, slots=True)
class Healing:
    """One group's policies. `grace` is in seconds."""

    replacement: str = WAIT
    below_minimum: str = WAIT
    grace: float = DEFAULT_GRACE
    once_satisfied: bool = False
    spares: int = 0


NO_HEALING: Final = Healing()


def is_healing(key: str) -> bool:
    """Whether an annotation is read here."""
    return key in KEYS


def read_healing(annotations: Mapping[str, str], path: str = "metadata.annotations") -> dict[str, Any]:
    """The fields of `Healing` that annotations speak of."""
    mistakes: list[str] = []

    def wrong(key: str, found: object, wanted: str) -> None:
        mistakes.append(f"{path}[{key}]: found {found!r}; {wanted}")

    found: dict[str, Any] = {}
    for key, (field, read) in _READERS.items():
        if key in annotations:
            found[field] = read(key, annotations[key], wrong)
    for key in _KOORDINATOR_MATCH:  # where they say something that we do not know, they are left to Koordinator
        if annotations.get(key) in MATCH_POLICIES:
            found.setdefault("once_satisfied", annotations[key] == ONCE_SATISFIED)
    if mistakes:
        raise HealingError(mistakes)
    return found


def _word(accepted: tuple[str, ...]) -> Callable[[str, str, Wrong], str]:
    def read(key: str, text: str, wrong: Wrong) -> str:
        if text not in accepted:
            wrong(key, text, f"one of {', '.join(accepted)} is wanted")
        return text

    return read


def _match(key: str, text: str, wrong: Wrong) -> bool:
    return _word(MATCH_POLICIES)(key, text, wrong) == ONCE_SATISFIED


def _seconds(key: str, text: str, wrong: Wrong) -> float:
    try:
        length = nanoseconds(text) / 1e9
    except DurationError:
        length = -1.0
    if length < 0:
        wrong(key, text, "a duration of at least 0 is wanted, such as 90s or 5m")
    return length


def _count(key: str, text: str, wrong: Wrong) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 3 or int(text) > MOST_SPARES:
        wrong(key, text, f"a whole number from 0 to {MOST_SPARES} is wanted")
        return 0
    return int(text)


_READERS: Final[dict[str, tuple[str, Callable[[str, str, Wrong], Any]]]] = {
    REPLACEMENT: ("replacement", _word(REPLACEMENTS)),
    BELOW_MINIMUM: ("below_minimum", _word(ENDINGS)),
    GRACE: ("grace", _seconds),
    MATCH_POLICY: ("once_satisfied", _match),
    SPARES: ("spares", _count),
}
