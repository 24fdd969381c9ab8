"""Label and field selectors: reading them, and asking them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kohort.api import formats
from kohort.apimachinery.labels import holds

_TOKEN: Final = re.compile(r"\s*(?:(==|=|!=|<|>|\(|\)|,|!)|([^\s=!<>(),]+))")


class SelectorError(ValueError):
    """The text is no selector; the message says where."""


@dataclass(frozen=True, slots=True)
class Term:
    """One requirement on one label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        return holds(self.operator, labels.get(self.key), self.values)


Labels = tuple[Term, ...]


def labels_match(terms: Labels, labels: Mapping[str, str]) -> bool:
    return all(term.holds(labels) for term in terms)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SelectorError(f"unable to parse requirement: found {text[at:]!r}")
        found.append(match.group(1) or match.group(2))
        at = match.end()
    return found


class _Reader:
    """Recursive descent over the tokens of a label selector."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def terms(self) -> Labels:
        found: list[Term] = []
        while self.peek():
            found.append(self.term())
            separator = self.next()
            if separator not in ("", ","):
                raise SelectorError(f"found '{separator}', expected: ',' or 'end of string'")
            if separator == "," and not self.peek():
                raise SelectorError("found '', expected: identifier after ','")
        return tuple(found)

    def term(self) -> Term:
        if self.peek() == "!":
            self.next()
            return Term(self.key(), "DoesNotExist")
        key = self.key()
        verb = self.peek()
        if verb in ("", ","):
            return Term(key, "Exists")
        self.next()
        if verb in ("=", "=="):
            return Term(key, "In", frozenset((self.value(),)))
        if verb == "!=":
            return Term(key, "NotIn", frozenset((self.value(),)))
        if verb in ("<", ">"):
            value = self.value()
            if not value.lstrip("-").isdecimal():
                raise SelectorError(f"values: Invalid value: {value!r}: for 'Gt', 'Lt' operators, must be an integer")
            return Term(key, "Gt" if verb == ">" else "Lt", frozenset((value,)))
        if verb in ("in", "notin"):
            return Term(key, "In" if verb == "in" else "NotIn", frozenset(self.values()))
        raise SelectorError(f"found '{verb}', expected: in, notin, =, ==, !=, gt, lt")

    def key(self) -> str:
        key = self.next()
        problem = formats.label_key(key)
        if problem is not None:
            raise SelectorError(f"key: Invalid value: {key!r}: {problem}")
        return key

    def value(self) -> str:
        token = self.peek()
        if token in ("", ","):
            return ""
        return self.checked(self.next())

    def checked(self, value: str) -> str:
        problem = formats.label_value(value)
        if problem is not None:
            raise SelectorError(f"values[0]: Invalid value: {value!r}: {problem}")
        return value

    def values(self) -> list[str]:
        if self.next() != "(":
            raise SelectorError("found no '(' after in or notin")
        found = [""] if self.peek() in (",", ")") else [self.checked(self.next())]
        while True:
            token = self.next()
            if token == ")":
                return found
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or ')'")
            found.append("" if self.peek() in (",", ")") else self.checked(self.next()))


def parse_labels(text: str) -> Labels:
    """`a=b,c!=d,e in (x,y),!f`."""
    return _Reader(text).terms() if text.strip() else ()


# ---- fields


@dataclass(frozen=True, slots=True)
class FieldTerm:
    path: str
    equal: bool
    value: str


Fields = tuple[FieldTerm, ...]
Getter = Callable[[dict[str, Any]], str]


def parse_fields(text: str) -> Fields:
    """`metadata.name=x,status.phase!=Running`; backslashes escape."""
    found = []
    for part in _split(text):
        if not part:
            continue
        match = re.match(r"^((?:[^\\=!]|\\.)*?)(==|=|!=)(.*)$", part, re.DOTALL)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        path, verb, value = match.groups()
        found.append(FieldTerm(path, verb != "!=", _unescape(value)))
    return tuple(found)


def _split(text: str) -> list[str]:
    parts, current, escaped = [], "", False
    for sign in text:
        if sign == "," and not escaped:
            parts.append(current)
            current = ""
            continue
        current += sign
        escaped = sign == "\\" and not escaped
    return [*parts, current]


def _unescape(value: str) -> str:
    if re.search(r"(?<!\\)(?:\\\\)*[=,]", value):
        raise SelectorError(f"invalid field selector: unescaped sign in value {value!r}")
    return re.sub(r"\\(.)", r"\1", value)


def fields_match(terms: Fields, fields: Mapping[str, str]) -> bool:
    return all((fields.get(term.path, "") == term.value) is term.equal for term in terms)
