"""A large JSON text read piece by piece, so that others get the event loop in between.

A parser that makes ten thousand objects in one call cannot be interrupted. So whatever is large is first taken apart
into its members as bytes, which makes few objects, and then these are read, one after the other. In all it takes two to
three times as long as one call: for texts whose one call would be too long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    Pieces = Generator[None, None, Any]

MORE: Final = object()  # instead of what a text says, until it is whole
PIECE: Final = 1 << 15  # bytes: a millisecond, or some where every page of memory is new
_EACH: Final = 20  # bytes: its name, and what it costs to begin
_DEEPEST: Final = 8  # levels that are taken apart; each is a look at all the bytes below it

_anything: Final = msgspec.json.Decoder()
_TAKEN_APART: Final[dict[bytes, msgspec.json.Decoder[Any]]] = {
    b"{": msgspec.json.Decoder(dict[str, msgspec.Raw]),
    b"[": msgspec.json.Decoder(list[msgspec.Raw]),
}  # by their first letter; what begins with white space is not taken apart, nor are strings


def advance(parts: Generator[None, None, Any]) -> Any:
    """Up to the next break: MORE, or what comes of it all."""
    try:
        next(parts)
    except StopIteration as end:
        return end.value
    return MORE


def read(text: bytes | msgspec.Raw, depth: int = 0) -> Pieces:
    """What the text says, as `msgspec.json.decode` gives it. Between two yields it is about a piece."""
    start = bytes(memoryview(text)[:1])
    if len(memoryview(text)) <= PIECE or depth == _DEEPEST or start not in _TAKEN_APART:
        return _anything.decode(text)
    found: Any = _TAKEN_APART[start].decode(text)
    yield
    done = 0
    keys: Iterable[Any] = list(found) if start == b"{" else range(len(found))
    for key in keys:
        raw = found[key]
        size = len(memoryview(raw))
        if size > PIECE:
            found[key] = yield from read(raw, depth + 1)
            continue
        found[key] = _anything.decode(raw)
        done += size + _EACH
        if done > PIECE:
            done = 0
            yield
    return found
