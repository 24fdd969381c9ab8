"""How long the embedded API server takes to start: from the start of its process until a client sees /readyz say 200.

    python -m bench.ready             # median of 5 starts of each sort; on a busy machine look at processor time

Starts are as after an installation, which compiles Python to bytecode (so does `make setup`); what they cost before
that is a line of its own. `python -c pass` and `import aiohttp` of the same run say how fast the machine is.
"""

from __future__ import annotations

import compileall
import http.client
import os
import re
import resource
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import kohort
from bench.result import Result
from kohort.api.releases import NEWEST
from kohort.cli.envtest import assets

PACKAGE = Path(kohort.__file__).parent
KOHORT = (sys.executable, "-m", "kohort.cli.main")
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"


@dataclass(frozen=True, slots=True)
class Start:
    seconds: float
    cpu: float  # of the process until then
    custom: float = 0.0  # seconds of the first list of JobSets right after it


def compiled() -> None:
    """What pip does when it installs a package."""
    compileall.compile_dir(str(PACKAGE), quiet=2)


def environment(sources: Path | None = None) -> dict[str, str]:
    """`sources`: where Kohort is without its bytecode, as after a fresh checkout."""
    others = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return others if sources is None else {**others, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(sources)}


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(
    folder: Path, *options: str, sources: Path | None = None
) -> Iterator[tuple[subprocess.Popen[str], str, Start]]:
    """A bare server that has just become ready: its process, its URL, and what that took."""
    command = [*KOHORT, "up", "--bare", "--port", "0", "--data-dir", str(folder), *options]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(sources))
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"https://[\w.:]+", line)
        if found is None or "ready" not in line:
            raise RuntimeError(f"the server did not start: {line}")
        asked = client(folder, found[0])
        code, _ = ask(asked, "/readyz", "")
        start = Start(time.perf_counter() - began, cpu(process.pid))
        token = re.search(r'token: "([^"]+)"', (folder / "kubeconfig").read_text())
        assert token is not None
        then = time.perf_counter()
        listed, _ = ask(asked, JOBSETS, token[1])
        if (code, listed) != (200, 200):
            raise RuntimeError(f"/readyz answers {code}, {JOBSETS} {listed}")
        yield process, found[0], Start(start.seconds, start.cpu, time.perf_counter() - then)
        asked.close()
    finally:
        process.terminate()
        process.wait(30)


def client(folder: Path, url: str) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
    parts = urlsplit(url)
    assert parts.hostname is not None
    return http.client.HTTPSConnection(parts.hostname, parts.port, context=context)


def ask(connection: http.client.HTTPSConnection, path: str, token: str) -> tuple[int, bytes]:
    connection.request("GET", path, headers={"authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def started(*options: str, bytecode: bool = True, again: bool = False) -> Start:
    """One start on an empty folder, or on one that a server was on before."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, sources = Path(temporary) / "data", None
        if not bytecode:
            sources = Path(temporary) / "src"
            shutil.copytree(PACKAGE, sources / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
        if again:
            with running(folder):
                pass
        with running(folder, *options, sources=sources) as (_, _, start):
            return start


def detached() -> Start:
    """The whole command `kohort up --bare --detach`."""
    with tempfile.TemporaryDirectory() as temporary:
        where = ("--data-dir", f"{temporary}/data")
        found = _of_children([*KOHORT, "up", "--bare", "--detach", "--port", "0", *where])
        subprocess.run([*KOHORT, "down", *where], check=True, capture_output=True, env=environment())
        return found


def control_plane() -> Start:
    """What controller-runtime's envtest does at a start: etcd, kube-apiserver --help, kube-apiserver; it asks whether
    they are well every tenth of a second."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = assets.installed(Path(temporary), NEWEST)
        store, server = free_port(), free_port()
        began = time.perf_counter()
        with _program(folder / "etcd", f"--listen-client-urls=http://127.0.0.1:{store}") as first:
            _well(http.client.HTTPConnection("127.0.0.1", store), "/health")
            subprocess.run([folder / "kube-apiserver", "--help"], check=True, capture_output=True)
            with _program(folder / "kube-apiserver", f"--cert-dir={temporary}", f"--secure-port={server}") as second:
                context = ssl._create_unverified_context()
                _well(http.client.HTTPSConnection("127.0.0.1", server, context=context), "/healthz")
                return Start(time.perf_counter() - began, cpu(first) + cpu(second))


@contextmanager
def _program(*command: str | Path) -> Iterator[int]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def _well(connection: http.client.HTTPConnection, path: str) -> None:
    while True:
        try:
            connection.request("GET", path)
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            connection.close()
        time.sleep(0.1)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def _of_children(command: list[str]) -> Start:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment())
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


ROWS: tuple[tuple[str, Callable[[], Start]], ...] = (
    ("python -c pass", lambda: _of_children([sys.executable, "-c", "pass"])),
    ('python -c "import aiohttp"', lambda: _of_children([sys.executable, "-c", "import aiohttp"])),
    ("kohort up --bare, an empty folder", started),
    ("  the same folder again", lambda: started(again=True)),
    ("  --in-memory", lambda: started("--in-memory")),
    ("  not compiled yet", lambda: started(bytecode=False)),
    ("  --detach, the command (its own processor time)", detached),
    ("etcd and kube-apiserver, as envtest starts them", control_plane),
)


def median(make: Callable[[], Start], times: int = 5) -> Start:
    found = [make() for _ in range(times)]
    return Start(*(statistics.median(getattr(one, name) for one in found) for name in ("seconds", "cpu", "custom")))


def run() -> list[Result]:
    compiled()
    return [
        Result("kohort up --bare, until ready", min(started().seconds for _ in range(5)), promise=1.0),
        Result("envtest: etcd and kube-apiserver", min(control_plane().seconds for _ in range(5)), promise=1.0),
    ]


def main() -> int:
    compiled()
    started()
    print(f"{'median of 5':<52}{'seconds':>10}{'processor':>12}{'first JobSets':>16}")
    for name, make in ROWS:
        found = median(make)
        custom = f"{found.custom * 1e3:.0f} ms" if found.custom else ""
        print(f"{name:<52}{found.seconds:>10.2f}{found.cpu:>12.2f}{custom:>16}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
