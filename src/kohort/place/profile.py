"""A profile: what placement weighs, and how much. Read from a plain dictionary, all mistakes told at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from kohort.api.scheduling.defragmentation import Defragmenting, read_defragmentation
from kohort.api.scheduling.healing import (
    BELOW_MINIMUM,
    GRACE,
    MATCH_POLICY,
    NO_HEALING,
    REPLACEMENT,
    Healing,
    HealingError,
    read_healing,
)
from kohort.place.levels import WELL_KNOWN, Level
from kohort.place.signatures import SCORED

_MOST_WEIGHT: Final = 100  # as for kube-scheduler's plugins
_MOST_ROOTS: Final = 64  # that are looked at together
_MOST_SECONDS: Final = 600  # of a search
_MOST_HELD: Final = 7 * 86400  # seconds of waiting, and of room that is held
_MOST_PROCESSES: Final = 64
_STRATEGIES: Final = ("least", "most")


# As kube-scheduler's defaultingType System: soft, over nodes and over zones, whether nodes have both labels or not.
_SOFT: Final = {"whenUnsatisfiable": "ScheduleAnyway", "lenient": True}
SYSTEM_SPREAD: Final[tuple[Mapping[str, Any], ...]] = (
    {"topologyKey": "kubernetes.io/hostname", "maxSkew": 3, **_SOFT},
    {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 5, **_SOFT},
)


@dataclass(frozen=True, slots=True)
class Profile:
    """The defaults are those of kube-scheduler's default profile."""

    strategy: Literal["least", "most"] = "least"  # of a node's resources: allocated
    resources: Mapping[str, int] | Sequence[str] = tuple(SCORED)  # what is scored; names alone weigh 1
    allocated: int = 1
    balanced: int = 1
    affinity: int = 2
    taints: int = 3
    pod_affinity: int = 2
    spread: int = 2
    default_spread: Sequence[Mapping[str, Any]] = SYSTEM_SPREAD  # for pods that have none and that somebody selects
    topology_levels: Sequence[Level] = WELL_KNOWN  # of the network, widest first
    healing: Healing = NO_HEALING  # of groups that say nothing themselves
    defragmentation: Defragmenting | None = None  # None: nothing is moved to make room
    lookahead: int = 10  # gangs of equal priority, ready together, that are looked at as one; 1: each by itself
    search_seconds: float = 5.0  # so long a root is searched for; what was not found by then is NotFoundInTime
    search_processes: int = 1  # that search what is hard while others are decided; 0: the scheduler does it itself
    patience: float = 60.0  # seconds that a gang fails before free room is held for it; 0: never
    hold_limit: float = 600.0  # seconds that room is held, and that it is not held again for the same root

    @property
    def weights(self) -> dict[str, int]:
        """Scored resources and their weights."""
        return dict(self.resources) if isinstance(self.resources, Mapping) else dict.fromkeys(self.resources, 1)


class ProfileError(ValueError):
    """A profile that cannot be used: every mistake, each with its field."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = tuple(mistakes)


_WEIGHTS: Final = {
    "allocated": "allocated",
    "balanced": "balanced",
    "nodeAffinity": "affinity",
    "taints": "taints",
    "podAffinity": "pod_affinity",
    "spread": "spread",
}


_HEALING: Final = {
    "replacement": REPLACEMENT,
    "belowMinimum": BELOW_MINIMUM,
    "grace": GRACE,
    "matchPolicy": MATCH_POLICY,
}


def read_profile(data: object) -> Profile:
    """A profile from what a file holds: strategy, resources, weights, defaultSpread, topologyLevels, healing,
    defragmentation, lookahead, search, backfill.

    Absent parts keep defaults."""
    if not isinstance(data, Mapping):
        raise ProfileError([f"profile: found {_kind(data)}, a mapping is wanted"])
    reader = _Reader()
    fields: dict[str, Any] = {}
    for key, value in data.items():
        if key in _PARTS:
            fields.update(_PARTS[key](reader, value))
        else:
            reader.wrong(str(key), "no such field", f"fields are {', '.join(_PARTS)}")
    if reader.mistakes:
        raise ProfileError(reader.mistakes)
    return Profile(**fields)


class _Reader:
    def __init__(self) -> None:
        self.mistakes: list[str] = []

    def wrong(self, field: str, found: str, wanted: str) -> None:
        self.mistakes.append(f"{field}: {found}; {wanted}")

    def strategy(self, value: object) -> dict[str, Any]:
        if value not in _STRATEGIES:
            self.wrong("strategy", f"found {value!r}", f"one of {', '.join(_STRATEGIES)} is wanted")
        return {"strategy": value}

    def resources(self, value: object) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not value:
            self.wrong("resources", f"found {_kind(value)}", "a mapping of resource names to weights is wanted")
            return {}
        return {"resources": {str(name): self._weight(f"resources.{name}", one, 1) for name, one in value.items()}}

    def weights(self, value: object) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self.wrong("weights", f"found {_kind(value)}", "a mapping is wanted")
            return {}
        fields = {}
        for name, one in value.items():
            if name in _WEIGHTS:
                fields[_WEIGHTS[name]] = self._weight(f"weights.{name}", one, 0)
            else:
                self.wrong(f"weights.{name}", "no such weight", f"weights are {', '.join(_WEIGHTS)}")
        return fields

    def default_spread(self, value: object) -> dict[str, Any]:
        if not isinstance(value, Sequence) or isinstance(value, str):
            self.wrong("defaultSpread", f"found {_kind(value)}", "a list of constraints is wanted")
            return {}
        for position, item in enumerate(value):
            self._constraint(f"defaultSpread[{position}]", item)
        return {"default_spread": tuple(value)}

    def _constraint(self, field: str, item: object) -> None:
        if not isinstance(item, Mapping):
            self.wrong(field, f"found {_kind(item)}", "a mapping is wanted")
            return
        if not isinstance(item.get("topologyKey"), str) or not item["topologyKey"]:
            self.wrong(f"{field}.topologyKey", f"found {item.get('topologyKey')!r}", "a label key is wanted")
        self._weight(f"{field}.maxSkew", item.get("maxSkew"), 1)
        if item.get("whenUnsatisfiable") not in {"DoNotSchedule", "ScheduleAnyway"}:
            found = f"found {item.get('whenUnsatisfiable')!r}"
            self.wrong(f"{field}.whenUnsatisfiable", found, "DoNotSchedule or ScheduleAnyway is wanted")
        if "labelSelector" in item:
            self.wrong(f"{field}.labelSelector", "found one", "the cluster's default takes each pod's own selector")

    def topology_levels(self, value: object) -> dict[str, Any]:
        """Names and label keys, the widest first; a name may stand for several keys."""
        if not isinstance(value, Sequence) or isinstance(value, str):
            self.wrong("topologyLevels", f"found {_kind(value)}", "a list of {name, key} is wanted, the widest first")
            return {}
        levels = []
        for position, item in enumerate(value):
            field = f"topologyLevels[{position}]"
            if not isinstance(item, Mapping):
                self.wrong(field, f"found {_kind(item)}", "a mapping with name and key is wanted")
                continue
            for member in ("name", "key"):
                if not isinstance(item.get(member), str) or not item[member]:
                    self.wrong(f"{field}.{member}", f"found {item.get(member)!r}", "a text is wanted")
            for member in item:
                if member not in {"name", "key"}:
                    self.wrong(f"{field}.{member}", "no such field", "fields are name, key")
            levels.append((str(item.get("name")), str(item.get("key"))))
        return {"topology_levels": tuple(levels)}

    def healing(self, value: object) -> dict[str, Any]:
        """The annotations of groups, as fields."""
        if not isinstance(value, Mapping):
            self.wrong("healing", f"found {_kind(value)}", f"a mapping with {', '.join(_HEALING)} is wanted")
            return {}
        fields: dict[str, Any] = {}
        for name, text in value.items():
            if name not in _HEALING:
                self.wrong(f"healing.{name}", "no such field", f"fields are {', '.join(_HEALING)}")
                continue
            try:
                fields |= read_healing({_HEALING[name]: str(text)})
            except HealingError as error:
                _, _, rest = error.mistakes[0].partition(": ")
                self.mistakes.append(f"healing.{name}: {rest}")
        return {"healing": Healing(**fields)}

    def defragmentation(self, value: object) -> dict[str, Any]:
        def wrong(field: str, found: object, wanted: str) -> None:
            self.wrong(f"defragmentation{field}", f"found {found!r}", wanted)

        return {"defragmentation": read_defragmentation(value, wrong)}

    def lookahead(self, value: object) -> dict[str, Any]:
        return {"lookahead": self._weight("lookahead", value, 1, _MOST_ROOTS)}

    def search(self, value: object) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self.wrong("search", f"found {_kind(value)}", "a mapping is wanted")
            return {}
        fields: dict[str, Any] = {}
        for name, one in value.items():
            if name == "seconds":
                fields["search_seconds"] = self._seconds("search.seconds", one, _MOST_SECONDS)
            elif name == "processes":
                fields["search_processes"] = self._weight("search.processes", one, 0, _MOST_PROCESSES)
            else:
                self.wrong(f"search.{name}", "no such field", "fields are seconds, processes")
        return fields

    def backfill(self, value: object) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self.wrong("backfill", f"found {_kind(value)}", "a mapping is wanted")
            return {}
        fields: dict[str, Any] = {}
        for name, one in value.items():
            if name == "patience":
                never = one == 0 and not isinstance(one, bool)
                fields["patience"] = 0.0 if never else self._seconds("backfill.patience", one, _MOST_HELD)
            elif name == "seconds":
                fields["hold_limit"] = self._seconds("backfill.seconds", one, _MOST_HELD)
            else:
                self.wrong(f"backfill.{name}", "no such field", "fields are patience, seconds")
        return fields

    def _seconds(self, field: str, value: object, most: int) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
            self.wrong(field, f"found {value!r}", f"a number above 0, {most} at the most, is wanted")
            return 0.0
        return float(value)

    def _weight(self, field: str, value: object, least: int, most: int = _MOST_WEIGHT) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.wrong(field, f"found {value!r}", f"a whole number from {least} to {most} is wanted")
            return 0
        return value


_PARTS: Final[dict[str, Callable[[_Reader, object], dict[str, Any]]]] = {
    "strategy": _Reader.strategy,
    "resources": _Reader.resources,
    "weights": _Reader.weights,
    "defaultSpread": _Reader.default_spread,
    "topologyLevels": _Reader.topology_levels,
    "healing": _Reader.healing,
    "defragmentation": _Reader.defragmentation,
    "lookahead": _Reader.lookahead,
    "search": _Reader.search,
    "backfill": _Reader.backfill,
}


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def default_constraints(profile: Profile, selector: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The cluster's default spread constraints for a pod that is selected by its owners and services so."""
    return [{**item, "labelSelector": selector} for item in profile.default_spread]
