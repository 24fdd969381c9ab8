"""A converted object is a new object: what the old one has of its server is not copied (spec workload-api 4.5)."""

from __future__ import annotations

from typing import Final

from kohort.api.convert.work import COMPOSITE, POD_GROUP, Work, part
from kohort.api.errors import show
from kohort.api.kind import Object
from kohort.api.releases import SCHEDULING_GROUP

_SERVERS: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)


def renew(obj: Object, work: Work) -> None:
    """Leave out what a server gives or a controller writes, and say so once for each. In place."""
    if not work.recreate:
        return
    meta = part(obj, "metadata")
    served = "uid" in meta or "resourceVersion" in meta
    dropped = [name for name in _SERVERS if meta.pop(name, None) is not None]
    if dropped:
        work.warn(obj, "metadata", f"{', '.join(dropped)} left out: the server gives each object its own")
    owners = meta.pop("ownerReferences", None)
    if owners:
        named = ", ".join(f"{owner.get('kind')} {owner.get('name')}" for owner in owners)
        work.warn(obj, "metadata.ownerReferences", f"{named} left out: their uids mean nothing to another server")
    finalizers = meta.pop("finalizers", None)
    if finalizers:
        work.warn(obj, "metadata.finalizers", f"{', '.join(finalizers)} left out: admission adds what is needed")
    if obj.pop("status", None):
        work.warn(obj, "status", "left out: it is written by the scheduler of the new object")
    if served:
        _filled_in(obj, work)


def _filled_in(obj: Object, work: Work) -> None:
    """What admission and the scheduler wrote into the spec; in a manifest of a person's hand it stays."""
    spec = part(obj, "spec")
    if obj.get("kind") in {POD_GROUP, COMPOSITE} and spec.get("priority") is not None:
        value, name = spec.pop("priority"), spec.get("priorityClassName")
        source = f"the value of class {show(name)} there" if name else "the default there"
        work.warn(obj, "spec.priority", f"{value} left out: admission fills in {source}")
    if obj.get("kind") == "Pod" and spec.get("nodeName"):
        work.warn(obj, "spec.nodeName", f"{show(spec.pop('nodeName'))} left out: a new pod is scheduled anew")


def follow_owners(obj: Object, old: str, new: str) -> None:
    """Owners among the scheduling kinds change version together with what they own. In place."""
    for owner in part(obj, "metadata").get("ownerReferences") or ():
        if owner.get("apiVersion") == old and old.startswith(SCHEDULING_GROUP):
            owner["apiVersion"] = new
