"""How a server is started: everything that can be chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kohort.api.kind import Context
from kohort.api.options import context
from kohort.api.releases import NEWEST
from kohort.server.limits import DEFAULT as LIMITS
from kohort.server.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

PORT: Final = 6443


@dataclass(frozen=True, slots=True)
class Settings:
    """`data` is a folder for the store, the certificates and the kubeconfig, also where the store is in memory."""

    data: Path
    minor: str = NEWEST
    gates: Mapping[str, bool] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = PORT
    in_memory: bool = False
    kubeconfig: Path | None = None
    secure: bool = True  # TLS and tokens
    listen: bool = True  # False: no port, no certificates, no kubeconfig; only for clients in this process
    custom_kinds: bool = True  # definitions of JobSet, Trainer, Grove and LeaderWorkerSet
    history_seconds: float = 300.0  # how long watches can be resumed
    history_bytes: int = 256 << 20
    event_ttl: float = 3600.0  # seconds that an Event is kept after its last change, as kube-apiserver's --event-ttl
    limits: Limits = LIMITS

    @property
    def kubeconfig_path(self) -> Path:
        return self.kubeconfig or self.data / "kubeconfig"

    @property
    def store_path(self) -> Path:
        return self.data / "store.db"

    @property
    def pid_path(self) -> Path:
        return self.data / "server.pid"

    def context(self) -> Context:
        """Gates may be Kubernetes' or Kohort's own options; ValueError names one that is neither."""
        return context(self.minor, self.gates)
