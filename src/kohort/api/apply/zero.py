"""The object of a kind before anything is written into it.

In Go some members are always there (`spec: {}`, `containers: null`); whoever creates an object does not own them. The
data is what the types of Kubernetes 1.35 to 1.37 marshal to when empty.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from kohort.api.kind import Object


@cache
def _zeroes() -> dict[str, Any]:
    loaded: dict[str, Any] = msgspec.json.decode(files("kohort.api.apply").joinpath("zero.json").read_bytes())
    return loaded


def zero(api_version: str, kind: str) -> Object:
    """Not yours to change. Kinds of CRDs have no members that are always there."""
    found: Object = _zeroes().get(f"{api_version} {kind}", {})
    return found
