"""A context manager around real etcd, kube-apiserver and, if asked, controllers and scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kohort.testing.client import Client
from kohort.testing.environment import assets as finding
from kohort.testing.environment import commands, files
from kohort.testing.environment.build import say
from kohort.testing.environment.probe import Probe, free_ports
from kohort.testing.environment.process import Processes
from kohort.testing.environment.versions import MINORS, default_gates, minor_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

COMPONENTS = {"kcm": "kube-controller-manager", "scheduler": "kube-scheduler"}
_READY_SECONDS = 60.0
_TRIES = 3


class ControlPlaneError(Exception):
    """The control plane did not start, one of its processes ended, or a command failed."""


class Environment:
    """Real Kubernetes on loopback for the time of a `with` (or `async with`) block.

    `gates` are laid over the minor's default (the whole Workload API on); `users` adds names with their groups to the
    token file; `scheduler_config` is merged into kube-scheduler's configuration. Everything lives in `folder`, which
    is removed at the end, also when this process is killed.
    """

    def __init__(
        self,
        kubernetes: str = "1.37",
        with_: Iterable[str] = (),
        gates: Mapping[str, bool] | None = None,
        *,
        users: Mapping[str, Sequence[str]] | None = None,
        runtime_config: Sequence[str] = (),
        scheduler_config: Mapping[str, Any] | None = None,
        apiserver_flags: Sequence[str] = (),
        assets: finding.Assets | None = None,
    ) -> None:
        self.minor = minor_of(kubernetes)
        self.components = tuple(with_)
        unknown = sorted(set(self.components) - set(COMPONENTS))
        if unknown:
            raise ValueError(f"with: found {', '.join(unknown)}, accepted are {', '.join(COMPONENTS)}")
        self.gates = default_gates(self.minor) | dict(gates or {})
        self._users = dict(files.BUILT_IN_USERS) | dict(users or {})
        self._runtime_config = [*MINORS[self.minor].runtime_config, *runtime_config]
        self._scheduler_config = scheduler_config
        self._apiserver_flags = tuple(apiserver_flags)
        self._assets = assets
        self._processes: Processes | None = None
        self._ports = commands.Ports(0, 0, 0, 0, 0)
        self._clients: list[Client] = []
        self.tokens: dict[str, str] = {}
        self.folder = Path()

    # ---- what a test uses

    @property
    def version(self) -> str:
        """1.37.1"""
        return self.assets.version

    @property
    def assets(self) -> finding.Assets:
        if self._assets is None:
            need = (*finding.MINIMUM, *(COMPONENTS[name] for name in self.components))
            self._assets = finding.ensure(self.minor, need)
        return self._assets

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._ports.apiserver}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def token(self) -> str:
        """Of the administrator."""
        return self.tokens[files.ADMIN]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / "kubeconfig"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def client(self, user: str = files.ADMIN) -> Client:
        """A new client as one of the environment's users; closed with the environment."""
        client = Client(self.url, ca_file=self.ca_file, token=self.tokens[user])
        self._clients.append(client)
        return client

    def kubeconfig_text(self, user: str = files.ADMIN) -> str:
        return files.kubeconfig(self.url, self.ca_file, user, self.tokens[user])

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        argv = [str(self.assets.path("kubectl")), f"--kubeconfig={self.kubeconfig}", *args]
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=120, check=False)
        if check and done.returncode != 0:
            raise ControlPlaneError(f"kubectl {' '.join(args)}: exit code {done.returncode}\n{done.stderr}")
        return done

    def pids(self) -> dict[str, int]:
        """Of the running processes, the guard's among them."""
        processes = self._running()
        return {**processes.pids, "guard": processes.guard_pid}

    # ---- life

    def __enter__(self) -> Environment:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop(failed=error is not None)

    async def __aenter__(self) -> Environment:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop, failed=error is not None)

    def start(self) -> None:
        """Ready when this returns. A port that somebody takes between choice and use costs another try."""
        if self._processes is not None:
            raise ControlPlaneError("this environment is running already")
        self.assets  # noqa: B018 - may build, or say what is missing, before anything else happens
        for attempt in range(1, _TRIES + 1):
            self.folder = Path(tempfile.mkdtemp(prefix=f"kohort-environment-{self.minor}-"))
            self._processes = Processes(self.folder)
            try:
                self._start_once()
                return
            except BaseException as error:
                taken = isinstance(error, ControlPlaneError) and "address already in use" in str(error)
                again = taken and attempt < _TRIES
                self.stop(failed=not again)
                if not again:
                    raise

    def stop(self, *, failed: bool = False) -> None:
        """Kill, remove, and after a failure say where the logs are."""
        if self._processes is None:
            return
        for client in self._clients:
            client.close()
        self._clients.clear()
        if failed:
            say(f"kohort.testing.environment: logs kept in {self.keep_logs()}")
        self._processes.close()
        self._processes = None
        shutil.rmtree(self.folder, ignore_errors=True)  # the guard did it; this is for a guard that was killed

    def keep_logs(self) -> Path:
        """A copy of the logs that outlives the environment."""
        kept = Path(tempfile.mkdtemp(prefix=f"kohort-environment-{self.minor}-logs-"))
        shutil.copytree(self.logs, kept, dirs_exist_ok=True)
        return kept

    def restart(self, gates: Mapping[str, bool]) -> None:
        """The same store and the same address, other gates; controllers and scheduler follow."""
        self.gates = dict(gates)
        running = [name for name in COMPONENTS if name in self._running().pids]
        for name in (*running, "apiserver"):
            self._running().stop(name)
        for client in self._clients:
            client.close()
        self._start_apiserver()
        for name in running:
            self.start_component(name)

    def start_component(self, name: str) -> None:
        """`kcm` or `scheduler`, now; returns when it is ready."""
        make = {"kcm": commands.kcm, "scheduler": commands.scheduler}[name]
        port = {"kcm": self._ports.kcm, "scheduler": self._ports.scheduler}[name]
        user = f"system:{COMPONENTS[name]}"
        config = files.write_private(self.folder / f"{name}.kubeconfig", self.kubeconfig_text(user))
        if name == "scheduler":
            text = files.scheduler_configuration(config, self._scheduler_config)
            files.write_private(self.folder / "scheduler.json", text)
        binary = self.assets.path(COMPONENTS[name])
        self._launch(name, make(binary, self.folder, self._ports, gates=self.gates))
        self._await_ready(name, Probe(port, "/healthz"))

    def stop_component(self, name: str) -> None:
        self._running().stop(name)

    def check(self) -> None:
        """Raise if a process of the environment has ended by itself."""
        for name, code in self._running().exited.items():
            raise ControlPlaneError(f"{name} ended with code {code}:\n{self._tail(name)}")

    # ---- inside

    def _running(self) -> Processes:
        if self._processes is None:
            raise ControlPlaneError("this environment is not running; use it in a `with` block")
        return self._processes

    def _start_once(self) -> None:
        self.logs.mkdir()
        self._ports = commands.Ports(*free_ports(5))
        self.tokens = files.write_tokens(self.folder / "tokens.csv", self._users)
        files.write_signing_key(self.folder / "service-account.key")
        self._launch("etcd", commands.etcd(self.assets.path("etcd"), self.folder, self._ports))
        self._await_ready("etcd", Probe(self._ports.etcd, "/health", tls=False))
        self._start_apiserver()
        files.write_private(self.kubeconfig, self.kubeconfig_text())
        for name in self.components:
            self.start_component(name)

    def _start_apiserver(self) -> None:
        argv = commands.apiserver(
            self.assets.path("kube-apiserver"),
            self.folder,
            self._ports,
            gates=self.gates,
            runtime_config=self._runtime_config,
            extra=self._apiserver_flags,
        )
        self._launch("apiserver", argv)
        self._await_ready("apiserver", Probe(self._ports.apiserver, "/readyz"))

    def _launch(self, name: str, argv: Sequence[str]) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        self._running().start(name, argv, log=self.logs / f"{name}.log", env=environment)

    def _await_ready(self, name: str, probe: Probe) -> None:
        end = time.monotonic() + _READY_SECONDS
        with contextlib.closing(probe):
            while not probe.answers():
                code = self._running().exited.get(name)
                if code is not None:
                    raise ControlPlaneError(f"{name} ended with code {code} before it was ready:\n{self._tail(name)}")
                if time.monotonic() > end:
                    raise ControlPlaneError(f"{name} was not ready after {_READY_SECONDS:.0f} s:\n{self._tail(name)}")
                time.sleep(0.05)

    def _tail(self, name: str, lines: int = 20) -> str:
        with contextlib.suppress(OSError):
            text = (self.logs / f"{name}.log").read_text(errors="replace")
            return "\n".join(text.splitlines()[-lines:])
        return "(no log)"
