"""`kohort up` and `kohort down`: the embedded control plane, in this terminal or behind it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

from kohort.api.releases import RELEASES
from kohort.cli import lean, serving
from kohort.cli.common import (
    UsageError,
    checked,
    choice,
    configured,
    duration,
    example_path,
    friendly,
    parse_gates,
    say,
    write,
)
from kohort.server.auth import private

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from kohort.gang.settings import SettingsByKind
    from kohort.place.profile import Profile
    from kohort.server.server import Server
    from kohort.server.settings import Settings
    from kohort.sim.cluster import Pool
    from kohort.sim.registered import Leftovers

_START_SECONDS: Final = 300.0  # a start that fails is told at once; this is for machines that are busy
_STOP_SECONDS: Final = 120.0
_CREATOR: Final = "kohort-up"  # of virtual nodes
_NAMED: Final = 8  # nodes, before "and so on"
_CONFIGURED: Final = frozenset({"controllers", "featureGates", "limits", "profile", "settings"})
_FIRST_FREE_PORT: Final = 1024
_LOOK_SECONDS: Final = 0.01  # between looks whether another process has done what it should


@dataclass(frozen=True, slots=True)
class Around:
    """What works around the API server; without `pools` nothing does."""

    pools: tuple[Pool, ...] | None
    profile: Profile | None
    settings: SettingsByKind | None
    controllers: tuple[str, ...] | None = None  # words of --controllers; None: all
    dashboard: bool = True


def default_folder() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "kohort"


@friendly
def up(
    data_dir: str,
    port: int,
    kubeconfig: str,
    kubernetes: str,
    feature_gates: str,
    *,
    bare: bool,
    nodes: int,
    cluster: str,
    in_memory: bool,
    detach: bool,
    profile: str = "",
    config: str = "",
    controllers: str | None = None,
    assignments: Sequence[str] = (),
    dashboard: bool = True,
    **limits: Any,
) -> int:
    if bare and assignments:
        raise UsageError("--set: with --bare there are no controllers that settings could be for")
    if bare and controllers is not None:
        raise UsageError("--controllers: with --bare there are none; leave out one of the two")
    chosen = configured(config, assignments, _CONFIGURED, controllers)
    around = Around(
        None if bare else _pools(nodes, cluster),
        read_profile("--profile", profile) or read_profile("profile", chosen.profile),
        chosen.settings,
        chosen.controllers,
        dashboard,
    )
    choice("--kubernetes", kubernetes, tuple(RELEASES))
    gates = {**chosen.gates, **parse_gates(feature_gates)}
    with _folder(data_dir, in_memory=in_memory, kept=detach) as folder:
        from kohort.server.settings import Settings

        settings = Settings(
            data=folder,
            minor=kubernetes,
            gates=gates,
            port=port,
            in_memory=in_memory,
            kubeconfig=Path(kubeconfig).absolute() if kubeconfig else None,
            **_limited(chosen.limits, **limits),
        )
        checked(settings.context)
        return (_detached if detach else _here)(settings, around)


def _limited(
    configured: Mapping[str, Any], event_ttl: str | None = None, request_timeout: str | None = None, **flags: int | None
) -> dict[str, Any]:
    """The limits of a configuration file, and over them those of flags."""
    from kohort.server.limits import Limits

    chosen = {**configured, **{name: value for name, value in flags.items() if value is not None}}
    if request_timeout is not None:
        chosen["request_seconds"] = duration("--request-timeout", request_timeout)
    found: dict[str, Any] = {"limits": Limits(**chosen)}
    if event_ttl is not None:
        found["event_ttl"] = duration("--event-ttl", event_ttl)
    return found


def _pools(nodes: int, cluster: str) -> tuple[Pool, ...]:
    """The virtual nodes: of a cluster file, or so many equal ones."""
    from kohort.sim.cluster import plain

    return tuple(replace(one, created_by=_CREATOR) for one in (read_pools(cluster) if cluster else plain(nodes)))


def read_pools(cluster: str, option: str = "--cluster") -> tuple[Pool, ...]:
    from kohort.sim.cluster import ClusterFileError, read

    try:
        return read(Path(cluster).read_text())
    except OSError as error:
        raise UsageError(f"{option} {cluster}: cannot be read: {error.strerror}") from None
    except ClusterFileError as error:
        raise UsageError("\n".join(f"{option} {cluster}: {line}" for line in str(error).splitlines())) from None


def read_profile(option: str, path: str) -> Profile | None:
    if not path:
        return None
    from kohort.place.profile import ProfileError
    from kohort.scheduler.settings import read_profile_file

    try:
        return read_profile_file(path)
    except ProfileError as error:
        raise UsageError("\n".join(f"{option} {line}" for line in error.mistakes)) from None


@contextlib.contextmanager
def _folder(data_dir: str, *, in_memory: bool, kept: bool) -> Iterator[Path]:
    """The data folder; what is in memory only leaves nothing behind unless a folder was named."""
    if data_dir or not in_memory:
        yield (Path(data_dir) if data_dir else default_folder()).absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="kohort-"))
    try:
        yield folder
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


# ---- in this process


def _here(settings: Settings, around: Around, announce: Callable[[], None] = lambda: None) -> int:
    began = time.perf_counter()
    gc.disable()  # nothing that is loaded goes away again
    with _pid_file(settings) as pid:
        if not _lock(pid.fileno()):
            raise UsageError(f"{settings.data}: a server is running on this folder; stop it with kohort down")
        try:
            os.truncate(pid.fileno(), 0)
            os.write(pid.fileno(), f"{os.getpid()}\n".encode())  # unbuffered: closing does not try again
        except OSError as error:
            raise UsageError(f"kohort up: {settings.pid_path}: {error.strerror}") from None
        try:
            import uvloop

            uvloop.run(_serve(settings, around, began, announce))
        finally:
            settings.pid_path.unlink(missing_ok=True)
    return 0


async def _serve(settings: Settings, around: Around, began: float, announce: Callable[[], None]) -> None:
    if around.pools is None:
        lean.serving()
    try:
        async with serving.started(settings) as (server, stopped):
            left = (
                await _leftovers(server, around.pools) if around.pools is not None and not settings.in_memory else None
            )
            async with _around(server, around) as link:
                ready = _ready(settings, server.url, around.pools, time.perf_counter() - began, left, link)
                await serving.until(stopped, server, ready, announce)
    except serving.StartError as error:
        raise UsageError(f"kohort up: {_why_not(error.cause, settings)}") from None


def _why_not(error: Exception, settings: Settings) -> str:
    """A start that failed; of an address, who has it and what to do."""
    number = error.errno if isinstance(error, OSError) else None
    where = f"{settings.host}:{settings.port}"
    if number == errno.EADDRINUSE:
        return (
            f"{where} is in use: another program listens there, perhaps another kohort up "
            f"(ss -ltnp 'sport = :{settings.port}' says which). End it, or take a free port with --port 0"
        )
    if number == errno.EACCES and 0 < settings.port < _FIRST_FREE_PORT:
        return f"{where}: ports below {_FIRST_FREE_PORT} need privileges; --port 0 takes a free one"
    return str(error)


@contextlib.asynccontextmanager
async def _around(server: Server, around: Around) -> AsyncIterator[str]:
    """Controllers, scheduler and nodes, unless it is the bare server that is wanted; gives a link to the dashboard."""
    if around.pools is None:
        yield ""
        return
    from kohort.embedded import whole
    from kohort.gang.settings import settings_of
    from kohort.kinds.controllers import selected

    settings = settings_of(around.settings)
    work = whole(server, around.pools, selected(around.controllers), profile=around.profile, settings=settings)
    async with work as client, contextlib.AsyncExitStack() as stack:
        if not around.dashboard:
            yield ""
            return
        from kohort.web.serve import local

        yield await stack.enter_async_context(local(client))


async def _leftovers(server: Server, pools: Sequence[Pool]) -> Leftovers:
    """Before anything is scheduled: virtual nodes of an earlier start that this one does not ask for."""
    from kohort.kube.client import Client
    from kohort.sim.registered import remove_leftovers

    async with Client.within(server.api, manager="kohort", clock=server.clock) as client:
        return await remove_leftovers(client, pools, _CREATOR)


def _ready(
    settings: Settings, url: str, pools: tuple[Pool, ...] | None, seconds: float, left: Leftovers | None, link: str
) -> str:
    where = "in memory" if settings.in_memory else f"in {settings.store_path}"
    count = sum(pool.count for pool in pools or ())
    what, more = (" API", "") if pools is None else ("", f"controllers, gang scheduler and {count} virtual nodes; ")
    lines = [
        f"Kubernetes {settings.minor}{what} at {url}, ready after {seconds:.1f} s",
        f"  {more}objects are kept {where}",
        f"  export KUBECONFIG={settings.kubeconfig_path}",
    ]
    if pools is None:
        return "\n".join([*lines, "  kubectl get namespaces", ""])
    if left is not None:
        lines += _told(left)
    if not count:
        lines.append("  kubectl apply -f my-nodes.yaml  # pods run on the Nodes that you make")
    if link:
        lines.append(f"  {link}  # the dashboard; the link works once")
    lines += [
        f"  kubectl apply -f {example_path('jobset-hello.yaml')}  # nine pods that start together",
        "  kubectl get nodes,jobsets,workloads,podgroups,pods",
    ]
    return "\n".join([*lines, ""])


def _told(left: Leftovers) -> Iterator[str]:
    if left.removed:
        yield f"  {_nodes(left.removed, 'was', 'were')} there from an earlier start, without pods, and removed"
    if left.replaced:
        yield f"  {_nodes(left.replaced, 'was', 'were')} made anew, as asked for now"
    if left.kept:
        yield f"  {_nodes(left.kept, 'is', 'are')} there from an earlier start, and may have pods; without:"
        yield f"  kubectl delete node {_some(left.kept)}  # or start with another --data-dir"
    if left.unchanged:
        yield f"  {_nodes(left.unchanged, 'is', 'are')} not as asked for now, but with pods, and left as made; else:"
        yield f"  kubectl delete node {_some(left.unchanged)}  # and start again"


def _nodes(names: Sequence[str], one: str, many: str) -> str:
    return f"1 virtual node {one}" if len(names) == 1 else f"{len(names)} virtual nodes {many}"


def _some(names: Sequence[str]) -> str:
    return " ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def _pid_file(settings: Settings) -> TextIO:
    try:
        private.folder(settings.data)
        return os.fdopen(os.open(settings.pid_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, private.FILE), "a+")
    except OSError as error:
        raise UsageError(f"kohort up: {error}") from None


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


# ---- behind the terminal


def _detached(settings: Settings, around: Around) -> int:
    """A fork: what this process has loaded by now need not be loaded again."""
    try:
        private.folder(settings.data)
        log = settings.data / "server.log"
        log.touch(0o600)
    except OSError as error:
        raise UsageError(f"kohort up: {error}") from None
    os.truncate(log, 0)
    sys.stdout.flush()
    sys.stderr.flush()
    announced, announcement = os.pipe()
    child = os.fork()
    if child == 0:
        _behind(log, settings, around, announcement)
    os.close(announcement)
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        # A byte says that it is ready. An end without one: the process is gone, or is just going.
        if select.select([announced], [], [], _LOOK_SECONDS)[0] and os.read(announced, 1):
            text = log.read_text(errors="replace")
            write(f"{text}  kohort down --data-dir {settings.data}\n")  # at once: a reader may want one line only
            sys.stdout.flush()
            return 0
        if os.waitpid(child, os.WNOHANG)[0]:
            break
    else:
        say("error", f"kohort up: not ready after {_START_SECONDS:.0f} s, and still starting; {log} has what it says")
        return 1
    for line in log.read_text(errors="replace").splitlines() or ["it said nothing"]:
        say("error", line.removeprefix("error: "))
    return 1


def _behind(log: Path, settings: Settings, around: Around, announcement: int) -> NoReturn:
    """The server, with nothing left of the terminal it was started from."""
    code = 1
    try:
        os.setsid()
        for descriptor, path, flags in ((0, os.devnull, os.O_RDONLY), (1, str(log), os.O_WRONLY | os.O_APPEND)):
            opened = os.open(path, flags)
            os.dup2(opened, descriptor)
        os.dup2(1, 2)
        os.closerange(3, announcement)
        os.closerange(announcement + 1, os.sysconf("SC_OPEN_MAX"))
        code = friendly(_here)(settings, around, partial(_announce, announcement))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _announce(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # whoever waited may have gone
        os.write(descriptor, b"1")
    os.close(descriptor)


@friendly
def down(data_dir: str) -> int:
    folder = (Path(data_dir) if data_dir else default_folder()).absolute()
    path = folder / "server.pid"
    try:
        pid_file = path.open("r+")
    except FileNotFoundError:
        raise UsageError(f"{folder}: no server is running on this folder") from None
    with pid_file:
        if _lock(pid_file.fileno()):  # nobody holds it: left over by a kill
            path.unlink(missing_ok=True)
            raise UsageError(f"{folder}: no server is running on this folder")
        pid = int(pid_file.read().strip() or 0)
        if pid <= 0:
            raise UsageError(f"{path}: has no process id; the server is just starting, try again")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + _STOP_SECONDS
        while not _lock(pid_file.fileno()):
            if time.monotonic() > end:
                raise UsageError(f"process {pid} does not stop; look at {folder / 'server.log'}")
            time.sleep(_LOOK_SECONDS)
    write(f"stopped (process {pid})\n")
    return 0
