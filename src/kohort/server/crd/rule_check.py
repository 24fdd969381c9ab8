"""Rules of a definition, when it is made: whether they compile, what they may cost, where oldSelf may stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.api.errors import FieldError, invalid, required
from kohort.server.crd import cel
from kohort.server.crd.cel import declare
from kohort.server.crd.cel.types import BOOL, STRING, Type, optional_of
from kohort.server.crd.schema import Schema

_RULES: Final = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where in a schema a rule stands."""

    path: str
    root: bool = False
    uncorrelated: str = ""  # the list or map around whose old items cannot be found

    def under(self, path: str, uncorrelated: str = "") -> _Spot:
        return _Spot(path, False, self.uncorrelated or uncorrelated)


def problems(schema: Schema, path: str) -> list[FieldError]:
    """Everything that is wrong with the rules in a schema."""
    return list(_walk(schema, _Spot(path, root=True)))


def _walk(schema: Schema, spot: _Spot) -> Iterator[FieldError]:
    path, rules = spot.path, schema.get(_RULES) or ()
    if rules:
        kind = declare.declared(schema, spot.root or schema.get("x-kubernetes-embedded-resource") is True)
        for place, rule in enumerate(rules):
            yield from _rule(rule, kind, spot, f"{path}.{_RULES}[{place}]")
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    for name, member in (schema.get("properties") or {}).items():
        yield from _walk(member, spot.under(f"{path}.properties[{name}]", path if atomic else ""))
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _walk(schema["additionalProperties"], spot.under(f"{path}.additionalProperties"))
    if isinstance(schema.get("items"), Mapping):
        keyed = schema.get("x-kubernetes-list-type") == "map"
        yield from _walk(schema["items"], spot.under(f"{path}.items", "" if keyed else path))


def _rule(rule: Any, kind: Type | None, spot: _Spot, path: str) -> Iterator[FieldError]:
    if not str(rule.get("rule") or "").strip():
        yield required(f"{path}.rule", "rule is not specified")
    else:
        yield from _compiled(rule, kind, spot, path)
    message = rule.get("message")
    if message is not None and not str(message).strip():
        yield invalid(f"{path}.message", message, "message must be non-empty if specified")
    elif message is not None and "\n" in str(message):
        yield invalid(f"{path}.message", message, "message must not contain line breaks")


def _compiled(rule: Any, kind: Type | None, spot: _Spot, path: str) -> Iterator[FieldError]:
    scope = {"self": kind, "oldSelf": kind} if kind is not None else {}
    if kind is not None and rule.get("optionalOldSelf") is True:
        scope["oldSelf"] = optional_of(kind)
    found = compiled(str(rule["rule"]), scope, BOOL, "cel expression must evaluate to a bool")
    if found.wrong:
        yield invalid(f"{path}.rule", rule, found.wrong)
        return
    if rule.get("messageExpression"):
        text = compiled(str(rule["messageExpression"]), scope, STRING, "messageExpression must evaluate to a string")
        if text.wrong:
            shown = f"messageExpression {text.wrong}" if text.wrong.startswith("compilation") else text.wrong
            yield invalid(f"{path}.messageExpression", rule, shown)
    old = "oldSelf" in found.names
    if old and spot.uncorrelated:
        text_of = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {spot.uncorrelated}"
        yield invalid(f"{path}.rule", rule["rule"], text_of)
    elif rule.get("optionalOldSelf") is not None and not old:
        text_of = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], text_of)


@dataclass(frozen=True, slots=True)
class Compiled:
    wrong: str = ""
    names: frozenset[str] = field(default_factory=frozenset)


def compiled(text: str, scope: Mapping[str, Type], wanted: Type, otherwise: str) -> Compiled:
    """`otherwise`: what is said of an expression of another type."""
    checker = cel.Checker()
    try:
        tree = cel.parse(text)
        found = checker.resolved(checker.check(tree, scope))
    except cel.CelSyntaxError as error:
        return Compiled(f"compilation failed: {_shown(text, error)}")
    except RecursionError:
        return Compiled("compilation failed: ERROR: the expression is too deep")
    if checker.unfit:
        return Compiled(checker.unfit)
    if found.kind != wanted.kind:
        return Compiled(otherwise)
    return Compiled(names=frozenset(cel.names(tree)))


def _shown(text: str, error: cel.CelSyntaxError) -> str:
    """With the line and a mark under the place, as upstream prints it."""
    before = text[: error.at]
    line, column = before.count("\n"), len(before) - (before.rfind("\n") + 1)
    source = text.split("\n")[line] if text else ""
    return f"ERROR: <input>:{line + 1}:{column + 1}: {error}\n | {source}\n | {'.' * column}^"
