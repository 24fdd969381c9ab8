"""Topology that somebody asks for in annotations: our own, and those of Kueue, KAI, Volcano and Koordinator.

A level is the name of one (rack, zone), a label key of nodes, or `tier-N`: the N-th level of the network from below.
Which label a name stands for is the profile's business. `read_topology` tells all mistakes at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

Said = Mapping[str, str]

TOPOLOGY: Final = "kohort.dev/topology"  # rack=preferred,zone=required; a level alone is required
SLICE: Final = "kohort.dev/topology-slice"  # block=16,rack=4: every four ranks share a rack, every sixteen a block
REQUIRED: Final = "required"
PREFERRED: Final = "preferred"
_MODES: Final = (REQUIRED, PREFERRED)
_KUEUE: Final = "kueue.x-k8s.io/podset-"
_KUEUE_LAYERS: Final = f"{_KUEUE}slice-required-topology-constraints"
_KAI: Final = "kai.scheduler/topology-"
_SEGMENT: Final = "kai.scheduler/segment-"
_VOLCANO_MODE: Final = "volcano.sh/network-topology-mode"
_VOLCANO_TIER: Final = "volcano.sh/network-topology-highest-tier"
_KOORDINATOR: Final = "gang.scheduling.koordinator.sh/network-topology-spec"
_GATHER: Final = {"MustGather": REQUIRED, "PreferGather": PREFERRED}
_LAYERS: Final = {"accelerator": "nvlink", "node": "node"}
_PREFIXES: Final = (TOPOLOGY, _KUEUE, _KAI, _SEGMENT, "volcano.sh/network-topology-", _KOORDINATOR)
TIER: Final = "tier-"


class TopologyError(ValueError):
    """Annotations that cannot be meant."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


class Slice(NamedTuple):
    """So many neighbouring ranks share one domain of the required level, and as few of the preferred as can be."""

    size: int
    required: str = ""
    preferred: str = ""


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """Levels as they were written. `slices`: the largest first; each is a part of the one before."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    slices: tuple[Slice, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.required or self.preferred or self.slices)


NOTHING: Final = TopologyRequest()
_Read = tuple[str, TopologyRequest]  # the annotation it was found in, for people


def is_topology(key: str) -> bool:
    """Whether an annotation is read here."""
    return key.startswith(_PREFIXES)


def read_topology(annotations: Said, path: str = "metadata.annotations") -> TopologyRequest:
    """What annotations ask for. Two schedulers' annotations that ask for different things are a mistake."""
    mistakes: list[str] = []

    def wrong(key: str, found: object, wanted: str) -> None:
        mistakes.append(f"{path}[{key}]: found {found!r}; {wanted}")

    found: list[_Read] = []
    if any(map(is_topology, annotations)):
        for reader in _READERS:
            found += [(key, one) for key, one in reader(annotations, wrong) if one]
    if len({one for _, one in found}) > 1:
        (first, _), (second, _) = found[0], next(other for other in found if other[1] != found[0][1])
        mistakes.append(f"{path}[{second}]: asks for something else than {path}[{first}]; one of the two is wanted")
    if mistakes:
        raise TopologyError(mistakes)
    return found[0][1] if found else NOTHING


def _own(said: Said, wrong: Callable[[str, object, str], None]) -> Iterator[_Read]:
    levels: dict[str, list[str]] = {mode: [] for mode in _MODES}
    seen: set[str] = set()
    for part in (one.strip() for one in said.get(TOPOLOGY, "").split(",") if TOPOLOGY in said):
        level, equals, mode = (piece.strip() for piece in part.partition("="))
        if not level or (equals and mode not in _MODES):
            wrong(TOPOLOGY, part, "level=required or level=preferred is wanted, such as rack=preferred,zone=required")
        elif level in seen:
            wrong(TOPOLOGY, part, f"{level} is named twice")
        else:
            seen.add(level)
            levels[mode or REQUIRED].append(level)
    slices = tuple(_slices(said, wrong)) if SLICE in said else ()
    yield TOPOLOGY, TopologyRequest(tuple(levels[REQUIRED]), tuple(levels[PREFERRED]), slices)


def _slices(said: Said, wrong: Callable[[str, object, str], None]) -> Iterator[Slice]:
    found: list[Slice] = []
    for part in said[SLICE].split(","):
        level, _, rest = (piece.strip() for piece in part.partition("="))
        size, _, mode = (piece.strip() for piece in rest.partition("="))
        if not level or not _is_count(size) or mode not in {"", *_MODES}:
            wrong(SLICE, part.strip(), "level=size is wanted, such as rack=4 or rack=4=preferred")
        elif mode == PREFERRED:
            found.append(Slice(int(size), preferred=level))
        else:
            found.append(Slice(int(size), level))
    yield from _nested(found, SLICE, said[SLICE], wrong)


def _nested(found: list[Slice], key: str, text: str, wrong: Callable[[str, object, str], None]) -> Iterator[Slice]:
    """The largest first; each must be made of whole ones of the next."""
    found.sort(key=lambda one: -one.size)
    for larger, smaller in pairwise(found):
        if larger.size % smaller.size or larger.size == smaller.size:
            wrong(key, text, f"slices of {larger.size} cannot be cut into whole ones of {smaller.size}")
            return
    yield from found


def _kueue(said: Said, wrong: Callable[[str, object, str], None]) -> Iterator[_Read]:
    names = {mode: f"{_KUEUE}{mode}-topology" for mode in (*_MODES, "unconstrained", "slice-required")}
    given = [mode for mode in (*_MODES, "unconstrained") if names[mode] in said]
    if len(given) > 1:
        wrong(names[given[1]], said[names[given[1]]], f"it cannot stand beside {names[given[0]]}")
    level, size = said.get(names["slice-required"], ""), said.get(f"{_KUEUE}slice-size")
    required, preferred = (tuple(filter(None, (said.get(names[mode]),))) for mode in _MODES)
    if _KUEUE_LAYERS in said:
        if level or size is not None:
            wrong(_KUEUE_LAYERS, said[_KUEUE_LAYERS], f"it cannot stand beside {names['slice-required']}")
        yield _KUEUE_LAYERS, TopologyRequest(required, preferred, tuple(_kueue_layers(said, wrong)))
    elif level and (size is None or not _is_count(size)):
        wrong(f"{_KUEUE}slice-size", size, f"a whole number above 0 is wanted beside {names['slice-required']}")
    elif size is not None and not level:
        wrong(f"{_KUEUE}slice-size", size, f"{names['slice-required']} is wanted beside it")
    else:
        key = next((names[mode] for mode in (*_MODES, "slice-required") if names[mode] in said), _KUEUE)
        yield key, TopologyRequest(required, preferred, (Slice(int(size), level),) if size else ())


def _kueue_layers(said: Said, wrong: Callable[[str, object, str], None]) -> Iterator[Slice]:
    text = said[_KUEUE_LAYERS]
    try:
        document: Any = json.loads(text)
        found = [Slice(one["size"], str(one["topology"])) for one in document]
    except (ValueError, KeyError, TypeError):
        found = []
    if not found or any(isinstance(one.size, bool) or not isinstance(one.size, int) or one.size < 1 for one in found):
        wrong(_KUEUE_LAYERS, text, "a JSON list of objects with topology and size is wanted")
        return
    yield from _nested(found, _KUEUE_LAYERS, text, wrong)


def _kai(said: Said, wrong: Callable[[str, object, str], None]) -> Iterator[_Read]:
    """Segments without a level, or a level without their size, ask for nothing, as in KAI."""
    required, preferred = (tuple(filter(None, (said.get(f"{_KAI}{mode}-placement"),))) for mode in _MODES)
    size, (within, near) = (
        said.get(f"{_SEGMENT}size", ""),
        (said.get(f"{_SEGMENT}topology-{mode}-placement", "") for mode in _MODES),
    )
    slices: tuple[Slice, ...] = ()
    if size and not _is_count(size):
        wrong(f"{_SEGMENT}size", size, "a whole number above 0 is wanted")
    elif size and (within or near):
        slices = (Slice(int(size), within, near),)
    key = f"{_KAI}{REQUIRED if required else PREFERRED}-placement" if required or preferred else f"{_SEGMENT}size"
    yield key, TopologyRequest(required, preferred, slices)


def _volcano(said: Said, wrong: Callable[[str, object, str], None]) -> Iterator[_Read]:
    mode, tier = said.get(_VOLCANO_MODE, "hard"), said.get(_VOLCANO_TIER)
    if _VOLCANO_MODE not in said and tier is None:
        return
    if mode not in {"hard", "soft"}:
        wrong(_VOLCANO_MODE, mode, "hard or soft is wanted")
    elif tier is not None and not _is_count(tier):
        wrong(_VOLCANO_TIER, tier, "a whole number above 0 is wanted")
    elif mode == "soft":
        yield _VOLCANO_MODE, TopologyRequest(preferred=(f"{TIER}1",))
    else:
        yield _VOLCANO_TIER, TopologyRequest(required=(f"{TIER}{tier or 1}",))


def _koordinator(said: Said, wrong: Callable[[str, object, str], None]) -> Iterator[_Read]:
    if _KOORDINATOR not in said:
        return
    try:
        document: Any = json.loads(said[_KOORDINATOR])
        layers = [(str(one["layer"]), _GATHER[one["strategy"]]) for one in document.get("gatherStrategy") or ()]
    except (ValueError, KeyError, TypeError, AttributeError):
        wanted = f"gatherStrategy with a layer and a strategy ({', '.join(_GATHER)}) each is wanted, as JSON"
        wrong(_KOORDINATOR, said[_KOORDINATOR], wanted)
        return
    levels: dict[str, tuple[str, ...]] = {
        mode: tuple(_layer(name) for name, one in layers if one == mode) for mode in _MODES
    }
    yield _KOORDINATOR, TopologyRequest(levels[REQUIRED], levels[PREFERRED])


def _layer(name: str) -> str:
    """Koordinator calls them SpineLayer, BlockLayer, NodeTopologyLayer and so on."""
    short = name.lower().removesuffix("layer").removesuffix("topology")
    return _LAYERS.get(short, short)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0


_READERS: Final = (_own, _kueue, _kai, _volcano, _koordinator)
