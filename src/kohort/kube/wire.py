"""One HTTP exchange as plain data, shared by every client transport and by the embedded API server.

Nothing here knows sockets: a request that comes over HTTPS and one that comes from the same process look alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as the authenticator found out."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is decoded and has no query; keys of `headers` are lower case; `user` is None until authenticated.
    `composed`: the body was written from an object by this process, so no member stands in it twice. `whole_lines`: who
    asks is in this process, and takes the lines of a watch as they are. `unread`: it is, and does not read the
    object that it is answered with, so nobody needs to write that down. `unmanaged`: it is, and reads no managedFields:
    there may be null in their place."""

    method: str
    path: str
    query: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User | None = None
    composed: bool = False
    whole_lines: bool = False
    unread: bool = False
    unmanaged: bool = False


@dataclass(slots=True)
class Response:
    """Keys of `headers` are lower case. An iterator as `body` is a stream of chunks of any size.
    `seconds`: after how many a watch has to end; None for everything else. `lines`: those of a watch, all that are
    there at once together, instead of a body; only where `whole_lines` were asked for."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""
    seconds: float | None = None
    lines: AsyncGenerator[list[bytes]] | None = None
