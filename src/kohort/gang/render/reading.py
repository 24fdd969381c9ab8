"""Objects of any version back into plans.

Templates come from the Workload; where it is missing, or lacks one, from the groups themselves. Beside the minimum a
group is taken to be as its template says: what a server fills into groups (priority, disruption mode) is no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from kohort.api.convert.names import REPLICA_KEY
from kohort.api.kind import Object
from kohort.gang.render import common, v1alpha1, v1alpha2, v1beta1
from kohort.gang.tree import Group, Member, Plan, Template


@dataclass(slots=True)
class _Found:
    """What was found of one Workload."""

    namespace: str
    workload: str
    obj: Object | None = None
    groups: list[Group] = field(default_factory=list)
    specs: dict[str, Template] = field(default_factory=dict)  # template name -> as its first group has it
    branches: set[str] = field(default_factory=set)  # template names of composites
    members: Counter[tuple[str, str]] = field(default_factory=Counter)  # (group, source) -> pods


def parse(objects: Iterable[Object], pods: Iterable[Object] = ()) -> Plan:
    """The one plan of these objects."""
    plans = parse_all(objects, pods)
    if len(plans) != 1:
        names = ", ".join(plan.workload or "<none>" for plan in plans) or "none"
        raise ValueError(f"expected objects of one Workload, found {len(plans)}: {names}")
    return plans[0]


def parse_all(objects: Iterable[Object], pods: Iterable[Object] = ()) -> tuple[Plan, ...]:
    """The plans of these objects, one for each Workload and one for each PodGroup without."""
    found: dict[tuple[str, str], _Found] = {}
    homes: dict[tuple[str, str], _Found] = {}  # (namespace, group) -> where it was put
    for obj in objects:
        if obj["kind"] == "Workload":
            _at(found, obj, obj["metadata"]["name"]).obj = obj
        elif obj["kind"] in {"PodGroup", "CompositePodGroup"}:
            home = _add_group(found, obj)
            homes[home.namespace, obj["metadata"]["name"]] = home
    for pod in pods:
        _add_pod(found, homes, pod)
    return tuple(_plan(one) for one in found.values())


def _namespace(obj: Object) -> str:
    return str(obj["metadata"].get("namespace") or "")


def _at(found: dict[tuple[str, str], _Found], obj: Object, workload: str) -> _Found:
    key = (_namespace(obj), workload)
    return found.setdefault(key, _Found(*key))


def _add_group(found: dict[tuple[str, str], _Found], obj: Object) -> _Found:
    meta, spec = obj["metadata"], obj["spec"]
    older = obj["apiVersion"] == v1alpha2.API_VERSION
    leaf = obj["kind"] == "PodGroup"
    named = v1alpha2.reference(spec) if older else v1beta1.reference(spec)
    workload, name = named or ("", meta["name"])
    read = v1alpha2.read_template(name, spec) if older else v1beta1.read_template(name, spec, leaf=leaf)
    key = (_namespace(obj), workload or f"/{meta['name']}")  # a slash is in no name: a place of its own
    home = found.setdefault(key, _Found(key[0], workload))
    home.specs.setdefault(name, read)
    if not leaf:
        home.branches.add(name)
    annotations = meta.get("annotations") or {}
    home.groups.append(
        Group(
            name=meta["name"],
            template=name,
            parent=spec.get("parentCompositePodGroupName"),
            minimum=read.minimum,
            replica_key=annotations.get(REPLICA_KEY),
            owners=common.read_owners(obj),
            labels=dict(meta.get("labels") or {}),
            annotations=dict(annotations),
        )
    )
    return home


def _add_pod(found: dict[tuple[str, str], _Found], homes: dict[tuple[str, str], _Found], pod: Object) -> None:
    namespace = _namespace(pod)
    link = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if link:
        home = homes.get((namespace, link))
        if home is not None:  # a pod may name a group that does not exist
            home.members[link, _source(pod)] += 1
        return
    read = v1alpha1.read_pod(pod)
    if read is None:
        return
    workload, group = read
    home = _at(found, pod, workload)
    if (namespace, group.name) not in homes:
        homes[namespace, group.name] = home
        home.groups.append(group)
    home.members[group.name, _source(pod)] += 1


def _source(pod: Object) -> str:
    owner = next((one for one in pod["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    return f"{owner['kind']} {owner['name']}" if owner else f"Pod {pod['metadata']['name']}"


def _plan(found: _Found) -> Plan:
    meta: dict[str, Any] = found.obj["metadata"] if found.obj else {}
    spec: dict[str, Any] = found.obj["spec"] if found.obj else {}
    templates = _templates(found)
    minimums = {template.name: template.minimum for root in templates for template in root.walk()}
    return Plan(
        workload=found.workload,
        namespace=found.namespace,
        controller=common.read_controller(spec),
        templates=templates,
        groups=tuple(
            replace(group, minimum=None) if group.minimum == minimums.get(group.template) else group
            for group in found.groups
        ),
        members=tuple(
            Member(source=source, count=count, group=group) for (group, source), count in found.members.items()
        ),
        owners=common.read_owners(found.obj) if found.obj else (),
        labels=dict(meta.get("labels") or {}),
        annotations=dict(meta.get("annotations") or {}),
        own_workload=found.obj is not None,
    )


def _templates(found: _Found) -> tuple[Template, ...]:
    written = _written(found.obj) if found.obj else ()
    known = {template.name for root in written for template in root.walk()}
    missing = {name: spec for name, spec in found.specs.items() if name not in known}
    above = _parents(found)
    roots = [name for name in missing if above.get(name) not in missing]
    return (*written, *(_grown(missing, above, name) for name in roots))


def _written(workload: Object) -> tuple[Template, ...]:
    readers = {v1alpha1.API_VERSION: v1alpha1.read_templates, v1alpha2.API_VERSION: v1alpha2.read_templates}
    return readers.get(workload["apiVersion"], v1beta1.read_templates)(workload["spec"])


def _parents(found: _Found) -> dict[str, str]:
    """Template -> template above, from the groups."""
    by_name = {group.name: group.template for group in found.groups}
    return {group.template: by_name[group.parent] for group in found.groups if group.parent in by_name}


def _grown(specs: dict[str, Template], above: dict[str, str], name: str) -> Template:
    children = [_grown(specs, above, child) for child in specs if above.get(child) == name]
    return replace(specs[name], children=tuple(sorted(children, key=lambda child: not child.is_leaf)))
