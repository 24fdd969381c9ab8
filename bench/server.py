"""The embedded API server beside a real kube-apiserver with etcd: same client, same machine, one run.

    python -m bench.server                      # both, 50,000 pods on 5,000 nodes
    python -m bench.server --pods 5000 --nodes 500 --alone

The client is a bare asyncio one over TLS, in this process; servers are processes of their own. On two cores client and
server share them, so rates are of the pair. `history`: how fast a watch that starts at an old resourceVersion gets
everything that happened since.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from bench import ready

CONNECTIONS = 64


@dataclass
class Target:
    name: str
    url: str
    context: ssl.SSLContext
    token: str
    pids: tuple[int, ...]
    ready: float
    found: dict[str, float] = field(default_factory=dict)


class Connection:
    """One kept HTTPS connection; requests go one after the other."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self) -> Connection:
        parts = urlsplit(self._target.url)
        self._reader, self._writer = await asyncio.open_connection(
            parts.hostname, parts.port, ssl=self._target.context, server_hostname=parts.hostname, limit=1 << 24
        )
        return self

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self._target.token}\r\n"
            f"User-Agent: bench/1\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)

    async def head(self) -> tuple[int, int | None]:
        """Code, and the length of the body (None: in chunks)."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        length = next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), None)
        return int(lines[0].split()[1]), length

    async def chunks(self) -> Iterator[bytes]:  # type: ignore[misc]
        while True:
            size = int((await self._reader.readline()).strip() or b"0", 16)
            data = await self._reader.readexactly(size + 2)
            if size == 0:
                return
            yield data[:-2]

    async def read(self, method: str, path: str, body: bytes = b"") -> bytes:
        """The whole answer."""
        self.send(method, path, body)
        code, length = await self.head()
        if length is None:
            data = b"".join([chunk async for chunk in self.chunks()])  # type: ignore[attr-defined]
        else:
            data = await self._reader.readexactly(length)
        if code >= 400:
            raise RuntimeError(f"{method} {path}: {code} {data[:300].decode()}")
        return data

    async def ask(self, method: str, path: str, body: bytes = b"") -> int:
        """Number of bytes of the answer."""
        return len(await self.read(method, path, body))

    def close(self) -> None:
        self._writer.close()


def node(number: int) -> bytes:
    name = f"node-{number:05}"
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, "rack": f"r{number % 100}"}}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}).encode()


def pod(number: int) -> bytes:
    requests = {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"requests": requests}}
    spec = {"containers": [container], "schedulerName": "bench", "automountServiceAccountToken": False}
    meta = {"name": f"pod-{number:06}", "labels": {"app": "bench", "shard": str(number % 10)}}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}).encode()


def binding(number: int, nodes: int) -> bytes:
    target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{number % nodes:05}"}
    meta = {"name": f"pod-{number:06}"}
    return json.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}).encode()


async def rate(target: Target, what: str, count: int, request: Callable[[int], tuple[str, str, bytes]]) -> None:
    """Requests per second over all connections, and what each cost the server."""
    connections = await asyncio.gather(*(Connection(target).open() for _ in range(CONNECTIONS)))
    numbers = iter(range(count))

    async def work(connection: Connection) -> None:
        for number in numbers:
            await connection.ask(*request(number))

    used, began = cpu(target.pids), time.perf_counter()
    await asyncio.gather(*(work(one) for one in connections))
    target.found[what] = count / (time.perf_counter() - began)
    target.found[f"{what} cpu"] = (cpu(target.pids) - used) / count * 1e6
    for one in connections:
        one.close()


async def history(target: Target, since: str, wanted: int) -> float:
    """Events per second of one watcher that catches up."""
    connection = await Connection(target).open()
    connection.send("GET", f"/api/v1/pods?watch=1&resourceVersion={since}&timeoutSeconds=60")
    began = time.perf_counter()
    code, _ = await connection.head()
    if code != 200:
        return 0.0
    seen = 0
    async for chunk in connection.chunks():  # type: ignore[attr-defined]
        seen += chunk.count(b"\n")
        if seen >= wanted:
            break
    seconds = time.perf_counter() - began
    connection.close()
    return seen / seconds


def cpu(pids: tuple[int, ...]) -> float:
    """Seconds of processor time that the processes have used."""
    return sum(map(ready.cpu, pids))


def memory(pids: tuple[int, ...]) -> float:
    """MiB in use by the processes."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024


async def measure(target: Target, pods: int, nodes: int) -> None:
    found = target.found
    found["ready"] = target.ready
    found["empty"] = memory(target.pids)
    connection = await Connection(target).open()
    namespace = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}).encode()
    await connection.ask("POST", "/api/v1/namespaces", namespace)
    await rate(target, "nodes", nodes, lambda number: ("POST", "/api/v1/nodes", node(number)))
    at = "/api/v1/namespaces/bench/pods"
    since = json.loads(await connection.read("GET", f"{at}?limit=1"))["metadata"]["resourceVersion"]
    await rate(target, "creates", pods, lambda number: ("POST", at, pod(number)))
    recent = min(pods, 10_000)
    found["history"] = await history(target, since, recent)
    some = min(pods, 20_000)

    def bind(number: int) -> tuple[str, str, bytes]:
        return "POST", f"{at}/pod-{number:06}/binding", binding(number, nodes)

    await rate(target, "bindings", some, bind)
    connection.close()
    connection = await Connection(target).open()  # servers hang up on those who were silent for long
    best = 1e9
    size = 0
    for _ in range(3):
        began = time.perf_counter()
        size = await connection.ask("GET", "/api/v1/pods")
        best = min(best, time.perf_counter() - began)
    found["list"], found["list MB"] = best, size / 1e6
    await rate(target, "gets", min(pods, 5_000), lambda number: ("GET", f"{at}/pod-{number:06}", b""))
    found["memory"] = memory(target.pids)
    connection.close()


@contextmanager
def ours(folder: Path) -> Iterator[Target]:
    """Ready: the median of three starts, on empty folders (bench.ready has more about them)."""
    ready.compiled()
    starts = [ready.started() for _ in range(2)]
    with ready.running(folder) as (process, url, start):
        config = yaml.safe_load((folder / "kubeconfig").read_text())
        context = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
        token = config["users"][0]["user"]["token"]
        middle = sorted([*starts, start], key=lambda one: one.seconds)[1]
        target = Target("kohort", url, context, token, (process.pid,), middle.seconds)
        target.found["ready cpu"] = middle.cpu
        yield target


@contextmanager
def real() -> Iterator[Target]:
    from kohort.testing.environment import Environment

    began = time.perf_counter()
    with Environment("1.37") as env:
        seconds = time.perf_counter() - began
        context = ssl.create_default_context(cafile=str(env.ca_file))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        yield Target("kube-apiserver", env.url, context, env.token, tuple(env.pids().values()), seconds)


ROWS = (
    ("ready", "ready after (s)", "{:.2f}"),
    ("ready cpu", "  processor time until then (s)", "{:.2f}"),
    ("creates", "pod creates/s, 64 connections", "{:,.0f}"),
    ("creates cpu", "  processor time of the server (µs each)", "{:,.0f}"),
    ("bindings", "bindings/s, 64 connections", "{:,.0f}"),
    ("bindings cpu", "  processor time of the server (µs each)", "{:,.0f}"),
    ("gets", "gets/s, 64 connections", "{:,.0f}"),
    ("gets cpu", "  processor time of the server (µs each)", "{:,.0f}"),
    ("list", "list of all pods (s)", "{:.2f}"),
    ("list MB", "  its size (MB)", "{:.0f}"),
    ("history", "watch catching up (events/s)", "{:,.0f}"),
    ("empty", "memory, empty (MiB)", "{:,.0f}"),
    ("memory", "memory, full (MiB)", "{:,.0f}"),
)


def table(targets: list[Target], pods: int, nodes: int) -> str:
    lines = [f"{nodes:,} nodes, {pods:,} pods" + "".join(f"{one.name:>18}" for one in targets)]
    width = max(len(lines[0]) - 18 * len(targets), *(len(label) for _, label, _ in ROWS)) + 2
    lines[0] = f"{nodes:,} nodes, {pods:,} pods".ljust(width) + "".join(f"{one.name:>18}" for one in targets)
    for key, label, form in ROWS:
        cells = "".join(f"{form.format(one.found[key]) if key in one.found else '-':>18}" for one in targets)
        lines.append(label.ljust(width) + cells)
    return "\n".join(lines)


def run_loop(work: Awaitable[None]) -> None:
    import uvloop

    uvloop.run(work)  # type: ignore[arg-type]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--alone", action="store_true", help="without the real one")
    args = parser.parse_args()
    targets = []
    with tempfile.TemporaryDirectory() as folder, ours(Path(folder) / "data") as target:
        run_loop(measure(target, args.pods, args.nodes))
        targets.append(target)
        print(table(targets, args.pods, args.nodes), flush=True)
    if not args.alone:
        with real() as target:
            run_loop(measure(target, args.pods, args.nodes))
            targets.append(target)
        print(table(targets, args.pods, args.nodes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
