"""The file that points clients at a server: address, authority, token. For its owner's eyes only."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from kohort.server.auth import private

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, *, url: str, authority: bytes | None, token: str, name: str = "kohort") -> None:
    """By hand: a library for YAML would take longer to load than all of this."""
    trust = f"\n    certificate-authority-data: {base64.b64encode(authority).decode()}" if authority is not None else ""
    user = f"\n    token: {json.dumps(token)}" if token else " {}"
    text = f"""apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {json.dumps(url)}{trust}
users:
- name: {name}
  user:{user}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}
current-context: {name}
"""
    private.write(path, text.encode())
