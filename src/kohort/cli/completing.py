"""What a shell completes beside commands and options: forms of output, files, contexts; types, names and namespaces of
the cluster that is meant, if it answers soon.

A shell shows what is printed and drops errors: whatever goes wrong here completes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from kohort.kube.client import Client

_PATIENCE: Final = 3.0  # seconds that somebody who has pressed Tab waits
_MOST: Final = 500  # names
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completed(takes: str, ctx: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """`takes`: what an option or argument says that it takes, or its name."""
    if takes in _KNOWN:
        return _KNOWN[takes](ctx, parameter, begun)
    if "|" in takes and takes.replace("|", "").replace(".", "").isalnum():
        return _items(takes.split("|"), begun)
    return _targets(ctx, parameter, begun) if "TYPE" in takes else []


def _targets(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """TYPE, then NAME; or TYPE/NAME."""
    words = tuple(ctx.params.get("words") or ())
    kind, slash, _ = begun.rpartition("/")
    if slash:
        return _items((f"{kind}/{name}" for name in _asked(ctx, lambda client: _names(client, ctx, kind))), begun)
    if words and "/" not in words[0]:
        return _items(_asked(ctx, lambda client: _names(client, ctx, words[0])), begun)
    return _items(_types(), begun)


def _types() -> list[str]:
    from kohort.cli.lookup import known_kinds

    return sorted(kind.lower() for kind in known_kinds())


async def _names(client: Client, ctx: click.Context, kind: str) -> list[str]:
    type_ = await client.discovery.find(kind)
    everywhere = "" if ctx.params.get("everywhere") else ctx.params.get("namespace") or client.namespace
    found = await anext(client.resource(type_).pages(everywhere, page=_MOST))
    return [str(one["metadata"]["name"]) for one in found.items]


async def _namespaces(client: Client) -> list[str]:
    found = await anext(client.kind("v1", "Namespace").pages(page=_MOST))
    return [str(one["metadata"]["name"]) for one in found.items]


def _asked(ctx: click.Context, ask: Callable[[Client], Coroutine[Any, Any, list[str]]]) -> list[str]:
    """Of the cluster; nothing, if it does not answer, or not soon."""
    from kohort.cli.lookup import config_file
    from kohort.kube.client import Client

    async def work() -> list[str]:
        config, context = ctx.params.get("kubeconfig") or "", ctx.params.get("context") or None
        async with asyncio.timeout(_PATIENCE):
            async with Client.connect(config_file(config), context=context, manager="kohort-completion") as client:
                return await ask(client)

    try:
        return asyncio.run(work())
    except Exception:
        return []


def _contexts(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    from kohort.cli.lookup import config_file
    from kohort.kube.config import context_names

    try:
        return _items(context_names(config_file(ctx.params.get("kubeconfig") or "")), begun)
    except Exception:
        return []


def _items(words: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(begun)]


def _file(_ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(begun, type="file")]


def _folder(_ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(begun, type="dir")]


def _spaces(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return _items(_asked(ctx, _namespaces), begun)


_KNOWN: Final[dict[str, Completer]] = {"FILE": _file, "DIR": _folder, "NS": _spaces, "--context": _contexts}
