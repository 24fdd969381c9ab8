"""Keys that are pressed while a screen is shown: read at once, and not echoed into it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kohort.kube.clock import Clock

_KEYS: Final = {
    "q": "quit", "Q": "quit", "j": "down", "k": "up", " ": "page down", "g": "home",
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[5~": "page up", "\x1b[6~": "page down", "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home",
}  # fmt: skip
_STROKE: Final = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|.", re.DOTALL)
_PAGE: Final = 5  # lines


class Reader:
    """Who looks at a screen: how far they have gone down in its lists, and whether they have seen enough."""

    def __init__(self) -> None:
        self.down = 0
        self.stopped = False
        self._woken = asyncio.Event()

    def type(self, text: str) -> None:
        """Keys, as the terminal writes them."""
        for stroke in _STROKE.findall(text):
            self._press(stroke)

    def _press(self, stroke: str) -> None:
        said = _KEYS.get(stroke)
        if said == "quit":
            self.stop()
            return
        steps = {"down": 1, "up": -1, "page down": _PAGE, "page up": -_PAGE, "home": -self.down}.get(said or "", 0)
        self.down = max(0, self.down + steps)
        self._woken.set()

    def stop(self) -> None:
        self.stopped = True
        self._woken.set()

    async def turns(self, clock: Clock, seconds: float) -> AsyncIterator[bool]:
        """When it is time to draw again, until it is enough: because so much time has passed (True), or at once because
        of a key."""
        while not self.stopped:
            sleep = asyncio.ensure_future(clock.sleep(seconds))
            try:
                while not sleep.done() and not self.stopped:
                    woken = asyncio.ensure_future(self._woken.wait())
                    await asyncio.wait((sleep, woken), return_when=asyncio.FIRST_COMPLETED)
                    woken.cancel()
                    self._woken.clear()
                    if not self.stopped:
                        yield sleep.done()
            finally:
                sleep.cancel()

    @contextmanager
    def at_keyboard(self) -> Iterator[None]:
        """Within, its keys and the size of its window count, if there is a keyboard. Ctrl-C stays a signal."""
        loop, keyboard = asyncio.get_running_loop(), _keyboard()
        if keyboard is None:
            yield
            return
        number, before = keyboard
        tty.setcbreak(number)
        loop.add_reader(number, self._read, number)
        loop.add_signal_handler(signal.SIGWINCH, self._woken.set)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)
            loop.remove_reader(number)
            termios.tcsetattr(number, termios.TCSADRAIN, before)

    def _read(self, number: int) -> None:
        text = os.read(number, 1024).decode(errors="ignore")
        if not text:  # it is closed: nobody is there any more
            self.stop()
        self.type(text)


def _keyboard() -> tuple[int, Any] | None:
    """Its descriptor, and how it was set; None: somebody else writes what is read."""
    try:
        number = sys.stdin.fileno()
        return number, termios.tcgetattr(number)
    except (OSError, ValueError, termios.error):
        return None
