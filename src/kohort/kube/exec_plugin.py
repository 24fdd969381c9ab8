"""Credentials from a helper program (client.authentication.k8s.io), kept until they expire or are refused."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.kube.clock import REAL
from kohort.kube.credentials import Credential, bearer
from kohort.kube.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from kohort.kube.clock import Clock
    from kohort.kube.fields import Section

GROUP: Final = "client.authentication.k8s.io"
VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
MODES: Final = ("Never", "IfAvailable", "Always")
_SECONDS: Final = 60.0
# A credential is replaced before it ends, so that a request under way does not meet its end.
_EARLY: Final = timedelta(seconds=10)


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status


@dataclass(frozen=True)
class Plugin:
    """The `exec` part of a user."""

    place: str
    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    mode: str = "IfAvailable"
    hint: str = ""
    cluster: dict[str, Any] | None = None

    @classmethod
    def read(cls, section: Section, cluster: dict[str, Any]) -> Plugin:
        version, mode = section.text("apiVersion"), section.text("interactiveMode")
        if version not in VERSIONS:
            section.wrong("apiVersion", f"found {version!r}, accepted are {', '.join(VERSIONS)}")
        if mode and mode not in MODES:
            section.wrong("interactiveMode", f"found {mode!r}, accepted are {', '.join(MODES)}")
        if not mode and version == VERSIONS[0]:
            section.wrong("interactiveMode", f"missing; with {version} one of {', '.join(MODES)} is required")
        command = section.text("command")
        if not command:
            section.wrong("command", "missing; accepted is a program on PATH or a path to one")
        env = {one.text("name"): one.text("value") for one in section.sections("env")}
        with_cluster = section.flag("provideClusterInfo")
        return cls(
            place=f"{section.file}: {section.path}",
            api_version=version,
            command=_located(command, section.file),
            args=tuple(section.texts("args")),
            env=env,
            mode=mode or "IfAvailable",
            hint=section.text("installHint"),
            cluster=cluster if with_cluster else None,
        )


class ExecCredentials:
    """Runs the program when a credential is needed: one run at a time, whoever else waits gets its result."""

    def __init__(self, plugin: Plugin, base: Credential = Credential(), clock: Clock = REAL) -> None:  # noqa: B008 - frozen
        self._plugin = plugin
        self._base = base
        self._clock = clock
        self._lock = asyncio.Lock()
        self._current: Credential | None = None
        self._ends: datetime | None = None

    async def get(self) -> Credential:
        async with self._lock:
            if self._current is None or (self._ends is not None and self._clock.now() >= self._ends - _EARLY):
                await self._renew()
            assert self._current is not None
            return self._current

    async def refused(self, credential: Credential) -> bool:
        async with self._lock:
            if self._current == credential:
                await self._renew()
            return self._current != credential

    async def _renew(self) -> None:
        status = await _run(self._plugin)
        headers = {**self._base.headers, **(bearer(status.token) if status.token else {})}
        certificate, key = status.client_certificate_data.encode(), status.client_key_data.encode()
        self._current = Credential(headers, certificate or self._base.certificate, key or self._base.key)
        self._ends = status.expiration_timestamp


async def _run(plugin: Plugin) -> _Status:
    interactive = plugin.mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.mode == "Always" and not interactive:
        raise ConfigError(f"{plugin.place}.interactiveMode: Always, but standard input is not a terminal")
    if shutil.which(plugin.command) is None:
        hint = f"\n{plugin.hint}" if plugin.hint else ""
        raise ConfigError(f"{plugin.place}.command: {plugin.command} is not a program that can be run{hint}")
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})
    process = await asyncio.create_subprocess_exec(
        plugin.command,
        *plugin.args,
        env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": info},
        stdin=None if interactive else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=None if interactive else asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(None if interactive else _SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        raise ConfigError(f"{plugin.place}: {plugin.command} did not answer within {_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        said = (err or b"").decode(errors="replace").strip()[-500:]
        raise ConfigError(f"{plugin.place}: {plugin.command} ended with code {process.returncode}: {said}")
    return _read_answer(plugin, out)


def _read_answer(plugin: Plugin, out: bytes) -> _Status:
    accepted = f"accepted is an ExecCredential of {plugin.api_version} with a status"
    try:
        answer = msgspec.json.decode(out, type=_Answer)
    except msgspec.DecodeError as error:
        # The output may hold a token: the error says where it is wrong, and nothing of it is shown.
        raise ConfigError(f"{plugin.place}: output of {plugin.command}: {error}; {accepted}") from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        found = f"{answer.kind} of {answer.api_version}"
        raise ConfigError(f"{plugin.place}: output of {plugin.command}: found {found}; {accepted}")
    status = answer.status
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConfigError(f"{plugin.place}: output of {plugin.command}: a certificate and its key go together")
    if not status.token and not status.client_certificate_data:
        raise ConfigError(f"{plugin.place}: output of {plugin.command}: neither a token nor a certificate; {accepted}")
    return status


def _located(command: str, file: Path) -> str:
    """A bare name is looked for on PATH; a relative path starts at the kubeconfig, as kubectl has it."""
    return str(file.parent / command) if os.sep in command else command
