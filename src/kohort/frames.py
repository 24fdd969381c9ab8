"""Messages between a process and its child: MessagePack behind its length. Plain values only, so that neither side can
make the other do more than read them."""

from __future__ import annotations

from typing import Any, BinaryIO, Final

import msgspec

HEAD: Final = 8
_encode = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder().decode


def pack(value: Any) -> bytes:
    data = _encode(value)
    return len(data).to_bytes(HEAD) + data


def size(head: bytes) -> int:
    return int.from_bytes(head)


def read(file: BinaryIO) -> Any:
    """The next message; EOFError: the other side has gone."""
    head = file.read(HEAD)
    if len(head) < HEAD:
        raise EOFError
    data = file.read(size(head))
    if len(data) < size(head):
        raise EOFError
    return unpack(data)


def write(file: BinaryIO, value: Any) -> None:
    file.write(pack(value))
    file.flush()
