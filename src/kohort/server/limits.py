"""What one client may ask of the server, in one place; defaults are kube-apiserver's where it has the same limit.

Each limit says what it is about and what a client gets that reaches it: the table in docs/security.md is made of that
(hack/generated.py), and so are the fields of `limits` in a configuration file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Final, TypeVar

T = TypeVar("T", int, float)


def _limit(default: T, says: str, gets: str, *, flag: str = "", least: int = 1) -> T:
    """`flag`: of `kohort up`, as kube-apiserver calls it."""
    about = {"says": says, "gets": gets, "flag": flag, "least": least}
    made: T = field(default=default, metadata=about)
    return made


_CUT: Final = "the connection is cut"
_LATER: Final = "429, `Retry-After: 1`"


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    max_requests_inflight: int = _limit(
        400,
        "requests under way that read; one user holds at most half; watches, probes, `system:masters` hold none",
        "a place in the queue of its user; a seat that becomes free goes to the user with the fewest",
        flag="--max-requests-inflight",
    )
    max_mutating_requests_inflight: int = _limit(
        200, "requests under way that write", "the same", flag="--max-mutating-requests-inflight"
    )
    queue_length: int = _limit(50, "requests of one user that wait for a seat", _LATER)
    queued_requests: int = _limit(1000, "requests of all users that wait for a seat", _LATER)
    queue_seconds: float = _limit(15.0, "time in a queue", _LATER)
    body_bytes: int = _limit(3 << 20, "a body, also what a compressed one becomes", "413")
    header_bytes: int = _limit(32 << 10, "headers", "400")
    body_seconds: float = _limit(30.0, "time until a body has come", "408")
    request_seconds: float = _limit(60.0, "time for an answer, watches aside", "504", flag="--request-timeout")
    min_request_timeout: float = _limit(
        1800.0,
        "a watch that names no `timeoutSeconds`: from this to twice as long; one that nobody reads is cut at its end",
        "the stream ends",
        flag="--min-request-timeout",
    )
    write_seconds: float = _limit(30.0, "time for a client to take what was written to it", _CUT)
    idle_seconds: float = _limit(180.0, "a connection between two requests", "it is closed")
    workers: int = _limit(
        2, "processes for requests that take long, each started when it is needed; 0: none", "a turn", least=0
    )
    worker_seconds: float = _limit(30.0, "time of a request in one of them", "504")


DEFAULT: Final = Limits()


def by_name() -> Mapping[str, Field[Any]]:
    """The limits by the name that a configuration file uses: maxRequestsInflight."""
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), one.name): one for one in fields(Limits)}


def wrong(one: Field[Any], value: object) -> str:
    """What is accepted, if this is not; a limit that is a number of seconds takes fractions."""
    whole, least = isinstance(one.default, int), one.metadata["least"]
    numbers = (int,) if whole else (int, float)
    if isinstance(value, numbers) and not isinstance(value, bool) and (value >= least if whole else value > 0):
        return ""
    return f"accepted is a whole number, at least {least}" if whole else "accepted are seconds, more than 0"


def table() -> str:
    """In Markdown."""
    lines = ["| what | limit | setting, flag of `kohort up` | what the client gets |", "|---|---|---|---|"]
    for name, one in by_name().items():
        flag = f", `{one.metadata['flag']}`" if one.metadata["flag"] else ""
        lines.append(f"| {one.metadata['says']} | {_shown(one)} | `{name}`{flag} | {one.metadata['gets']} |")
    return "".join(f"{line}\n" for line in lines)


def _shown(one: Field[Any]) -> str:
    if one.name.endswith("_bytes"):
        size = int(str(one.default))
        return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
    return f"{one.default:,g} s" if isinstance(one.default, float) else f"{one.default:,}"
