"""The guard: a small process that owns an environment's processes and folder, so that nothing outlives the test.

It starts what it is told to on standard input (one JSON object per line) and reports on standard output. When its
input ends, however the other side died, it kills everything it started and removes the folder. If the guard
itself is killed, the kernel kills its children (PR_SET_PDEATHSIG, Linux). The guard runs as a plain script with the
standard library only, in its own session, so that neither Ctrl-C nor an import can get at it.

Commands: {"folder": path} · {"start": name, "argv": [...], "log": path, "env": {...}} · {"stop": name} ·
{"keep": true}. Reports: {"started": name, "pid": n} · {"failed": name, "error": text} ·
{"exited": name, "code": n} · {"stopped": name}.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def die_with_parent() -> None:
    """In the child between fork and exec: have the kernel kill us when the guard is gone."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Guard:
    def __init__(self) -> None:
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.folder: Path | None = None
        self.keep = False

    def say(self, **report: object) -> None:
        # The other side may be gone; then the end of our input will end us.
        with contextlib.suppress(OSError):
            sys.stdout.write(json.dumps(report) + "\n")
            sys.stdout.flush()

    def obey(self, command: dict[str, Any]) -> None:
        if "folder" in command:
            self.folder = Path(command["folder"])
        elif "keep" in command:
            self.keep = bool(command["keep"])
        elif "start" in command:
            self.start(command)
        elif "stop" in command:
            self.stop(command["stop"])

    def start(self, command: dict[str, Any]) -> None:
        name = command["start"]
        try:
            with Path(command["log"]).open("ab") as log:
                child = subprocess.Popen(
                    command["argv"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=command.get("env"),
                    start_new_session=True,
                    preexec_fn=die_with_parent,  # noqa: PLW1509 - the guard has no threads
                )
        except OSError as error:
            self.say(failed=name, error=str(error))
            return
        self.children[name] = child
        self.say(started=name, pid=child.pid)

    def stop(self, name: str) -> None:
        child = self.children.pop(name, None)
        if child is not None:
            self.kill(child)
        self.say(stopped=name)

    def kill(self, child: subprocess.Popen[bytes]) -> None:
        # No polite end: the store of an environment is consistent at any moment, and is thrown away with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    def reap(self) -> None:
        for name, child in list(self.children.items()):
            code = child.poll()
            if code is not None:
                del self.children[name]
                self.say(exited=name, code=code)

    def end(self) -> None:
        for name in list(self.children):
            self.kill(self.children.pop(name))
        if self.folder is not None and not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    guard = Guard()
    pending = b""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            while True:
                if selector.select(timeout=0.2):
                    data = os.read(0, 65536)
                    if not data:
                        return
                    *lines, pending = (pending + data).split(b"\n")
                    for line in lines:
                        guard.obey(json.loads(line))
                guard.reap()
    finally:
        guard.end()


if __name__ == "__main__":
    main()
