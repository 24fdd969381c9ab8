"""The two schedulers, each as a process that is started when a case says so."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.e2e.objects import SCHEDULER
from kohort.testing.environment import Environment
from kohort.testing.environment.probe import Probe, free_ports

KUBE, KOHORT = "kube-scheduler", "kohort"
NAMES: Final = (KUBE, KOHORT)
_READY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Running:
    pids: tuple[int, ...]


@contextmanager
def started(name: str, env: Environment, *, ready: bool) -> Iterator[Running]:
    """`ready`: whether to wait until it has listed everything and decides."""
    if name == KUBE:
        env.start_component("scheduler")  # returns when it is healthy, which is before it has listed
        yield Running((env.pids()["scheduler"],))
        env.stop_component("scheduler")
        return
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "kohort.scheduler", "--kubeconfig", str(env.kubeconfig)]
    command += ["--scheduler-name", SCHEDULER, "--listen", f"127.0.0.1:{port}"]
    with Path(env.logs / "kohort.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            if ready:
                _await(process, port)
            yield Running((process.pid,))
        finally:
            process.terminate()
            process.wait(30)


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _READY_SECONDS
    with closing(Probe(port, "/readyz", tls=False)) as probe:
        while not probe.answers():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the scheduler is not ready; its exit code is {process.poll()}")
            time.sleep(0.05)
