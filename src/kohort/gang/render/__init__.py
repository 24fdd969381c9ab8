"""Renderers: one module per Kubernetes release, each turning a plan into objects and objects back into a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kohort.api.errors import FieldError
from kohort.api.kind import Object
from kohort.api.releases import Release
from kohort.api.releases import release as release_of
from kohort.gang.render import limits, v1alpha1, v1alpha2, v1beta1
from kohort.gang.render.common import Uids
from kohort.gang.render.limits import Fit
from kohort.gang.render.reading import parse, parse_all
from kohort.gang.tree import Plan

__all__ = ["Fit", "Rendered", "fit", "parse", "parse_all", "pod_link", "pod_links", "render"]


class Rendered(NamedTuple):
    """The objects of a plan in the order of creation; none if there is an error."""

    objects: tuple[Object, ...]
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


_RENDERERS = {"1.35": v1alpha1.objects, "1.36": v1alpha2.objects, "1.37": v1beta1.objects}


def render(plan: Plan, release: Release | str, *, uids: Uids | None = None, flatten: bool = False) -> Rendered:
    """The plan as objects of a release.

    `uids`: what owners without a uid have on the server, by (kind, name); without, a stand-in is written.
    """
    found = _release(release)
    fitted, errors, warnings = limits.fit(plan, found, flatten=flatten)
    if errors:
        return Rendered((), errors, warnings)
    return Rendered(_RENDERERS[found.minor](fitted, uids or {}), (), warnings)


def fit(plan: Plan, release: Release | str, *, flatten: bool = False) -> Fit:
    """What of the plan the release can express."""
    return limits.fit(plan, _release(release), flatten=flatten)


def pod_link(plan: Plan, group_name: str, release: Release | str) -> Object:
    """The member of a pod's spec that makes it part of a leaf group."""
    if not _release(release).has_pod_groups:
        return v1alpha1.pod_link(plan, plan.group(group_name))
    return {"schedulingGroup": {"podGroupName": group_name}}


def pod_links(plan: Plan, release: Release | str) -> Mapping[str, Object]:
    """The links of all leaf groups, by group name."""
    leaves = {template.name for template in plan.walk() if template.is_leaf}
    groups = [group for group in plan.groups if group.template in leaves]
    if not _release(release).has_pod_groups:
        return {group.name: v1alpha1.pod_link(plan, group) for group in groups}
    return {group.name: {"schedulingGroup": {"podGroupName": group.name}} for group in groups}


def _release(named: Release | str) -> Release:
    return release_of(named) if isinstance(named, str) else named
