"""Group objects of other schedulers with a minMember: the same thing in several API groups."""

from __future__ import annotations

from kohort.grouping.model import GroupNode, Kind, Level, ObjectLister, Place, Subject, Thing, WrongError


def group_object(
    rule: str, pod: Subject, lister: ObjectLister, kind: Kind, key: str, *, wait: bool = True
) -> Place | None:
    """A flat gang from the object that a pod names."""
    found = lister.find(kind, pod.namespace, pod.said(key), wait=wait)
    if found is None:
        return None
    node = GroupNode(found.name, minimum(found))
    return Place(rule, Level.OBJECT, pod.namespace, found.name, (node,), said(pod, key, found), found.reference)


def said(pod: Subject, key: str, found: Thing) -> str:
    return f"{found}, {pod.where(key)}"


def minimum(found: Thing, member: str = "minMember") -> int | None:
    """Less than 1 is what their controllers write where nothing was asked: no gang."""
    value = found.spec.get(member)
    if value is None or (isinstance(value, int) and value < 1):
        return None
    if not isinstance(value, int):
        raise WrongError(f"{found}: spec.{member}: {value!r}: accepted is a whole number")
    return value
