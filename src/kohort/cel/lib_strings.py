"""Functions of strings: the language's own, the extension (version 2) and regular expressions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from kohort.apimachinery import regexp
from kohort.cel.functions import define, defined
from kohort.cel.lib_core import text
from kohort.cel.types import kind_of
from kohort.cel.values import CelError, Duration, NoOverloadError, Timestamp, TypeValue, Uint

_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
# White space as Go's unicode.IsSpace has it, and what upstream trims beside it.
_SPACE: Final = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))

define("startsWith", "string.(string) bool", run=str.startswith)
define("endsWith", "string.(string) bool", run=str.endswith)
define("contains", "string.(string) bool", run=lambda whole, part: part in whole)
define("lowerAscii", "string.() string", run=lambda value: value.translate(_LOWER))
define("upperAscii", "string.() string", run=lambda value: value.translate(_UPPER))
define("trim", "string.() string", run=lambda value: value.strip(_SPACE))
define("strings.quote", "(string) string", run=lambda value: f'"{"".join(_QUOTED.get(one, one) for one in value)}"')


@defined("charAt", "string.(int) string")
def _char(value: str, place: int) -> str:
    if not 0 <= place <= len(value):
        raise CelError(f"index out of range: {place}")
    return value[place : place + 1]


@defined("indexOf", "string.(string) int", "string.(string, int) int")
def _index(value: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return value.find(part, start)


@defined("lastIndexOf", "string.(string) int", "string.(string, int) int")
def _last(value: str, part: str, before: int | None = None) -> int:
    if before is None:
        return value.rfind(part)
    if not 0 <= before <= len(value):
        raise CelError(f"index out of range: {before}")
    return value.rfind(part, 0, before + len(part))


@defined("replace", "string.(string, string) string", "string.(string, string, int) string")
def _replace(value: str, old: str, new: str, count: int = -1) -> str:
    if len(value) * max(1, len(new)) > 50_000_000:
        raise CelError("the result of replace() is too long")
    return value.replace(old, new, count)


@defined("split", "string.(string) list(string)", "string.(string, int) list(string)")
def _split(value: str, by: str, count: int = -1) -> list[str]:
    if count in {0, 1}:
        return [value] if count else []
    if by:
        return value.split(by, count - 1 if count > 0 else -1)
    if count < 0 or count >= len(value):
        return list(value)
    return [*value[: count - 1], value[count - 1 :]]


@defined("substring", "string.(int) string", "string.(int, int) string")
def _substring(value: str, start: int, end: int | None = None) -> str:
    last = len(value) if end is None else end
    if not 0 <= start <= len(value):
        raise CelError(f"index out of range: {start}")
    if not 0 <= last <= len(value):
        raise CelError(f"index out of range: {last}")
    if start > last:
        raise CelError(f"invalid substring range. start: {start}, end: {last}")
    return value[start:last]


@defined("join", "list(string).() string", "list(string).(string) string")
def _join(items: list[Any], by: str = "") -> str:
    if not all(isinstance(one, str) for one in items):
        raise NoOverloadError("join")
    return by.join(items)


# ---- regular expressions


def _regexp(run: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        try:
            return run(*values)
        except (regexp.RegexpError, regexp.TooLongError) as error:
            raise CelError(str(error)) from None

    return call


define(
    "matches",
    "string.(string) bool",
    "(string, string) bool",
    run=_regexp(lambda value, pattern: regexp.search(pattern, value)),
)


@defined("find", "string.(string) string")
@_regexp
def _find(value: str, pattern: str) -> str:
    return next((one[0] or "" for one in regexp.compiled(pattern).find_all(value)), "")


@defined("findAll", "string.(string) list(string)", "string.(string, int) list(string)")
@_regexp
def _find_all(value: str, pattern: str, count: int = -1) -> list[str]:
    found = [one[0] or "" for one in regexp.compiled(pattern).find_all(value)]
    return found if count < 0 else found[:count]


# ---- string.format


@defined("format", "string.(list(dyn)) string")
def formatted(template: str, values: list[Any]) -> str:
    parts: list[str] = []
    at = used = 0
    while at < len(template):
        sign = template[at]
        at += 1
        if sign != "%":
            parts.append(sign)
            continue
        if template[at : at + 1] == "%":
            parts.append("%")
            at += 1
            continue
        precision, at = _precision(template, at)
        if at >= len(template):
            raise CelError("unexpected end of string")
        if used >= len(values):
            raise CelError(f"index {used} out of range")
        parts.append(_clause(template[at], values[used], precision))
        used, at = used + 1, at + 1
    return "".join(parts)


def _precision(template: str, at: int) -> tuple[int | None, int]:
    if template[at : at + 1] != ".":
        return None, at
    end = at + 1
    while end < len(template) and template[end].isdigit():
        end += 1
    if end > at + 4:
        raise CelError("precision is too large")
    return int(template[at + 1 : end] or "0"), end


UNKNOWN: Final = object()  # a value whose type is known when it is there: every clause may fit


def _clause(sign: str, value: Any, precision: int | None) -> str:
    if value is UNKNOWN:
        return ""
    shown = _shown(value) if sign == "s" else _number_clause(sign, value, precision)
    if shown is not None:
        return shown
    if sign not in _TAKEN:
        raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{sign}"')
    raise CelError(f"error during formatting: {_TAKEN[sign]}, was given {kind_of(value)}")


def _number_clause(sign: str, value: Any, precision: int | None) -> str | None:
    """None: the clause does not take such a value."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if sign in {"f", "e"} and isinstance(value, float):
        return _fixed(value, precision) if sign == "f" else _scientific(value)
    if (sign in {"d", "o", "x", "X"} and whole) or (sign == "b" and isinstance(value, int)):
        return format(int(value), sign)
    if sign in {"x", "X"} and isinstance(value, str | bytes):
        shown = (value.encode() if isinstance(value, str) else value).hex()
        return shown.upper() if sign == "X" else shown
    return None


_TAKEN: Final = {
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "o": "octal clause can only be used on integers",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
}
_RAISED: Final = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")


def _fixed(value: float, precision: int | None) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    return f"{value:.{6 if precision is None else precision}f}"


def _scientific(value: float) -> str:
    """As upstream prints it: six digits, and the exponent raised."""
    if not math.isfinite(value):
        return _fixed(value, None)
    digits, exponent = f"{value:.6e}".split("e")
    return f"{digits}×10{exponent.removeprefix('+').translate(_RAISED)}"


def _shown(value: Any) -> str:
    if isinstance(value, list | dict) or value is None:
        return _nested(value)
    if isinstance(value, str | bool | float | bytes | Uint | int | Duration | Timestamp):
        return str(text(value))
    if isinstance(value, TypeValue):
        return value.name
    raise CelError(
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
        f"types, durations, and timestamps, was given {kind_of(value)}"
    )


def _nested(value: Any) -> str:
    """A value within a list or a map, in the words of the language."""
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{_nested(name)}:{_nested(member)}" for name, member in value.items())) + "}"
    if value is None or isinstance(value, float):
        return "null" if value is None else _fixed(value, None)
    if isinstance(value, str | bytes):
        return f'{"b" if isinstance(value, bytes) else ""}"{text(value)}"'
    return f'{kind_of(value)}("{text(value)}")' if isinstance(value, Duration | Timestamp) else _shown(value)
