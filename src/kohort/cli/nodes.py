"""`kohort nodes`: virtual nodes on any API server, as long as the command runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from kohort import tuning
from kohort.api import formats
from kohort.api.objects import annotation, name_of
from kohort.apimachinery.quantity import well_formed
from kohort.cli.common import UsageError, count, friendly, say, write
from kohort.cli.lookup import config_file
from kohort.cli.up import read_pools
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, ConfigError, TransportError
from kohort.run.survey import kube_controller_manager
from kohort.sim.cluster import CREATED_BY, DEFAULT_CAPACITY, POOL, Pool
from kohort.sim.kubelet import KubeletSimulator
from kohort.sim.registered import remove, taken_over, virtual_nodes
from kohort.tuning import raise_file_limit

CREATOR: Final = "kohort-nodes"
_HEARTBEAT: Final = 10.0
_NAMED: Final = 8
_TAINT: Final = re.compile(r"([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesOptions:
    """What the command line says about the nodes to make."""

    count: int
    name: str
    cpu: str
    memory: str
    resources: Sequence[str] = ()
    labels: Sequence[str] = ()
    taints: Sequence[str] = ()
    cluster: str = ""

    def pools(self) -> tuple[Pool, ...]:
        if self.cluster:
            return read_pools(self.cluster)
        if formats.subdomain(self.name):
            raise UsageError(f'--name "{self.name}": accepted are lower case letters, digits, - and .')
        room = {**DEFAULT_CAPACITY, "cpu": self.cpu, "memory": self.memory, **_pairs("--resource", self.resources)}
        for resource, amount in room.items():
            _quantity(resource, amount)
        made = Pool(
            name=self.name,
            count=self.count,
            capacity=room,
            labels=_pairs("--label", self.labels),
            taints=tuple(_taint(one) for one in self.taints),
        )
        return (made,) if self.count else ()


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or formats.label_key(name):
            raise UsageError(f"{option} {one}: accepted is NAME=VALUE")
        found[name] = value
    return found


def _quantity(resource: str, amount: str) -> None:
    if not well_formed(amount):
        raise UsageError(f'"{amount}" of {resource}: accepted is a quantity such as 16, 500m or 64Gi')


def _taint(text: str) -> Mapping[str, str]:
    found = _TAINT.fullmatch(text)
    if found is None:
        raise UsageError(f"--taint {text}: accepted is KEY=VALUE:EFFECT with NoSchedule, PreferNoSchedule or NoExecute")
    key, value, effect = found.groups()
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


@friendly
def run(asked: NodesOptions, kubeconfig: str, context: str, *, attach: bool, keep: bool) -> int:
    pools = () if attach else asked.pools()
    if not attach and not sum(pool.count for pool in pools):
        raise UsageError("no nodes to make; accepted is a --count or a --cluster file with some, or --attach")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        return asyncio.run(_connected(pools, kubeconfig, context, attach=attach, keep=keep))
    except (ConfigError, TransportError) as error:
        raise UsageError(str(error)) from None
    except ApiError as error:
        raise UsageError(f"the API server refused: {error}") from None


async def _connected(pools: Sequence[Pool], kubeconfig: str, context: str, *, attach: bool, keep: bool) -> int:
    raise_file_limit()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Client.connect(
        config_file(kubeconfig), context=context or None, manager="kohort-nodes", warn=lambda text: say("warning", text)
    ) as client:
        return await play(client, pools, stop, attach=attach, keep=keep)


async def play(
    client: Client, pools: Sequence[Pool], stop: asyncio.Event, *, attach: bool = False, keep: bool = False
) -> int:
    """Until somebody stops it; then the nodes that the command made go, unless they are to be kept."""
    identity = f"{socket.gethostname()}_{os.getpid()}"
    pools = [replace(pool, created_by=CREATOR, played_by=identity) for pool in pools]
    asked = {name_of(node) for pool in pools for node in pool.nodes()}
    there = await virtual_nodes(client)
    await _refuse_real(client, asked - {name_of(node) for node in there})
    taken = [name_of(node) for node in there if attach or name_of(node) in asked]
    if attach and not taken:
        raise UsageError(f"--attach: no node has the label {POOL}; leave it out to make some")
    alone = await kube_controller_manager(client, datetime.now(UTC)) is None
    kept = {name_of(node) for node in there if annotation(node, CREATED_BY) != CREATOR}
    try:
        async with (
            taken_over(client, taken, identity),
            KubeletSimulator(client, pools, lifecycle=alone, heartbeat=_HEARTBEAT, identity=identity) as kubelets,
        ):
            await kubelets.ready()
            tuning.settle()
            _say_ready(asked | set(taken), attached=len(taken))
            await stop.wait()
    finally:
        gone: set[str] = set() if attach or keep else asked - kept
        with contextlib.suppress(TransportError):  # the server has gone before us
            await remove(client, gone, pods=alone)
    write(f"ended; {count(len(gone), 'node')} removed\n" if gone else "ended; the nodes stay, and nobody plays them\n")
    return 0


async def _refuse_real(client: Client, asked: Collection[str]) -> None:
    """A name that a node of somebody else has is a mistake."""
    taken = sorted({name_of(node) for node in (await client.kind("v1", "Node").list()).items} & set(asked))
    if taken:
        raise UsageError(f"node {', '.join(taken[:_NAMED])}: exists and is no virtual node; choose another --name")


def _say_ready(names: Collection[str], *, attached: int) -> None:
    ordered = sorted(names)
    some = ", ".join(ordered[:_NAMED]) + (" ..." if len(ordered) > _NAMED else "")
    found = f" ({attached} of them were there)" if attached else ""
    write(f"{count(len(ordered), 'virtual node')}{found}: {some}\nworking; Ctrl-C ends it\n")
    sys.stdout.flush()
