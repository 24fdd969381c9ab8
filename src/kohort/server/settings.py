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
from kohort.server.service_allocator import RANGE as SERVICE_RANGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kohort.server.auth.credentials import CredentialFiles

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
    custom_kinds: bool = True  # definitions, rules and webhooks of JobSet, Trainer, Grove and LeaderWorkerSet
    history_seconds: float = 300.0  # how long watches can be resumed
    history_bytes: int = 32 << 20
    event_ttl: float = 3600.0  # seconds that an Event is kept after its last change, as kube-apiserver's --event-ttl
    marked_seconds: float = 0.0  # between the two writes by which a pod without time to go is marked, then deleted
    limits: Limits = LIMITS
    credentials: CredentialFiles | None = None  # None: those of the data folder
    controllers: bool = True  # what kube-controller-manager does for every cluster: garbage, namespaces, quotas, pods
    service_accounts: bool = False  # the admission plugin of that name
    anonymous: bool = True  # whether who shows nothing is system:anonymous
    authorize: bool = True  # by RBAC; False: everybody may do everything
    service_range: str = SERVICE_RANGE

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
