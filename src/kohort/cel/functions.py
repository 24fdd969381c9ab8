"""Declarations of functions: one table for the types of calls and for running them. Libraries add themselves to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kohort.cel.types import Type, arguments, fits, kind_of, written
from kohort.cel.values import NoOverloadError


@dataclass(frozen=True, slots=True)
class Overload:
    member: bool  # called as a.f(b): the target is the first argument
    arguments: tuple[Type, ...]
    result: Type
    run: Callable[..., Any]


TABLE: Final[dict[str, list[Overload]]] = {}


def define(name: str, *signatures: str, run: Callable[..., Any]) -> None:
    """`signatures`: "(string) int" for f(a), "string.(int) string" for a.f(b)."""
    for signature in signatures:
        target, _, rest = signature.partition("(") if signature.startswith("(") else signature.partition(".(")
        inner, _, result = rest.rpartition(") ")
        types = tuple(written(one) for one in ([target] if target else []) + arguments(inner))
        TABLE.setdefault(name, []).append(Overload(bool(target), types, written(result), run))


def defined(name: str, *signatures: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same for a function that is worth a name."""

    def add(run: Callable[..., Any]) -> Callable[..., Any]:
        define(name, *signatures, run=run)
        return run

    return add


def overloads(name: str, member: bool, count: int) -> list[Overload]:
    return [one for one in TABLE.get(name, ()) if one.member is member and len(one.arguments) == count]


def caller(name: str, member: bool, count: int) -> Callable[..., Any]:
    """What runs a call: the first overload whose types fit the values."""
    choices = overloads(name, member, count)
    if not choices:
        raise NoOverloadError(f"{name}")
    if len(choices) == 1:
        only = choices[0]
        plain = all(one.kind in {"dyn", "param"} for one in only.arguments)
        return only.run if plain else _checked(name, choices)
    return _checked(name, choices)


def _checked(name: str, choices: list[Overload]) -> Callable[..., Any]:
    known: dict[tuple[type, ...], Callable[..., Any]] = {}  # what fits hangs on the classes of the values only

    def call(*values: Any) -> Any:
        classes = tuple(map(type, values))
        run = known.get(classes)
        if run is None:
            run = next((one.run for one in choices if all(map(fits, one.arguments, values))), None)
            if run is None:
                raise NoOverloadError(f"{name}({', '.join(map(kind_of, values))})")
            known[classes] = run
        return run(*values)

    return call
