"""Volcano: a PodGroup that exists; its annotations on owners are read by the rules for owners."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from kohort.grouping.model import GroupNode, Kind, Level, ObjectLister, Place, Rule, Subject, Thing, WrongError
from kohort.grouping.schedulers.objects import minimum, said

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
VOLCANO_NAME: Final = "scheduling.volcano.sh/group-name"
TASK: Final = "volcano.sh/task-spec"
QUEUE: Final = "scheduling.volcano.sh/queue-name"
MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"  # on an owner
KIND: Final = Kind("scheduling.volcano.sh", "PodGroup")


def place(pod: Subject, lister: ObjectLister) -> Place | None:
    key = next((one for one in (GROUP_NAME, VOLCANO_NAME) if pod.annotations.get(one)), None)
    if key is None:
        return None
    found = lister.find(KIND, pod.namespace, pod.annotations[key], wait=False)
    if found is None:
        return None
    made = Place(
        RULE.name, Level.OBJECT, pod.namespace, found.name, (GroupNode(found.name, minimum(found)),),
        said(pod, key, found), found.reference, queue=str(found.spec.get("queue") or pod.annotations.get(QUEUE) or ""),
    )  # fmt: skip
    tasks = _tasks(found)
    return _tree(made, pod, found, tasks) if tasks else made


def _tasks(found: Thing) -> dict[str, int]:
    """minTaskMember: how many pods of each task the gang cannot do without."""
    given: Any = found.spec.get("minTaskMember") or {}
    if not isinstance(given, dict) or not all(isinstance(one, int) for one in given.values()):
        raise WrongError(f"{found}: spec.minTaskMember: {given!r}: accepted is a mapping of tasks to whole numbers")
    return {str(task): least for task, least in given.items() if least > 0}


def _tree(made: Place, pod: Subject, found: Thing, tasks: dict[str, int]) -> Place:
    """A group for each task that has a minimum; pods of other tasks are beside the gang."""
    task = pod.said(TASK)
    if task not in tasks:
        leaf = f"{found.name}/{task or 'others'}"
        return replace(made, leaf=leaf, nodes=(GroupNode(leaf, None),))
    root = GroupNode(found.name, len(tasks), branch=True)
    below = tuple(GroupNode(f"{found.name}/{one}", least, found.name) for one, least in tasks.items())
    return replace(made, leaf=f"{found.name}/{task}", nodes=(root, *below))


RULE = Rule(
    name="volcano",
    about="PodGroups of scheduling.volcano.sh",
    level=Level.OBJECT,
    place=place,
    keys=(GROUP_NAME, VOLCANO_NAME),
    also=(TASK, QUEUE),
    reads=(KIND,),
)
