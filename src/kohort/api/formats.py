"""The name formats of Kubernetes. Each check returns what is wrong, or None."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Format = Callable[[str], str | None]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_QUANTITY = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")


def label(text: str) -> str | None:
    """RFC 1123 label (LABEL of the API page)."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    if not _LABEL.fullmatch(text):
        return (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character (e.g. 'my-name')"
        )
    return None


def label_1035(text: str) -> str | None:
    """RFC 1035 label: like a label, but starts with a letter."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    if not _LABEL_1035.fullmatch(text):
        return (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name')"
        )
    return None


def subdomain(text: str) -> str | None:
    """RFC 1123 subdomain (SUBDOMAIN): object names."""
    if len(text) > 253:
        return "must be no more than 253 bytes"
    if not _SUBDOMAIN.fullmatch(text):
        return (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'example.com')"
        )
    return None


def label_key(text: str) -> str | None:
    """Key of a label (LABELKEY): an optional subdomain prefix and a name."""
    prefix, slash, name = text.rpartition("/")
    if slash and "/" in prefix:
        return "a valid label key must consist of an optional prefix and a name, with one '/' between them"
    if slash and (not prefix or subdomain(prefix)):
        return f"prefix part {subdomain(prefix) or 'must be non-empty'}" if prefix else "prefix part must be non-empty"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    if not _QUALIFIED_NAME.fullmatch(name):
        return (
            "name part must consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'MyName' or 'my.name')"
        )
    return None


def label_value(text: str) -> str | None:
    if len(text) > 63:
        return "must be no more than 63 bytes"
    if not _LABEL_VALUE.fullmatch(text):
        return (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'MyValue' or 'my_value')"
        )
    return None


def path_segment(text: str) -> str | None:
    """A name that may stand in a URL path (PATHSEG)."""
    if text in {".", ".."}:
        return f"may not be '{text}'"
    for character in "/%":
        if character in text:
            return f"may not contain '{character}'"
    return None


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


def quantity(text: str) -> str | None:
    if not _QUANTITY.fullmatch(text):
        return "quantities must match a number with an optional suffix (such as 500m, 2, 4Gi or 1e3)"
    return None
