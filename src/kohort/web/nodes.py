"""Nodes as the map shows them: where they stand, what they have, who uses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kohort.place.state import ClusterState, NodeInfo
from kohort.scheduler.core import SchedulerCore
from kohort.web.units import Units

UNREADY, CORDONED, TAINTED = 1, 2, 4
OTHERS: Final = 0  # the unit of pods that a visitor may not see
_AWAY: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
# Last parts of label keys that stand for a place, the widest first.
_PLACES: Final = (
    *("region", "datacenter", "zone", "superpod", "block", "spine", "row", "rack", "sub-block", "subblock"),
    *("switch", "leaf", "nvlink", "clique", "gpu.clique", "slice"),
)
_DEEPEST: Final = 4

Row = list[Any]  # see `row`


@dataclass(frozen=True, slots=True)
class Layout:
    """What all nodes have in common. `device`: the resource that the map counts; empty: cpu."""

    levels: tuple[str, ...]  # label keys, the widest first
    device: str


def layout(state: ClusterState, constrained: Iterable[str]) -> Layout:
    """`constrained`: keys that groups name in their constraints."""
    infos = [info for info in state.node_infos if info is not None]
    keys: Counter[str] = Counter()
    for info in infos:
        keys.update(info.labels.keys())
    wanted = set(constrained)
    found = [key for key in keys if (_place(key) is not None or key in wanted) and keys[key] * 4 >= len(infos)]
    values = {key: len({info.labels.get(key) for info in infos}) for key in found}
    levels = sorted((key for key in found if values[key] < len(infos)), key=lambda key: (values[key], _order(key)))
    return Layout(tuple(levels[:_DEEPEST]), _device(state))


def _place(key: str) -> int | None:
    name = key.rpartition("/")[2].lower()
    if name in _PLACES:
        return _PLACES.index(name)
    return next((number for number, word in enumerate(_PLACES) if name.endswith(f"-{word}")), None)


def _order(key: str) -> tuple[int, str]:
    place = _place(key)
    return (len(_PLACES) if place is None else place, key)


def _device(state: ClusterState) -> str:
    """The extended resource of which there is most; nothing that every machine has."""
    totals = state.alloc[state.alive].sum(axis=0) if state.alive.any() else ()
    have = {
        name: int(totals[number])
        for number, name in enumerate(state.resources.names)
        if number < len(totals) and "/" in name and int(totals[number])
    }
    return max(sorted(have), key=lambda name: have[name]) if have else ""


def row(core: SchedulerCore, units: Units, plan: Layout, name: str) -> Row | None:
    """[name, values of the levels, counts devices, capacity, used, cpu %, memory %, flags, pods, [unit, amount, ...]]

    Capacity and amounts are devices where the node has some, thousandths of a cpu elsewhere.
    """
    state = core.cache.state
    number = state.row(name)
    if number is None:
        return None
    info = state.node(number)
    device = plan.device if plan.device and _amount(state, number, plan.device)[0] else ""
    counted = device or "cpu"
    capacity, used = _amount(state, number, counted)
    shares: Counter[int] = Counter()
    for pod in info.pods.values():
        unit = units.of(pod.uid)
        shares[unit.id if unit is not None else OTHERS] += pod.signature.requests.get(counted, 0)
    levels = [info.labels.get(key, "") for key in plan.levels]
    percent = [_percent(*_amount(state, number, one)) for one in ("cpu", "memory")]
    flat = [part for share in sorted(shares.items()) for part in share]
    return [name, levels, bool(device), capacity, used, *percent, _flags(info), len(info.pods), flat]


def _amount(state: ClusterState, number: int, resource: str) -> tuple[int, int]:
    """What there is, and what is used."""
    column = state.resources.find(resource)
    if column is None or column >= state.alloc.shape[1]:
        return 0, 0
    return int(state.alloc[number, column]), int(state.used[number, column])


def _percent(capacity: int, used: int) -> int:
    return round(100 * used / capacity) if capacity else 0


def _flags(info: NodeInfo) -> int:
    keys = {taint.key for taint in info.taints}
    flags = UNREADY if keys & _AWAY else 0
    if _UNSCHEDULABLE in keys:
        flags |= CORDONED
    return flags | (TAINTED if keys - _AWAY - {_UNSCHEDULABLE} else 0)


def without(row: Row, seen: Mapping[int, bool]) -> Row:
    """The same with the units that may not be seen taken together."""
    flat = row[-1]
    if all(seen.get(unit, False) for unit in flat[::2]):
        return row
    shares: Counter[int] = Counter()
    for unit, amount in zip(flat[::2], flat[1::2], strict=True):
        shares[unit if seen.get(unit, False) else OTHERS] += amount
    return [*row[:-1], [part for share in sorted(shares.items()) for part in share]]
