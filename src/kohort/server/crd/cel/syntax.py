"""From text to a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

MACROS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
FUNCTIONS: Final = frozenset({"size", "string", "int", "double", "bool", "has", "dyn"})
METHODS: Final = frozenset(
    {
        *("size", "startsWith", "endsWith", "contains", "matches", "lowerAscii", "upperAscii", "trim", "split", "join"),
        *("replace", "substring", "indexOf", "lastIndexOf", "min", "max", "sum", "isSorted"),
        *("hasValue", "value", "orValue"),
    }
)
_RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    }
)
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*
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
    """Not an expression. The text says where and what was found."""


class UnsupportedError(ValueError):
    """An expression, but with something that this subset does not have."""


@dataclass(frozen=True, slots=True)
class Node:
    """`sort`: literal, name, member, index, call, method, macro, has, list, map, not, neg, binary, choice."""

    sort: str
    value: Any = None
    parts: tuple[Node, ...] = ()


@lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    parser = _Parser(list(_tokens(text)))
    try:
        tree = parser.expression()
    except RecursionError:
        raise CelSyntaxError("too deep") from None
    if parser.sort != "end":
        raise CelSyntaxError(f"column {parser.at}: expected the end, found {parser.text!r}")
    return tree


def names(tree: Node) -> set[str]:
    """Variables that an expression speaks of, its own loop variables aside."""
    if tree.sort == "name":
        return {tree.value}
    if tree.sort == "macro":
        target, *bodies = tree.parts
        inner = set().union(*(names(body) for body in bodies)) - {tree.value[1]}
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
            raise CelSyntaxError(f"column {at + 1}: unexpected {text[at]!r}")
        if match.lastgroup is not None:
            yield match.lastgroup, match[0], at + 1
        at = match.end()
    yield "end", "", at + 1


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
            raise CelSyntaxError(f"column {self.at}: expected {sign!r}, found {self.text or 'the end'!r}")
        self._take()

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CelSyntaxError(f"more than {_DEEPEST} levels deep")
        found = self._binary(0)
        if self._is("?"):
            self._take()
            yes = self._binary(0)
            self._expect(":")
            found = Node("choice", None, (found, yes, self.expression()))
        self._depth -= 1
        return found

    _LEVELS: Final = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))

    def _binary(self, level: int) -> Node:
        if level == len(self._LEVELS):
            return self._unary()
        found = self._binary(level + 1)
        while self._is(*self._LEVELS[level]) or (level == 2 and self.sort == "name" and self.text == "in"):
            sign = self._take()
            found = Node("binary", sign, (found, self._binary(level + 1)))
        return found

    def _unary(self) -> Node:
        if self._is("!"):
            self._take()
            return Node("not", None, (self._unary(),))
        if self._is("-"):
            self._take()
            inner = self._unary()
            number = inner.sort == "literal" and isinstance(inner.value, int | float)
            return Node("literal", -inner.value) if number else Node("neg", None, (inner,))
        return self._member()

    def _member(self) -> Node:
        found = self._primary()
        while True:
            if self._is("."):
                self._take()
                if self._is("?"):
                    raise UnsupportedError("optional members (.?name)")
                name = self._name()
                found = self._method(found, name) if self._is("(") else Node("member", name, (found,))
            elif self._is("["):
                self._take()
                if self._is("?"):
                    raise UnsupportedError("optional items ([?index])")
                index = self.expression()
                self._expect("]")
                found = Node("index", None, (found, index))
            elif self._is("{"):
                raise UnsupportedError("message literals")
            else:
                return found

    def _name(self) -> str:
        if self.sort != "name":
            raise CelSyntaxError(f"column {self.at}: expected a name, found {self.text or 'the end'!r}")
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

    def _method(self, target: Node, name: str) -> Node:
        arguments = self._arguments()
        if name in MACROS and arguments and arguments[0].sort == "name":
            if len(arguments) not in ((2, 3) if name == "map" else (2,)):
                raise UnsupportedError(f"{name}() with {len(arguments)} arguments")
            return Node("macro", (name, arguments[0].value), (target, *arguments[1:]))
        if name not in METHODS:
            raise UnsupportedError(f"the method {name}()")
        return Node("method", name, (target, *arguments))

    def _primary(self) -> Node:
        sort, at = self.sort, self.at
        if sort == "number":
            return Node("literal", _number(self._take()))
        if sort == "string":
            return Node("literal", _string(self._take()))
        if sort == "name":
            return self._named(self._take())
        if self._is("("):
            self._take()
            found = self.expression()
            self._expect(")")
            return found
        if self._is("["):
            return Node("list", None, self._items("]"))
        if self._is("{"):
            return Node("map", None, self._items("}"))
        raise CelSyntaxError(f"column {at}: expected a value, found {self.text or 'the end'!r}")

    def _named(self, name: str) -> Node:
        if name in {"true", "false"}:
            return Node("literal", name == "true")
        if name == "null":
            return Node("literal", None)
        if name in _RESERVED or name == "in":
            raise CelSyntaxError(f"{name!r} is reserved")
        if not self._is("("):
            return Node("name", name)
        arguments = self._arguments()
        if name == "has":
            if len(arguments) != 1 or arguments[0].sort != "member":
                raise CelSyntaxError("has() takes a member such as self.name")
            return Node("has", None, arguments)
        if name not in FUNCTIONS:
            raise UnsupportedError(f"the function {name}()")
        if len(arguments) != 1:
            raise UnsupportedError(f"{name}() with {len(arguments)} arguments")
        return Node("call", name, arguments)

    def _items(self, end: str) -> tuple[Node, ...]:
        """Of a map: keys and values in turn."""
        self._take()
        found: list[Node] = []
        while not self._is(end):
            found.append(self.expression())
            if end == "}":
                self._expect(":")
                found.append(self.expression())
            if not self._is(end):
                self._expect(",")
        self._take()
        return tuple(found)


def _number(text: str) -> int | float:
    plain = text.rstrip("uU")
    if plain[:2].lower() == "0x":
        return int(plain, 16)
    return int(plain) if plain.isdigit() else float(plain)


def _string(text: str) -> str:
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
