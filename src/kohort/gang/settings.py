"""Settings of workload kinds: what an operator chooses about a kind's compiler and controllers.

Feature gates switch what a release of Kubernetes, or of a kind's upstream controller, has or has not. Settings say how
Kohort does its own work where upstream leaves it open, or where Kohort differs from it. Each kind has one frozen type
(`kinds/<family>/settings.py`); a field there is all it takes: the file of `kohort run --config`, `--set`, the library
and the reference page are made from it.

In files and on the command line a setting is `<kind>.<name>` with the name in camelCase, as in configuration files of
Kubernetes; in Python it is a field in snake_case.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any, ClassVar, Final, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from kohort.api.bundle import bundles, derived
from kohort.api.errors import FieldError, invalid, required


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSettings:
    """What may be set about one kind. Values are a bool, one of some words (Literal), or a text.

    None as a default means that the default depends on something else; `about` says on what.
    """

    kind: ClassVar[str] = ""  # as people write it in front of a setting: jobset

    def embedded(self) -> Self:
        """The same with what was left open as `kohort up` has it, whose API server does more than others."""
        return self


S = TypeVar("S", bound=KindSettings)


def about(says: str, default: str = "") -> Mapping[str, str]:
    """What the reference page says about a setting, and about its default where that depends on something."""
    return {"says": says, "default": default}


class SettingsByKind:
    """The settings that somebody gave; kinds without any have their defaults."""

    __slots__ = ("_given",)

    def __init__(self, *given: KindSettings) -> None:
        self._given: dict[type[KindSettings], KindSettings] = {type(one): one for one in given}

    def of(self, wanted: type[S]) -> S:
        found = self._given.get(wanted)
        return found if isinstance(found, wanted) else wanted()

    def embedded(self) -> SettingsByKind:
        """Of every kind, as `kohort up` has them."""
        return SettingsByKind(*(self.of(kind).embedded() for kind in settings_types().values()))

    def replaced(self, *given: KindSettings) -> SettingsByKind:
        return SettingsByKind(*(self._given | {type(one): one for one in given}).values())

    def __iter__(self) -> Iterator[KindSettings]:
        return iter(self._given.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SettingsByKind) and self._given == other._given

    def __hash__(self) -> int:
        return hash(frozenset(self._given.values()))

    def __repr__(self) -> str:
        return f"SettingsByKind({', '.join(map(repr, self))})"


DEFAULTS: Final = SettingsByKind()
SettingsSource = SettingsByKind | Mapping[str, Mapping[str, Any]]


class SettingsError(ValueError):
    """All that is wrong with some settings."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


# ---- what there is


@derived
def settings_types() -> Mapping[str, type[KindSettings]]:
    """The types by the name of their kind."""
    modules = [one.settings for one in bundles() if one.settings]
    found: list[type[KindSettings]] = [import_module(module).SETTINGS for module in modules]
    return {one.kind: one for one in found}


@dataclass(frozen=True, slots=True)
class Described:
    """One setting, for people."""

    name: str  # camelCase
    member: str  # snake_case
    words: tuple[Any, ...]  # the values that are accepted; empty: any text
    default: Any
    default_says: str
    says: str

    @property
    def accepted(self) -> str:
        return ", ".join(map(shown, self.words))


def describe(kind: type[KindSettings]) -> Mapping[str, Described]:
    """The settings of a type by their name in files."""
    hints = get_type_hints(kind)
    found = [
        Described(
            name=camel(one.name),
            member=one.name,
            words=_words(hints[one.name]),
            default=one.default,
            default_says=one.metadata["default"],
            says=one.metadata["says"],
        )
        for one in fields(kind)
    ]
    return {one.name: one for one in found}


def shown(value: Any) -> str:
    """As it is written in a file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def camel(member: str) -> str:
    first, *rest = member.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _words(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (one for one in get_args(hint) if one is not types.NoneType)
    if get_origin(hint) is Literal:
        return get_args(hint)
    if hint is bool:
        return (True, False)
    if hint is not str:
        raise TypeError(f"a setting is a bool, a Literal or a str, not {hint}")
    return ()


# ---- reading


def read_settings(document: Any, base: SettingsByKind = DEFAULTS, *, path: str = "settings") -> SettingsByKind:
    """Settings as a file has them, {kind: {name: value}}, over others; SettingsError tells all that is wrong."""
    errors: list[FieldError] = []
    found = base
    for name, values in _mapping(document, path, ", ".join(settings_types()), errors).items():
        kind = _kind(name, values, f"{path}.{name}", errors)
        if kind is None:
            continue
        chosen: dict[str, Any] = {}
        accepted = ", ".join(describe(kind)) or "none"
        for key, value in _mapping(values, f"{path}.{name}", accepted, errors).items():
            one = _known(kind, key, value, f"{path}.{name}.{key}", errors)
            if one is not None and value is not None and _fits(one, value, f"{path}.{name}.{key}", errors):
                chosen[one.member] = value
        found = found.replaced(replace(found.of(kind), **chosen))
    if errors:
        raise SettingsError(errors)
    return found


def assign_settings(
    assignments: Iterable[str], base: SettingsByKind = DEFAULTS, *, option: str = "--set"
) -> SettingsByKind:
    """Settings as a command line has them, `kind.name=value`, over others; SettingsError tells all that is wrong."""
    errors: list[FieldError] = []
    found = base
    for assignment in assignments:
        target, equals, text = assignment.partition("=")
        name, dot, key = target.strip().partition(".")
        path = f"{option} {target.strip()}"
        if not equals or not dot:
            errors.append(invalid(option, assignment, "accepted is kind.name=value, such as jobset.parity=true"))
            continue
        kind = _kind(name, text, path, errors)
        one = _known(kind, key, text, path, errors) if kind is not None else None
        if kind is None or one is None:
            continue
        value = {"true": True, "false": False}.get(text, text) if True in one.words else text
        if _fits(one, value, path, errors):
            found = found.replaced(replace(found.of(kind), **{one.member: value}))
    if errors:
        raise SettingsError(errors)
    return found


def settings_of(given: SettingsSource | None) -> SettingsByKind:
    """Typed settings as they are; a mapping is read as that of a file."""
    if given is None:
        return DEFAULTS
    return given if isinstance(given, SettingsByKind) else read_settings(given)


def _mapping(value: Any, path: str, accepted: str, errors: list[FieldError]) -> Mapping[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    errors.append(invalid(path, value, f"accepted is a mapping with {accepted}"))
    return {}


def _kind(name: Any, value: Any, path: str, errors: list[FieldError]) -> type[KindSettings] | None:
    found = settings_types().get(name) if isinstance(name, str) else None
    if found is None:
        errors.append(invalid(path, value, f"kind not known; accepted are {', '.join(settings_types())}"))
    return found


def _known(kind: type[KindSettings], key: Any, value: Any, path: str, errors: list[FieldError]) -> Described | None:
    every = describe(kind)
    found = every.get(key) if isinstance(key, str) else None
    if found is None:
        accepted = f"accepted are {', '.join(every)}" if every else f"{kind.kind} has no settings"
        errors.append(invalid(path, value, f"setting not known; {accepted}"))
    return found


def _fits(one: Described, value: Any, path: str, errors: list[FieldError]) -> bool:
    if one.words:
        good = any(value is word or (isinstance(word, str) and value == word) for word in one.words)
        if not good:
            errors.append(invalid(path, value, f"accepted are {one.accepted}"))
        return good
    if value == "":
        errors.append(required(path, "accepted is a text that is not empty"))
    elif not isinstance(value, str):
        errors.append(invalid(path, value, "accepted is a text"))
    return isinstance(value, str) and value != ""
