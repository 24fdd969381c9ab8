"""From text to a tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kohort.cel.values import Uint

# Calls that bind names: how many names, and how many expressions may follow them.
MACROS: Final = {
    "all": {2: 1, 3: 2},
    "exists": {2: 1, 3: 2},
    "exists_one": {2: 1, 3: 2},
    "existsOne": {2: 1, 3: 2},
    "filter": {2: 1},
    "map": {2: 1, 3: 1},
    "sortBy": {2: 1},
    "optMap": {2: 1},
    "optFlatMap": {2: 1},
    "transformList": {3: 2, 4: 2},
    "transformMap": {3: 2, 4: 2},
    "transformMapEntry": {3: 2, 4: 2},
}
_SPACES: Final = frozenset(
    {"optional", "sets", "format", "ip", "strings", "lists", "jsonpatch"}
)  # first halves of functions' names
RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    }
)
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*
    |(?P<bytes>[bB][rR]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|[rR][bB](?:"[^"\n]*"|'[^'\n]*'))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|\d+\.\d+(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+[uU]?)
    |(?P<string>[rR]?(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>\|\||&&|==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DEEPEST: Final = 40


class CelSyntaxError(ValueError):
    """Not an expression, or one of wrong types. `at`: the place in its text."""

    def __init__(self, text: str, at: int = 0) -> None:
        super().__init__(text)
        self.at = at


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """`sort`: literal, name, member, index, optional_member, optional_index, call, method, macro, has, list, map, not,
    neg, binary, choice, struct (an object of a named type). `at`: where in the text it is said to be, as upstream
    counts."""

    sort: str
    value: Any = None
    parts: tuple[Node, ...] = ()
    at: int = 0


@lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    parser = _Parser(list(_tokens(text)))
    try:
        tree = parser.expression()
    except RecursionError:
        raise CelSyntaxError("too deep") from None
    if parser.sort != "end":
        raise CelSyntaxError(f"expected the end, found {parser.text!r}", parser.at)
    return tree


def names(tree: Node) -> set[str]:
    """Variables that an expression speaks of, its own loop variables aside."""
    if tree.sort == "name":
        return {tree.value}
    if tree.sort == "macro":
        target, *bodies = tree.parts
        inner = set().union(*(names(body) for body in bodies)) - set(tree.value[1])
        return names(target) | inner
    found: set[str] = set()
    for part in tree.parts:
        found |= names(part)
    return found


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise CelSyntaxError(f"token recognition error at: {text[at]!r}", at)
        if match.lastgroup is not None:
            yield match.lastgroup, match[0], at
        at = match.end()
    yield "end", "", at


class _Parser:
    """Recursive descent, one method for each level of precedence."""

    def __init__(self, tokens: list[tuple[str, str, int]]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    @property
    def sort(self) -> str:
        return self._tokens[self._next][0]

    @property
    def text(self) -> str:
        return self._tokens[self._next][1]

    @property
    def at(self) -> int:
        return self._tokens[self._next][2]

    def _is(self, *signs: str) -> bool:
        return self.sort == "sign" and self.text in signs

    def _take(self) -> str:
        text = self.text
        self._next += 1
        return text

    def _expect(self, sign: str) -> None:
        if not self._is(sign):
            raise CelSyntaxError(f"expected {sign!r}, found {self.text or 'the end'!r}", self.at)
        self._take()

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CelSyntaxError(f"more than {_DEEPEST} levels deep", self.at)
        found = self._binary(0)
        if self._is("?"):
            at = self.at
            self._take()
            yes = self._binary(0)
            self._expect(":")
            found = Node("choice", None, (found, yes, self.expression()), at)
        self._depth -= 1
        return found

    _LEVELS: Final = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))

    def _binary(self, level: int) -> Node:
        if level == len(self._LEVELS):
            return self._unary()
        found = self._binary(level + 1)
        while self._is(*self._LEVELS[level]) or (level == 2 and self.sort == "name" and self.text == "in"):
            at, sign = self.at, self._take()
            found = Node("binary", sign, (found, self._binary(level + 1)), at)
        return found

    def _unary(self) -> Node:
        at = self.at
        sign = self.text if self._is("!", "-") else ""
        count = 0
        while sign and self._is(sign):
            self._take()
            count += 1
        if count % 2 and sign == "!":
            return Node("not", None, (self._unary(),), at)
        if count % 2:
            inner = self._unary()
            number = inner.sort == "literal" and type(inner.value) in {int, float}
            return Node("literal", -inner.value, (), at) if number else Node("neg", None, (inner,), at)
        return self._member()

    def _member(self) -> Node:
        found = self._primary()
        while self._is(".", "[", "{"):
            at, sign = self.at, self._take()
            if sign == "{":
                found = self._struct(found, at)
                continue
            optional = "optional_" if self._is("?") else ""
            if optional:
                self._take()
            if sign == ".":
                name = self._name()
                method = self._is("(") and not optional
                found = self._method(found, name, at) if method else Node(f"{optional}member", name, (found,), at)
                found = _qualified(found)
            else:
                index = self.expression()
                self._expect("]")
                found = Node(f"{optional}index", None, (found, index), at)
        return found

    def _struct(self, named: Node, at: int) -> Node:
        """Type{field: value, ?field: optional}. The value: type, fields, which are optional, where they stand."""
        kind, optional = _type_name(named), set[int]()
        fields: list[str] = []
        places: list[int] = []
        values: list[Node] = []
        while not self._is("}"):
            if self._is("?"):
                self._take()
                optional.add(len(fields))
            fields.append(self._name())
            places.append(self.at)
            self._expect(":")
            values.append(self.expression())
            if not self._is("}"):
                self._expect(",")
        self._take()
        return Node("struct", (kind, tuple(fields), frozenset(optional), tuple(places)), tuple(values), at)

    def _name(self) -> str:
        if self.sort != "name" or self.text in {"in", *_WORDS}:
            raise CelSyntaxError(f"expected a name, found {self.text or 'the end'!r}", self.at)
        return self._take()

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(")
        found: list[Node] = []
        while not self._is(")"):
            found.append(self.expression())
            if not self._is(")"):
                self._expect(",")
        self._take()
        return tuple(found)

    def _method(self, target: Node, name: str, at: int) -> Node:
        at = self.at
        arguments = self._arguments()
        bound = MACROS.get(name, {}).get(len(arguments), 0)
        if bound and not _is_space(target, name):
            names = [one.value for one in arguments[:bound] if one.sort == "name"]
            if len(names) != bound or len(set(names)) != bound:
                raise CelSyntaxError("argument must be a simple name", arguments[0].at)
            return Node("macro", (name, tuple(names)), (target, *arguments[bound:]), at)
        if _is_space(target, name):
            return Node("call", f"{target.value}.{name}", arguments, at)
        return Node("method", name, (target, *arguments), at)

    def _primary(self) -> Node:
        sort, at = self.sort, self.at
        if sort in {"number", "string", "bytes"}:
            return Node("literal", _READ[sort](self._take(), at), (), at)
        if sort == "name" or self._is("."):
            if sort != "name":  # a name from the root
                self._take()
            return self._named(self._take(), at)
        if self._is("("):
            self._take()
            found = self.expression()
            self._expect(")")
            return found
        if self._is("[", "{"):
            sort, end = ("list", "]") if self._is("[") else ("map", "}")
            optional, items = self._items(end)
            return Node(sort, optional, items, at)
        raise CelSyntaxError(f"expected a value, found {self.text or 'the end'!r}", at)

    def _named(self, name: str, at: int) -> Node:
        if name in {"true", "false", "null"}:
            return Node("literal", _WORDS[name], (), at)
        if name in RESERVED or name == "in":
            raise CelSyntaxError(f"reserved identifier: {name}", at)
        if not self._is("("):
            return Node("name", name, (), at)
        at = self.at
        arguments = self._arguments()
        if name == "has" and len(arguments) == 1:
            if arguments[0].sort != "member":
                raise CelSyntaxError("invalid argument to has() macro", arguments[0].at)
            return Node("has", None, arguments, at)
        return Node("call", name, arguments, at)

    def _items(self, end: str) -> tuple[frozenset[int], tuple[Node, ...]]:
        """Of a map: keys and values in turn. First: the places of those that are left out if they have no value."""
        self._take()
        found: list[Node] = []
        optional: set[int] = set()
        while not self._is(end):
            if self._is("?"):
                self._take()
                optional.add(len(found))
            found.append(self.expression())
            if end == "}":
                self._expect(":")
                found.append(self.expression())
            if not self._is(end):
                self._expect(",")
        self._take()
        return frozenset(optional), tuple(found)


_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


def _qualified(node: Node) -> Node:
    """Names of types with dots are one name."""
    parts, here = [], node
    while here.sort == "member":
        parts.append(here.value)
        here = here.parts[0]
    if (
        here.sort != "name"
        or here.value != "google"
        or parts not in (["Duration", "protobuf"], ["Timestamp", "protobuf"])
    ):
        return node
    return Node("name", f"google.protobuf.{parts[0]}", (), here.at)


def _type_name(node: Node) -> str:
    if node.sort == "member":
        return f"{_type_name(node.parts[0])}.{node.value}"
    if node.sort != "name":
        raise CelSyntaxError("expected the name of a type before '{'", node.at)
    return str(node.value)


def _is_space(target: Node, name: str) -> bool:
    return target.sort == "name" and target.value in _SPACES and name != "format"


def _number(text: str, at: int) -> int | float:
    plain = text.rstrip("uU")
    if "." in plain or ("e" in plain.lower() and plain[:2].lower() != "0x"):
        return float(plain)
    found = int(plain, 16 if plain[:2].lower() == "0x" else 10)
    if plain != text:
        if found >= 1 << 64:
            raise CelSyntaxError("invalid uint literal", at)
        return Uint(found)
    if found > 1 << 63:  # one more than fits: there may be a minus before it
        raise CelSyntaxError("invalid int literal", at)
    return found


def _bytes(text: str, _: int) -> bytes:
    body = text.lstrip("bBrR")
    inner = body[1:-1]
    if "r" in text[: len(text) - len(body)].lower():
        return inner.encode()

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "x" or len(code) == 3:
            return chr(int(code[1:], 16) if code[0] == "x" else int(code, 8))
        return _unescape(match).encode().decode("latin-1")

    parts = re.split(r"(\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.))", inner, flags=re.DOTALL)
    return b"".join(
        _ESCAPE.sub(byte, part).encode("latin-1") if place % 2 else part.encode() for place, part in enumerate(parts)
    )


def _string(text: str, _: int) -> str:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if text[:3] in {'"""', "'''"} else 1
    inner = text[quotes:-quotes]
    return inner if raw else _ESCAPE.sub(_unescape, inner)


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    return _SIMPLE.get(code, code)


_READ: Final[Mapping[str, Callable[[str, int], Any]]] = {"number": _number, "string": _string, "bytes": _bytes}


def shown(text: str, error: CelSyntaxError) -> str:
    """With the line and a mark under the place, as upstream prints it."""
    before = text[: error.at]
    line, column = before.count("\n"), len(before) - (before.rfind("\n") + 1)
    source = text.split("\n")[line] if text else ""
    return f"ERROR: <input>:{line + 1}:{column + 1}: {error}\n | {source}\n | {'.' * column}^"
