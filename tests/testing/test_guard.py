"""Nothing outlives a test: neither processes nor folders, however the test ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.testing.environment.process import GuardError, Processes

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
# A process that, like kube-apiserver could, has a child of its own.
PARENT = [sys.executable, "-c", "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"]
VICTIM = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it, and so would this
from kohort.testing.environment.process import Processes
folder = Path(sys.argv[1])
folder.mkdir()
processes = Processes(folder)
print(processes.start("one", ["sleep", "600"], log=folder / "log"), processes.guard_pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # nobody may be there to collect it, but it is dead


def eventually(true: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_close_kills_and_removes(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    folder.mkdir()
    processes = Processes(folder)
    pid = processes.start("one", PARENT, log=folder / "log")
    group = os.getpgid(pid)
    assert alive(pid)
    processes.close()
    assert not alive(pid)
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


def test_keep_leaves_the_folder(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.start("one", SLEEPER, log=tmp_path / "log")
    processes.keep_folder()
    processes.close()
    assert (tmp_path / "log").exists()


def test_a_process_that_ends_by_itself_is_reported_with_its_code(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        processes.start(
            "short", [sys.executable, "-c", "print('last words'); raise SystemExit(7)"], log=tmp_path / "log"
        )
        assert eventually(lambda: processes.exited.get("short") == 7)
        assert (tmp_path / "log").read_text() == "last words\n"
    finally:
        processes.close()


def test_stop_and_start_again(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        first = processes.start("one", SLEEPER, log=tmp_path / "log")
        processes.stop("one")
        assert not alive(first)
        second = processes.start("one", SLEEPER, log=tmp_path / "log")
        assert alive(second)
        assert second != first
        assert processes.exited == {}
    finally:
        processes.close()


def test_a_binary_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    try:
        with pytest.raises(GuardError, match="one: cannot start /no/such/binary"):
            processes.start("one", ["/no/such/binary"], log=tmp_path / "log")
    finally:
        processes.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_test_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "environment"
    victim = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert victim.stdout is not None
    pid, guard = map(int, victim.stdout.readline().split())
    assert alive(pid)
    victim.send_signal(number)
    victim.wait()
    victim.stdout.close()
    assert eventually(lambda: not alive(pid))
    assert eventually(lambda: not alive(guard))
    assert eventually(lambda: not folder.exists())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process die with its parent by itself")
def test_a_killed_guard_takes_its_processes_along(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    pid = processes.start("one", SLEEPER, log=tmp_path / "log")
    os.kill(processes.guard_pid, signal.SIGKILL)
    assert eventually(lambda: not alive(pid))
    assert eventually(lambda: not alive(processes.guard_pid))
    with pytest.raises(GuardError, match=r"gone|does not answer"):
        processes.start("two", SLEEPER, log=tmp_path / "log")
    processes.close()
