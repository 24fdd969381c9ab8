"""What one client may ask of the server, in one place; defaults are kube-apiserver's where it has the same limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    queue_length: int = 50  # requests of one user that wait for a seat
    queued_requests: int = 1000  # of all users
    queue_seconds: float = 15.0  # in a queue
    body_bytes: int = 3 << 20  # also of what a compressed body becomes
    header_bytes: int = 32 << 10
    body_seconds: float = 30.0  # until a body is there
    request_seconds: float = 60.0  # for an answer, watches aside
    write_seconds: float = 30.0  # for a client to take what was written to it
    idle_seconds: float = 180.0  # of a connection between two requests
    workers: int = 2  # processes for requests that take long, each started when it is needed; 0: none
    worker_seconds: float = 30.0  # for a request in one of them


DEFAULT: Final = Limits()
