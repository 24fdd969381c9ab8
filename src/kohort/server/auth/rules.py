"""One rule of a role: what it allows, and whether rules cover other rules. Pure, and exactly as Kubernetes matches.

A star stands for everything of its list; `*/sub` for that subresource of every resource; a star at the end of a path
for what follows. Names narrow a rule down, none means all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kohort.server.auth.attributes import AuthorizerAttributes

ALL = "*"


class Rule(NamedTuple):
    """A policy rule, in the order in which it was written."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As refusals of an escalation print it."""
        lists = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.paths),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in lists if values) + "}"


EVERYTHING = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), paths=(ALL,)))


def quoted(values: Iterable[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def read(rule: Mapping[str, Any]) -> Rule:
    """From a PolicyRule of the API."""
    lists = (rule.get(name) or () for name in ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"))
    return Rule(*(tuple(values) for values in lists))


def write(rule: Rule) -> dict[str, list[str]]:
    names = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return {name: list(values) for name, values in zip(names, rule, strict=True) if values}


# ---- does a rule allow a request


def allows(rule: Rule, attributes: AuthorizerAttributes) -> bool:
    if attributes.verb not in rule.verbs and ALL not in rule.verbs:
        return False
    if attributes.path:
        return _path_matches(rule.paths, attributes.path)
    return (
        (attributes.group in rule.groups or ALL in rule.groups)
        and _resource_matches(rule.resources, attributes.resource, attributes.subresource)
        and (not rule.names or attributes.name in rule.names)
    )


def _resource_matches(resources: tuple[str, ...], resource: str, subresource: str) -> bool:
    if ALL in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources


def _path_matches(paths: tuple[str, ...], path: str) -> bool:
    return any(one in (ALL, path) or (one.endswith(ALL) and path.startswith(one.rstrip(ALL))) for one in paths)


# ---- do rules cover rules


def uncovered(held: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What of `wanted` is in none of `held`, put together by resource, as a refusal lists it."""
    owned = tuple(held)
    missing = [part for rule in wanted for part in _parts(rule) if not any(_covers(one, part) for one in owned)]
    return sorted(dict.fromkeys(_compact(missing)), key=str)


def _parts(rule: Rule) -> Iterator[Rule]:
    """The single permissions of a rule."""
    for group, resource, verb in product(rule.groups, rule.resources, rule.verbs):
        for name in rule.names or (None,):
            yield Rule((verb,), (group,), (resource,), () if name is None else (name,))
    for path, verb in product(rule.paths, rule.verbs):
        yield Rule((verb,), paths=(path,))


def _covers(owner: Rule, part: Rule) -> bool:
    return (
        _has(owner.verbs, part.verbs)
        and _has(owner.groups, part.groups)
        and all(_resource_covered(owner.resources, one) for one in part.resources)
        and all(_path_matches(owner.paths, one) for one in part.paths)
        and (not owner.names or (bool(part.names) and all(name in owner.names for name in part.names)))
    )


def _has(owned: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return ALL in owned or all(one in owned for one in wanted)


def _resource_covered(owned: tuple[str, ...], resource: str) -> bool:
    if ALL in owned or resource in owned:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in owned


def _compact(parts: Iterable[Rule]) -> list[Rule]:
    """Permissions on one resource become one rule; those on paths stay apart."""
    simple: dict[tuple[tuple[str, ...], ...], Rule] = {}
    paths = []
    for part in parts:
        if part.paths:
            paths.append(part)
            continue
        known = simple.get(part[1:])
        verbs = part.verbs if known is None else (*known.verbs, *part.verbs)  # upstream repeats them, too
        simple[part[1:]] = part._replace(verbs=verbs)
    return [*simple.values(), *paths]
