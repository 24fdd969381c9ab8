"""A `Cluster` on real Kubernetes: kube-controller-manager, `kohort run` beside it, virtual nodes for a test.

`kohort run` is the command itself, in a process of its own, as a ServiceAccount that has the roles of a manifest and
no others. Nobody else schedules there, so it places the pods that name nobody as well.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kohort.api.crd import crds
from kohort.api.kind import Object
from kohort.kinds.trainer.control.builtin import install
from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.run.options import API_VERSION, KIND
from kohort.sim.cluster import Pool
from kohort.sim.kubelet import KubeletSimulator
from kohort.testing.cluster import Cluster
from kohort.testing.environment import files
from kohort.testing.environment.environment import Environment

ACCOUNT: Final = ("kohort-system", "kohort")
_DENIED: Final = re.compile(r'User "[^"]+" cannot \w+ (resource|path)')  # other things are forbidden, too
_READY_SECONDS: Final = 180.0
_STOP_SECONDS: Final = 30.0
_LONGEST_SLEEP: Final = 20.0
_EMPTY_SECONDS: Final = 150.0
_PEACE_SECONDS: Final = 15.0
_LONGEST_WAIT: Final = 150.0


class Kubernetes:
    """One environment for many tests. Close it when they are done."""

    def __init__(self, env: Environment, rbac: Path) -> None:
        self.env = env
        self._folder = Path(tempfile.mkdtemp(prefix="kohort-run-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._seen = 0
        self._chosen: dict[str, Any] = {}
        self.more: dict[str, Any] = {}  # other members of its configuration file
        self.log = self._folder / "run.log"
        env.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(crds()))
        env.kubectl("apply", "-f", str(rbac))
        token = env.kubectl("create", "token", ACCOUNT[1], "-n", ACCOUNT[0], "--duration=6h").stdout.strip()
        text = files.kubeconfig(env.url, env.ca_file, ACCOUNT[1], token)
        self.kubeconfig = files.write_private(self._folder / "kubeconfig", text)

    def run(self, gates: Mapping[str, bool], settings: Mapping[str, Any] | None = None) -> None:
        """`kohort run` with these options of its own; the one that runs is kept if it has them."""
        config = self._folder / "kohort.yaml"
        chosen = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "schedulerNames": ["kohort", "default-scheduler"],
            "listen": "127.0.0.1:0",
            "leaderElection": {"namespace": ACCOUNT[0]},
            "featureGates": dict(gates),
            "settings": dict(settings or {}),
            **self.more,
        }
        if self._process is not None and self._process.poll() is None and self._chosen == chosen:
            return
        self.stop()
        self._chosen = chosen
        config.write_text(yaml.safe_dump(chosen))
        argv = [sys.executable, "-m", "kohort.cli.main", "run", "--kubeconfig", str(self.kubeconfig), "--config"]
        self._seen = 0
        with self.log.open("wb") as log:
            self._process = subprocess.Popen([*argv, str(config), "-v"], stdout=log, stderr=log)
        self._await("working")

    def _await(self, word: str) -> None:
        end = time.monotonic() + _READY_SECONDS
        assert self._process is not None
        while word not in self.log.read_text(errors="replace"):
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"kohort run is not {word}:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """As Kubernetes stops a container: a signal, then time."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError("kohort run did not stop in time") from None
        finally:
            self._process = None

    def kill(self) -> None:
        """As a machine dies."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def denied(self) -> list[str]:
        """What the API server did not let it do since somebody asked."""
        lines = self.log.read_text(errors="replace").splitlines()
        seen, self._seen = self._seen, len(lines)
        return [line for line in lines[seen:] if _DENIED.search(line)]


class _Real(Cluster):
    """Time is real here: a test that needs much of it is not for this cluster."""

    async def sleep(self, seconds: float) -> None:
        _bearable(seconds, _LONGEST_SLEEP)
        await asyncio.sleep(seconds)

    async def until(self, look: Any, seconds: float | None = None, what: str = "") -> Any:
        _bearable(seconds or 0.0, _LONGEST_WAIT)
        return await super().until(look, None if seconds is None else max(seconds, self.patience), what)

    async def never(self, look: Any, seconds: float) -> None:
        _bearable(seconds, _LONGEST_SLEEP)
        await super().never(look, seconds)


def _bearable(seconds: float, limit: float) -> None:
    if seconds > limit:
        pytest.skip(f"waits {seconds:.0f} s: only in virtual time (make test runs it on the embedded server)")


@asynccontextmanager
async def on(
    kubernetes: Kubernetes,
    *,
    pools: Sequence[Pool],
    gates: Mapping[str, bool],
    name: str,
    settings: Mapping[str, Any] | None = None,
) -> AsyncIterator[Cluster]:
    """A namespace of its own and these nodes, for the time of the block. `gates`, `settings`: of `kohort run`."""
    await asyncio.to_thread(kubernetes.run, gates, settings)
    async with Client.connect(kubernetes.env.kubeconfig, manager="test") as client:
        await install(client)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{name}-"}}
        space = (await client.kind("v1", "Namespace").create(body))["metadata"]["name"]
        async with KubeletSimulator(client, pools, lifecycle=False, every=True, heartbeat=10.0) as kubelets:
            await kubelets.ready()
            found = _Real(client, space)
            try:
                yield found
            finally:
                await _empty(found)
    denied = kubernetes.denied()
    assert not denied, f"deploy/rbac.yaml does not allow what was tried: {denied[:3]}"


async def _empty(cluster: Cluster) -> None:
    """Nothing of a test is left to be placed on the nodes of the next one."""
    pods, nodes = cluster.client.kind("v1", "Pod"), cluster.client.kind("v1", "Node")
    await cluster.client.kind("v1", "Namespace").delete(cluster.namespace)
    end = asyncio.get_running_loop().time() + _PEACE_SECONDS

    async def gone() -> bool:
        if not (left := await cluster.pods()):
            return True
        if asyncio.get_running_loop().time() > end:  # 1.36 counts no pods while it cannot make their group again
            for pod in left:
                with suppress(ApiError):
                    await pods.patch(pod["metadata"]["name"], {"metadata": {"finalizers": None}}, cluster.namespace)
        with suppress(ApiError):
            await pods.delete_all(cluster.namespace, grace=0)
        return False

    async def remove(node: Object) -> None:
        with suppress(ApiError):
            await nodes.delete(node["metadata"]["name"])

    await cluster.until(gone, _EMPTY_SECONDS, what="an empty cluster")
    await asyncio.gather(*(remove(node) for node in (await nodes.list()).items))
