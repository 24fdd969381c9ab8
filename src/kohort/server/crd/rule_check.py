"""Rules of a definition, when it is made: whether they compile, what they may cost, where oldSelf may stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kohort.api.errors import FieldError, forbidden, invalid, required
from kohort.cel import declare
from kohort.cel import language as cel
from kohort.cel.costs import ENDLESS
from kohort.cel.estimate import Estimator
from kohort.cel.syntax import shown
from kohort.cel.types import BOOL, STRING, Type, optional_of
from kohort.server.crd.schema import Schema

_RULES: Final = "x-kubernetes-validations"
PER_RULE: Final = 10_000_000  # what a rule may cost for the largest object that its schema allows
PER_SCHEMA: Final = 100_000_000  # and all rules of a schema
_CONTRIBUTED: Final = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_WHOLE: Final = "estimated rule cost total for entire OpenAPIv3 schema"


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where in a schema a rule stands."""

    path: str
    total: _Total
    root: bool = False
    uncorrelated: str = ""  # the list or map around whose old items cannot be found
    times: int | None = 1  # how often an object may have it; None: no list or map says

    def under(self, path: str, most: int | None = 1, uncorrelated: str = "") -> _Spot:
        times = None if self.times is None or most is None else self.times * max(0, most)
        return _Spot(path, self.total, False, self.uncorrelated or uncorrelated, times)


@dataclass(slots=True)
class _Total:
    """What all rules of a schema may cost together."""

    cost: int = 0
    dear: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: str, cost: int) -> None:
        self.cost = min(ENDLESS, self.cost + cost)
        if cost >= PER_SCHEMA // 100:
            self.dear.append((cost, path))


def problems(schema: Schema, path: str) -> list[FieldError]:
    """Everything that is wrong with the rules in a schema."""
    total = _Total()
    found = list(_walk(schema, _Spot(path, total, root=True)))
    if total.cost > PER_SCHEMA:
        dearest = sorted(total.dear, key=lambda one: -one[0])[:4]
        found += [forbidden(at, _CONTRIBUTED) for _, at in dearest]
        found.append(forbidden(path, _exceeded(f"{_RULES} {_WHOLE}", total.cost, PER_SCHEMA)))
    return found


def _walk(schema: Schema, spot: _Spot) -> Iterator[FieldError]:
    path, rules = spot.path, schema.get(_RULES) or ()
    if rules:
        kind = declare.declared(schema, spot.root or schema.get("x-kubernetes-embedded-resource") is True)
        spot = (
            spot if spot.times is not None or kind is None else replace(spot, times=declare.LARGEST // (kind.least + 1))
        )
        for place, rule in enumerate(rules):
            yield from _rule(rule, kind, spot, f"{path}.{_RULES}[{place}]")
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    for name, member in (schema.get("properties") or {}).items():
        yield from _walk(member, spot.under(f"{path}.properties[{name}]", 1, path if atomic else ""))
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _walk(
            schema["additionalProperties"], spot.under(f"{path}.additionalProperties", schema.get("maxProperties"))
        )
    if isinstance(schema.get("items"), Mapping):
        keyed = schema.get("x-kubernetes-list-type") == "map"
        yield from _walk(schema["items"], spot.under(f"{path}.items", schema.get("maxItems"), "" if keyed else path))


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
    yield from _costs(f"{path}.rule", "estimated rule cost", min(ENDLESS, found.cost * (spot.times or 0)), spot.total)
    if rule.get("messageExpression"):
        text = compiled(str(rule["messageExpression"]), scope, STRING, "messageExpression must evaluate to a string")
        if text.wrong:
            shown = f"messageExpression {text.wrong}" if text.wrong.startswith("compilation") else text.wrong
            yield invalid(f"{path}.messageExpression", rule, shown)
        yield from _costs(f"{path}.messageExpression", "estimated messageExpression cost", text.cost, spot.total)
    old = "oldSelf" in found.names
    if old and spot.uncorrelated:
        text_of = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {spot.uncorrelated}"
        yield invalid(f"{path}.rule", rule["rule"], text_of)
    elif rule.get("optionalOldSelf") is not None and not old:
        text_of = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], text_of)


def _costs(path: str, what: str, cost: int, total: _Total) -> Iterator[FieldError]:
    total.add(path, cost)
    if cost > PER_RULE:
        yield forbidden(path, _exceeded(what, cost, PER_RULE))


def _exceeded(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, "
        "and maxLength where arrays, maps, and strings are declared)"
    )


@dataclass(frozen=True, slots=True)
class CompiledRule:
    wrong: str = ""
    cost: int = 0  # at most
    names: frozenset[str] = field(default_factory=frozenset)


def compiled(text: str, scope: Mapping[str, Type], wanted: Type, otherwise: str) -> CompiledRule:
    """`otherwise`: what is said of an expression of another type."""
    checker = cel.Checker()
    try:
        tree = cel.parse(text)
        found = checker.resolved(checker.check(tree, scope))
    except cel.CelSyntaxError as error:
        return CompiledRule(f"compilation failed: {shown(text, error)}")
    except RecursionError:
        return CompiledRule("compilation failed: ERROR: the expression is too deep")
    if checker.unfit:
        return CompiledRule(checker.unfit)
    if found.kind != wanted.kind:
        return CompiledRule(otherwise)
    cost = Estimator(scope.get("self"), checker).cost(tree)
    return CompiledRule(cost=cost, names=frozenset(cel.names(tree)))
