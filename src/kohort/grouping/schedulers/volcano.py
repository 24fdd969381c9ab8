"""Volcano: a PodGroup that exists; its annotations on owners are read by the rules for owners."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from kohort.grouping.model import GroupNode, Kind, Level, ObjectLister, Place, Rule, Subject, Thing, WrongError
from kohort.grouping.schedulers.objects import minimum, said

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
VOLCANO_NAME: Final = "scheduling.volcano.sh/group-name"
TASK: Final = "volcano.sh/task-spec"
PARTITION: Final = "volcano.sh/partition-id"
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
    node = GroupNode(found.name, minimum(found), asks=_network(found.spec))
    made = Place(
        RULE.name, Level.OBJECT, pod.namespace, found.name, (node,),
        said(pod, key, found), found.reference, queue=str(found.spec.get("queue") or pod.annotations.get(QUEUE) or ""),
    )  # fmt: skip
    tasks, policies = _tasks(found), _policies(found)
    if policies:
        return _subgroups(made, pod, found, policies, tasks)
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
    root = GroupNode(found.name, len(tasks), branch=True, asks=_network(found.spec))
    below = tuple(GroupNode(f"{found.name}/{one}", least, found.name) for one, least in tasks.items())
    return replace(made, leaf=f"{found.name}/{task}", nodes=(root, *below))


def _network(spec: dict[str, Any]) -> str:
    """networkTopology in the words of kohort.dev/topology: tiers are levels of the network, counted from below."""
    found = spec.get("networkTopology")
    if not isinstance(found, dict):
        return ""
    if found.get("mode") == "soft":
        return "tier-1=preferred"
    tier, name = found.get("highestTierAllowed"), found.get("highestTierName")
    level = name if isinstance(name, str) and name else f"tier-{tier}" if isinstance(tier, int) and tier > 0 else ""
    return f"{level}=required" if level else ""


def _policies(found: Thing) -> list[dict[str, Any]]:
    """subGroupPolicy: pods of a task in parts that have a place of their own in the network."""
    given: Any = found.spec.get("subGroupPolicy") or []
    if not isinstance(given, list) or not all(isinstance(one, dict) and one.get("name") for one in given):
        raise WrongError(f"{found}: spec.subGroupPolicy: {given!r}: accepted is a list of objects with a name each")
    for one in given:
        selector = one.get("labelSelector") or {}
        read = {*(selector.get("matchLabels") or {}), *(one.get("matchLabelKeys") or ())}
        if not read <= {TASK, PARTITION} or selector.get("matchExpressions"):
            by = ", ".join(sorted(read)) or "matchExpressions"
            raise WrongError(
                f"{found}: spec.subGroupPolicy {one['name']}: selects by {by}; "
                f"accepted are the labels {TASK} and {PARTITION}, as Volcano's Job controller writes them"
            )
    return given


def _subgroups(made: Place, pod: Subject, found: Thing, policies: list[dict[str, Any]], tasks: dict[str, int]) -> Place:
    """A group for each policy, and below it one for each part, known by its pods. A pod of no policy is beside it."""
    policy = next((one for one in policies if _selects(one, pod)), None)
    if policy is None:
        leaf = f"{found.name}/{pod.said(TASK) or 'others'}"
        return replace(made, leaf=leaf, nodes=(GroupNode(leaf, None),))
    root = GroupNode(found.name, len(policies), branch=True, asks=_network(found.spec))
    above = tuple(
        GroupNode(f"{found.name}/{one['name']}", _least(one, found, tasks, len(policies)), found.name, branch=True)
        for one in policies
    )
    name = f"{found.name}/{policy['name']}"
    part = f"{name}/{'-'.join(pod.said(key) for key in policy.get('matchLabelKeys') or ()) or '0'}"
    leaf_node = GroupNode(part, _size(policy), name, asks=_network(policy))
    return replace(made, leaf=part, nodes=(root, *above, leaf_node))


def _selects(policy: dict[str, Any], pod: Subject) -> bool:
    wanted = (policy.get("labelSelector") or {}).get("matchLabels") or {}
    keys = policy.get("matchLabelKeys") or ()
    return all(pod.said(key) == value for key, value in wanted.items()) and all(pod.said(key) for key in keys)


def _size(policy: dict[str, Any]) -> int:
    size = policy.get("subGroupSize")
    return size if isinstance(size, int) and size > 0 else 1


def _least(policy: dict[str, Any], found: Thing, tasks: dict[str, int], policies: int) -> int:
    """How many parts the gang cannot do without: as the policy says; else as many as the task's minimum, or that of
    the whole if there is one policy, has room in."""
    said = policy.get("minSubGroups")
    if isinstance(said, int) and said > 0:
        return said
    pods = tasks.get(str(policy["name"])) or (minimum(found) if policies == 1 else None) or 1
    return -(-pods // _size(policy))


RULE = Rule(
    name="volcano",
    about="PodGroups of scheduling.volcano.sh",
    level=Level.OBJECT,
    place=place,
    keys=(GROUP_NAME, VOLCANO_NAME),
    also=(TASK, PARTITION, QUEUE),
    reads=(KIND,),
)
