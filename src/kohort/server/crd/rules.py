"""x-kubernetes-validations of an object: CEL rules, each at the place of the schema where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kohort.api.errors import ErrorKind, FieldError
from kohort.cel import declare
from kohort.cel import language as cel
from kohort.cel.run import PER_CALL, run
from kohort.cel.values import NONE, CostError, NoOverloadError, Optional, equal
from kohort.server.crd.schema import Schema, inner
from kohort.server.crd.validate import ABSENT, Counterparts
from kohort.server.workers import LOOP_COST, TooExpensiveError

PER_OBJECT: Final = 10_000_000  # what all rules of an object may cost
_LONGEST_MESSAGE: Final = 5 * 1024
_RULES: Final = "x-kubernetes-validations"
_REASONS: Final = {
    "FieldValueInvalid": ErrorKind.INVALID,
    "FieldValueForbidden": ErrorKind.FORBIDDEN,
    "FieldValueRequired": ErrorKind.REQUIRED,
    "FieldValueDuplicate": ErrorKind.DUPLICATE,
}
_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_MOST_SCHEMAS: Final = 10_000


def check(schema: Schema, value: Any, old: Any = ABSENT) -> Iterator[FieldError]:
    """Rules of the value, then of what is in it. `old`: its stored Counterparts."""
    yield from _Validation().check(schema, value, old, "")


class _Validation:
    """The rules of one object. They share a budget: when it is spent, no other rule is looked at."""

    def __init__(self) -> None:
        self._left = PER_OBJECT
        here = LOOP_COST.get()
        self._here = PER_OBJECT if here is None else here  # what may be spent before a worker takes over

    def check(self, schema: Schema, value: Any, old: Any, path: str) -> Iterator[FieldError]:
        if value is None or self._left < 0:
            return
        rules = schema.get(_RULES) or ()
        if rules:
            yield from self._rules(rules, schema, value, old, path)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for name, member in value.items():
                sub = inner(schema, name)
                if sub:
                    yield from self.check(sub, member, before.get(name, ABSENT), f"{path}.{name}" if path else name)
        elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
            stored = Counterparts(schema, old)
            for place, item in enumerate(value):
                yield from self.check(schema["items"], item, stored.of(item), f"{path}[{place}]")

    def _rules(self, rules: Any, schema: Schema, value: Any, old: Any, path: str) -> Iterator[FieldError]:
        changed = old is ABSENT or not equal(value, old)
        variables = {"self": _seen(value, schema)}
        if old is not ABSENT:
            variables["oldSelf"] = _seen(old, schema)
        for rule in rules:
            yield from self._rule(rule, value, variables, path, changed)
            if self._left < 0:
                return

    def _rule(
        self, rule: Mapping[str, Any], value: Any, variables: Mapping[str, Any], path: str, changed: bool
    ) -> Iterator[FieldError]:
        try:
            tree = cel.parse(str(rule.get("rule", "")))
        except ValueError:  # stored by a server of another version
            return
        if "oldSelf" in cel.names(tree):
            if rule.get("optionalOldSelf") is True:
                before = variables.get("oldSelf", ABSENT)
                variables = {**variables, "oldSelf": NONE if before is ABSENT else Optional(before)}
            elif "oldSelf" not in variables:
                return  # a rule about change says nothing of what is new
        elif not changed:
            return  # what did not change is not validated again
        try:
            holds, cost = self._run(tree, variables)
        except cel.CelError as error:
            yield self._failed(rule, error, path, value)
            return
        self._left -= cost
        if holds is not True:
            kind = _REASONS.get(str(rule.get("reason") or "FieldValueInvalid"), ErrorKind.INVALID)
            yield FieldError(kind, _where(rule, path), self._message(rule, variables), _sort(value))

    def _run(self, tree: Any, variables: Mapping[str, Any]) -> tuple[Any, int]:
        most = min(PER_CALL, max(0, self._left))
        try:
            found, cost = run(tree, variables, min(most, self._here))
        except CostError:
            if self._here < most:
                raise TooExpensiveError from None
            raise
        except cel.CelError as error:
            self._here -= error.spent
            raise
        self._here -= cost
        return found, cost

    def _failed(self, rule: Mapping[str, Any], error: cel.CelError, path: str, value: Any) -> FieldError:
        name, text = _name(rule), str(error)
        self._left -= error.spent
        if isinstance(error, CostError):
            spent = self._left <= 0
            self._left = -1
            more = f"'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"
            detail = _SPENT if spent else more
        elif isinstance(error, NoOverloadError):
            detail = (
                f"'{text}': call arguments did not match a supported operator, function or macro signature "
                f"for rule: {name}"
            )
        else:
            detail = f"{text} evaluating rule: {name}"
        return FieldError(ErrorKind.INVALID, path, f"rule evaluation error: {detail}", _sort(value))

    def _message(self, rule: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
        expression = rule.get("messageExpression")
        if expression:
            found: Any = ""
            try:
                found, cost = self._run(cel.parse(str(expression)), variables)
                self._left -= cost
            except ValueError:
                pass
            if isinstance(found, str) and found.strip() and "\n" not in found and len(found) <= _LONGEST_MESSAGE:
                return found.strip()
        message = str(rule.get("message") or "").strip()
        return message or f"failed rule: {str(rule.get('rule', '')).strip()}"


def _where(rule: Mapping[str, Any], path: str) -> str:
    more = str(rule.get("fieldPath") or "")
    return f"{path}{more}" if path else more.removeprefix(".")


def _name(rule: Mapping[str, Any]) -> str:
    return str(rule.get("message") or rule.get("rule", "")).strip()


def _sort(value: Any) -> Any:
    """The server prints objects and lists by their type only."""
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else value


# By the identity of a schema, which is kept so that no other gets it: whether rules see another value than the stored.
_converting: dict[int, tuple[Schema, bool]] = {}


def _seen(value: Any, schema: Schema) -> Any:
    known = _converting.get(id(schema))
    if known is None:
        if len(_converting) >= _MOST_SCHEMAS:
            _converting.clear()
        known = _converting[id(schema)] = (schema, declare.converts(schema))
    return declare.converted(value, schema) if known[1] else value
