"""What the command of a container says about how long it runs and how it ends, as far as one can tell by reading it.

No container runs here, but many commands are plain enough: `sleep 30`, `sh -c "echo hi; sleep 5; exit 3"`, an endless
loop, `if [ "$JOB_COMPLETION_INDEX" = 0 ]; then exit 1; fi`. What a pod's annotations say goes before; a command that is
not understood says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from kohort.sim import shell
from kohort.sim.shell import Command, For, If, NotKnownError, Statement, While

Env = tuple[tuple[str, str], ...]
_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_ENDLESS: Final = frozenset({("while", "true"), ("while", ":"), ("until", "false")})
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# What follows depends on something that is not known here.
_UNKNOWN: Final = frozenset({"case", "wait", "exec", "{", "function", "break", "continue", "return"})
_REFERENCE: Final = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


@dataclass(frozen=True, slots=True)
class Ending:
    """`seconds` None: never, by itself."""

    seconds: float | None
    code: int = 0


def ending(argv: tuple[str, ...], env: Env = ()) -> Ending | None:
    """None: the command says nothing that is understood. `env`: the variables that the pod gives the container."""
    return _ending(argv, env if any("$" in word for word in argv) else ())


@lru_cache(maxsize=4096)
def _ending(argv: tuple[str, ...], env: Env) -> Ending | None:
    known = dict(env)
    argv = tuple(referred(word, known) for word in argv)
    if not argv or sum(map(len, argv)) > shell.LONGEST:
        return None
    run = _Run(known)
    try:
        if argv[0].rpartition("/")[2] in _SHELLS:
            script = _script(argv[1:])
            return None if script is None else run.whole(shell.Parser(script).parse())
        return run.whole([Command(list(map(_quoted, argv)))])
    except NotKnownError:
        return None


def referred(text: str, env: dict[str, str]) -> str:
    """`$(NAME)` as a kubelet puts variables into commands; names that it does not know stay as they are."""

    def value(found: re.Match[str]) -> str:
        return "$" if found.group() == "$$" else env.get(found.group(1), found.group())

    return _REFERENCE.sub(value, text)


def _quoted(word: str) -> str:
    """A word that no shell reads."""
    return "'" + word.replace("'", "'\\''") + "'"


def _script(words: Sequence[str]) -> str | None:
    """The text after -c (alone, or last of several letters: -ec)."""
    for place, word in enumerate(words):
        if word.startswith("-") and word.endswith("c"):
            return words[place + 1] if place + 1 < len(words) else None
        if not word.startswith("-"):
            return None
    return None


@dataclass(slots=True)
class _Run:
    """Adds up sleeps until something ends it."""

    env: dict[str, str]
    seconds: float = 0.0
    code: int = 0
    told: bool = field(default=False)  # whether anything was said

    def whole(self, statements: Sequence[Statement]) -> Ending | None:
        """A text without any sleep or end says nothing."""
        end = self.block(statements)
        if end is None and self.told:
            end = Ending(self.seconds, self.code)
        return end

    def block(self, statements: Sequence[Statement]) -> Ending | None:
        """None: it goes on after it."""
        for one in statements:
            end = self._statement(one)
            if end is not None:
                return end
        return None

    def _statement(self, one: Statement) -> Ending | None:
        if isinstance(one, Command):
            return self._command(one)
        if isinstance(one, If):
            chosen = next((body for condition, body in one.branches if shell.holds(condition, self.env)), [])
            return self.block(chosen)
        if isinstance(one, For):
            return self._loop(one)
        if isinstance(one, While) and one.words[:2] in _ENDLESS:
            return Ending(None)
        raise NotKnownError

    def _loop(self, loop: For) -> Ending | None:
        times, before = shell.rounds(loop, self.env), self.seconds
        if not times:
            return None
        self.env[loop.name] = shell.UNKNOWN
        end = self.block(loop.body)
        self.seconds = before + (self.seconds - before) * (times if end is None else 1)
        if self.seconds >= 1e9:
            raise NotKnownError
        return end

    def _command(self, command: Command) -> Ending | None:
        new = shell.assigned(command.words, self.env)
        if new is not None:
            self.env |= new
            return None
        words = [shell.expanded(word, self.env) for word in command.words]
        head = words[0].rpartition("/")[2]
        if head == "exit":
            last = words[1] if len(words) > 1 else str(self.code)
            if not last.isdigit() or len(last) > 3 or int(last) > 255:
                raise NotKnownError
            return Ending(self.seconds, int(last))
        if words == ["sleep", "infinity"]:
            return Ending(None)
        length = _seconds(words[1:]) if head == "sleep" else 0.0
        if length is None or head in _UNKNOWN or head.startswith("("):
            raise NotKnownError
        self.seconds, self.code = self.seconds + length, int(head == "false")
        self.told = self.told or head in {"sleep", "true", "false"}
        return None


def _seconds(times: Sequence[str]) -> float | None:
    total = 0.0
    for text in times:
        unit = _UNITS.get(text[-1:], 0.0)
        try:
            total += float(text[:-1]) * unit if unit else float(text)
        except ValueError:
            return None
    return total if times and 0 <= total < 1e9 else None
