"""Koordinator: gangs by annotations; `groups` makes several gangs one tree."""

from __future__ import annotations

import json
from typing import Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Level, ObjectLister, Place, Rule, Subject, WrongError

_PREFIX: Final = "gang.scheduling.koordinator.sh/"
NAME: Final = f"{_PREFIX}name"
MINIMUM: Final = f"{_PREFIX}min-available"
TOTAL: Final = f"{_PREFIX}total-number"
GROUPS: Final = f"{_PREFIX}groups"


def place(pod: Subject, _: ObjectLister) -> Place | None:
    name = pod.annotations.get(NAME)
    if not name:
        return None
    found = pod.annotations.get(MINIMUM, "")
    minimum = keys.number(found, f"annotation {MINIMUM}={found} beside {pod.where(NAME)}", least=0) or None
    total = pod.annotations.get(TOTAL, "")
    if total and minimum is not None and keys.number(total, pod.where(TOTAL)) < minimum:
        raise WrongError(f"{pod.where(TOTAL)} is less than {pod.where(MINIMUM)}")
    gangs = _gangs(pod)
    own = f"{pod.namespace}/{name}"
    if len(gangs) < 2:
        nodes: tuple[GroupNode, ...] = (GroupNode(name, minimum),)
        return Place(RULE.name, Level.KEYS, pod.namespace, name, nodes, pod.where(NAME), pod.owner)
    if own not in gangs:
        raise WrongError(f"{pod.where(GROUPS)} does not list {own}, the gang of {pod.where(NAME)}")
    tree = " + ".join(gangs)  # the same for all of them: in the namespace of the first
    nodes = (GroupNode(tree, len(gangs), branch=True), GroupNode(own, minimum, tree))
    first = gangs[0].partition("/")[0]
    return Place(RULE.name, Level.KEYS, first, own, nodes, pod.where(GROUPS), pod.owner)


def _gangs(pod: Subject) -> list[str]:
    text = pod.annotations.get(GROUPS)
    if not text:
        return []
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) and one.count("/") == 1 for one in found):
        raise WrongError(
            f'{pod.where(GROUPS)}: accepted is a JSON list of gangs such as ["default/gang-a", "default/gang-b"]'
        )
    return sorted(set(found))


RULE = Rule(
    name="koordinator",
    about="annotations gang.scheduling.koordinator.sh",
    level=Level.KEYS,
    place=place,
    keys=(NAME,),
    also=(MINIMUM, TOTAL, GROUPS),
)
