"""`kohort webhook`: answers an API server's questions about workloads until somebody stops it."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Any, Final

import uvloop

from kohort.cli.common import UsageError, friendly, write
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, ConfigError, TransportError
from kohort.run.options import Options, OptionsError, merged, read
from kohort.run.process import look
from kohort.scheduler import jsonlog
from kohort.tuning import raise_file_limit
from kohort.webhook.process import WebhookProcess, judged, until

_DRAIN: Final = 3.0  # seconds in which API servers learn that this process is going


@friendly
def run(config: str, *, verbose: bool, **flags: Any) -> int:
    try:
        chosen = merged(read(Path(config)) if config else Options(), **flags)
    except OptionsError as error:
        raise UsageError(str(error)) from None
    jsonlog.configure(logging.INFO if verbose else logging.WARNING, json=chosen.log_format == "json")
    try:
        uvloop.run(_run(chosen))
    except (ConfigError, TransportError) as error:
        raise UsageError(str(error)) from None
    except ApiError as error:
        raise UsageError(f"the API server refused: {error}") from None
    return 0


async def _run(chosen: Options) -> None:
    raise_file_limit()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def tell(text: str) -> None:
        write(f"{jsonlog.line(text)}\n" if chosen.log_format == "json" else f"{text}\n")
        sys.stdout.flush()

    async with Client.connect(chosen.kubeconfig or None, context=chosen.context or None, manager="kohort") as client:
        process = WebhookProcess(client, chosen, (await look(client, chosen)).plan)
        async with process.page() as page, process.listening() as port:
            tell(f"health, readiness and metrics at http://{chosen.address[0]}:{page}")
            tell(f"answering at port {port} about kinds of {', '.join(judged(process.plan)) or 'nobody'}")
            await until(process, stop)
            tell("stopping")
            await asyncio.sleep(_DRAIN)
