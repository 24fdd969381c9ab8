"""`kohort dashboard`: a cluster in the browser, as whom the kubeconfig says, from this terminal."""

from __future__ import annotations

import asyncio
import signal
import sys

from kohort.cli.common import UsageError, friendly, write
from kohort.cli.targets import connected
from kohort.kube.client import Client
from kohort.web.serve import local


@friendly
def run(kubeconfig: str, context: str, port: int) -> int:
    async def work(client: Client) -> int:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await client.version()  # whether the cluster answers is told now, not in the browser
        async with local(client, port) as link:
            write(f"{link}\nthe link works once; stop with Ctrl-C\n")
            sys.stdout.flush()
            await stop.wait()
        return 0

    try:
        return connected(kubeconfig, context, "kohort-dashboard", work)
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror or error}") from None
