"""Processes of an environment, as seen by the test: started, stopped and watched through the guard."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GUARD = Path(__file__).with_name("guard.py")
_REPORT_SECONDS = 10.0


class GuardError(Exception):
    """The guard is gone or could not do what it was told."""


class Processes:
    """The children of one guard, by name. Use from one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self.pids: dict[str, int] = {}
        self.exited: dict[str, int] = {}
        self._reports: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        # -I and -S: nothing of the user's environment can break or slow the guard.
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name="kohort-environment-guard", daemon=True)
        self._reader.start()
        self._tell(folder=str(folder))

    @property
    def guard_pid(self) -> int:
        return self._guard.pid

    def start(self, name: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> int:
        self.exited.pop(name, None)
        command: dict[str, object] = {"start": name, "argv": list(argv), "log": str(log)}
        self._tell(**command, env=dict(env) if env is not None else None)
        report = self._await(lambda r: name in (r.get("started"), r.get("failed")))
        if "failed" in report:
            raise GuardError(f"{name}: cannot start {argv[0]}: {report['error']}")
        self.pids[name] = int(report["pid"])
        return self.pids[name]

    def stop(self, name: str) -> None:
        if self.pids.pop(name, None) is not None:
            self._tell(stop=name)
            self._await(lambda r: r.get("stopped") == name)

    def keep_folder(self) -> None:
        self._tell(keep=True)

    def close(self) -> None:
        """End of the environment: the guard sees the end of its input, kills, removes, exits."""
        with contextlib.suppress(OSError):
            if self._guard.stdin is not None:
                self._guard.stdin.close()
        self._guard.wait()
        self._reader.join(timeout=_REPORT_SECONDS)
        if self._guard.stdout is not None:
            self._guard.stdout.close()
        self.pids.clear()

    def _tell(self, **command: object) -> None:
        line = json.dumps({key: value for key, value in command.items() if value is not None}) + "\n"
        try:
            assert self._guard.stdin is not None
            self._guard.stdin.write(line.encode())
            self._guard.stdin.flush()
        except OSError as error:
            raise GuardError(f"the guard of the environment is gone (exit code {self._guard.poll()})") from error

    def _read(self) -> None:
        assert self._guard.stdout is not None
        for line in self._guard.stdout:
            report = json.loads(line)
            with self._changed:
                if "exited" in report:
                    self.exited[report["exited"]] = report["code"]
                    self.pids.pop(report["exited"], None)
                else:
                    self._reports.append(report)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _await(self, wanted: Any) -> dict[str, Any]:
        end = time.monotonic() + _REPORT_SECONDS
        with self._changed:
            while True:
                for report in self._reports:
                    if wanted(report):
                        self._reports.remove(report)
                        return report
                left = end - time.monotonic()
                if left <= 0 or not self._reader.is_alive():
                    raise GuardError(f"the guard of the environment does not answer (exit code {self._guard.poll()})")
                self._changed.wait(min(left, 0.5))
