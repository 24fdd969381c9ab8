"""What the command of a container says about how long it runs and how it ends, as far as one can tell by reading it.

No container runs here, but many commands are plain enough: `sleep 30`, `sh -c "echo hi; sleep 5; exit 3"`, an endless
loop. What a pod's annotations say goes before; a command that is not understood says nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_ENDLESS: Final = frozenset({("while", "true"), ("while", ":"), ("until", "false")})
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# What follows depends on something that is not known here.
_UNKNOWN: Final = frozenset({"if", "case", "for", "while", "until", "wait", "exec", "(", "{", "||", "|", "&"})


@dataclass(frozen=True, slots=True)
class Ending:
    """`seconds` None: never, by itself."""

    seconds: float | None
    code: int = 0


@lru_cache(maxsize=4096)
def ending(argv: tuple[str, ...]) -> Ending | None:
    """None: the command says nothing that is understood."""
    if not argv:
        return None
    if argv[0].rpartition("/")[2] in _SHELLS:
        script = _script(argv[1:])
        return None if script is None else _run(_statements(script))
    return _run(iter([list(argv)]))


def _script(words: Sequence[str]) -> str | None:
    """The text after -c (alone, or last of several letters: -ec)."""
    for place, word in enumerate(words):
        if word.startswith("-") and word.endswith("c"):
            return words[place + 1] if place + 1 < len(words) else None
        if not word.startswith("-"):
            return None
    return None


def _statements(script: str) -> Iterator[list[str]]:
    """Simple commands, one after the other; an operator that is more than an order is a command of its own."""
    words = shlex.shlex(script.replace("\n", ";"), posix=True, punctuation_chars=True)
    words.commenters = ""
    found: list[str] = []
    try:
        for word in words:
            if word in {";", "&&", ";;"}:
                yield found
                found = []
            elif set(word) <= set("();|&"):
                yield [word.strip(";") or word]
                found = []
            else:
                found.append(word)
    except ValueError:  # a quote that does not end
        found = ["("]
    yield found


def _run(statements: Iterator[list[str]]) -> Ending | None:
    """Add up sleeps until something ends it. A text without any of them says nothing."""
    seconds, told, code = 0.0, False, 0
    for words in filter(None, statements):
        head = words[0].rpartition("/")[2]
        if head == "exit":
            last = words[1] if len(words) > 1 else str(code)
            return Ending(seconds, int(last)) if last.isdigit() and int(last) <= 255 else None
        if tuple(words[:2]) in _ENDLESS or words == ["sleep", "infinity"]:
            return Ending(None)
        length = _seconds(words[1:]) if head == "sleep" else 0.0
        if length is None or head in _UNKNOWN or set(head) <= set("();|&"):
            return None
        seconds, code = seconds + length, int(head == "false")
        told = told or head in {"sleep", "true", "false"}
    return Ending(seconds, code) if told else None


def _seconds(times: Sequence[str]) -> float | None:
    total = 0.0
    for text in times:
        unit = _UNITS.get(text[-1:], 0.0)
        try:
            total += float(text[:-1]) * unit if unit else float(text)
        except ValueError:
            return None
    return total if times and 0 <= total < 1e9 else None
