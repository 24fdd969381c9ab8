"""Run the scheduler against a cluster: python -m kohort.scheduler --kubeconfig FILE"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence

import uvloop

from kohort import tuning
from kohort.kube.client import Client
from kohort.kube.errors import ConfigError
from kohort.kube.lease import Leadership
from kohort.place.profile import Profile, ProfileError
from kohort.scheduler.endpoints import load_web, served
from kohort.scheduler.jsonlog import configure
from kohort.scheduler.loop import Scheduler
from kohort.scheduler.settings import KOHORT, SchedulerSettings, read_profile_file


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m kohort.scheduler", description="Kohort's gang scheduler.")
    made.add_argument("--kubeconfig", help="file; default: KUBECONFIG, ~/.kube/config, or the pod it runs in")
    made.add_argument("--context", help="of the kubeconfig")
    made.add_argument(
        "--scheduler-name",
        action="append",
        metavar="NAME",
        help=f"pods with this schedulerName are placed; may be repeated; default {KOHORT}",
    )
    made.add_argument(
        "--profile", metavar="FILE", help="what placement weighs; default as kube-scheduler's default profile"
    )
    made.add_argument("--listen", default="127.0.0.1:10351", metavar="HOST:PORT", help="/metrics, /healthz, /readyz")
    made.add_argument("--debug-token-file", default="", metavar="FILE", help="shows /debug/state to who has its token")
    made.add_argument("--leader-elect", action="store_true", help="take part in an election; one of many schedules")
    made.add_argument("--lease-namespace", default="kube-system")
    made.add_argument("--lease-name", default="kohort-scheduler")
    made.add_argument("--groups-only", action="store_true", help="leave pods without a group to others")
    made.add_argument("--log-format", choices=("text", "json"), default="text")
    made.add_argument("-v", "--verbose", action="store_true", help="a line per decision")
    return made


async def serve(args: argparse.Namespace) -> None:
    profile = read_profile_file(args.profile) if args.profile else Profile()
    names = frozenset(args.scheduler_name or [KOHORT])
    settings = SchedulerSettings(names=names, profile=profile, groups_only=args.groups_only)
    host, _, port = args.listen.rpartition(":")
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    loaded = asyncio.create_task(load_web())  # meanwhile the cluster is asked what it serves
    async with Client.connect(args.kubeconfig, context=args.context, manager="kohort-scheduler") as client:
        lease = None
        if args.leader_elect:
            lease = Leadership(client, args.lease_name, namespace=args.lease_namespace)
        scheduler = Scheduler(client, settings, lease=lease)
        tuning.settle()
        work = asyncio.create_task(scheduler.run())
        ended = asyncio.create_task(stop.wait())
        try:
            await loaded
            async with served(scheduler, host or "127.0.0.1", int(port), args.debug_token_file):
                await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()
        finally:
            ended.cancel()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def run(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    level = logging.INFO if args.verbose else logging.WARNING
    configure(level, json=args.log_format == "json")
    try:
        uvloop.run(serve(args))
    except (ConfigError, ProfileError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    return 0
