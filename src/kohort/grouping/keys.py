"""Keys of Kohort's own, for pods and for the objects that own them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kohort.grouping.model import GroupNode, Later, Place, Thing, WrongError

GROUP: Final = "kohort.dev/pod-group"  # the group of a pod, by name
MIN_COUNT: Final = "kohort.dev/min-count"  # pods of it that start together
DISRUPTION: Final = "kohort.dev/disruption-mode"  # single, all
PARENT: Final = "kohort.dev/parent-pod-group"  # a group of groups
MIN_GROUPS: Final = "kohort.dev/parent-min-group-count"
PARENT_TOPOLOGY: Final = "kohort.dev/parent-topology"
GANG: Final = "kohort.dev/gang"  # true, false: whether the rule for the owner's kind applies
RESERVE: Final = "kohort.dev/reserve"  # true, false: whether parts that come later must find room from the start
OWN: Final = (GROUP, MIN_COUNT, DISRUPTION, PARENT, MIN_GROUPS, PARENT_TOPOLOGY, GANG, RESERVE)


def number(value: str, where: str, least: int = 1) -> int:
    """A count as people write it."""
    if value.isascii() and value.isdecimal() and int(value) >= least:
        return int(value)
    raise WrongError(f"{where}: accepted is a whole number of at least {least}")


def switch(said: Mapping[str, str], key: str = GANG) -> bool | None:
    """None: nothing is said."""
    value = said.get(key)
    if value is None:
        return None
    if value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise WrongError(f"annotation {key}={value}: accepted are true and false")


def reserves(*said: Mapping[str, str]) -> bool:
    """Whether a part starts only with room for those that follow it. What is nearest to the pod counts."""
    return next((found for one in said if (found := switch(one, RESERVE)) is not None), True)


def later(name: str, count: int, template: Any, within: str = "") -> Iterator[Later]:
    """Pods that are made later, if it is known what they ask for."""
    if count > 0 and isinstance(template, dict) and template.get("spec"):
        yield Later(name, count, msgspec.json.encode(template), within)


def whole(said: Mapping[str, str]) -> bool:
    """Whether a group is disrupted as a whole."""
    value = said.get(DISRUPTION, "single").lower()
    if value in {"all", "podgroup"}:
        return True
    if value in {"single", "pod"}:
        return False
    raise WrongError(f"annotation {DISRUPTION}={said[DISRUPTION]}: accepted are single and all")


def adjusted(place: Place, *said: Mapping[str, str]) -> Place:
    """A place with what our own annotations add at its root: disruption mode, and of a single gang its minimum. What is
    nearest to the pod counts."""
    for one in said:
        if DISRUPTION in one or MIN_COUNT in one:
            break
    else:
        return place
    merged: dict[str, str] = {}
    for one in reversed(said):
        merged.update((key, one[key]) for key in (DISRUPTION, MIN_COUNT) if key in one)
    top = root_of(place)
    disrupt_all = whole(merged) if DISRUPTION in merged else top.disrupt_all
    node = replace(top, disrupt_all=disrupt_all)
    if MIN_COUNT in merged and not top.branch:
        node = replace(node, minimum=number(merged[MIN_COUNT], f"annotation {MIN_COUNT}={merged[MIN_COUNT]}"))
    return replace(place, nodes=tuple(node if one is top else one for one in place.nodes))


def root_of(place: Place) -> GroupNode:
    """The node above the leaf that has no parent."""
    if len(place.nodes) == 1:
        return place.nodes[0]
    by_name = {one.name: one for one in place.nodes}
    node = by_name[place.leaf]
    while node.parent is not None:
        node = by_name[node.parent]
    return node


def wants(thing: Thing, pod: Mapping[str, str]) -> bool | None:
    """Whether an owner or its pods ask for a gang, or refuse to be one."""
    mine = switch(pod)
    return mine if mine is not None else switch(thing.annotations)
