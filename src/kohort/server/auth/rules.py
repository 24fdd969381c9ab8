"""One rule of a role: what it allows, and whether rules cover other rules. Pure, and exactly as Kubernetes matches.

A star stands for everything of its list; `*/sub` for that subresource of every resource; a star at the end of a path
for what follows. Names narrow a rule down, none means all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from kohort.server.auth.attributes import AuthorizerAttributes

ALL = "*"
_MOST_COMPARED: Final = 200_000  # permissions of a role, with the rules that may give them


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


class TooManyError(Exception):
    """There are too many combinations of groups, resources and names to compare them with what somebody has."""


class _Held:
    """A rule that somebody has, ready for many questions."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.verbs, self.groups, self.names = frozenset(rule.verbs), frozenset(rule.groups), frozenset(rule.names)
        self.resources = frozenset(rule.resources)

    def has_group(self, group: str) -> bool:
        return ALL in self.groups or group in self.groups

    def has_resource(self, resource: str) -> bool:
        if ALL in self.resources or resource in self.resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self.resources

    def has_name(self, name: str | None) -> bool:
        return not self.names or name in self.names

    def covers(self, rule: Rule) -> bool:
        """All of a rule; then its permissions need not be looked at one by one."""
        return (
            not rule.paths
            and (ALL in self.verbs or self.verbs.issuperset(rule.verbs))
            and all(map(self.has_group, rule.groups))
            and all(map(self.has_resource, rule.resources))
            and (not self.names or (bool(rule.names) and self.names.issuperset(rule.names)))
        )


def uncovered(held: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """What of `wanted` is in none of `held`, put together by resource, as a refusal lists it.

    TooManyError: a role of a kilobyte can stand for half a million permissions, and nobody waits for that.
    """
    owned = tuple(map(_Held, held))
    missing: list[Rule] = []
    left = _MOST_COMPARED
    for rule in wanted:
        if any(one.covers(rule) for one in owned):
            continue
        for group, resource, fitting in _targets(rule, owned):
            for name in rule.names or (None,):
                left -= 1 + len(fitting)
                if left < 0:
                    raise TooManyError
                verbs = _lacking(rule.verbs, [one for one in fitting if one.has_name(name)])
                if verbs:
                    missing.append(Rule(verbs, (group,), (resource,), () if name is None else (name,)))
        for path, verb in product(rule.paths, rule.verbs):
            left -= 1 + len(owned)
            if left < 0:
                raise TooManyError
            part = Rule((verb,), paths=(path,))
            if not any(_covers(one.rule, part) for one in owned):
                missing.append(part)
    return sorted(dict.fromkeys(_compact(missing)), key=str)


def _targets(rule: Rule, owned: Iterable[_Held]) -> Iterator[tuple[str, str, list[_Held]]]:
    """Each group and resource of a rule, with the rules that speak about it."""
    for group in rule.groups:
        here = [one for one in owned if one.has_group(group)]
        for resource in rule.resources:
            yield group, resource, [one for one in here if one.has_resource(resource)]


def _lacking(verbs: tuple[str, ...], owned: list[_Held]) -> tuple[str, ...]:
    if any(ALL in one.verbs for one in owned):
        return ()
    given: set[str] = set().union(*(one.verbs for one in owned))
    return tuple(verb for verb in verbs if verb not in given)


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
