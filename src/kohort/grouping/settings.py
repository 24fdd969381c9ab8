"""Which sources are on, for which pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kohort.api.errors import FieldError, invalid
from kohort.grouping import custom
from kohort.grouping.model import Kind, Rule
from kohort.grouping.registry import RULES, names

ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Grouping:
    """`namespaces`, `schedulers`: of the pods that are grouped; empty: all, or all that the scheduler places."""

    sources: frozenset[str] = field(default_factory=lambda: frozenset(names()))
    namespaces: frozenset[str] = frozenset()
    schedulers: frozenset[str] = frozenset()
    custom: tuple[Rule, ...] = ()
    documents: tuple[dict[str, Any], ...] = field(default=(), compare=False, hash=False)  # that `custom` was read from

    @property
    def rules(self) -> tuple[Rule, ...]:
        """In the order of precedence."""
        chosen = (*(one for one in RULES if one.name in self.sources), *self.custom)
        return tuple(sorted(chosen, key=lambda one: one.level))

    @property
    def reads(self) -> tuple[Kind, ...]:
        return tuple(dict.fromkeys(kind for rule in self.rules for kind in rule.reads))

    def covers(self, scheduler: str, namespace: str) -> bool:
        return (not self.schedulers or scheduler in self.schedulers) and (
            not self.namespaces or namespace in self.namespaces
        )

    def without(self, controllers: Collection[str]) -> Grouping:
        """Kinds whose groups are made by controllers of Kohort's own need no rule."""
        made = {one.name for one in RULES if one.controller and one.controller in controllers}
        return replace(self, sources=self.sources - made)


def extended(grouping: Grouping, objects: Iterable[dict[str, Any]]) -> tuple[Grouping, dict[str, list[FieldError]]]:
    """With GroupingRules that are objects, by name. -> also what is wrong with which of them: such a rule is left out.
    A rule of the configuration stands above one of the same name."""
    problems: dict[str, list[FieldError]] = {}
    more: list[Rule] = []
    taken = {one.name for one in grouping.custom}
    for body in sorted(objects, key=lambda one: str(one["metadata"]["name"])):
        errors = problems.setdefault(str(body["metadata"]["name"]), [])
        rule = custom.read_object(body, errors)
        if rule is not None and rule.name in taken:
            errors.append(invalid("metadata.name", rule.name, "a rule of the configuration has this name"))
        if rule is not None and not errors:
            more.append(rule)
    return replace(grouping, custom=(*grouping.custom, *more)), problems


def selected(words: Iterable[str]) -> frozenset[str]:
    """As kube-controller-manager selects controllers: `*` all, `name` on, `-name` off."""
    given = tuple(words)
    on = {one for one in given if not one.startswith("-") and one != ALL}
    off = {one[1:] for one in given if one.startswith("-")}
    every = set(names()) if ALL in given else set()
    return frozenset((every | on) - off)


def read(value: Any, path: str, errors: list[FieldError]) -> Grouping:
    """`grouping` of a configuration file; all that is wrong is told."""
    accepted = ("sources", "namespaces", "schedulerNames", "rules")
    if not isinstance(value, dict):
        errors.append(invalid(path, value, f"accepted is a mapping with {', '.join(accepted)}"))
        return Grouping()
    unknown = [name for name in value if name not in accepted]
    errors += [
        invalid(f"{path}.{one}", value[one], f"not known; accepted are {', '.join(accepted)}") for one in unknown
    ]
    words = _words(value.get("sources", [ALL]), f"{path}.sources", errors)
    for word in words:
        if word != ALL and word.removeprefix("-") not in names():
            text = f"accepted are {ALL}, {', '.join(names())}, each also with a - before it"
            errors.append(invalid(f"{path}.sources", word, text))
    documents = value.get("rules", [])
    return Grouping(
        selected(words),
        frozenset(_words(value.get("namespaces", []), f"{path}.namespaces", errors)),
        frozenset(_words(value.get("schedulerNames", []), f"{path}.schedulerNames", errors)),
        custom.read(documents, f"{path}.rules", errors),
        tuple(documents) if isinstance(documents, list) else (),
    )


def document(grouping: Grouping) -> dict[str, Any]:
    """What `read` reads."""
    return {
        "sources": sorted(grouping.sources),
        "namespaces": sorted(grouping.namespaces),
        "schedulerNames": sorted(grouping.schedulers),
        "rules": list(grouping.documents),
    }


def _words(value: Any, path: str, errors: list[FieldError]) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        return tuple(value)
    errors.append(invalid(path, value, "accepted is a list of names"))
    return ()
