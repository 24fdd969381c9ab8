"""The little of a shell that tells how a script ends: order, sleeps, exits, conditions on variables, counted loops.

No file is looked at and no program is run. Whatever depends on one, or on a variable that the pod does not say, is not
known, and then neither is what comes after it. Scripts are short here: longer or deeper ones are not read at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

LONGEST: Final = 16_384  # characters of a script
DEEPEST: Final = 10  # blocks within each other
UNKNOWN: Final = "\0"  # in a word: what stands here is not known
_OPERATORS: Final = (";;", "&&", "||", ";", "\n", "|", "&", "(", ")")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SEQ: Final = re.compile(r"\s*seq\s+(-?\d{1,9})(?:\s+(-?\d{1,9}))?(?:\s+(-?\d{1,9}))?\s*")
_ORDER: Final = frozenset({";", "\n", "&&", ";;"})
_COMPARE: Final = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


class NotKnownError(Exception):
    """From here on it depends on something that cannot be seen."""


@dataclass(frozen=True, slots=True)
class Operator:
    text: str


@dataclass(slots=True)
class Command:
    """Words as they are written: variables are put in when it is its turn."""

    words: list[str]


@dataclass(slots=True)
class If:
    """(condition, what follows) one after the other; an `else` has no condition."""

    branches: list[tuple[list[Statement], list[Statement]]] = field(default_factory=list)


@dataclass(slots=True)
class For:
    name: str
    items: list[str]
    body: list[Statement]


@dataclass(slots=True)
class While:
    """`while true` and its like; any other condition is not known."""

    words: tuple[str, ...]


Statement = Command | If | For | While | Operator


# ---- words


def words(script: str) -> Iterator[str | Operator]:
    """Words as they are written, quotes included, and operators. A quote that does not end: NotKnownError."""
    place, end = 0, len(script)
    while place < end:
        if script[place] in " \t\r":
            place += 1
        elif script[place] == "#":
            place = _until(script, "\n", place)
        elif found := next((one for one in _OPERATORS if script.startswith(one, place)), None):
            place += len(found)
            yield Operator(found)
        else:
            start = place
            place = _word(script, place)
            yield script[start:place]


def _until(script: str, stop: str, place: int) -> int:
    found = script.find(stop, place)
    return len(script) if found < 0 else found


def _word(script: str, place: int) -> int:
    """Where the word that begins here ends."""
    while place < len(script):
        char = script[place]
        if char == "\\":
            place += 2
        elif char in "'\"`":
            place = _closing(script, place, char) + 1
        elif script.startswith("$(", place):
            place = _closing_bracket(script, place + 1) + 1
        elif char in " \t\r" or any(script.startswith(one, place) for one in _OPERATORS):
            break
        else:
            place += 1
    return min(place, len(script))


def _closing(script: str, place: int, quote: str) -> int:
    place += 1
    while place < len(script) and script[place] != quote:
        place += 2 if script[place] == "\\" and quote != "'" else 1
    if place >= len(script):
        raise NotKnownError
    return place


def _closing_bracket(script: str, place: int) -> int:
    depth = 0
    for at in range(place, len(script)):
        depth += (script[at] == "(") - (script[at] == ")")
        if depth == 0:
            return at
    raise NotKnownError


def expanded(word: str, env: Mapping[str, str]) -> str:
    """Without its quotes, with the variables that are known."""
    found, place, quote = [], 0, ""
    while place < len(word):
        char = word[place]
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif char == "`" and quote != "'":
            return UNKNOWN
        elif char == "\\" and quote != "'":
            place += 1
            found.append(word[place : place + 1])
        elif char == "$" and quote != "'":
            value, place = _variable(word, place + 1, env)
            found.append(value)
            continue
        elif not quote and char in "*?":
            found.append(UNKNOWN)  # names of files
        else:
            found.append(char)
        place += 1
    return "".join(found)


def _variable(word: str, place: int, env: Mapping[str, str]) -> tuple[str, int]:
    """What stands after a dollar, and where it ends."""
    if word.startswith("{", place):
        end = _until(word, "}", place)
        name = word[place + 1 : end]
        return (env.get(name, UNKNOWN) if _NAME.fullmatch(name) else UNKNOWN), end + 1
    if word.startswith("(", place):
        return UNKNOWN, _closing_bracket(word, place) + 1
    named = _NAME.match(word, place)
    if named:
        return env.get(named.group(), UNKNOWN), named.end()
    return UNKNOWN, place + 1  # $?, $1, $@


# ---- statements


class Parser:
    def __init__(self, script: str) -> None:
        self._words = list(words(script))
        self._place = 0

    def parse(self) -> list[Statement]:
        return self._block((), 0)

    def _peek(self) -> str | Operator | None:
        return self._words[self._place] if self._place < len(self._words) else None

    def _block(self, ends: tuple[str, ...], depth: int) -> list[Statement]:
        """Up to one of the words in `ends`, which is left where it is."""
        if depth > DEEPEST:
            raise NotKnownError
        found: list[Statement] = []
        while (word := self._peek()) is not None:
            if isinstance(word, Operator):
                self._place += 1
                if word.text not in _ORDER:
                    found.append(word)
            elif word in ends:
                return found
            else:
                found.append(self._statement(word, depth))
        if ends:
            raise NotKnownError  # a block that does not end
        return found

    def _statement(self, word: str, depth: int) -> Statement:
        if word == "if":
            return self._if(depth)
        if word == "for":
            return self._for(depth)
        if word in {"while", "until"}:
            return self._while(depth)
        return Command(self._simple())

    def _simple(self) -> list[str]:
        found = []
        while isinstance(word := self._peek(), str):
            found.append(word)
            self._place += 1
        return found

    def _if(self, depth: int) -> If:
        made = If()
        word = "if"
        while word in {"if", "elif"}:
            self._place += 1
            condition = self._block(("then",), depth + 1)
            self._place += 1
            made.branches.append((condition, self._block(("elif", "else", "fi"), depth + 1)))
            word = str(self._peek())
        self._place += 1
        if word == "else":
            made.branches.append(([], self._block(("fi",), depth + 1)))
            self._place += 1
        return made

    def _for(self, depth: int) -> For:
        _, name, *items = [*self._simple(), "", ""]
        body = self._body(depth)
        return For(name, [item for item in items if item][1:], body)

    def _while(self, depth: int) -> While:
        head = tuple(self._simple())
        self._body(depth)
        return While(head)

    def _body(self, depth: int) -> list[Statement]:
        while self._peek() in (Operator(";"), Operator("\n")):
            self._place += 1
        if self._peek() != "do":
            raise NotKnownError
        self._place += 1
        found = self._block(("done",), depth + 1)
        self._place += 1
        return found


# ---- conditions and loops


def holds(condition: list[Statement], env: Mapping[str, str]) -> bool:
    """Of a condition that is made of tests, one after the other or joined by `&&`."""
    if not condition:
        return True  # else
    return all(_test(one, env) for one in condition)


def _test(statement: Statement, env: Mapping[str, str]) -> bool:
    if not isinstance(statement, Command):
        raise NotKnownError
    given = [expanded(word, env) for word in statement.words]
    wanted = True
    while given and given[0] == "!":
        given, wanted = given[1:], not wanted
    if given in (["true"], [":"]):
        return wanted
    if given == ["false"]:
        return not wanted
    closing = {"[": "]", "[[": "]]"}.get(given[0] if given else "")
    if closing is not None and given[-1] == closing:
        return _compared(given[1:-1]) is wanted
    if given and given[0] == "test":
        return _compared(given[1:]) is wanted
    raise NotKnownError


def _compared(given: list[str]) -> bool:
    if given and given[0] == "!":
        return not _compared(given[1:])
    if any(UNKNOWN in word for word in given):
        raise NotKnownError
    if len(given) == 2 and given[0] in {"-z", "-n"}:
        return bool(given[1]) is (given[0] == "-n")
    if len(given) == 3 and given[1] in {"=", "==", "!="}:
        return (given[0] == given[2]) is (given[1] != "!=")
    if len(given) == 3 and given[1] in _COMPARE and all(re.fullmatch(r"-?\d{1,18}", given[at]) for at in (0, 2)):
        return bool(_COMPARE[given[1]](int(given[0]), int(given[2])))
    raise NotKnownError


def rounds(loop: For, env: Mapping[str, str]) -> int:
    """How often a counted loop goes round."""
    if len(loop.items) == 1 and loop.items[0].startswith("$(") and loop.items[0].endswith(")"):
        found = _SEQ.fullmatch(loop.items[0][2:-1])
        if found is None:
            raise NotKnownError
        numbers = [int(one) for one in found.groups() if one is not None]
        first = numbers[0] if len(numbers) > 1 else 1
        step = numbers[1] if len(numbers) > 2 else 1
        last = numbers[-1]
        return max(0, (last - first) // step + 1) if step else 0
    given = [expanded(item, env) for item in loop.items]
    if any(UNKNOWN in word or "{" in word for word in given):
        raise NotKnownError
    return len(given)


def assigned(statement: list[str], env: Mapping[str, str]) -> dict[str, str] | None:
    """The variables that a statement sets, if that is all it does."""
    given = statement[1:] if statement[:1] == ["export"] else statement
    found = [_ASSIGNED.fullmatch(word) for word in given]
    if not given or not all(found):
        return None
    return {one.group(1): expanded(one.group(2), env) for one in found if one is not None}
