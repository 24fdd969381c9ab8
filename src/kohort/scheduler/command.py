"""Run the scheduler against a cluster: python -m kohort.scheduler --kubeconfig FILE"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import uvloop

from kohort import tuning
from kohort.kube.ahead import Ahead
from kohort.kube.client import Client
from kohort.kube.config import load
from kohort.kube.errors import ConfigError
from kohort.kube.http import Http
from kohort.kube.resource import LARGE_PAGE, PAGE
from kohort.scheduler.jsonlog import configure

if TYPE_CHECKING:
    from kohort.scheduler.settings import SchedulerSettings

# By group and plural: what is listed before a decision (`sources`, which is not loaded yet).
LISTED: Final = frozenset(
    (group, plural)
    for group, plurals in {
        "": "nodes namespaces persistentvolumes persistentvolumeclaims resourcequotas services replicationcontrollers "
        "pods",
        "apps": "replicasets statefulsets",
        "batch": "jobs",
        "kohort.dev": "groupingrules",
        "policy": "poddisruptionbudgets",
        "resource.k8s.io": "resourceclaims",
        "scheduling.k8s.io": "compositepodgroups podgroups workloads",
        "storage.k8s.io": "storageclasses",
    }.items()
    for plural in plurals.split()
)
_NAME: Final = "kohort-scheduler"
_KOHORT: Final = "kohort"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m kohort.scheduler", description="Kohort's gang scheduler.")
    made.add_argument("--kubeconfig", help="file; default: KUBECONFIG, ~/.kube/config, or the pod it runs in")
    made.add_argument("--context", help="of the kubeconfig")
    made.add_argument(
        "--scheduler-name",
        action="append",
        metavar="NAME",
        help=f"pods with this schedulerName are placed; may be repeated; default {_KOHORT}",
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
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if args.profile:
        _settings(args)  # a mistake in it is told before anybody is asked anything
    config = load(args.kubeconfig, context=args.context)
    transport = Ahead(Http(config, agent=_NAME))
    async with Client(transport, namespace=config.namespace, manager=_NAME) as client:
        await _loaded(client, transport, lists=not args.leader_elect)
        await _schedule(args, client, stop)


async def _loaded(client: Client, transport: Ahead, *, lists: bool) -> None:
    """What decisions are made with takes longer to load than the cluster to list: both at once."""
    asking = asyncio.gather(_ask(client, transport, lists=lists), return_exceptions=True)
    for name in ("kohort.scheduler.loop", "numpy.ma"):
        await asyncio.to_thread(import_module, name)
    await asking  # after an error somebody will ask again


async def _ask(client: Client, transport: Ahead, *, lists: bool) -> None:
    asked = {("", "nodes"), ("", "pods")} if lists else set()
    for _, plural in asked:  # the longest, of a group and version that every server has
        transport.ask_list(f"/api/v1/{plural}", LARGE_PAGE)
    for one in await client.discovery.all():
        what = (one.group, one.plural)
        if lists and what in LISTED and what not in asked:
            asked.add(what)
            transport.ask_list(one.path(), PAGE)


async def _schedule(args: argparse.Namespace, client: Client, stop: asyncio.Event) -> None:
    from kohort.kube.lease import Leadership
    from kohort.scheduler.endpoints import served
    from kohort.scheduler.loop import Scheduler

    host, _, port = args.listen.rpartition(":")
    lease = Leadership(client, args.lease_name, namespace=args.lease_namespace) if args.leader_elect else None
    scheduler = Scheduler(client, _settings(args), lease=lease)
    tuning.settle()
    work = asyncio.create_task(scheduler.run())
    ended = asyncio.create_task(stop.wait())
    try:
        async with served(scheduler, host or "127.0.0.1", int(port), args.debug_token_file):
            await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
    finally:
        ended.cancel()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


def _settings(args: argparse.Namespace) -> SchedulerSettings:
    from kohort.place.profile import Profile, ProfileError
    from kohort.scheduler.settings import SchedulerSettings, read_profile_file

    try:
        profile = read_profile_file(args.profile) if args.profile else Profile()
    except ProfileError as error:
        raise ConfigError(str(error)) from None
    names = frozenset(args.scheduler_name or [_KOHORT])
    return SchedulerSettings(names=names, profile=profile, groups_only=args.groups_only)


def run(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    level = logging.INFO if args.verbose else logging.WARNING
    configure(level, json=args.log_format == "json")
    tuning.switch_often()
    try:
        uvloop.run(serve(args))
    except ConfigError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    return 0
