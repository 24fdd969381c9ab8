"""A kube-apiserver with etcd for one case, what it is asked, and what it can bind at most."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from bench.e2e.binding_watch import BindingWatch
from bench.e2e.objects import PODS, Call, ground, node, node_name, pod
from bench.server import CONNECTIONS, Connection, Target
from kohort.testing.environment import Environment

_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    pod_group_name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    scheduling_group: _Group | None = None


class Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _List(msgspec.Struct):
    metadata: _Meta
    items: list[Pod] = []


@contextmanager
def fresh(kubernetes: str) -> Iterator[tuple[Environment, Target]]:
    """A new one, with nothing in it."""
    with Environment(kubernetes) as env:
        context = ssl.create_default_context(cafile=str(env.ca_file))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        pids = env.pids()
        yield env, Target("kube-apiserver", env.url, context, env.token, (pids["apiserver"], pids["etcd"]), 0.0)


async def send(target: Target, calls: Iterable[Call]) -> float:
    """All of them, over many connections; how many seconds it took."""
    connections = await asyncio.gather(*(Connection(target).open() for _ in range(CONNECTIONS)))
    left = iter(calls)

    async def work(connection: Connection) -> None:
        for call in left:
            await connection.ask(*call)

    began = time.perf_counter()
    await asyncio.gather(*(work(one) for one in connections))
    for one in connections:
        one.close()
    return time.perf_counter() - began


async def listed(target: Target) -> _List:
    connection = await Connection(target).open()
    body = await connection.read("GET", PODS)
    connection.close()
    return msgspec.json.decode(body, type=_List)


class Limit(NamedTuple):
    """What the API server takes from anybody, a second. `watched`: bindings while they are watched as those of a case
    are, by whoever measures; the server sends each of them, and on the same cores somebody reads it."""

    creates: float
    binds: float
    watched: float


def limit(kubernetes: str, nodes: int, pods: int) -> Limit:
    """Creates and bindings, posted alone."""
    with fresh(kubernetes) as (_, target):

        async def measure() -> Limit:
            await send(target, ground())
            await send(target, (node(number, 0, nodes) for number in range(nodes)))
            all_pods = (pod(f"p{number}", "100m", scheduler="nobody") for number in range(2 * pods))
            creates = await send(target, all_pods)
            binds = await send(target, (_binding(number, nodes) for number in range(pods)))
            async with BindingWatch(target, (await listed(target)).metadata.resource_version) as watch:
                watched = await send(target, (_binding(number, nodes) for number in range(pods, 2 * pods)))
                await watch.until(pods)
            return Limit(2 * pods / creates, pods / binds, pods / watched)

        return asyncio.run(measure())


def _binding(number: int, nodes: int) -> Call:
    target = {"apiVersion": "v1", "kind": "Node", "name": node_name(number % nodes)}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"p{number}"}, "target": target}
    return "POST", f"{PODS}/p{number}/binding", json.dumps(body).encode()


async def writes(target: Target) -> Counter[str]:
    """How many writes the API server has taken, by what was written."""
    connection = await Connection(target).open()
    text = (await connection.read("GET", "/metrics")).decode()
    connection.close()
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if line.startswith("apiserver_request_total{"):
            labels = dict(_LABEL.findall(line))
            if labels["verb"] in {"POST", "PUT", "PATCH", "APPLY", "DELETE"}:
                what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
                found[what] += int(float(line.rpartition(" ")[2]))
    return found


def peak(pids: Iterable[int]) -> float:
    """MiB, the most that each has had."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                total += int(line.split()[1])
    return total / 1024
