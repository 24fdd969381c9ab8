"""The two schedulers, each as a process that is started when a case says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.e2e.objects import SCHEDULER
from bench.ready import environment
from kohort.testing.environment import Environment
from kohort.testing.environment.probe import Probe, free_ports

KUBE, KOHORT = "kube-scheduler", "kohort"
NAMES: Final = (KUBE, KOHORT)
_READY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class RunningScheduler:
    """`restart`: killed, not asked to stop, and started anew at once."""

    pids: Callable[[], tuple[int, ...]]
    restart: Callable[[], None]


@contextmanager
def started(name: str, env: Environment, *, ready: bool) -> Iterator[RunningScheduler]:
    """`ready`: whether to wait until it has listed everything and decides."""
    with _kube(env) if name == KUBE else _kohort(env, ready=ready) as running:
        yield running


@contextmanager
def _kube(env: Environment) -> Iterator[RunningScheduler]:
    def pids() -> tuple[int, ...]:
        return (env.pids()["scheduler"],)

    def restart() -> None:
        os.kill(pids()[0], signal.SIGKILL)
        env.stop_component("scheduler")
        env.start_component("scheduler")

    env.start_component("scheduler")  # returns when it is healthy, which is before it has listed
    yield RunningScheduler(pids, restart)
    env.stop_component("scheduler")


@contextmanager
def _kohort(env: Environment, *, ready: bool) -> Iterator[RunningScheduler]:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "kohort.scheduler", "--kubeconfig", str(env.kubeconfig)]
    command += ["--scheduler-name", SCHEDULER, "--listen", f"127.0.0.1:{port}"]
    with Path(env.logs / "kohort.log").open("wb") as log:

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment())

        def restart() -> None:
            processes[-1].kill()
            processes[-1].wait(30)
            processes.append(start())

        processes = [start()]
        try:
            if ready:
                _await(processes[-1], port)
            yield RunningScheduler(lambda: (processes[-1].pid,), restart)
        finally:
            processes[-1].terminate()
            processes[-1].wait(30)


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _READY_SECONDS
    with closing(Probe(port, "/readyz", tls=False)) as probe:
        while not probe.answers():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the scheduler is not ready; its exit code is {process.poll()}")
            time.sleep(0.05)
