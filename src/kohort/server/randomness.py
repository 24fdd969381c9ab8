"""What the server makes up: uids of objects, and the ends of generated names.

The system's source of random bytes is asked for a kilobyte at a time. Each call of it gives the interpreter away, and
the event loop may get it back only after some other thread's turn: names of a gang of three pods were 0.5 ms of it, and
3 ms beside hostile objects (by samples).
"""

from __future__ import annotations

import os
import random
from typing import Final

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # no words by accident
_SUFFIX: Final = 5
_UID: Final = 16  # bytes
_AT_ONCE: Final = 64

_random: Final = random.Random()
_uids: Final[list[str]] = []


def suffix() -> str:
    return "".join(_random.choices(_LETTERS, k=_SUFFIX))


def uid() -> str:
    """A random UUID (RFC 9562, version 4). A process may have servers in several threads: none gets one twice."""
    while True:
        try:
            return _uids.pop()
        except IndexError:
            found = os.urandom(_AT_ONCE * _UID)
            _uids.extend(_written(found[at : at + _UID]) for at in range(0, len(found), _UID))


def _written(found: bytes) -> str:
    number = int.from_bytes(found)
    number = number & ~(0xF << 76) | 4 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
