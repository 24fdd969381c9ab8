"""`kohort get`: workloads in columns, as kubectl prints lists."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from kohort.apimachinery import times
from kohort.cli.common import UsageError, choice, friendly, out, say, write
from kohort.cli.explainprint import age
from kohort.cli.lines import columns
from kohort.cli.lookup import is_kind, known_kinds
from kohort.cli.targets import FORMS, Question, connected, kind_of, print_data, print_names
from kohort.kube.client import Client
from kohort.web.follower import ClusterFollower
from kohort.web.view import TICK, View

Row = dict[str, Any]
_LEFT_OUT = ("id", "spans", "top")


@friendly
def get(question: Question, kubeconfig: str, context: str, output: str, *, watch: bool = False) -> int:
    choice("-o", output, FORMS)
    question.check()

    async def work(client: Client) -> int:
        async with ClusterFollower(client) as follower:
            asked = await _spelled(client, question)
            return await (_follow if watch else _once)(View(follower), asked, output)

    return connected(kubeconfig, context, "kohort-get", work)


async def _spelled(client: Client, question: Question) -> Question:
    """With the kind that a type stands for; a single word that is no type is a name."""
    if not question.words or "/" in question.words[0]:
        return question
    first, *names = question.words
    kind = first if is_kind(first) else await kind_of(client, first)
    if kind:
        return replace(question, words=(kind, *names))
    if names:
        raise UsageError(f'"{first}": the server has no such type; accepted are {", ".join(known_kinds())}')
    return replace(question, words=(f"/{first}",))


async def _once(view: View, question: Question, output: str) -> int:
    """What is named has to be there, as for kubectl; the others are shown."""
    await view.refresh()
    found = await chosen(view, question)
    for problem in view.follower.unread:
        say("warning", f"not looked at: {problem}")
    missing = _missing(found, question)
    if found or not missing:
        show(found, output, view.clock.now(), everywhere=question.everywhere, where=_where(view, question))
    for word in missing:
        say("error", f"{word}: not found {_where(view, question)}")
    return 1 if missing else 0


def _missing(found: Sequence[Row], question: Question) -> list[str]:
    """Of what was named."""
    there = {name for one in found for name in (one["name"], one["top"][1])}
    slashed = "/" in "".join(question.words[:1])
    named = question.words if slashed else [f"{question.words[0]} {name}" for name in question.words[1:]]
    return [one.removeprefix("/") for one in named if one.replace(" ", "/").rpartition("/")[2] not in there]


async def _follow(view: View, question: Question, output: str) -> int:
    """Again whenever something of it has changed."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    before: list[Row] | None = None
    while not stop.is_set():
        await view.refresh()
        found = [dict(one) for one in await chosen(view, question)]
        if found != before:
            if before is not None and output == "yaml":
                write("---\n")
            show(found, output, view.clock.now(), everywhere=question.everywhere, where=_where(view, question))
            sys.stdout.flush()
        before = found
        await view.clock.sleep(2 * TICK)
    return 0


async def chosen(view: View, question: Question, namespace: str | None = None) -> list[Row]:
    """The rows that are meant, by namespace, type, names and labels. `namespace`: where none was asked for."""
    if namespace is None:
        namespace = "" if question.everywhere else question.namespace or view.follower.client.namespace
    slashed = [word.partition("/") for word in question.words if "/" in word]
    kinds = {kind for kind, _, _ in slashed if kind} if slashed else set(question.words[:1])
    names = {name for _, _, name in slashed} or set(question.words[1:])
    uids: set[str] | None = None
    if question.labels:
        pods = await view.follower.client.kind("v1", "Pod").list(namespace, labels=question.labels)
        uids = {str(pod["metadata"]["uid"]) for pod in pods.items}
    found = []
    for number, row in view.rows.items():
        unit = view.follower.units.by_id.get(number)
        if unit is None or (namespace and row.namespace != namespace):
            continue
        if kinds and not any(_is(kind, own) for kind in kinds for own in (row.data["kind"], row.data["top"][0])):
            continue
        if names and not names & {row.data["name"], row.data["top"][1]}:
            continue
        if uids is None or uids & unit.pods.keys():
            found.append(row.data)
    return sorted(found, key=lambda one: (one["ns"], one["top"][0], one["top"][1], one["name"]))


def _is(word: str, kind: str) -> bool:
    plain = word.split(".", maxsplit=1)[0].lower()
    return plain in {kind.lower(), f"{kind.lower()}s"}


def _where(view: View, question: Question) -> str:
    if question.everywhere:
        return "in any namespace"
    return f"in namespace {question.namespace or view.follower.client.namespace}"


# ---- printing


def show(rows: Sequence[Row], output: str, now: datetime, *, everywhere: bool, where: str) -> None:
    if output in {"json", "yaml"}:
        items = [{"workload": dict(zip(("kind", "name"), one["top"], strict=True)), **plain(one)} for one in rows]
        print_data(output, {"items": items})
    elif output == "name":
        print_names(one["top"] for one in rows)
    elif not rows:
        out.print(f"nothing found {where}")
    else:
        wide = output == "wide"
        table = _cells(rows, now, wide=wide, everywhere=everywhere)
        write("\n".join(columns(table, out.to(wide=wide).width)))


def plain(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _LEFT_OUT}


def _cells(rows: Sequence[Row], now: datetime, *, wide: bool, everywhere: bool) -> list[list[str]]:
    head = ["KIND", "NAME", "STATE", "PODS", "MIN", "WAITS", "REASON"]
    more = ["NODES", "GROUP", "PRIORITY", "NEEDS"] if wide else []
    table = [[*(["NAMESPACE"] if everywhere else []), *head, *more]]
    for one in rows:
        alive = one["placed"] + one["pending"]
        pods = f"{one['placed']}/{alive}" if alive else f"{one['succeeded'] + one['failed']} ended"
        waits = age(one["since"], now) if times.parse(one["since"] or None) else "-"
        own = [*one["top"], one["state"], pods, str(one["gang"] or "-"), waits, one["reason"] or "-"]
        more = [str(one["nodes"]), one["name"], str(one["priority"]), one["needs"] or "-"] if wide else []
        table.append([*([one["ns"]] if everywhere else []), *own, *more])
    return table
