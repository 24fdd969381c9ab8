"""The name formats of Kubernetes. A format called with a text says the first thing that is wrong, or None."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

Format = Callable[[str], str | None]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_QUANTITY = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


@dataclass(frozen=True, slots=True)
class Form:
    """A format that can be wrong in several ways at once: a server reports each of them."""

    find: Callable[[str], list[str]]

    def __call__(self, text: str) -> str | None:
        return next(iter(self.find(text)), None)


def problems(form: Format, text: str) -> list[str]:
    """Everything that is wrong with a text."""
    if isinstance(form, Form):
        return form.find(text)
    problem = form(text)
    return [problem] if problem else []


def _too_long(text: str, most: int, what: str = "") -> list[str]:
    return [f"{what}must be no more than {most} bytes"] if len(text.encode()) > most else []


def _label(text: str) -> list[str]:
    found = _too_long(text, 63)
    if "." in text:
        found.append("must not contain dots")
    elif not _LABEL.fullmatch(text):
        found.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character (e.g. 'my-name')"
        )
    return found


def _label_1035(text: str) -> list[str]:
    found = _too_long(text, 63)
    if not _LABEL_1035.fullmatch(text):
        found.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name')"
        )
    return found


def _subdomain(text: str) -> list[str]:
    found = _too_long(text, 253)
    if not _SUBDOMAIN.fullmatch(text):
        found.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'example.com')"
        )
    return found


@lru_cache(maxsize=4096)
def _wrong_label_key(text: str) -> tuple[str, ...]:
    """The same few keys stand on every object."""
    return tuple(_label_key_problems(text))


def _label_key(text: str) -> list[str]:
    return list(_wrong_label_key(text))


def _label_key_problems(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return ["a valid label key must consist of an optional prefix and a name, with one '/' between them"]
    found: list[str] = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += [f"prefix part {problem}" for problem in _subdomain(prefix)]
    found += _too_long(name, 63, "name part ") if name else ["name part must be non-empty"]
    if not _QUALIFIED_NAME.fullmatch(name):
        found.append(
            "name part must consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'MyName' or 'my.name')"
        )
    return found


@lru_cache(maxsize=4096)
def _is_label_value(text: str) -> bool:
    return _LABEL_VALUE.fullmatch(text) is not None


def is_label(key: str, value: str) -> bool:
    """The same for both, quickly: pods of a gang have the same labels but for one or two."""
    return not _wrong_label_key(key) and len(value) <= 63 and _is_label_value(value)


def is_label_key(text: str) -> bool:
    return not _wrong_label_key(text)


def _label_value(text: str) -> list[str]:
    found = _too_long(text, 63)
    if not _LABEL_VALUE.fullmatch(text):
        found.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'MyValue' or 'my_value')"
        )
    return found


def _path_segment(text: str) -> list[str]:
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in text]


label = Form(_label)  # RFC 1123 label (LABEL of the API page)
label_1035 = Form(_label_1035)  # RFC 1035 label: like a label, but starts with a letter
subdomain = Form(_subdomain)  # RFC 1123 subdomain (SUBDOMAIN): object names
label_key = Form(_label_key)  # key of a label (LABELKEY): an optional subdomain prefix and a name
label_value = Form(_label_value)
path_segment = Form(_path_segment)  # a name that may stand in a URL path (PATHSEG)


def domain_prefixed_path(text: str) -> str | None:
    """`example.com/name`: what managedBy takes."""
    prefix, slash, name = text.partition("/")
    if not slash or not prefix or not name:
        return "must be a domain-prefixed path (such as 'acme.io/foo')"
    if subdomain(prefix):
        return f"prefix part {subdomain(prefix)}"
    if not re.fullmatch(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", name):
        return "invalid path: must be a URL path of allowed characters"
    return None


def condition_reason(text: str) -> str | None:
    """The reason of a condition."""
    if not _REASON.fullmatch(text):
        return (
            "a condition reason must start with a letter, go on with letters, digits, '_', ',' or ':', "
            "and not end in ',' or ':'"
        )
    return None


def quantity(text: str) -> str | None:
    if not _QUANTITY.fullmatch(text):
        return "quantities must match a number with an optional suffix (such as 500m, 2, 4Gi or 1e3)"
    return None
