"""JobSet, and TrainJob, whose pods are a JobSet's: a tree with a group for each ReplicatedJob.

Orders of creation that a gang must not wait against:

- startupPolicyOrder InOrder, or a dependsOn: later Jobs are made once earlier ones are ready or complete, so those that
  depend on nothing start together, and each of the others by itself. What is made once others are ready stands beside
  them: they start once there is room for it, too. What waits for an end has the room of what has ended;
- exclusive-topology without the node-selector strategy: JobSet's webhook admits the other pods of a Job only once the
  first has a node. The first pods of all Jobs start together, and the others of each Job after them. Its annotation is
  on the pods as well.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kohort.grouping import keys
from kohort.grouping.model import GroupNode, Kind, Later, Level, ObjectLister, Place, Rule, Subject, Thing
from kohort.grouping.owners.builtin import JOB_RANK
from kohort.grouping.owners.sizes import at_once, whole

NAME: Final = "jobset.sigs.k8s.io/jobset-name"
UID: Final = "jobset.sigs.k8s.io/jobset-uid"
REPLICATED: Final = "jobset.sigs.k8s.io/replicatedjob-name"
INDEX: Final = "jobset.sigs.k8s.io/job-index"
EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR: Final = "alpha.jobset.sigs.k8s.io/node-selector"
JOBSET: Final = Kind("jobset.x-k8s.io", "JobSet")
_TRAINJOB: Final = "TrainJob"
_READY: Final = "Ready"  # status of a dependsOn; the other is Complete


class _Part(NamedTuple):
    """A ReplicatedJob."""

    name: str
    replicas: int
    pods: int  # of each Job
    follows: tuple[tuple[str, str], ...]  # other ReplicatedJobs: names, and what they must be
    leader_first: bool
    template: Any  # of its pods


def of_jobset(pod: Subject, lister: ObjectLister) -> Place | None:
    return _place(RULE.name, pod, lister, trained=False)


def of_trainjob(pod: Subject, lister: ObjectLister) -> Place | None:
    return _place(TRAINJOB_RULE.name, pod, lister, trained=True)


def _place(rule: str, pod: Subject, lister: ObjectLister, *, trained: bool) -> Place | None:
    name, own = pod.labels.get(NAME), pod.labels.get(REPLICATED)
    found = lister.find(JOBSET, pod.namespace, name) if name and own else None
    if found is None or pod.labels.get(UID, found.uid) != found.uid:
        return None
    if (found.owner is not None and found.owner.kind == _TRAINJOB) is not trained:
        return None
    if keys.wants(found, pod.annotations) is False:
        return None
    parts = [_part(found, one) for one in found.spec.get("replicatedJobs") or ()]
    for part in parts:
        if part.name == own:
            break
    else:
        return None
    top = found.owner if trained and found.owner is not None else found.reference
    said = f"{_TRAINJOB} {pod.namespace}/{top.name}, its JobSet {found.name}" if trained else str(found)
    leaf, nodes = _groups(found, pod, part, parts)
    made = Place(rule, Level.OWNER, pod.namespace, leaf, nodes, said, top)
    return keys.adjusted(made, pod.annotations, found.annotations)


def _part(found: Thing, one: dict[str, Any]) -> _Part:
    template = one.get("template") or {}
    notes = (template.get("metadata") or {}).get("annotations") or {}
    return _Part(
        str(one.get("name") or ""),
        whole(one.get("replicas"), 1),
        at_once(template.get("spec") or {}),
        tuple((str(other.get("name")), str(other.get("status"))) for other in one.get("dependsOn") or ()),
        (EXCLUSIVE in notes or EXCLUSIVE in found.annotations)
        and not (NODE_SELECTOR in notes or NODE_SELECTOR in found.annotations),
        (template.get("spec") or {}).get("template"),
    )


def _groups(found: Thing, pod: Subject, part: _Part, parts: list[_Part]) -> tuple[str, tuple[GroupNode, ...]]:
    """The pod's leaf, and its tree."""
    own = f"{found.name}/{part.name}"
    if part.leader_first and part.pods > 1 and pod.labels.get(JOB_RANK) != "0":
        leaf = f"{own}/{pod.labels.get(INDEX, '0')}"
        return leaf, (GroupNode(leaf, part.pods - 1),)
    needed = [one for one in parts if one.replicas * one.pods > 0]
    together, after = _order(found, part, needed)
    later: tuple[Later, ...] = ()
    if after and keys.reserves(pod.annotations, found.annotations):
        each = (keys.later(f"{found.name}/{one.name}", _minimum(one), one.template) for one in after)
        later = tuple(one for found_later in each for one in found_later)
    if len(together) < 2 or part not in needed:
        return own, (GroupNode(own, _minimum(part) or None, later=later),)
    below = (GroupNode(f"{found.name}/{one.name}", _minimum(one), found.name) for one in together)
    return own, (GroupNode(found.name, len(together), branch=True, later=later), *below)


def _order(found: Thing, part: _Part, needed: list[_Part]) -> tuple[list[_Part], list[_Part]]:
    """Those that start together with this one, and those that are made once they are ready."""
    if (found.spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder":
        names = [one.name for one in needed]
        return [part], needed[names.index(part.name) + 1 :] if part.name in names else []
    if not any(one.follows for one in needed):
        return needed, []
    together = [part] if part.follows else [one for one in needed if not one.follows]
    return together, _following(together, needed)


def _following(first: list[_Part], needed: list[_Part]) -> list[_Part]:
    """What is made beside these, one after the other; nothing that waits for an end is. JobSet accepts only parts that
    depend on earlier ones."""
    known, found = {one.name for one in first}, list[_Part]()
    for one in needed:
        ready = one.follows and all(status == _READY for _, status in one.follows)
        if ready and one.name not in known and any(name in known for name, _ in one.follows):
            known.add(one.name)
            found.append(one)
    return found


def _minimum(part: _Part) -> int:
    return part.replicas * (min(part.pods, 1) if part.leader_first else part.pods)


RULE = Rule(
    name="jobset",
    about="JobSets: all ReplicatedJobs together, one by one where they are ordered",
    level=Level.OWNER,
    place=of_jobset,
    keys=(NAME,),
    also=(REPLICATED, INDEX, UID, EXCLUSIVE),
    zero_keys={JOB_RANK: EXCLUSIVE},
    reads=(JOBSET,),
    controller="jobset",
)
TRAINJOB_RULE = Rule(
    name="trainjob",
    about="TrainJobs, by their JobSets",
    level=Level.OWNER,
    place=of_trainjob,
    keys=(NAME,),
    also=(REPLICATED, INDEX, UID, EXCLUSIVE),
    zero_keys={JOB_RANK: EXCLUSIVE},
    reads=(JOBSET,),
    controller="trainjob",
)
