"""The one text that a server keeps of a quantity: 1000m is 1, 1024Mi is 1Gi, 0.5 is 500m.

Kinds that a server decodes are kept so; objects of a CRD are not decoded, and keep what was written. Real servers leave
a text alone that is in its shortest form by their count of digits, be it +1 or 1e+3. One thing is not copied: above
999E they lose the suffix.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

NANO: Final = -9  # nothing is finer
MILLI: Final = -3  # amounts of resources are rounded up to this

_PARTS: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?[0-9]+))")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LETTERS: Final = {power: letter for letter, power in _POWERS.items()}
_DIGITS: Final = 18  # what surely fits into 64 bits
_MOST: Final = (1 << 63) - 1
_LARGEST_POWER: Final = 400  # of e400; more would only cost time


def canonical(value: Any, finest: int = NANO) -> Any:
    """The text of a quantity, rounded up to ten to the power of `finest`. What is none is given back as it is."""
    if value.__class__ is str:
        return _canonical(value, finest)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _canonical(str(value), finest)
    return "0" if value is None else value


@lru_cache(maxsize=4096)
def _canonical(given: str, finest: int) -> str:
    text = given.strip()
    found = _PARTS.fullmatch(text)
    if found is None or not text:
        return given
    sign, number, fraction, binary, letter, exponent = found.groups()
    number, fraction = number.lstrip("0"), fraction or ""
    if binary:
        return _of_binary(text, sign, number, fraction, _BINARY.index(binary), finest)
    power = int(exponent) if exponent else _POWERS[letter or ""]
    digits, power = (number or "0") + fraction, power - len(fraction)
    if abs(power) > _LARGEST_POWER:
        return given
    short = power % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    if short and len(digits) <= _DIGITS and power >= finest:
        return text
    return _in_decimal(sign, *_rounded(int(digits), power, finest), exponents=exponent is not None)


def _of_binary(text: str, sign: str, number: str, fraction: str, level: int, finest: int) -> str:
    digits = int((number or "0") + fraction)
    if not fraction and digits & 7 and digits << 10 * level < 10**14:
        return text
    value, power = _rounded(digits << 10 * level, -len(fraction), finest)
    while power < 0 and value % 10 == 0:
        value, power = value // 10, power + 1
    if power == 0:
        value = min(value, _MOST)
    if power < 0 or value < 1024:
        return _in_decimal(sign, value, power)
    level = 0
    while value % 1024 == 0 and level < len(_BINARY) - 1:
        value, level = value // 1024, level + 1
    return f"{'-' if sign == '-' else ''}{value}{_BINARY[level]}"


def _rounded(value: int, power: int, finest: int) -> tuple[int, int]:
    """Away from zero: who asks for something gets something."""
    if power >= finest:
        return value, power
    return -(-value // 10 ** (finest - power)), finest


def _in_decimal(sign: str, value: int, power: int, *, exponents: bool = False) -> str:
    """With the largest power of a thousand that leaves a whole number."""
    if value == 0:
        return "0"
    while value % 10 == 0:
        value, power = value // 10, power + 1
    top = power - power % 3
    if not exponents:
        top = min(top, max(_LETTERS))
    value *= 10 ** (power - top)
    suffix = _LETTERS[top] if not exponents else f"e{top}" if top else ""
    return f"{'-' if sign == '-' else ''}{value}{suffix}"
