"""Between 1.35 (v1alpha1) and 1.36 (v1alpha2): groups named by tuples on pods against groups that are objects."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Final, NamedTuple

from kohort.api import formats
from kohort.api.convert import names
from kohort.api.convert.identity import renew
from kohort.api.convert.pods import links, relinked, replace
from kohort.api.convert.work import (
    POD_GROUP,
    V1ALPHA1,
    V1ALPHA2,
    WORKLOAD,
    Finding,
    Work,
    is_a,
    key_of,
    namespace_or_default,
    part,
    template_of,
)
from kohort.api.errors import show
from kohort.api.kind import Object
from kohort.api.scheduling.constants import DISRUPT_POD


class Place(NamedTuple):
    """A group of 1.35: pods with the same four belong together."""

    namespace: str
    workload: str
    group: str
    key: str = ""

    @property
    def link(self) -> dict[str, Any]:
        link = {"name": self.workload, "podGroup": self.group}
        return {"workloadRef": link | ({"podGroupReplicaKey": self.key} if self.key else {})}

    @property
    def name(self) -> str:
        return names.group_name(self.workload, self.group, self.key)


# ---- 1.35 -> 1.36

# The tuples on pods and pod templates, each with the object and path where it first stands; None: only expected.
_Seen = dict[Place, tuple[Object, str] | None]


def up(objects: list[Object], work: Work, expected: Iterable[Place] = ()) -> list[Object]:
    """`expected`: groups whose pods are not among the objects."""
    found = {**dict.fromkeys(expected), **_seen(objects)}
    workloads = {key_of(obj): obj for obj in objects if is_a(obj, WORKLOAD, V1ALPHA1)}
    _known(found, workloads, work)
    _distinct(found, objects, work)
    result: list[Object] = []
    for obj in objects:
        if is_a(obj, WORKLOAD, V1ALPHA1):
            result += _workload_up(obj, [place for place in found if place[:2] == key_of(obj)], work)
        else:
            result.append(_relink_up(obj, work))
    return result


def _seen(objects: list[Object]) -> _Seen:
    found: _Seen = {}
    for obj in objects:
        for path, _, link in links(obj, "workloadRef"):
            found.setdefault(_place(namespace_or_default(obj), link), (obj, path))
    return found


def _place(namespace: str, link: dict[str, Any]) -> Place:
    return Place(namespace, link.get("name") or "", link.get("podGroup") or "", link.get("podGroupReplicaKey") or "")


def _known(found: _Seen, workloads: dict[tuple[str, str], Object], work: Work) -> None:
    for place, where in found.items():
        workload = workloads.get((place.namespace, place.workload))
        if workload is None:
            text = f'Workload "{place.workload}" is not among the objects; the policy of its groups is needed'
        elif not any(group.get("name") == place.group for group in part(workload, "spec").get("podGroups") or ()):
            text = f'Workload "{place.workload}" has no podGroup "{place.group}"'
        else:
            continue
        if where is None:
            work.errors.append(Finding(f"expected group {'/'.join(filter(None, place))}", "", text))
        else:
            work.refuse(*where, text)


def _distinct(found: _Seen, objects: list[Object], work: Work) -> None:
    """Names of groups are put together from parts; two tuples may come to one name."""
    taken: dict[tuple[str, str], str] = {
        key_of(obj): "a PodGroup among the objects" for obj in objects if obj.get("kind") == POD_GROUP
    }
    for place in found:
        full = (place.namespace, place.name)
        if full in taken:
            text = f'the name "{place.name}" for {place.link["workloadRef"]} is also that of {taken[full]}'
            work.errors.append(Finding(f"PodGroup {place.namespace}/{place.name}", "metadata.name", text))
        taken.setdefault(full, str(place.link["workloadRef"]))


def _workload_up(obj: Object, places: list[Place], work: Work) -> list[Object]:
    new = deepcopy(obj)
    new["apiVersion"] = V1ALPHA2
    spec = part(new, "spec")
    groups = spec.get("podGroups") or []
    replace(spec, "podGroups", {"podGroupTemplates": groups})
    for group in groups:
        replace(group, "policy", {"schedulingPolicy": group.get("policy")})
    renew(new, work)
    made = [_pod_group(new, group, place) for place in places for group in groups if group.get("name") == place.group]
    used = {place.group for place in places}
    for index, group in enumerate(groups):
        if group.get("name") not in used:
            text = f"no pod among the objects names {show(group.get('name'))}: no PodGroup was made for it"
            work.warn(obj, f"spec.podGroups[{index}]", text)
    return [new, *made]


def _pod_group(workload: Object, template: dict[str, Any], place: Place) -> Object:
    meta: Object = {"name": place.name}
    if part(workload, "metadata").get("namespace"):
        meta["namespace"] = part(workload, "metadata")["namespace"]
    if place.key:
        meta["annotations"] = {names.REPLICA_KEY: place.key}
    reference = {"workloadName": place.workload, "podGroupTemplateName": place.group}
    spec = {
        "podGroupTemplateRef": {"workload": reference},
        "schedulingPolicy": deepcopy(template.get("schedulingPolicy")),
    }
    return {"apiVersion": V1ALPHA2, "kind": POD_GROUP, "metadata": meta, "spec": spec}


def _relink_up(obj: Object, work: Work) -> Object:
    namespace = namespace_or_default(obj)
    return relinked(
        obj,
        "workloadRef",
        work,
        lambda _, link: {"schedulingGroup": {"podGroupName": _place(namespace, link).name}},
    )


# ---- 1.36 -> 1.35

_LOST: Final = ("schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority")


def down(objects: list[Object], work: Work) -> list[Object]:
    workloads = {key_of(obj): obj for obj in objects if is_a(obj, WORKLOAD, V1ALPHA2)}
    groups = {key_of(obj): obj for obj in objects if is_a(obj, POD_GROUP, V1ALPHA2)}
    taken = {key_of(obj) for obj in objects if obj.get("kind") == WORKLOAD}
    places = {key: _place_of(obj, taken) for key, obj in groups.items()}
    _told_apart(places, groups, work)
    named = {
        (namespace_or_default(obj), link.get("podGroupName"))
        for obj in objects
        for _, _, link in links(obj, "schedulingGroup")
    }
    result: list[Object] = []
    for obj in objects:
        if is_a(obj, WORKLOAD, V1ALPHA2):
            result.append(_workload_down(obj, work))
        elif is_a(obj, POD_GROUP, V1ALPHA2):
            result += _group_down(obj, places[key_of(obj)], workloads, work)
            if key_of(obj) not in named:
                _say_link(obj, places[key_of(obj)], work)
        else:
            result.append(_relink_down(obj, places, work))
    return result


def _place_of(obj: Object, taken: set[tuple[str, str]]) -> Place:
    """The tuple that stands for a PodGroup. A standalone one gets a Workload of its own."""
    namespace, name = key_of(obj)
    reference = template_of(obj)
    if reference is None:
        free = (namespace, name) not in taken
        workload = name if free else names.group_name(name, names.digest(name), None)
        return Place(namespace, workload, names.replica_key(name))
    workload, template = reference
    annotations = part(obj, "metadata").get("annotations") or {}
    key = annotations.get(names.REPLICA_KEY)
    if key is None:
        key = "" if name == names.group_name(workload, template, None) else names.replica_key(name)
    return Place(namespace, workload, template, key)


def _told_apart(places: dict[tuple[str, str], Place], groups: dict[tuple[str, str], Object], work: Work) -> None:
    seen: dict[Place, str] = {}
    for key, place in places.items():
        path = f"metadata.annotations[{names.REPLICA_KEY}]"
        problem = formats.label(place.key) if place.key else None
        if not key[1]:
            work.refuse(groups[key], "metadata.name", f"is missing, and groups are only names on {work.target}")
        elif place in seen:
            text = f"{show(place.key)} is also the key of PodGroup {seen[place]} of the same template"
            work.refuse(groups[key], path, text)
        elif problem:
            work.refuse(groups[key], path, f"{show(place.key)} cannot be a podGroupReplicaKey: {problem}")
        seen.setdefault(place, key[1])


def _workload_down(obj: Object, work: Work) -> Object:
    new = deepcopy(obj)
    new["apiVersion"] = V1ALPHA1
    spec = part(new, "spec")
    groups = spec.get("podGroupTemplates") or []
    for index, group in enumerate(groups):
        for name in _LOST:
            value = group.pop(name, None)
            if _means(value):
                work.lose(obj, f"spec.podGroupTemplates[{index}].{name}", value, f"{work.target} has none")
        replace(group, "schedulingPolicy", {"policy": group.get("schedulingPolicy")})
    replace(spec, "podGroupTemplates", {"podGroups": groups})
    renew(new, work)
    return new


def _means(value: Any) -> bool:
    """`{}` and null are both no constraint (spec workload-api 4.5); 0 is a priority."""
    return value is not None and value not in ("", [], {}, {"topology": []}, {"topology": None})


def _group_down(obj: Object, place: Place, workloads: dict[tuple[str, str], Object], work: Work) -> list[Object]:
    """Nothing, or the Workload that a standalone group needs."""
    if template_of(obj) is None:
        return [_synthesised(obj, place, work)]
    workload = workloads.get((place.namespace, place.workload))
    path = "spec.podGroupTemplateRef"
    if workload is None:
        text = f'Workload "{place.workload}" is not among the objects; pods wait on {work.target} until it exists'
        work.warn(obj, path, text)
        return []
    templates = part(workload, "spec").get("podGroupTemplates") or ()
    template = next((one for one in templates if one.get("name") == place.group), None)
    if template is None:
        text = f'Workload "{place.workload}" has no template "{place.group}"; its pods would wait for ever'
        work.refuse(obj, path, f"{text} on {work.target}")
        return []
    _compare(obj, template, work)
    _metadata_lost(obj, work)
    return []


def _compare(obj: Object, template: dict[str, Any], work: Work) -> None:
    """On 1.35 a group is what the Workload says: report where it was something else."""
    spec = part(obj, "spec")
    mine, theirs = spec.get("schedulingPolicy") or {}, template.get("schedulingPolicy") or {}
    if ("gang" in mine) != ("gang" in theirs):
        text = f"{show(mine)} differs from its template's {show(theirs)}, which alone counts on {work.target}"
        work.refuse(obj, "spec.schedulingPolicy", text)
    elif mine != theirs:
        text = f"all groups of a template have its minimum there: {show((theirs.get('gang') or {}).get('minCount'))}"
        work.lose(obj, "spec.schedulingPolicy.gang.minCount", (mine.get("gang") or {}).get("minCount"), text)
    for name in _LOST:
        value = spec.get(name)
        if _means(value) and value != template.get(name) and not _by_server(name, value, spec):
            work.lose(obj, f"spec.{name}", value, f"{work.target} has none")


def _by_server(name: str, value: Any, spec: dict[str, Any]) -> bool:
    """What a server fills into every group."""
    if name == "priority":
        return value == 0 or bool(spec.get("priorityClassName"))
    return name == "disruptionMode" and value == DISRUPT_POD


def _metadata_lost(obj: Object, work: Work) -> None:
    meta = part(obj, "metadata")
    for member in ("labels", "annotations"):
        value = {name: text for name, text in (meta.get(member) or {}).items() if name != names.REPLICA_KEY}
        if value:
            work.lose(obj, f"metadata.{member}", value, f"groups are no objects on {work.target}")


def _synthesised(obj: Object, place: Place, work: Work) -> Object:
    """One Workload with one podGroup, for a PodGroup that had none (spec workload-api 4.3)."""
    new = deepcopy(obj)
    spec = new.pop("spec", None) or {}
    for name in _LOST:
        if _means(spec.get(name)) and not _by_server(name, spec[name], spec):
            work.lose(obj, f"spec.{name}", spec[name], f"{work.target} has none")
    renew(new, work)
    new.pop("status", None)
    new |= {"apiVersion": V1ALPHA1, "kind": WORKLOAD}
    new["metadata"] = part(new, "metadata") | {"name": place.workload}
    new["spec"] = {"podGroups": [{"name": place.group, "policy": spec.get("schedulingPolicy")}]}
    work.warn(obj, "", f'has no Workload, which {work.target} needs: "{place.workload}" was made for it')
    return new


def _say_link(obj: Object, place: Place, work: Work) -> None:
    text = f"is no object on {work.target}: its pods, none of which is among the objects, need spec.workloadRef"
    work.warn(obj, "", f"{text} {show(place.link['workloadRef'])}")


def _relink_down(obj: Object, places: dict[tuple[str, str], Place], work: Work) -> Object:
    def link(path: str, value: dict[str, Any]) -> dict[str, Any] | None:
        name = value.get("podGroupName")
        place = places.get((namespace_or_default(obj), str(name)))
        if place is None:
            text = f'PodGroup "{name}" is not among the objects; its Workload and template are needed'
            work.refuse(obj, f"{path}.podGroupName", text)
            return None
        return place.link

    new = relinked(obj, "schedulingGroup", work, link)
    if new is not obj:
        _without_group_owner(new, work)
    return new


def _without_group_owner(obj: Object, work: Work) -> None:
    meta = part(obj, "metadata")
    owners = meta.get("ownerReferences") or []
    gone = [owner for owner in owners if owner.get("kind") == POD_GROUP and owner.get("apiVersion") == V1ALPHA2]
    for owner in gone:
        owners.remove(owner)
        work.lose(obj, "metadata.ownerReferences", f"PodGroup {owner.get('name')}", f"{work.target} has no PodGroup")
    if gone and not owners:
        del meta["ownerReferences"]
