"""Names that the server makes up for objects that have only the beginning of one."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # no words by accident
_KEPT: Final = 58  # characters of generateName that are kept


def random_suffix() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(5))


def generate_name(meta: Mapping[str, Any]) -> str:
    """The name of a new object, made up where only generateName is given."""
    beginning = meta.get("generateName")
    return meta.get("name") or (beginning[:_KEPT] + random_suffix() if beginning else "")
