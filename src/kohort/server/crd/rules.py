"""x-kubernetes-validations of an object: CEL rules, each at the place of the schema where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kohort.api.errors import ErrorKind, FieldError
from kohort.server.crd import cel
from kohort.server.crd.cel.run import Optional, equal
from kohort.server.crd.schema import Schema, inner
from kohort.server.crd.validate import ABSENT, counterpart

_RULES: Final = "x-kubernetes-validations"
_REASONS: Final = {
    "FieldValueInvalid": ErrorKind.INVALID,
    "FieldValueForbidden": ErrorKind.FORBIDDEN,
    "FieldValueRequired": ErrorKind.REQUIRED,
    "FieldValueDuplicate": ErrorKind.DUPLICATE,
}
_VARIABLES: Final = frozenset({"self", "oldSelf"})
_NAMES: Final = {"name": {"type": "string"}, "generateName": {"type": "string"}}


def check(schema: Schema, value: Any, old: Any = ABSENT, path: str = "") -> Iterator[FieldError]:
    """Rules of the value, then of what is in it. `old`: its stored counterpart."""
    if value is None:
        return
    for rule in schema.get(_RULES) or ():
        yield from _apply(rule, value, old, path)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, member in value.items():
            sub = inner(schema, name)
            if sub:
                yield from check(sub, member, before.get(name, ABSENT), f"{path}.{name}" if path else name)
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for place, item in enumerate(value):
            yield from check(schema["items"], item, counterpart(schema, item, old), f"{path}[{place}]")


def _apply(rule: Mapping[str, Any], value: Any, old: Any, path: str) -> Iterator[FieldError]:
    text = str(rule.get("rule", ""))
    try:
        tree = cel.parse(text)
    except ValueError:  # the author of the CRD was told
        return
    variables: dict[str, Any] = {"self": value}
    if "oldSelf" in cel.names(tree):
        optional = rule.get("optionalOldSelf") is True
        if old is ABSENT and not optional:
            return  # a rule about change says nothing of what is new
        before = None if old is ABSENT else old
        variables["oldSelf"] = Optional(before) if optional else before
    elif old is not ABSENT and equal(value, old):
        return  # what did not change is not validated again
    try:
        holds = cel.evaluate(tree, variables)
    except cel.CelError as error:
        yield FieldError(
            ErrorKind.INVALID, path, f"rule evaluation error: {error} evaluating rule: {_name(rule)}", _sort(value)
        )
        return
    if holds is not True:
        kind = _REASONS.get(str(rule.get("reason") or "FieldValueInvalid"), ErrorKind.INVALID)
        yield FieldError(kind, _where(rule, path), _message(rule, variables), _sort(value))


def _where(rule: Mapping[str, Any], path: str) -> str:
    more = str(rule.get("fieldPath") or "")
    return f"{path}{more}" if path else more.removeprefix(".")


def _name(rule: Mapping[str, Any]) -> str:
    return str(rule.get("message") or rule.get("rule", "")).strip()


def _message(rule: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
    expression = rule.get("messageExpression")
    if expression:
        try:
            found = cel.evaluate(cel.parse(str(expression)), variables)
        except ValueError:
            found = ""
        if isinstance(found, str) and found.strip() and "\n" not in found:
            return found.strip()
    message = str(rule.get("message") or "").strip()
    return message or f"failed rule: {str(rule.get('rule', '')).strip()}"


def _sort(value: Any) -> Any:
    """The server prints objects and lists by their type only."""
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else value


# ---- when a CRD is made


def problems(rule: Mapping[str, Any], schema: Schema) -> tuple[str, str]:
    """(what makes a rule wrong, what makes it one that is not enforced); empty texts if nothing does."""
    text = str(rule.get("rule") or "")
    if not text.strip():
        return "rule is not specified", ""
    try:
        tree = cel.parse(text)
    except cel.UnsupportedError as error:
        return "", str(error)
    except cel.CelSyntaxError as error:
        return f"compilation failed: ERROR: {error}", ""
    strange = sorted(cel.names(tree) - _VARIABLES)
    if strange:
        return f"compilation failed: ERROR: undeclared reference to '{strange[0]}'", ""
    undefined = next(_undefined(tree, schema), None)
    return (f"compilation failed: ERROR: undefined field '{undefined}'", "") if undefined else ("", "")


def uses_old(rule: Mapping[str, Any]) -> bool:
    try:
        return "oldSelf" in cel.names(cel.parse(str(rule.get("rule") or "")))
    except ValueError:
        return False


def _undefined(tree: cel.Node, schema: Schema) -> Iterator[str]:
    """Members of self and oldSelf that the schema does not have."""
    found, missing = _schema_of(tree, schema)
    if missing:
        yield missing
        return
    for part in tree.parts if found is None or tree.sort != "member" else ():
        yield from _undefined(part, schema)


def _schema_of(tree: cel.Node, schema: Schema) -> tuple[Schema | None, str]:
    """The schema of a chain such as self.a.b, if it is one; and the first name in it that is not there."""
    from kohort.server.crd.cel.run import unescaped

    if tree.sort == "name" and tree.value in _VARIABLES:
        return schema, ""
    if tree.sort != "member":
        return None, ""
    above, missing = _schema_of(tree.parts[0], schema)
    if missing or above is None:
        return None, missing
    if above.get("type") != "object" or above.get("x-kubernetes-embedded-resource"):
        return None, ""
    name = unescaped(str(tree.value))
    member = inner(above, name)
    if name == "metadata":  # of an object: two of its names can be asked for whether its schema has them or not
        member = {"type": "object", **(member or {})}
        member = {**member, "properties": {**_NAMES, **(member.get("properties") or {})}}
    if member is None and name not in {"metadata", "apiVersion", "kind"}:
        return None, name
    return member or None, ""
