"""`kohort plan --drain NODE`: per gang, what a drain would do, before it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
from rich.text import Text

from kohort.cli.common import UsageError, count, out, say
from kohort.cli.explainprint import SHORT, WHOLE, Extent, label_line, some
from kohort.cli.lines import Hanging
from kohort.cli.targets import connected, print_data, state_document
from kohort.plan.drain import Drained, plan_drain, verdict
from kohort.scheduler.clusterlist import list_cluster
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import Node
from kohort.scheduler.snapshot import SnapshotError, load

if TYPE_CHECKING:
    from kohort.kube.client import Client


def run(nodes: Sequence[str], state: str, kubeconfig: str, context: str, output: str) -> int:
    core, known, unread = from_state(state) if state else from_cluster(kubeconfig, context)
    wrong = [name for name in nodes if name not in known]
    if wrong:
        raise UsageError(f"--drain {', '.join(wrong)}: no such node is there")
    found = plan_drain(core, [known[name] for name in nodes])
    for problem in unread:
        say("warning", f"not looked at, the answer may be wrong: {problem}")
    if output in {"json", "yaml"}:
        print_data(output, {"heals": all(one.heals for one in found), "gangs": [asdict(one) for one in found]})
    elif not found:
        out.print(f"nothing but daemons runs on {', '.join(nodes)}")
    for one in found if output in {"text", "wide"} else ():
        for line in _lines(one, WHOLE if output == "wide" else SHORT):
            out.to(wide=output == "wide").print(line)
    return 0 if all(one.heals for one in found) else 1


def from_cluster(kubeconfig: str, context: str) -> tuple[SchedulerCore, dict[str, Node], list[str]]:
    async def ask(client: Client) -> tuple[SchedulerCore, dict[str, Node], list[str]]:
        seen = await list_cluster(client)
        nodes: dict[str, Any] = seen.objects.objects.get("nodes", {})
        return seen.core, {one.metadata.name: one for one in nodes.values()}, seen.unread

    return connected(kubeconfig, context, "kohort-plan", ask)


def from_state(path: str) -> tuple[SchedulerCore, dict[str, Node], list[str]]:
    document = state_document(path)
    try:
        core = load(document)
    except SnapshotError as error:
        raise UsageError(f"--state {path}: {error}") from None
    nodes = [msgspec.convert(body, Node) for body in document["objects"].get("nodes") or ()]
    return core, {one.metadata.name: one for one in nodes}, []


def _lines(one: Drained, shown: Extent) -> Iterator[Hanging]:
    style = "green" if one.heals else "yellow"
    what = f"{one.kind} " if one.kind != "Pod" or one.mode else "Pod "
    yield Hanging(Text.assemble(what, (one.name, "bold"), f" in {one.namespace}: ", (verdict(one), style)))
    mode = {"all": ", all of them by disruptionMode all", "single": f"; {one.stays} stay" if one.stays else ""}
    named = some(one.goes, shown.nodes)
    yield label_line("evicted", f"{count(len(one.goes), 'pod')} ({named}){mode.get(one.mode, '')}")
    if one.lands:
        domain = f", in {one.domain}" if one.domain else ""
        yield label_line("goes to", f"{some(sorted(set(one.lands.values())), shown.nodes)}{domain}")
    if one.waits:
        yield label_line("waits", Text(f"{count(len(one.waits), 'pod')}: {one.why or 'no node has room'}", "yellow"))
    if one.done:
        yield label_line("then", Text(one.done, "yellow"))
    if one.policies and not one.heals:
        yield label_line("policy", one.policies)
