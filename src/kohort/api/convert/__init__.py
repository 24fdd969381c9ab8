"""Conversion of Workload, PodGroup, CompositePodGroup and pod membership between releases (spec workload-api 4).

No server converts between minors, so this does: one step for each boundary. 1.35 and 1.36 differ in where groups live
(`tuples`), 1.36 and 1.37 in spelling and trees (`renamed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kohort.api.convert import renamed, tuples
from kohort.api.convert.names import REPLICA_KEY
from kohort.api.convert.tuples import Place
from kohort.api.convert.work import (
    COMPOSITE,
    POD_GROUP,
    V1ALPHA1,
    V1ALPHA2,
    V1ALPHA3,
    V1BETA1,
    WORKLOAD,
    Finding,
    Work,
    name_of,
)
from kohort.api.decode import decode
from kohort.api.errors import ErrorKind
from kohort.api.kind import Object
from kohort.api.registry import find
from kohort.api.releases import RELEASES, SCHEDULING_GROUP, release

__all__ = ["REPLICA_KEY", "ConvertedObjects", "Finding", "Place", "convert"]

_VERSIONS: Final = {
    WORKLOAD: (V1ALPHA1, V1ALPHA2, V1ALPHA3, V1BETA1),
    POD_GROUP: (V1ALPHA2, V1ALPHA3, V1BETA1),
    COMPOSITE: (V1ALPHA3,),
}


@dataclass(frozen=True, slots=True)
class ConvertedObjects:
    """The objects in their new shape, none if something was refused; and what was lost on the way."""

    objects: tuple[Object, ...]
    warnings: tuple[Finding, ...] = ()
    errors: tuple[Finding, ...] = ()


def convert(
    objects: Sequence[Object],
    to: str,
    *,
    flatten: bool = False,
    recreate: bool = True,
    expected: Iterable[Place] = (),
) -> ConvertedObjects:
    """These objects together as a Kubernetes minor ("1.36"), or a version of its API ("v1alpha3"), knows them.

    `flatten`: below 1.37, make each leaf of a tree a gang of its own instead of refusing the tree.
    `recreate`: the results will be created anew, so what the old server gave (uid, owners, finalizers, status,
    priority) is left out. False: the same objects seen in another shape; all of that stays.
    `expected`: groups of 1.35 whose pods are not among the objects.
    Objects that are right already, and those of other kinds, are passed on as they are; nothing is changed in place.
    """
    minor, version = _target(to)
    work = Work(release(minor), version, flatten, recreate)
    current = list(objects)
    _known_shapes(current, work)
    if not work.errors:
        current = _steps(current, work, expected)
    return ConvertedObjects(() if work.errors else tuple(current), tuple(work.warnings), tuple(work.errors))


def _target(to: str) -> tuple[str, str]:
    """(minor, apiVersion of Workload and PodGroup)."""
    name = to.rpartition("/")[2]
    if name == "v1alpha3":
        return "1.37", V1ALPHA3
    for found in RELEASES.values():
        if name == found.workload_version:
            return found.minor, found.api_version
    found = release(to)
    return found.minor, found.api_version


def _known_shapes(objects: list[Object], work: Work) -> None:
    """What is read here must have the shape of its kind; whether it is valid is for `validate` to say."""
    for obj in objects:
        version, name = str(obj.get("apiVersion")), str(obj.get("kind"))
        known = _VERSIONS.get(name, ()) if version.startswith(f"{SCHEDULING_GROUP}/") else ()
        if known and version not in known:
            work.refuse(obj, "apiVersion", f"{version} has no {name}; {', '.join(known)} has")
        kind = find(version, name) if version in known else None
        if kind is not None:
            found = decode(kind.schema, obj, kind.minors[0])
            wrong = [error for error in found if error.kind is ErrorKind.DECODE]
            work.errors += [Finding(name_of(obj), error.field, error.message) for error in wrong]


def _steps(objects: list[Object], work: Work, expected: Iterable[Place]) -> list[Object]:
    if work.to.minor == "1.35":
        return tuples.down(renamed.down(objects, work), work)
    objects = tuples.up(objects, work, expected)
    if work.to.minor == "1.36":
        return renamed.down(objects, work)
    return [_respelled(obj, work) for obj in renamed.up(objects, work)]


def _respelled(obj: Object, work: Work) -> Object:
    """Both versions of 1.37 are the same but for their name, and the server converts between them itself."""
    both = {V1ALPHA3, V1BETA1} - {work.version}
    if obj.get("kind") in {WORKLOAD, POD_GROUP} and obj.get("apiVersion") in both:
        return obj | {"apiVersion": work.version}
    return obj
