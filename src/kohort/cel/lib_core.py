"""The standard functions: conversions, sizes, times, and the operators of the language."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from kohort.cel import times
from kohort.cel.functions import define, defined
from kohort.cel.types import kind_of
from kohort.cel.values import CelError, Duration, Timestamp, TypeValue, Uint, equal, joined

_LIMIT: Final = 1 << 63
_ORDERED: Final = ("bool", "string", "bytes", "timestamp", "duration")
_MOST_PLAIN: Final = 6  # digits before the point that are printed without an exponent
_NUMBERS: Final = ("int", "uint", "double")


def whole(value: int) -> int:
    if isinstance(value, Uint):
        if not 0 <= value < 1 << 64:
            raise CelError("unsigned integer overflow")
    elif not -_LIMIT <= value < _LIMIT:
        raise CelError("integer overflow")
    return value


# ---- operators


def _compare(sign: str, compare: Callable[[Any, Any], bool]) -> None:
    pairs = [(one, one) for one in _ORDERED] + [(one, other) for one in _NUMBERS for other in _NUMBERS]
    define(sign, *(f"({one}, {other}) bool" for one, other in pairs), run=compare)


for _sign, _operator in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
    _compare(f"_{_sign}_", _operator)
define("_==_", "(A, A) bool", run=equal)
define("_!=_", "(A, A) bool", run=lambda one, other: not equal(one, other))


@defined("@in", "(A, list(A)) bool", "(A, map(A, B)) bool")
def contained(one: Any, other: Any) -> bool:
    if isinstance(other, dict):
        return not isinstance(one, list | dict) and one in other
    return any(equal(one, item) for item in other)


def _arithmetic(name: str, run: Callable[[Any, Any], Any], kinds: tuple[str, ...]) -> None:
    def compute(one: Any, other: Any) -> Any:
        try:
            found = run(one, other)
        except ZeroDivisionError:
            raise CelError("modulus by zero" if name == "_%_" else "division by zero") from None
        if type(one) is int:
            if not -_LIMIT <= found < _LIMIT:
                raise CelError("integer overflow")
            return found
        return whole(Uint(found) if found >= 0 else found) if isinstance(one, Uint) else found

    define(name, *(f"({one}, {one}) {one}" for one in kinds), run=compute)


def _divide(one: Any, other: Any) -> Any:
    """Integers are cut towards zero; doubles know infinity."""
    if isinstance(one, float):
        if other == 0:
            return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
        return one / other
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _subtract(one: Any, other: Any) -> Any:
    if isinstance(one, Uint) and other > one:
        raise CelError("unsigned integer overflow")
    return one - other


_arithmetic("_+_", operator.add, _NUMBERS)
_arithmetic("_-_", _subtract, _NUMBERS)
_arithmetic("_*_", operator.mul, _NUMBERS)
_arithmetic("_/_", _divide, _NUMBERS)
_arithmetic("_%_", lambda one, other: one - other * _divide(one, other), ("int", "uint"))
define("_+_", "(string, string) string", "(bytes, bytes) bytes", run=operator.add)
define("_+_", "(list(A), list(A)) list(A)", run=joined)
define("_+_", "(duration, duration) duration", run=lambda one, other: times.duration(one.nanos + other.nanos))
define("_+_", "(timestamp, duration) timestamp", run=lambda one, other: times.timestamp(one.nanos + other.nanos))
define("_+_", "(duration, timestamp) timestamp", run=lambda one, other: times.timestamp(one.nanos + other.nanos))
define("_-_", "(duration, duration) duration", run=lambda one, other: times.duration(one.nanos - other.nanos))
define("_-_", "(timestamp, duration) timestamp", run=lambda one, other: times.timestamp(one.nanos - other.nanos))
define("_-_", "(timestamp, timestamp) duration", run=lambda one, other: times.duration(one.nanos - other.nanos))
define("-_", "(int) int", run=lambda value: whole(-value))
define("-_", "(double) double", run=operator.neg)


@defined("_[_]", "(list(A), int) A", "(map(A, B), A) B")
def item(target: Any, index: Any) -> Any:
    if isinstance(target, dict):
        if isinstance(index, float) and index.is_integer():
            index = int(index)
        if isinstance(index, list | dict) or index not in target:
            raise CelError(f"no such key: {index}")
        return target[index]
    if 0 <= index < len(target):
        return target[index]
    raise CelError(f"index out of bounds: {index}")


# ---- sizes and types

define("size", "(string) int", "(bytes) int", "(list(A)) int", "(map(A, B)) int", run=len)
define("size", "string.() int", "bytes.() int", "list(A).() int", "map(A, B).() int", run=len)
define("dyn", "(A) dyn", run=lambda value: value)
_TYPE_NAMES: Final = {
    "null": "null_type",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}
define("type", "(A) type(A)", run=lambda value: TypeValue(_TYPE_NAMES.get(kind_of(value), kind_of(value))))


# ---- conversions


@defined("int", "(int) int", "(uint) int", "(double) int", "(string) int", "(timestamp) int", "(duration) int")
def _int(value: Any) -> int:
    if isinstance(value, Timestamp):
        return value.nanos // 1_000_000_000
    if isinstance(value, Duration):
        return value.nanos
    return whole(int(_number(value, "int")))


@defined("uint", "(int) uint", "(uint) uint", "(double) uint", "(string) uint")
def _uint(value: Any) -> Uint:
    found = int(_number(value, "uint"))
    if not 0 <= found < 1 << 64:
        raise CelError("unsigned integer overflow")
    return Uint(found)


def _number(value: Any, name: str) -> Any:
    if isinstance(value, str):
        digits = value[1:] if value[:1] in {"-", "+"} and name == "int" else value
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
            raise CelError(f"type conversion error from 'string' to '{name}'")
        return int(value)
    if isinstance(value, float) and not abs(value) < float(_LIMIT) * (2 if name == "uint" else 1):
        raise CelError("unsigned integer overflow" if name == "uint" else "integer overflow")
    return value


@defined("double", "(int) double", "(uint) double", "(double) double", "(string) double")
def _double(value: Any) -> float:
    try:
        if isinstance(value, str) and ("_" in value or value != value.strip()):
            raise ValueError
        return float(value)
    except ValueError:
        raise CelError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from None


_TRUTH: Final = {
    **dict.fromkeys(("1", "t", "true", "True", "TRUE", "T"), True),
    **dict.fromkeys(("0", "f", "false", "False", "FALSE", "F"), False),
}


@defined("bool", "(bool) bool", "(string) bool")
def _bool(value: Any) -> bool:
    if isinstance(value, str) and value not in _TRUTH:
        raise CelError(f"type conversion error from 'string' to 'bool': {value}")
    return _TRUTH[value] if isinstance(value, str) else bool(value)


_PRINTED: Final = ("string", "bool", "int", "uint", "double", "bytes", "timestamp", "duration")


@defined("string", *(f"({one}) string" for one in _PRINTED))
def text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, float):
        return go_float(value)
    return times.printed(value) if isinstance(value, Timestamp | Duration) else str(int(value))


def go_float(value: float) -> str:
    """As Go's %g prints the shortest digits."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    _, digits, exponent = Decimal(repr(value)).as_tuple()
    at = len(digits) + int(exponent) - 1
    if value and (at < -4 or at >= _MOST_PLAIN):
        shown = "".join(map(str, digits)).rstrip("0")
        more = f".{shown[1:]}" if shown[1:] else ""
        return f"{'-' if value < 0 else ''}{shown[0]}{more}e{'-' if at < 0 else '+'}{abs(at):02}"
    return repr(value).removesuffix(".0")


define("bytes", "(string) bytes", run=str.encode)
define("bytes", "(bytes) bytes", run=lambda value: value)


# ---- times


@defined("timestamp", "(string) timestamp", "(int) timestamp", "(timestamp) timestamp")
def _timestamp(value: Any) -> Timestamp:
    if isinstance(value, str):
        return times.parse_timestamp(value)
    return times.timestamp(value * 1_000_000_000) if isinstance(value, int) else value


@defined("duration", "(string) duration", "(duration) duration")
def _duration(value: Any) -> Duration:
    return times.parse_duration(value) if isinstance(value, str) else value


for _name, _get in times.GETTERS.items():
    define(_name, "timestamp.() int", "timestamp.(string) int", run=_get)
for _name, _unit in times.UNITS.items():
    define(_name, "duration.() int", run=lambda value, unit=_unit: _divide(value.nanos, unit))
define(
    "getMilliseconds",
    "duration.() int",
    run=lambda value: _divide(value.nanos, 1_000_000),
)
