"""Rules of resource claims that replicas share (spec grove 1.1): claim templates and who shares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kohort.api.errors import FieldError, duplicate, invalid, not_found, required
from kohort.api.kind import Object
from kohort.kinds.grove.api import parts


def check(obj: Object) -> Iterator[FieldError]:
    yield from _templates(obj)
    template = parts.template(obj)
    own = {item.get("name") for item in template.get("resourceClaimTemplates") or []}
    cliques = [str(clique.get("name")) for _, clique in parts.cliques(obj)]
    groups = [str(group.get("name")) for _, group in parts.scaling_groups(obj)]
    yield from _references(template, f"{parts.TEMPLATE}.resourceSharing", own, cliques, groups)
    for path, group in parts.scaling_groups(obj):
        yield from _references(group, f"{path}.resourceSharing", own, group.get("cliqueNames") or [], None)
    for path, clique in parts.cliques(obj):
        yield from _references(clique, f"{path}.resourceSharing", own, None, None)


def _templates(obj: Object) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, item in enumerate(parts.template(obj).get("resourceClaimTemplates") or []):
        path = f"{parts.TEMPLATE}.resourceClaimTemplates[{index}]"
        name = item.get("name")
        if name == "":
            yield required(f"{path}.name", "a claim template needs a name")
        elif name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(str(name))
        devices = ((item.get("templateSpec") or {}).get("spec") or {}).get("devices") or {}
        if item.get("templateSpec") is not None and not devices.get("requests"):
            yield required(f"{path}.templateSpec.spec.devices.requests", "at least one device request")


def _references(
    owner: dict[str, Any], path: str, own: set[Any], cliques: list[str] | None, groups: list[str] | None
) -> Iterator[FieldError]:
    """`cliques`, `groups`: what a filter may name; None where there is no such filter."""
    seen: set[str] = set()
    for index, item in enumerate(owner.get("resourceSharing") or []):
        at, name = f"{path}[{index}]", item.get("name")
        if name == "":
            yield required(f"{at}.name", "the name of a claim template")
        elif name in seen:
            yield duplicate(f"{at}.name", name)
        seen.add(str(name))
        if item.get("namespace") and name in own:
            yield invalid(
                f"{at}.namespace", item["namespace"], f'must be empty: "{name}" is a claim template of this set'
            )
        if item.get("filter") is not None and cliques is not None:
            yield from _filter(item["filter"], f"{at}.filter", cliques, groups)


def _filter(found: dict[str, Any], path: str, cliques: list[str], groups: list[str] | None) -> Iterator[FieldError]:
    members = {"childCliqueNames": cliques}
    if groups is not None:
        members["childScalingGroupNames"] = groups
    if not any(found.get(member) for member in members):
        yield required(path, f"filter must name at least one entry in {' or '.join(members)}")
    for member, known in members.items():
        for index, name in enumerate(found.get(member) or []):
            if name not in known:
                yield not_found(f"{path}.{member}[{index}]", name)
