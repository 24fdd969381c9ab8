"""What stands on the command line of `kohort explain` and `kohort tree`, understood as kubectl would: TYPE NAME...,
TYPE/NAME..., a TYPE alone, with -l or -A, or nothing at all, which is everything that waits.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kohort.api.objects import name_of, namespace_of
from kohort.cli.common import UsageError, as_json, say, write
from kohort.cli.lookup import (
    Found,
    Parents,
    Root,
    config_file,
    find_in_cluster,
    find_in_state,
    found_of,
    is_kind,
    waiting_roots,
)
from kohort.cli.quotawait import QuotaWait, waiting_for_quota
from kohort.kube.client import Client
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError, ConfigError, TransportError
from kohort.manifest import read
from kohort.scheduler.clusterlist import ClusterList, list_cluster
from kohort.scheduler.core import SchedulerCore

T = TypeVar("T")
FORMS = ("text", "wide", "json", "yaml", "name")


@dataclass(frozen=True, slots=True)
class Question:
    """The words and options. `labels`: a selector, judged by the API server."""

    words: tuple[str, ...] = ()
    namespace: str = ""
    everywhere: bool = False
    labels: str = ""
    filename: tuple[str, ...] = ()
    recursive: bool = False

    @property
    def named(self) -> bool:
        """Something, by its type or name or in a file; else all that waits is meant."""
        return bool(self.words or self.filename)

    def check(self) -> None:
        for option, given in (("-A", self.everywhere), ("-l", bool(self.labels)), ("names", bool(self.words))):
            if self.filename and given:
                raise UsageError(f"-f and {option}: files say what is meant; leave out one of the two")
        for word in self.words:
            split(word)
        slashes = [word for word in self.words if "/" in word]
        if slashes and len(slashes) < len(self.words):
            other = next(word for word in self.words if "/" not in word)
            raise UsageError(f'"{slashes[0]}" and "{other}": TYPE/NAME and TYPE NAME cannot be mixed')
        if self.everywhere and self.namespace:
            raise UsageError("-A and -n: one namespace or all of them, not both")
        for option, given in (("-A", self.everywhere), ("-l", bool(self.labels))):
            if given and (slashes or len(self.words) > 1):
                raise UsageError(f"{option}: names are given as well; accepted is a TYPE without a name, or nothing")

    @property
    def selects(self) -> bool:
        return self.everywhere or bool(self.labels)

    def targets(self, *, typed: bool) -> list[tuple[str, str]]:
        """(kind, name) of each; `typed`: the first word is a type that the others are names of."""
        if typed:
            return [(self.words[0], name) for name in self.words[1:]]
        return [split(word) for word in self.words]


@dataclass(slots=True)
class Reply:
    """What was found of it, one after another; `core`: with `waiting`, everything that waits."""

    found: list[Found] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    core: SchedulerCore | None = None
    waiting: list[Root] = field(default_factory=list)
    uncreated: list[QuotaWait] = field(default_factory=list)  # that wait, too, without a pod
    where: str = ""  # in words
    one: bool = False  # one thing was named: programs get it alone, not in a list


def split(target: str) -> tuple[str, str]:
    """(kind, name) of what stands on the command line; the kind may be left out."""
    kind, _, name = target.rpartition("/")
    if not name:
        raise UsageError(f'"{target}": no name; accepted is NAME or KIND/NAME, for example jobset/train')
    return kind, name


def _in_files(question: Question, namespace: str) -> list[tuple[str, str, str]]:
    """(type, name, namespace) of the workloads, groups and pods in files; other objects have no pods of their own."""
    found = []
    for document in read(question.filename, recursive=question.recursive):
        obj = document.obj
        name = name_of(obj)
        if not is_kind(str(obj.get("kind"))) or not name:
            continue
        group = str(obj.get("apiVersion") or "").rpartition("/")[0]
        type_ = f"{obj['kind']}.{group}" if group else str(obj["kind"])
        own = namespace_of(obj) or namespace
        if question.namespace and own != question.namespace:
            raise UsageError(f"-n {question.namespace}: {document.name} in {document.source} is in namespace {own}")
        found.append((type_, name, own))
    if not found:
        raise UsageError(f"-f {', '.join(question.filename)}: no workload, group or pod with a name is in it")
    return found


# ---- a saved state


def ask_state(core: SchedulerCore, question: Question) -> Reply:
    if question.labels:
        raise UsageError("-l: a saved state has no selection by labels; ask a cluster, or name what is meant")
    namespace = "" if question.everywhere else question.namespace or "default"
    reply = Reply(core=core, where=_where(namespace), one=len(question.words) == 1)
    if not question.words:
        reply.waiting = waiting_roots(core, namespace)
        return reply
    if question.everywhere:
        raise UsageError("-A: a saved state has pods and groups only; leave the TYPE out to see all that waits")
    typed = len(question.words) > 1 and is_kind(question.words[0])
    targets = question.targets(typed=typed)
    reply.one = len(targets) == 1
    for kind, name in targets:
        try:
            reply.found.append(find_in_state(core, kind, name, namespace))
        except UsageError as error:
            reply.missing.append(str(error))
    return reply


# ---- a cluster


def ask_cluster(question: Question, kubeconfig: str, context: str, manager: str) -> Reply:
    return connected(kubeconfig, context, manager, lambda client: answer(client, question))


def connected(kubeconfig: str, context: str, manager: str, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """With the cluster that is meant; what goes wrong on the way is said as a mistake of the command line."""

    async def ask() -> T:
        async with Client.connect(config_file(kubeconfig), context=context or None, manager=manager) as client:
            return await work(client)

    try:
        return asyncio.run(ask())
    except (ConfigError, TransportError, NotServedError) as error:
        raise UsageError(str(error)) from None
    except ApiError as error:
        raise UsageError(f"the API server refused: {error}") from None


def state_document(path: str) -> Any:
    """What a file of `kohort snapshot`, or a saved /debug/state, holds; compressed or not."""
    try:
        raw = Path(path).read_bytes()
        return msgspec.json.decode(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except OSError as error:
        raise UsageError(f"--state {path}: cannot be read: {error.strerror or error}") from None
    except (EOFError, msgspec.DecodeError) as error:
        raise UsageError(f"--state {path}: {error}") from None


async def answer(client: Client, question: Question) -> Reply:
    namespace = "" if question.everywhere else question.namespace or client.namespace
    seen = await list_cluster(client)
    reply = Reply(core=seen.core, unread=seen.unread, where=_where(namespace))
    words = question.words
    if question.filename:
        targets = _in_files(question, namespace)
        reply.one = len(targets) == 1
        for kind, name, own in targets:
            await _look_up(client, seen, reply, kind, name, own)
        return reply
    if not words:
        uids = None
        if question.labels:
            pods = (await client.kind("v1", "Pod").list(namespace, labels=question.labels)).items
            uids = {str(pod["metadata"]["uid"]) for pod in pods}
        reply.waiting = waiting_roots(seen.core, namespace, uids)
        reply.uncreated = await waiting_for_quota(client, namespace) if uids is None else []
        return reply
    if question.selects:
        return await _of_type(client, seen, question, reply, namespace)
    typed = await _is_type(client, words[0])
    named = question.targets(typed=typed and len(words) > 1)
    reply.one = len(named) == 1
    for kind, name in named:
        await _look_up(client, seen, reply, kind, name, namespace)
    if reply.missing and typed and len(words) == 1:  # nothing has this name, and it is a type
        reply.missing.clear()
        return await _of_type(client, seen, question, reply, namespace)
    return reply


async def _look_up(client: Client, seen: ClusterList, reply: Reply, kind: str, name: str, namespace: str) -> None:
    try:
        reply.found.append(await find_in_cluster(client, seen, kind, name, namespace))
    except UsageError as error:
        reply.missing.append(str(error))


async def _of_type(client: Client, seen: ClusterList, question: Question, reply: Reply, namespace: str) -> Reply:
    """All objects of a type, or those with the labels."""
    reply.one = False
    type_ = await client.discovery.find(question.words[0])
    if not type_.namespaced:
        raise UsageError(f"{question.words[0]}: is in no namespace, and has no pods or groups")
    known: dict[str, Parents] = {}
    for body in (await client.resource(type_).list(namespace, labels=question.labels)).items:
        reply.found.append(await found_of(client, seen, type_.kind, body, body["metadata"]["namespace"], known))
    reply.found.sort(key=lambda one: (one.namespace, one.name))
    return reply


async def _is_type(client: Client, word: str) -> bool:
    return "/" not in word and bool(await kind_of(client, word))


async def kind_of(client: Client, word: str) -> str:
    """Of a type as people write it (jobsets, deploy), "" if the server has none of that name."""
    try:
        return (await client.discovery.find(word)).kind
    except NotServedError:
        return ""


def _where(namespace: str) -> str:
    return f"in namespace {namespace}" if namespace else "in any namespace"


# ---- printing


def print_names(names: Iterable[tuple[str, str]]) -> None:
    """(kind, name) of each, as kubectl prints and reads them."""
    for kind, name in names:
        write(f"{kind.lower()}/{name}\n")


def print_data(output: str, value: Any) -> None:
    if output == "json":
        write(as_json(value))
        return
    import msgspec

    from kohort.manifest import dump

    write(dump(msgspec.to_builtins(value)))


def as_data(items: Sequence[Any], *, one: bool) -> Any:
    """One thing that was named is itself; anything else is a list, also of one."""
    return items[0] if one and len(items) == 1 else {"items": list(items)}


def finish(reply: Reply, warning: str) -> int:
    """What could not be read or found, after what was."""
    for problem in reply.unread:
        say("warning", f"{warning}: {problem}")
    for text in reply.missing:
        say("error", text)
    return 1 if reply.missing else 0
