"""The command lines of an environment's processes: pure functions from settings to arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# ServiceAccount would refuse pods while no controller makes service accounts; TaintNodesByCondition would leave
# nodes made by hand tainted for ever, as no kubelet reports them ready.
ADMISSION_OFF = ("ServiceAccount", "TaintNodesByCondition")

# They would evict from, taint and number nodes that exist only on paper.
CONTROLLERS_OFF = ("node-lifecycle-controller", "taint-eviction-controller", "node-ipam-controller")


@dataclass(frozen=True)
class Ports:
    etcd: int
    etcd_peer: int
    apiserver: int
    kcm: int
    scheduler: int


def gate_flag(gates: Mapping[str, bool]) -> list[str]:
    pairs = ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())
    return [f"--feature-gates={pairs}"] if pairs else []


def etcd(binary: Path, folder: Path, ports: Ports) -> list[str]:
    client, peer = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        str(binary),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(
    binary: Path,
    folder: Path,
    ports: Ports,
    *,
    gates: Mapping[str, bool],
    runtime_config: Sequence[str],
    extra: Sequence[str] = (),
) -> list[str]:
    key = folder / "service-account.key"
    return [
        str(binary),
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={ports.apiserver}",
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        f"--disable-admission-plugins={','.join(ADMISSION_OFF)}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-cluster-ip-range=10.0.0.0/16",
        # A loopback address is not allowed in the endpoints of the `kubernetes` service.
        "--endpoint-reconciler-type=none",
        "--allow-privileged=true",
        "--max-requests-inflight=2000",
        "--max-mutating-requests-inflight=1000",
        "--profiling=false",
        *([f"--runtime-config={','.join(runtime_config)}"] if runtime_config else []),
        *gate_flag(gates),
        *extra,
    ]


def kcm(binary: Path, folder: Path, ports: Ports, *, gates: Mapping[str, bool], extra: Sequence[str] = ()) -> list[str]:
    return [
        str(binary),
        f"--kubeconfig={folder / 'kcm.kubeconfig'}",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={folder / 'service-account.key'}",
        f"--root-ca-file={folder / 'certificates' / 'apiserver.crt'}",
        f"--controllers=*,{','.join('-' + name for name in CONTROLLERS_OFF)}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.kcm}",
        "--kube-api-qps=2000",
        "--kube-api-burst=4000",
        *gate_flag(gates),
        *extra,
    ]


def scheduler(
    binary: Path, folder: Path, ports: Ports, *, gates: Mapping[str, bool], extra: Sequence[str] = ()
) -> list[str]:
    return [
        str(binary),
        f"--config={folder / 'scheduler.json'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.scheduler}",
        *gate_flag(gates),
        *extra,
    ]
