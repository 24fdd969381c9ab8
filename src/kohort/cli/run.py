"""`kohort run`: what was found on the cluster, one line each, then the work until somebody stops it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import uvloop
from rich.text import Text

from kohort import tuning
from kohort.cli.common import UsageError, as_json, friendly, out, say, write
from kohort.cli.lines import Hanging
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, ConfigError, TransportError
from kohort.kube.watchdog import watching
from kohort.place.profile import ProfileError
from kohort.run.groups import groups
from kohort.run.options import DashboardOptions, Options, OptionsError, host_and_port, merged, read
from kohort.run.plan import Plan, grouping_of
from kohort.run.process import Process, look, page, server_context
from kohort.scheduler import jsonlog
from kohort.tuning import raise_file_limit

_STYLE: Final = {"does": "green", "leaves": "cyan", "missing": "yellow", "off": "dim"}
_WORD: Final = {"does": "yes", "leaves": "left", "missing": "no", "off": "off"}


@friendly
def run(config: str, output: str, *, once: bool, dry_run: bool, verbose: bool, **flags: Any) -> int:
    try:
        chosen = merged(read(Path(config)) if config else Options(), **flags)
    except OptionsError as error:
        raise UsageError(str(error)) from None
    if dry_run and not once:
        raise UsageError("--dry-run: only together with --once, which prints what would be done and ends")
    if once and not dry_run:
        raise UsageError("--once: only together with --dry-run; without both it works until it is stopped")
    jsonlog.configure(logging.INFO if verbose else logging.WARNING, json=chosen.log_format == "json")
    try:
        return uvloop.run(_run(chosen, output, dry_run=dry_run))
    except (ConfigError, ProfileError, TransportError) as error:
        raise UsageError(str(error)) from None
    except ApiError as error:
        raise UsageError(f"the API server refused: {error}") from None


async def _run(chosen: Options, output: str, *, dry_run: bool) -> int:
    raise_file_limit()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Client.connect(chosen.kubeconfig or None, context=chosen.context or None, manager="kohort") as client:
        found = await look(client, chosen)
        if dry_run:
            lines = await groups(client, grouping_of(chosen, found.plan), chosen.scheduler_names)
            _print(replace(found.plan, lines=(*found.plan.lines, *lines)), output)
            return 0
        if chosen.log_format == "json":
            _log(found.plan)
        else:
            _print(found.plan, output)
        if found.plan.idle:
            say("error", "nothing to do here: see above")
            return 1
        tuning.settle()
        process = Process(client, chosen, found.plan)
        with watching() as process.watchdog:
            async with page(process) as port:
                host, _ = chosen.address
                _tell(chosen, f"health, readiness and metrics at http://{host}:{port}")
                async with _dashboard(client, chosen.dashboard) as url:
                    if url:
                        _tell(chosen, f"dashboard at {url}, for everybody who has a token of this cluster")
                    keeping = asyncio.create_task(tuning.keep_small())
                    try:
                        return await _until(process, stop)
                    finally:
                        keeping.cancel()


@contextlib.asynccontextmanager
async def _dashboard(client: Client, chosen: DashboardOptions | None) -> AsyncIterator[str]:
    """By every process, whoever leads; gives its address, nothing if none is wanted."""
    if chosen is None:
        yield ""
        return
    from kohort.web.serve import for_users

    context = server_context("dashboard", chosen.certificate, chosen.key) if chosen.certificate else None
    async with for_users(client, *host_and_port(chosen.listen), context) as url:
        yield url


async def _until(process: Process, stop: asyncio.Event) -> int:
    work = asyncio.create_task(process.run())
    ended = asyncio.create_task(stop.wait())
    ready = asyncio.create_task(process.ready.wait())
    await asyncio.wait({work, ended, ready}, return_when=asyncio.FIRST_COMPLETED)
    if process.ready.is_set():
        _tell(process.chosen, "working; stop with Ctrl-C")
    await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    ready.cancel()
    if work.done():
        work.result()
        return 1
    work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work
    _tell(process.chosen, "stopped: nothing is left half done, the lease is free")
    return 0


def _tell(chosen: Options, text: str) -> None:
    """On standard output, in the form that logs have."""
    write(f"{jsonlog.line(text)}\n" if chosen.log_format == "json" else f"{text}\n")
    sys.stdout.flush()


def _log(found: Plan) -> None:
    """The plan, a log line for each capability."""
    for one in found.lines:
        facts = {"capability": one.what, "verdict": one.verdict, **({"how": one.how} if one.how else {})}
        write(f"{jsonlog.line(one.text, facts)}\n")
    sys.stdout.flush()


def _print(found: Plan, output: str) -> None:
    if output == "json":
        lines = [{"what": one.what, "verdict": one.verdict, "text": one.text, "how": one.how} for one in found.lines]
        write(as_json({"capabilities": lines, "controllers": found.controllers, "scheduler": found.scheduler}))
        return
    width, first = max(len(one.what) for one in found.lines), max(map(len, _WORD.values())) + 2
    for one in found.lines:
        word = (f"{_WORD[one.verdict]:<{first}}", _STYLE[one.verdict])
        out.print(Hanging(Text.assemble(word, (f"{one.what:<{width}}  ", "bold"), one.text), first + width + 2))
        if one.how:
            out.print(Hanging(Text(f"{'':{first}}→ {one.how}", "dim"), first + 2))
