"""YuniKorn: the task groups of an application. It holds room by placeholder pods; here there are none, so a minimum
above what an owner ever makes is cut to that, and the driver of a Spark application, which makes the other pods, is
not waited with: it starts once there is room for those, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Later, Level, ObjectLister, Place, Rule, Subject, UnseenError, WrongError
from kohort.grouping.owners.sizes import JOB, most_pods

APPLICATION: Final = ("applicationId", "yunikorn.apache.org/app-id")
TASK: Final = "yunikorn.apache.org/task-group-name"
TASKS: Final = "yunikorn.apache.org/task-groups"
QUEUES: Final = ("queue", "yunikorn.apache.org/queue")
_ROLE: Final = "spark-role"
_DRIVER: Final = "spark-driver"  # as YuniKorn's guide names its task group


def place(pod: Subject, lister: ObjectLister) -> Place | None:
    key = next((one for one in APPLICATION if pod.said(one)), None)
    task = pod.annotations.get(TASK)
    if key is None or not task:
        return None
    application = pod.said(key)
    if pod.labels.get(_ROLE) == "driver":
        return _driver(pod, application)
    text = lister.definition(RULE.name, pod.namespace, application)
    if text is None:
        raise UnseenError(f"annotation {TASKS} of application", pod.namespace, application)
    tasks = _tasks(text)
    if task not in tasks:
        raise WrongError(f"{pod.where(TASK)}: not among the task groups of {TASKS}: {', '.join(sorted(tasks))}")
    minimum = min(tasks[task], most_pods(pod, lister) or tasks[task])
    waited = [name for name in tasks if name != _DRIVER]
    leaf = f"{application}/{task}"
    nodes: tuple[GroupNode, ...] = (GroupNode(leaf, minimum),)
    if len(waited) > 1:
        nodes = (GroupNode(application, len(waited), branch=True), GroupNode(leaf, minimum, application))
    return Place(RULE.name, Level.KEYS, pod.namespace, leaf, nodes, pod.where(TASK), pod.owner, queue=_queue(pod))


def _driver(pod: Subject, application: str) -> Place | None:
    """Its own annotation says what follows it."""
    text = pod.annotations.get(TASKS)
    if not text or not keys.reserves(pod.annotations):
        return None
    _tasks(text)
    own = pod.annotations.get(TASK)
    each = (one for one in json.loads(text) if one["name"] != own and int(one["minMember"]) > 0)
    later = tuple(part for one in each for part in _later(application, one))
    leaf = f"{application}/{own}"
    node = GroupNode(leaf, 1, later=later)
    if not later:
        return None
    return Place(RULE.name, Level.KEYS, pod.namespace, leaf, (node,), pod.where(TASK), pod.owner, queue=_queue(pod))


def _later(application: str, task: dict[str, Any]) -> Iterator[Later]:
    kept = {key: task[key] for key in ("nodeSelector", "tolerations", "affinity") if task.get(key)}
    containers = [{"name": "task", "resources": {"requests": task.get("minResource") or {}}}]
    spec = {**kept, "containers": containers, "schedulerName": ""}  # that of the driver
    return keys.later(f"{application}/{task['name']}", int(task["minMember"]), {"spec": spec})


def _queue(pod: Subject) -> str:
    return next((found for one in QUEUES if (found := pod.said(one))), "")


def defines(pod: Subject) -> tuple[str, str] | None:
    application = next((found for one in APPLICATION if (found := pod.said(one))), "")
    text = pod.annotations.get(TASKS)
    return (application, text) if application and text else None


def _tasks(text: str) -> dict[str, int]:
    accepted = 'accepted is a JSON list such as [{"name": "workers", "minMember": 4}]'
    try:
        found: Any = json.loads(text)
        return {str(one["name"]): int(one["minMember"]) for one in found if int(one["minMember"]) > 0}
    except (ValueError, TypeError, KeyError):
        raise WrongError(f"annotation {TASKS}={text}: {accepted}") from None


RULE = Rule(
    name="yunikorn",
    about="task groups of YuniKorn applications",
    level=Level.KEYS,
    place=place,
    keys=(TASK, TASKS),
    also=(*APPLICATION, _ROLE, *QUEUES),
    reads=(JOB,),
    defines=defines,
)
