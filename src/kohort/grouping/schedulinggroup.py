"""`schedulingGroup` for pods of operators that write none: what a webhook needs where kube-scheduler stays.

A pod is given to `assign` before it exists, together with what has been looked up so far. The answer is one of three:
an object that has to be looked up first (`Wanted`), the group to write and the objects that stand for it (`Assigned`),
or why the pod stays as it is (`Alone`). So all I/O is the caller's:

    seen = Seen()
    while isinstance(answer := assign(pod, seen, grouping, release), Wanted):     # at most a few rounds
        seen.put(answer, await get(answer.kind, answer.namespace, answer.name))   # None: not there, or not readable
    if isinstance(answer, Assigned):
        for wanted in answer.objects:                                             # Workload, branches, then leaves
            existing = await create(wanted)                                       # the one that is there, on a conflict
            if existing and (patch := change(existing, wanted)):
                await merge_patch(existing, patch)
        pod["spec"] |= answer.link                                                # {"schedulingGroup": {…}}

The objects are whole and their names deterministic, so every pod of a group asks for the same ones. `pod` needs its
namespace (that of the request: a pod under admission may have none of its own).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from kohort.api.kind import Object
from kohort.api.releases import Release, release
from kohort.api.scheduling.topology import TopologyError, read_topology
from kohort.gang.render import pod_link, render
from kohort.gang.tree import MAX_DEPTH, MAX_WIDTH, Controller, Group, Owner, Plan, Template
from kohort.grouping.keys import root_of
from kohort.grouping.model import Absent, GroupNode, Kind, Level, Place, Reference, Subject, Thing, UnseenError
from kohort.grouping.registry import group
from kohort.grouping.settings import Grouping

GROUPED_BY: Final = "kohort.dev/grouped-by"  # annotation of the objects: the rule, and what it rests on
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "kohort"}
_MAX_NAME: Final = 253
_MAX_LABEL: Final = 63


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object to be looked up, in whatever version of its kind is served."""

    kind: Kind
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """`link`: members for the pod's spec. `objects`: what has to exist, in the order of creation. `warnings`: what of
    the request kube-scheduler cannot do."""

    link: Object
    objects: tuple[Object, ...]
    place: Place
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alone:
    """The pod stays as it is. `problem`: what is wrong with what it says; empty: nothing is."""

    problem: str = ""


class Seen:
    """What was looked up for one pod, or for many: an `ObjectLister` that asks for what it does not know."""

    def __init__(self) -> None:
        self._things: dict[tuple[Kind, str, str], Thing | None] = {}
        self._definitions: dict[tuple[str, str, str], str] = {}
        self.wanted: Wanted | None = None  # what the last rule missed

    def put(self, which: Wanted, body: Object | None) -> None:
        self._things[which.kind, which.namespace, which.name] = thing(which.kind, body) if body is not None else None

    def define(self, rule: str, namespace: str, said: tuple[str, str]) -> None:
        self._definitions[rule, namespace, said[0]] = said[1]

    def find(self, kind: Kind, namespace: str, name: str, *, wait: bool = True) -> Thing | None:
        try:
            return self._things[kind, namespace, name]
        except KeyError:
            self.wanted = Wanted(kind, namespace, name)
            raise UnseenError(kind.name, namespace, name, wait=wait) from None

    def definition(self, rule: str, namespace: str, name: str) -> str | None:
        return self._definitions.get((rule, namespace, name))


def assign(
    pod: Object, seen: Seen, grouping: Grouping, served: Release | str = "1.37", *, composites: bool = True
) -> Assigned | Wanted | Alone:
    """`composites`: whether the server has CompositePodGroups; without them a tree becomes one flat gang."""
    found = release(served) if isinstance(served, str) else served
    spec = pod.get("spec") or {}
    subject = subject_of(pod)
    if not found.has_pod_groups or any(spec.get(one) for one in ("schedulingGroup", "workloadRef")):
        return Alone()
    if not grouping.covers(str(spec.get("schedulerName") or "default-scheduler"), subject.namespace):
        return Alone()
    rules = grouping.rules
    for rule in rules:
        said = rule.defines(subject) if rule.defines is not None else None
        if said is not None:
            seen.define(rule.name, subject.namespace, said)
    answer = group(subject, seen, rules)
    if isinstance(answer, Absent):
        assert seen.wanted is not None
        return seen.wanted
    if answer is None or answer.problem:
        return Alone(answer.problem if answer is not None else "")
    if _starts_one_by_one(answer):
        return Alone()
    return _written(subject, answer, spec, found, composites=composites and found.has_composites)


def _starts_one_by_one(place: Place) -> bool:
    """A group that asks for nothing need not exist."""
    return all(one.minimum is None and not one.topology and not one.disrupt_all for one in _tree_of(place))


def change(existing: Object, wanted: Object) -> Object | None:
    """A merge patch that brings an object up to date: a gang's minimum follows its owner, and whoever shares a group
    owns it. None: it is as it should be, or cannot change."""
    patch: dict[str, Any] = {}
    now, then = (_minimum(one) for one in (existing, wanted))
    if wanted["kind"] == "PodGroup" and None not in {now, then} and now != then:
        patch["spec"] = {"schedulingPolicy": {"gang": {"minCount": then}}}
    owners = list((existing.get("metadata") or {}).get("ownerReferences") or ())
    known = {one.get("uid") for one in owners}
    more = [one for one in wanted["metadata"].get("ownerReferences", ()) if one["uid"] not in known]
    if more:
        version = existing["metadata"].get("resourceVersion")
        patch["metadata"] = {"ownerReferences": [*owners, *more], **({"resourceVersion": version} if version else {})}
    return patch or None


def _minimum(obj: Object) -> int | None:
    gang = ((obj.get("spec") or {}).get("schedulingPolicy") or {}).get("gang") or {}
    minimum: int | None = gang.get("minCount")
    return minimum


# ---- objects as rules see them


def subject_of(pod: Object) -> Subject:
    meta = pod.get("metadata") or {}
    return Subject(
        meta.get("namespace") or "default",
        meta.get("name") or meta.get("generateName") or "",
        meta.get("labels") or {},
        meta.get("annotations") or {},
        _controller(meta),
    )


def thing(kind: Kind, body: Object) -> Thing:
    meta = body.get("metadata") or {}
    return Thing(
        body.get("apiVersion") or "",
        kind.name,
        meta.get("namespace") or "default",
        meta.get("name") or "",
        meta.get("uid") or "",
        meta.get("labels") or {},
        meta.get("annotations") or {},
        _controller(meta),
        body.get("spec") or {},
    )


def _controller(meta: Object) -> Reference | None:
    for one in meta.get("ownerReferences") or ():
        if one.get("controller"):
            return Reference(one.get("apiVersion", ""), one.get("kind", ""), one.get("name", ""), one.get("uid", ""))
    return None


# ---- a place as objects


@dataclass(slots=True)
class _Writer:
    """Names and templates of the groups of one tree."""

    place: Place
    priority_class: str | None
    topology: str | None  # that the pod asks for, for its own leaf
    names: dict[str, str] = field(default_factory=dict)

    def name(self, node: GroupNode) -> str:
        """Of owners that come again under the same name, the groups must not be the same."""
        if node.name not in self.names:
            shared = self.place.level in {Level.KOHORT, Level.KEYS}
            whose = self.place.owner.uid if self.place.owner is not None and not shared else ""
            self.names[node.name] = _name(node.name, self.place.rule, whose, most=_MAX_NAME)
        return self.names[node.name]

    def template(self, node: GroupNode, children: Mapping[str, list[GroupNode]]) -> Template:
        own = self.topology if node.name == self.place.leaf else None
        return Template(
            name=_name(node.name, self.place.rule, "", most=_MAX_LABEL),
            minimum=node.minimum,
            topology=own or node.topology,
            disruption="all" if node.disrupt_all else None,
            priority_class=self.priority_class,
            children=tuple(self.template(one, children) for one in children.get(node.name, ())),
        )

    def group(self, node: GroupNode) -> Group:
        parent = next((one for one in self.place.nodes if one.name == node.parent), None)
        return Group(
            name=self.name(node),
            template=_name(node.name, self.place.rule, "", most=_MAX_LABEL),
            parent=self.name(parent) if parent is not None else None,
            owners=_owners(self.place),
            labels=MANAGED_BY,
            annotations={GROUPED_BY: f"rule {self.place.rule} ({self.place.said})"},
        )


def _written(pod: Subject, place: Place, spec: Object, served: Release, *, composites: bool) -> Assigned:
    warnings: list[str] = []
    topology = _topology(pod, warnings)
    place = _within(place, warnings, composites=composites)
    nodes = _tree_of(place)
    place = replace(place, nodes=nodes)
    writer = _Writer(place, spec.get("priorityClassName") or None, topology)
    children: dict[str, list[GroupNode]] = {}
    for node in nodes:
        if node.parent is not None:
            children.setdefault(node.parent, []).append(node)
    root = root_of(place)
    plan = Plan(
        workload=writer.name(root) if root.branch else "",
        namespace=pod.namespace,
        controller=_controller_of(place.owner) if root.branch else None,
        templates=(writer.template(root, children),),
        groups=tuple(writer.group(node) for node in nodes),
        owners=_owners(place),
        labels=MANAGED_BY,
        own_workload=root.branch,
    )
    rendered = render(plan, served)
    link = pod_link(plan, writer.name(place.leaf_node), served)
    return Assigned(link, rendered.objects, place, (*warnings, *rendered.warnings))


def _tree_of(place: Place) -> tuple[GroupNode, ...]:
    """The groups of the pod's own tree, parents first."""
    root = root_of(place).name
    found = [one for one in place.nodes if one.name == root]
    for known in found:  # grows
        found += [one for one in place.nodes if one.parent == known.name]
    return tuple(found)


def _within(place: Place, warnings: list[str], *, composites: bool) -> Place:
    """The place as the server can have it: a tree that it cannot express is one flat gang where that is the same, and
    else each leaf by itself."""
    tree = _tree_of(place)
    if len(tree) == 1:
        return place
    reason = _too_much(tree, composites=composites)
    if not reason:
        return place
    root = root_of(place)
    leaves = [one for one in tree if not one.branch]
    branches = [one for one in tree if one.branch]
    whole = all(one.minimum == sum(1 for below in tree if below.parent == one.name) for one in branches)
    if whole and all(one.minimum is not None for one in leaves):
        flat = replace(root, branch=False, minimum=sum(one.minimum or 0 for one in leaves))
        warnings.append(f"{root.name} is one gang of {flat.minimum} pods, not a tree: {reason}")
        return replace(place, leaf=flat.name, nodes=(flat,))
    warnings.append(f"the groups of {root.name} start each by itself: {reason}")
    return replace(place, nodes=(replace(place.leaf_node, parent=None),))


def _too_much(tree: tuple[GroupNode, ...], *, composites: bool) -> str:
    if not composites:
        return "CompositePodGroups are not served here"
    above = {one.name: one.parent for one in tree}
    if any(_depth(one.name, above) > MAX_DEPTH for one in tree):
        return f"a tree has at most {MAX_DEPTH} levels"
    for kind in (True, False):
        counts = [sum(1 for one in tree if one.parent == name and one.branch is kind) for name in above]
        if max(counts) > MAX_WIDTH:
            return f"a Workload has at most {MAX_WIDTH} templates in a list"
    return ""


def _depth(name: str, above: Mapping[str, str | None]) -> int:
    parent = above.get(name)
    return 1 if parent is None else 1 + _depth(parent, above)


def _topology(pod: Subject, warnings: list[str]) -> str | None:
    """One required label key; what kube-scheduler has no field for is told."""
    try:
        asked = read_topology(pod.annotations)
    except TopologyError as error:
        warnings += error.mistakes
        return None
    keys = [one for one in asked.required if "/" in one]
    slices = [one.required or one.preferred for one in asked.slices]
    lost = [*(one for one in asked.required if one not in keys[:1]), *asked.preferred, *slices]
    if any(lost):
        told = ", ".join(filter(None, lost))
        warnings.append(f"topology: {told}: kube-scheduler knows one required label key of nodes, and nothing else")
    return keys[0] if keys else None


def _owners(place: Place) -> tuple[Owner, ...]:
    owner = place.owner
    if owner is None or not owner.uid:
        return ()
    return (Owner(api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.uid),)


def _controller_of(owner: Reference | None) -> Controller | None:
    return Controller(api_group=owner.of.group, kind=owner.kind, name=owner.name) if owner is not None else None


def _name(words: str, rule: str, uid: str, *, most: int) -> str:
    """Legal, the same each time, and no other group's."""
    digest = sha256("\n".join((rule, uid, words)).encode()).hexdigest()[:8]
    plain = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return f"{plain[: most - 9].rstrip('-') or 'group'}-{digest}"
