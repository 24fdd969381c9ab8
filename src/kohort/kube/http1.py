"""HTTP/1.1 as bytes: a request written, an answer read, however it arrives in pieces. No sockets, no clock."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from kohort.kube.wire import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_HEAD: Final = 1 << 18
_LONGEST_LINE: Final = 1 << 12  # that says how long a chunk is
_NO_BODY: Final = frozenset({204, 304})
_ANY_WRAPPER: Final = 47  # zlib finds out whether it is gzip or zlib


class BadAnswerError(ValueError):
    """What came is not HTTP/1.1."""


def request(method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """A whole request; `headers` without its length."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if body or method in {"POST", "PUT", "PATCH"}:
        lines.append(f"content-length: {len(body)}")
    head = "\r\n".join(lines)
    if not head.count("\r") == head.count("\n") == len(lines) - 1:
        raise ValueError(f"{method} {target!r}: a line break in a header")
    return f"{head}\r\n\r\n".encode("latin-1") + body


class AnswerReader:
    """Reads one answer after the other from one connection. `feed` gives an answer when it is whole."""

    __slots__ = ("_bodiless", "_buffer", "_chunked", "_head", "_left", "_parts", "keeps", "touched")

    def __init__(self) -> None:
        self.keeps = True  # whether the connection may be used again
        self.begin("GET")

    def begin(self, method: str) -> None:
        """A request of this method was sent."""
        self._bodiless = method == "HEAD"
        self._buffer = bytearray()
        self._head: tuple[int, dict[str, str]] | None = None
        self._chunked = False
        self._left: int | None = 0  # bytes of the body or the chunk that are missing; None: until the end
        self._parts: list[bytes] = []
        self.touched = False  # something of the answer has come

    def feed(self, data: bytes) -> Response | None:
        self.touched = True
        self._buffer += data
        if self._head is None and not self._read_head():
            return None
        if self._chunked:
            return self._answer() if self._read_chunks() else None
        if self._left is None:
            return None
        if len(self._buffer) < self._left:
            return None
        self._parts.append(bytes(self._buffer[: self._left]))
        del self._buffer[: self._left]
        return self._answer()

    def end(self) -> Response | None:
        """Nothing comes any more: that may be the end of an answer, too."""
        self.keeps = False
        if self._head is None or self._chunked or self._left is not None:
            return None
        self._parts.append(bytes(self._buffer))
        self._buffer.clear()
        return self._answer()

    # ---- inside

    def _read_head(self) -> bool:
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _LONGEST_HEAD:
                    raise BadAnswerError(f"headers of more than {_LONGEST_HEAD} bytes")
                return False
            first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
            del self._buffer[: end + 4]
            status = _status(first)
            if status >= 200:
                break
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise BadAnswerError(f"a header without a colon: {line[:100]!r}")
            name, value = name.lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self._head = (status, headers)
        self._frame(first, status, headers)
        return True

    def _frame(self, first: str, status: int, headers: dict[str, str]) -> None:
        """How long the body is."""
        connection = headers.get("connection", "").lower()
        self.keeps = "close" not in connection and (first.startswith("HTTP/1.1") or "keep-alive" in connection)
        if self._bodiless or status in _NO_BODY:
            return
        if "chunked" in headers.get("transfer-encoding", "").lower():
            self._chunked = True
        elif "content-length" in headers:
            length = headers["content-length"]
            if not (length.isascii() and length.isdigit()):
                raise BadAnswerError(f"content-length: found {length[:100]!r}")
            self._left = int(length)
        else:
            self._left, self.keeps = None, False

    def _read_chunks(self) -> bool:
        """Whether the last chunk is there."""
        buffer, at = self._buffer, 0
        try:
            while True:
                if self._left:  # of a chunk, and the line break behind it
                    part = buffer[at : at + self._left]
                    self._parts.append(bytes(part[: max(self._left - 2, 0)]))
                    at += len(part)
                    self._left -= len(part)
                    if self._left:
                        return False
                end = buffer.find(b"\r\n", at, at + _LONGEST_LINE)
                if end < 0:
                    if len(buffer) - at > _LONGEST_LINE:
                        raise BadAnswerError("a chunk without its size")
                    return False
                size = _size(bytes(buffer[at:end]))
                if size == 0:
                    last = buffer.find(b"\r\n\r\n", end)  # what may follow are trailers
                    if last < 0:
                        return False
                    at = last + 4
                    return True
                at, self._left = end + 2, size + 2
        finally:
            del buffer[:at]

    def _answer(self) -> Response:
        assert self._head is not None
        (status, headers), body = self._head, b"".join(self._parts)
        self._parts.clear()  # it may be long until there is another answer
        if self._buffer:
            self.keeps = False  # more than was asked for: nobody knows what the next answer would be
        if body and _compressed(headers):
            try:
                body = zlib.decompress(body, _ANY_WRAPPER)
            except zlib.error as error:
                raise BadAnswerError(f"content-encoding: {error}") from None
        return Response(status, headers, body)


class PieceReader(AnswerReader):
    """The same where a body is read while it comes: `piece` gives what is new of it."""

    __slots__ = ("_inflate", "whole")

    def begin(self, method: str) -> None:
        super().begin(method)
        self._inflate: zlib._Decompress | None = None
        self.whole = False  # the answer is complete

    @property
    def head(self) -> tuple[int, dict[str, str]] | None:
        return self._head

    def piece(self, data: bytes) -> bytes:
        self.touched = True
        self._buffer += data
        if self._head is None:
            if not self._read_head():
                return b""
            head = self.head
            if head is not None and _compressed(head[1]):
                self._inflate = zlib.decompressobj(_ANY_WRAPPER)
        if self._chunked:
            self.whole = self._read_chunks()
        else:
            self._read_some()
        found = b"".join(self._parts)
        self._parts.clear()
        if self._inflate is None or not found:
            return found
        try:
            return self._inflate.decompress(found)
        except zlib.error as error:
            raise BadAnswerError(f"content-encoding: {error}") from None

    def over(self) -> bool:
        """Nothing comes any more: whether that is the end of the answer."""
        self.keeps = False
        self.whole = self.whole or (self._head is not None and not self._chunked and self._left is None)
        return self.whole

    def _read_some(self) -> None:
        size = len(self._buffer) if self._left is None else min(self._left, len(self._buffer))
        self._parts.append(bytes(self._buffer[:size]))
        del self._buffer[:size]
        if self._left is not None:
            self._left -= size
            self.whole = self._left == 0


def _compressed(headers: Mapping[str, str]) -> bool:
    return headers.get("content-encoding", "identity").lower() in {"gzip", "deflate"}


def _status(line: str) -> int:
    version, _, rest = line.partition(" ")
    code = rest[:3]
    if not version.startswith("HTTP/1.") or not (len(code) == 3 and code.isascii() and code.isdigit()):
        raise BadAnswerError(f"not an answer of HTTP/1.1: {line[:100]!r}")
    return int(code)


def _size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or digits.strip(b"0123456789abcdefABCDEF"):
        raise BadAnswerError(f"size of a chunk: found {digits[:100]!r}")
    return int(digits, 16)
