"""Regular expressions that users write: the syntax and meaning of Go's `regexp`, in time linear in the text.

Python's `re` is for our own constants only: it goes back and forth, so that `^(\\w+\\s?)+!$` never returns on an
ordinary sentence, and it means other things by `$`, `\\z` and `\\pL`. RE2 has the syntax of Go's package;
where the two differ (`\\C`, depth, the words of errors) this module takes Go's side. See docs/decisions.

The library is loaded by the first pattern: a server without one starts without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

_MOST_BYTES: Final = 64 << 10  # of a pattern; a CRD's pattern may not be larger than its whole body anyway
_DEEPEST: Final = 1000  # as Go's parser has it
_SMALL: Final = 2 << 20  # bytes that a compiled pattern and its automaton may take
_LARGE: Final = 8 << 20  # for the few that need more, such as \pL{1,253}
_MOST_STEPS: Final = 1 << 22  # instructions times bytes: about 100 ms if the automaton has no room and RE2 simulates it
_WORDS: Final = {  # of RE2, and what Go says in its place
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "invalid named capture group": "invalid named capture",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
    "out of memory": "expression too large",
}


class RegexpError(ValueError):
    """Not a regular expression. The text is the one that Go's `regexp.Compile` has."""


class TooLongError(ValueError):
    """Such a text would be searched for too long: the event loop waits for nobody's pattern."""


class Regexp:
    """A compiled pattern. Texts are searched as UTF-8, as in Go; a surrogate without its pair counts as U+FFFD."""

    __slots__ = ("_compiled", "pattern")

    def __init__(self, pattern: str, compiled: Any) -> None:
        self.pattern = pattern
        self._compiled = compiled

    @property
    def size(self) -> int:
        """Instructions of the program: time is bounded by this times the length of the text."""
        return int(self._compiled.programsize)

    def search(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the text."""
        return self._compiled.search(self._bounded(text)) is not None

    def find_all(self, text: str) -> Iterator[tuple[str | None, ...]]:
        """Matches from left to right that do not overlap: each the whole, then its groups (None: took no part)."""
        data = self._bounded(text)
        end = -1
        for found in self._compiled.finditer(data):
            start, stop = found.span()
            if start == stop and (start == end or _inside(data, start)):
                continue  # Go: no empty match right after a match, none within a character
            end = stop
            yield tuple(None if one is None else one.decode() for one in (found[0], *found.groups()))

    def _bounded(self, text: str) -> bytes:
        data = _bytes(text)
        if len(data) * self.size > _MOST_STEPS:
            raise TooLongError(f"a text of {len(data)} bytes is too long for a pattern of {self.size} instructions")
        return data

    @property
    def groups(self) -> int:
        return int(self._compiled.groups)

    def replace(self, text: str, template: str, count: int = -1) -> str:
        """Matches replaced by `template`, in which \\1 to \\9 are groups and \\\\ is a backslash; -1: all of them."""
        parts, at, data, done = [], 0, self._bounded(text), 0
        for found in self._compiled.finditer(data) if count else ():
            start, stop = found.span()
            if start == stop and (start < at or _inside(data, start)):
                continue
            parts += [data[at:start], _expanded(template, found).encode()]
            at, done = stop, done + 1
            if done == count:
                break
        return b"".join([*parts, data[at:]]).decode()


def compiled(pattern: str) -> Regexp:
    """Raises RegexpError for what Go's package would refuse."""
    try:
        return _cached(pattern, _SMALL)
    except RegexpError as error:
        if "too large" not in str(error) or len(pattern) > _MOST_BYTES:
            raise
        return _large(pattern)


def search(pattern: str, text: str) -> bool:
    return compiled(pattern).search(text)


def problem(pattern: str) -> str:
    """What is wrong with a pattern; empty if nothing is."""
    try:
        compiled(pattern)
    except RegexpError as error:
        return str(error)
    return ""


@lru_cache(maxsize=256)
def _cached(pattern: str, memory: int) -> Regexp:
    data = _bytes(pattern)
    if len(data) > _MOST_BYTES:
        raise _error("expression too large", pattern)
    library = _library()
    options = library.Options()
    options.log_errors = False
    options.max_mem = memory
    try:
        program = library.compile(data, options)
    except library.error as error:
        raise _translated(error.args[0].decode(errors="replace"), pattern) from None
    _refuse(pattern)
    return Regexp(pattern, program)


@lru_cache(maxsize=4)
def _large(pattern: str) -> Regexp:
    return _cached.__wrapped__(pattern, _LARGE)


@lru_cache(maxsize=1)
def _library() -> Any:
    import re2  # type: ignore[import-untyped]

    return re2


def _refuse(pattern: str) -> None:
    """What RE2 takes and Go does not: one byte (\\C), and parentheses without end."""
    at = depth = 0
    in_class = False
    while at < len(pattern):
        sign, two = pattern[at], pattern[at : at + 2]
        if two == "\\Q":
            end = pattern.find("\\E", at)
            at = len(pattern) if end < 0 else end
        elif two == "\\C" and not in_class:
            raise _error("invalid escape sequence", two)
        elif sign == "[":
            in_class = True
        elif sign == "]":
            in_class = False
        elif sign in "()" and not in_class:
            depth += 1 if sign == "(" else -1
            if depth > _DEEPEST:
                raise _error("expression nests too deeply", pattern)
        at += 2 if sign == "\\" else 1


def _translated(text: str, pattern: str) -> RegexpError:
    code, _, fragment = text.partition(": ")
    code = code.strip()
    if code in {"missing )", "unexpected )"} or code.startswith(("pattern too large", "out of memory")):
        fragment = pattern
    return _error(_WORDS.get(code, code), fragment)


def _error(code: str, fragment: str) -> RegexpError:
    return RegexpError(f"error parsing regexp: {code}: `{fragment}`")


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _inside(data: bytes, at: int) -> bool:
    return at < len(data) and data[at] & 0xC0 == 0x80


def _expanded(template: str, found: Any) -> str:
    parts, at = [], 0
    while at < len(template):
        sign = template[at]
        if sign != "\\":
            parts.append(sign)
            at += 1
            continue
        after = template[at + 1 : at + 2]
        if after == "\\":
            parts.append("\\")
        elif after.isdigit() and after.isascii():
            number = int(after)
            if number > len(found.groups()):
                text = f"replacement string references group {number} but regex has only {len(found.groups())} group(s)"
                raise RegexpError(text)
            parts.append((found[number] or b"").decode())
        else:
            raise RegexpError("invalid replacement string: '\\' must be followed by a digit or '\\'")
        at += 2
    return "".join(parts)
