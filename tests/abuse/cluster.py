"""The victim: `kohort up`, or `kohort run` beside another API server; two tenants, and what can be read of it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from kohort.api.crd import crds
from kohort.kube.client import Client
from kohort.run.options import API_VERSION, KIND
from kohort.sim.cluster import plain
from kohort.sim.kubelet import KubeletSimulator
from kohort.testing.environment import Environment

TARGETS: Final = ("up", "run", "kubernetes")
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets"
START_SECONDS = 600.0  # a bound for a hang; a machine with other work takes its time
REQUEST_SECONDS = 120.0  # twice as long as the server gives itself
HISTORY_SECONDS = 330.0  # for so long a server may keep what has gone, so that watches can be resumed
BACK = 1.2  # times as much memory as before
SOFT_FILES = 1024  # what many systems give a process at its start
# A bare server has no kube-controller-manager.
_OURS = ["job", "cronjob", "ttl-after-finished", "jobset", "trainjob", "grove", "leaderworkerset"]
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kohort"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_HELD = re.compile(r"the event loop was held for ([\d.]+) s \(([\d.]+) s of processor time\) by (.*)")
QUOTA = {
    "pods": "200",
    "count/jobs.batch": "100",
    "count/configmaps": "2000",
    "count/podgroups.scheduling.k8s.io": "500",
    "count/secrets": "50",
    "count/services": "100",
    "count/statefulsets.apps": "20",
    "count/deployments.apps": "20",
    "count/daemonsets.apps": "20",
}


@dataclass
class Tenant:
    """A client that may do everything in its namespace, and nothing elsewhere."""

    namespace: str
    session: aiohttp.ClientSession
    token: str = ""

    async def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """0: no answer in time, or none at all."""
        try:
            async with self.session.request(method, path, json=body) as answer:
                text = await answer.read()
                return answer.status, json.loads(text) if text else {}
        except (TimeoutError, aiohttp.ClientError):
            return 0, {}


@dataclass(frozen=True, slots=True)
class Stall:
    """The watchdog's word: how long, how much of it the processor worked, at what."""

    seconds: float
    processor: float
    what: str


@dataclass
class Cluster:
    """`process` is the one that must not stop: `kohort up` or `kohort run`. `metrics` is where it tells them."""

    process: subprocess.Popen[bytes]
    log: Path
    metrics: str
    admin: Tenant
    url: str
    context: ssl.SSLContext
    authority: str
    elects: bool = False  # it holds a lease

    def memory(self) -> float:
        """MiB that the process and those that it started hold now."""
        return sum(_memory(pid) for pid in _family(self.process.pid)) / 1024

    async def settled_memory(self, before: float) -> float:
        """The same when it is back, or when workers have ended and history is forgotten and it still is not."""
        end = time.monotonic() + HISTORY_SECONDS
        while self.memory() > BACK * before and time.monotonic() < end:
            await asyncio.sleep(1)
        return self.memory()

    async def watched(self) -> None:
        """That nobody stood still means something only where a watchdog looks."""
        async with self.admin.session.get(self.metrics) as answer:
            assert "kohort_event_loop_longest_stall_seconds" in await answer.text()

    def stalls(self) -> list[Stall]:
        found = map(_HELD.search, self.log.read_text(errors="replace").splitlines())
        return [Stall(float(one[1]), float(one[2]), one[3]) for one in found if one]

    async def transitions(self) -> int:
        """How often the lease has changed hands."""
        if not self.elects:
            return 0
        _, lease = await self.admin.send("GET", _LEASE)
        return int(lease["spec"].get("leaseTransitions") or 0)

    async def tenant(self, namespace: str, quota: dict[str, str] | None = None) -> Tenant:
        admin = self.admin
        await _made(admin, "/api/v1/namespaces", {"metadata": {"name": namespace}})
        if quota:
            body = {"metadata": {"name": "quota"}, "spec": {"hard": quota}}
            await _made(admin, f"/api/v1/namespaces/{namespace}/resourcequotas", body)
        await _made(admin, f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "tenant"}})
        await self._may_do_everything(namespace)
        if quota:
            await self._may_define(namespace)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/tenant/token"
        token = (await _made(admin, path, {"spec": {}}))["status"]["token"]
        return Tenant(namespace, session(self.url, self.context, token), token)

    async def _may_do_everything(self, namespace: str) -> None:
        """Within it; by a ClusterRole, which a fuzzed DELETE of all roles does not take away with everything else."""
        group, name = "rbac.authorization.k8s.io", f"everything:{namespace}"
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        await _made(self.admin, f"/apis/{group}/v1/clusterroles", {"metadata": {"name": name}, "rules": rules})
        binding = {
            "metadata": {"name": "all"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}],
        }
        await _made(self.admin, f"/apis/{group}/v1/namespaces/{namespace}/rolebindings", binding)

    async def _may_define(self, namespace: str) -> None:
        """Kinds and webhooks are for the whole cluster; some tenants may make them."""
        group, name = "rbac.authorization.k8s.io", f"defines:{namespace}"
        definitions = {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"]}
        hooks = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"]}
        rules = [{**one, "verbs": ["create"]} for one in (definitions, hooks)]
        await _made(self.admin, f"/apis/{group}/v1/clusterroles", {"metadata": {"name": name}, "rules": rules})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}],
        }
        await _made(self.admin, f"/apis/{group}/v1/clusterrolebindings", binding)


async def _made(admin: Tenant, path: str, body: Any) -> Any:
    code, found = await admin.send("POST", path, body)
    assert code == 201, (path, code, found)
    return found


async def emptied(admin: Tenant, namespace: str, seconds: float) -> bool:
    """The hostile tenant is thrown out: whether everything of it goes."""
    for path in (_DEFINITIONS, _HOOKS):
        await admin.send("DELETE", f"{path}?labelSelector=abuse%3Dyes")
    await admin.send("DELETE", f"/api/v1/namespaces/{namespace}")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        code, _ = await admin.send("GET", f"/api/v1/namespaces/{namespace}")
        if code == 404:
            return True
        await asyncio.sleep(0.2)
    return False


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _memory(pid: int) -> int:
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def session(url: str | None, context: ssl.SSLContext, token: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        url,
        headers={"Authorization": f"Bearer {token}"},
        connector=aiohttp.TCPConnector(ssl=context, limit=0),
        timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
    )


@asynccontextmanager
async def cluster(target: str, nodes: int) -> AsyncIterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="kohort-abuse-") as name:
        folder = Path(name)
        if target == "up":
            async with _kohort_up(folder, "--nodes", str(nodes)) as (process, access):
                log, (url, token, authority) = folder / "up.log", access
                async with _admin(url, token, authority) as (admin, context):
                    yield Cluster(process, log, "/metrics", admin, url, context, authority)
        else:
            start = _kohort_up(folder, "--bare") if target == "run" else _kubernetes(folder)
            async with (
                start as (_, access),
                _beside(folder, nodes, _OURS if target == "run" else None, *access) as found,
            ):
                yield found


@asynccontextmanager
async def _admin(url: str, token: str, authority: str) -> AsyncIterator[tuple[Tenant, ssl.SSLContext]]:
    context = ssl.create_default_context(cadata=authority)
    async with session(url, context, token) as opened:
        yield Tenant("", opened), context


@asynccontextmanager
async def _kohort_up(folder: Path, *args: str) -> AsyncIterator[tuple[Any, tuple[str, str, str]]]:
    command = ["up", "--port", "0", "--data-dir", str(folder), *args]
    async with _process(folder / "up.log", "kubectl get", *command) as process:
        yield process, _access(folder / "kubeconfig")


@asynccontextmanager
async def _kubernetes(folder: Path) -> AsyncIterator[tuple[None, tuple[str, str, str]]]:
    """Etcd, kube-apiserver and kube-controller-manager of a real release; nobody else schedules."""
    async with Environment("1.37", ("kcm",)) as env:
        await asyncio.to_thread(env.kubectl, "apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(crds()))
        (folder / "kubeconfig").write_text(env.kubeconfig_text())
        yield None, (env.url, env.token, env.ca_file.read_text())


@asynccontextmanager
async def _beside(
    folder: Path, nodes: int, controllers: list[str] | None, url: str, token: str, authority: str
) -> AsyncIterator[Cluster]:
    """`kohort run`, and kubelets that this process plays."""
    config, kubeconfig, log = folder / "kohort.yaml", folder / "kubeconfig", folder / "run.log"
    chosen: dict[str, Any] = {"schedulerNames": ["kohort", "default-scheduler"], "listen": "127.0.0.1:0"}
    chosen |= {"controllers": controllers} if controllers else {}
    config.write_text(yaml.safe_dump({"apiVersion": API_VERSION, "kind": KIND, **chosen}))
    command = ["run", "--kubeconfig", str(kubeconfig), "--config", str(config)]
    async with (
        Client.connect(str(kubeconfig), manager="kubelets") as client,
        KubeletSimulator(client, plain(nodes), lifecycle=False, every=True, heartbeat=10.0) as kubelets,
    ):
        await kubelets.ready()
        async with _process(log, "working", *command) as process, _admin(url, token, authority) as (admin, context):
            page = re.search(r"metrics at (http://\S+)", log.read_text())
            assert page is not None
            yield Cluster(process, log, f"{page[1]}/metrics", admin, url, context, authority, elects=True)


@asynccontextmanager
async def _process(log: Path, ready: str, *args: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A command of ours with few files, until it is told to stop."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(SOFT_FILES, hard), hard))
    try:
        with log.open("wb") as out:
            command = [sys.executable, "-m", "kohort.cli.main", *args]
            process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        end = time.monotonic() + START_SECONDS
        while ready not in log.read_text(errors="replace"):
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < end, f"kohort {args[0]} is not ready"
            await asyncio.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(process.wait, 30)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()


def _access(kubeconfig: Path) -> tuple[str, str, str]:
    found = yaml.safe_load(kubeconfig.read_text())
    server, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    return server["server"], user["token"], b64decode(server["certificate-authority-data"]).decode()
