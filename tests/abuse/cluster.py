"""The victim: a `kohort up` of its own on loopback, two tenants with a namespace each, and what can be read of it."""

from __future__ import annotations

import asyncio
import json
import os
import re
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
from typing import Any

import aiohttp
import yaml

JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets"
START_SECONDS = 120.0
REQUEST_SECONDS = 30.0
QUOTA = {
    "pods": "200",
    "count/jobs.batch": "100",
    "count/configmaps": "2000",
    "count/podgroups.scheduling.k8s.io": "500",
}


@dataclass
class Tenant:
    """A client that may do everything in its namespace, and nothing elsewhere."""

    namespace: str
    session: aiohttp.ClientSession

    async def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """0: no answer in time, or none at all."""
        try:
            async with self.session.request(method, path, json=body) as answer:
                text = await answer.read()
                return answer.status, json.loads(text) if text else {}
        except (TimeoutError, aiohttp.ClientError):
            return 0, {}


@dataclass
class Cluster:
    process: subprocess.Popen[bytes]
    folder: Path
    admin: Tenant
    url: str
    context: ssl.SSLContext

    def memory(self) -> float:
        """MiB that the process holds now."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0

    async def longest_stall(self) -> float:
        try:
            async with self.admin.session.get("/metrics") as answer:
                text = await answer.text()
        except (TimeoutError, aiohttp.ClientError):
            return float("inf")
        found = re.search(r"^kohort_event_loop_longest_stall_seconds (\S+)", text, re.MULTILINE)
        assert found is not None, "the watchdog's metric is not served"
        return float(found[1])

    def stalls(self) -> list[str]:
        lines = (self.folder / "server.log").read_text(errors="replace").splitlines()
        return [line for line in lines if "the event loop" in line]

    async def tenant(self, namespace: str, quota: dict[str, str] | None = None) -> Tenant:
        admin = self.admin
        await _made(admin, "/api/v1/namespaces", {"metadata": {"name": namespace}})
        if quota:
            body = {"metadata": {"name": "quota"}, "spec": {"hard": quota}}
            await _made(admin, f"/api/v1/namespaces/{namespace}/resourcequotas", body)
        await _made(admin, f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "tenant"}})
        group = "rbac.authorization.k8s.io"
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        role = {"metadata": {"name": "all"}, "rules": rules}
        await _made(admin, f"/apis/{group}/v1/namespaces/{namespace}/roles", role)
        binding = {
            "metadata": {"name": "all"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "all"},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}],
        }
        await _made(admin, f"/apis/{group}/v1/namespaces/{namespace}/rolebindings", binding)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/tenant/token"
        token = (await _made(admin, path, {"spec": {}}))["status"]["token"]
        return Tenant(namespace, _session(self.url, self.context, token))


async def _made(admin: Tenant, path: str, body: Any) -> Any:
    code, found = await admin.send("POST", path, body)
    assert code == 201, (path, code, found)
    return found


def _session(url: str, context: ssl.SSLContext, token: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        url,
        headers={"Authorization": f"Bearer {token}"},
        connector=aiohttp.TCPConnector(ssl=context, limit=0),
        timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
    )


@asynccontextmanager
async def cluster(nodes: int) -> AsyncIterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="kohort-abuse-") as name:
        folder = Path(name)
        with (folder / "server.log").open("wb") as log:
            command = [sys.executable, "-m", "kohort.cli.main", "up", "--port", "0", "--nodes", str(nodes)]
            process = subprocess.Popen([*command, "--data-dir", name], stdout=log, stderr=log, start_new_session=True)
        sessions: list[aiohttp.ClientSession] = []
        try:
            url, token, authority = await _ready(process, folder)
            context = ssl.create_default_context(cadata=authority)
            sessions.append(_session(url, context, token))
            yield Cluster(process, folder, Tenant("", sessions[0]), url, context)
        finally:
            for session in sessions:
                await session.close()
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.to_thread(process.wait, 30)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()


async def _ready(process: subprocess.Popen[bytes], folder: Path) -> tuple[str, str, str]:
    end = time.monotonic() + START_SECONDS
    while "kubectl get" not in (folder / "server.log").read_text():
        assert process.poll() is None, (folder / "server.log").read_text()
        assert time.monotonic() < end, "kohort up is not ready"
        await asyncio.sleep(0.1)
    found = yaml.safe_load((folder / "kubeconfig").read_text())
    server, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    return server["server"], user["token"], b64decode(server["certificate-authority-data"]).decode()
