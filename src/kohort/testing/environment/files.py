"""The files that an environment's processes read: tokens, kubeconfigs, a signing key, the scheduler's configuration."""

from __future__ import annotations

import base64
import json
import secrets
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ADMIN = "kohort-admin"
BUILT_IN_USERS: Mapping[str, Sequence[str]] = {
    ADMIN: ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
}

# DER of an elliptic curve key (RFC 5915) on P-256 (1.2.840.10045.3.1.7); Go derives the public half.
_EC_HEAD = bytes.fromhex("30310201010420")
_EC_TAIL = bytes.fromhex("a00a06082a8648ce3d030107")


def write_private(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def write_tokens(path: Path, users: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """A static token file of kube-apiserver; gives back user -> token."""
    tokens = {user: secrets.token_hex(16) for user in users}
    rows = [f'{tokens[user]},{user},{user},"{",".join(groups)}"' for user, groups in users.items()]
    write_private(path, "\n".join(rows) + "\n")
    return tokens


def write_signing_key(path: Path) -> Path:
    """A key for service account tokens. Any number below the curve's order will do, and a first byte of 0 is below."""
    der = _EC_HEAD + b"\x00" + secrets.token_bytes(31) + _EC_TAIL
    body = base64.encodebytes(der).decode().replace("\n", "")
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return write_private(
        path, "\n".join(["-----BEGIN EC PRIVATE KEY-----", *lines, "-----END EC PRIVATE KEY-----", ""])
    )


def kubeconfig(url: str, ca_file: Path, user: str, token: str) -> str:
    """A kubeconfig of one user, with the authority inside, so that the file can be copied anywhere. JSON is YAML."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "kohort-environment",
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(ca_file.read_bytes()).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "kohort-environment", "context": {"cluster": "kohort-environment", "user": user}}],
        "current-context": "kohort-environment",
    }
    return json.dumps(document, indent=2) + "\n"


def scheduler_configuration(kubeconfig_file: Path, extra: Mapping[str, Any] | None = None) -> str:
    """kube-scheduler's configuration; without more queries per second its client throttles itself at 50."""
    document: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig_file), "qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
        **(extra or {}),
    }
    return json.dumps(document, indent=2) + "\n"
