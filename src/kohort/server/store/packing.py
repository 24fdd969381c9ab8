"""Large values are packed before they are written: the disk has less to do, and so have all whose writes are in the
same transaction.

Packing three megabytes takes as long as ten transactions. A worker process that has made a large value packs it there,
around the place of its revision, which is known only when it is written. So what is packed is one zlib stream, or
several, one after the other.
"""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple

LARGE: Final = 16 << 10  # bytes of a value; from there on it is packed
_LEVEL: Final = 1


class Packed(NamedTuple):
    """A value around its revision."""

    before: bytes
    after: bytes

    def at(self, revision: int) -> bytes:
        return b"".join((self.before, zlib.compress(str(revision).encode(), 0), self.after))


def around(before: bytes, after: bytes) -> Packed | None:
    """None: it is small, or packing does not make it smaller."""
    size = len(before) + len(after)
    if size < LARGE:
        return None
    found = Packed(zlib.compress(before, _LEVEL), zlib.compress(after, _LEVEL))
    return found if len(found.before) + len(found.after) < size else None


def packed(value: bytes) -> bytes | None:
    """As `around`."""
    if len(value) < LARGE:
        return None
    found = zlib.compress(value, _LEVEL)
    return found if len(found) < len(value) else None


def unpacked(data: bytes) -> bytes:
    """zlib.error if it is not what was packed."""
    parts: list[bytes] = []
    while data:
        stream = zlib.decompressobj()
        parts.append(stream.decompress(data))
        if not stream.eof:
            raise zlib.error("the end of a packed value is missing")
        data = stream.unused_data
    return b"".join(parts)
