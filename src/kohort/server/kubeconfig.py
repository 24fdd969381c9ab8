"""The file that points clients at a server: address, authority, token. For its owner's eyes only."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import yaml

from kohort.server.auth import private

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, *, url: str, authority: bytes | None, token: str, name: str = "kohort") -> None:
    cluster: dict[str, str] = {"server": url}
    if authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token} if token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    private.write(path, yaml.safe_dump(document, sort_keys=False).encode())
