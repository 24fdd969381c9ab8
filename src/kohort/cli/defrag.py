"""`kohort defrag --free rack`: the fewest gangs that have to move so that a domain is free; `--apply` moves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from kohort.api.scheduling.defragmentation import read_free
from kohort.cli.common import UsageError, choice, count, friendly, out, say
from kohort.cli.drain import from_state
from kohort.cli.explainprint import label_line
from kohort.cli.lines import Hanging
from kohort.cli.targets import connected, print_data
from kohort.kube.errors import KubeError
from kohort.place.levels import resolve
from kohort.scheduler.clusterlist import list_cluster
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.defrag import Defragmentation, Defragmenter, Move
from kohort.scheduler.trees import Group, PodInfo

if TYPE_CHECKING:
    from kohort.kube.client import Client

_LOOK = 1.0  # seconds between two looks whether a gang runs again
_NAMED = 6


class MoveError(Exception):
    """A gang was not moved, or does not run again: nothing further is done."""


@friendly
def run(free: str, state: str, kubeconfig: str, context: str, output: str, *, apply: bool, seconds: int) -> int:
    choice("-o", output, ("text", "json", "yaml"))
    level, size = _asked(free)
    if state:
        if apply:
            raise UsageError("--apply and --state: a file cannot be changed; leave out one of the two")
        return _show(plan_free(from_state(state)[0], level, size), output)

    async def work(client: Client) -> int:
        seen = await list_cluster(client)
        for problem in seen.unread:
            say("warning", f"not looked at, the answer may be wrong: {problem}")
        found = plan_free(seen.core, level, size)
        code = _show(found, output)
        if not apply or not found.moves:
            return code
        try:
            await apply_moves(client, found, seconds)
        except MoveError as error:
            say("error", f"{error}; nothing further is moved")
            return 1
        out.print(f"{found.key}={found.domain}: {count(len(found.nodes), 'node')} free")
        return 0

    return connected(kubeconfig, context, "kohort-defrag", work)


def _asked(free: str) -> tuple[str, int | None]:
    found = read_free(free)
    if found is None:
        raise UsageError(f"--free {free}: a level or label, and how many nodes of one domain, such as rack or rack=4")
    return found


def plan_free(core: SchedulerCore, level: str, size: int | None) -> Defragmentation:
    key = resolve(core.cache.state, core.settings.profile.topology_levels, level)
    return Defragmenter(core.cache).plan(key, size)


# ---- printing


def _show(found: Defragmentation, output: str) -> int:
    if output != "text":
        print_data(output, {**asdict(found), "ok": found.ok})
        return 0 if found.ok else 1
    if not found.ok:
        out.print(Hanging(Text(found.why, "yellow")))
        return 1
    many = f"{count(len(found.nodes), 'node')} of {found.key}={found.domain}"
    if not found.moves:
        out.print(Text.assemble(many, " ", ("are free" if len(found.nodes) > 1 else "is free", "green"), " already"))
        return 0
    least = "the fewest there are" if found.proven else "not proven to be the fewest"
    out.print(Hanging(f"{many} would be free after {count(len(found.moves), 'move')}, {least}"))
    for number, move in enumerate(found.moves, 1):
        out.print(Text.assemble(f"  {number}  {move.kind} ", (move.name, "bold"), f" in {move.namespace}"))
        out.print(label_line("from", _nodes(move.leaves), indent=3))
        out.print(label_line("to", _nodes(move.lands), indent=3))
    return 0


def _nodes(places: Mapping[str, str]) -> str:
    nodes = Counter(places.values())
    named = [f"{node} ({pods})" if pods > 1 else node for node, pods in sorted(nodes.items())[:_NAMED]]
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"{count(len(places), 'pod')} on {', '.join(named)}{more}"


# ---- doing it


async def apply_moves(client: Client, found: Defragmentation, seconds: int) -> None:
    """The nodes are cordoned meanwhile, so that nobody comes back to them."""
    nodes = client.kind("v1", "Node")
    ours: list[str] = []
    try:
        for name in found.nodes:
            if not (await nodes.get(name))["spec"].get("unschedulable"):
                await nodes.patch(name, {"spec": {"unschedulable": True}})
                ours.append(name)
        for move in found.moves:
            await _move(client, move, set(found.nodes), seconds)
            out.print(f"{move.kind} {move.name} in {move.namespace} runs elsewhere")
    finally:
        for name in ours:
            await nodes.patch(name, {"spec": {"unschedulable": None}})


async def _move(client: Client, move: Move, freed: set[str], seconds: int) -> None:
    what = f"{move.kind} {move.name} in {move.namespace}"
    members, spares = await _members(client, move.root)
    if {one.pod.metadata.name for one in members} != set(move.leaves):
        raise MoveError(f"{what} is not what it was when the plan was made")
    pods = client.kind("v1", "Pod")
    before = {one.uid for one in members}
    for one in (*members, *spares):
        meta = one.pod.metadata
        try:
            await pods.evict(meta.name, meta.namespace, uid=meta.uid)
        except KubeError as error:
            if getattr(error, "not_found", False):
                continue
            raise MoveError(f"{what}: {meta.name} is not evicted: {error}") from None
    end = client.clock.monotonic() + seconds
    while True:
        now, _ = await _members(client, move.root)
        there = [one for one in now if one.pod.status.phase == "Running" and one.uid not in before and not one.going]
        if len(there) >= len(before) and not any(one.node in freed for one in there):
            return
        if client.clock.monotonic() > end:
            raise MoveError(f"{what}: {len(there)} of {count(len(before), 'pod')} run again after {seconds} s")
        await client.clock.sleep(_LOOK)


async def _members(client: Client, root: str) -> tuple[list[PodInfo], list[PodInfo]]:
    """Pods of a gang that have a node, and its spares."""
    cache = (await list_cluster(client)).core.cache
    group: Group | None = cache.trees.get(root)
    leaves = list(group.leaves()) if group is not None else []
    return [one for leaf in leaves for one in leaf.placed.values()], [
        one for leaf in leaves for one in cache.spares.of(leaf.key)
    ]
