"""Objects as dictionaries of the members that somebody reads, and no others.

What is not named is skipped while parsing, which is several times as fast as making objects of it, and nobody holds it
afterwards. A tenant may write a pod of three megabytes of environment; who schedules, counts or deletes pods never asks
for it.

The members are named by structs whose fields are UNSET where an object does not have them, so that what is read is an
ordinary dictionary with fewer members: `{"spec": {"nodeName": "a"}}`. A list of structs becomes a list of dictionaries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

if TYPE_CHECKING:
    from collections.abc import Callable

Object = dict[str, Any]


class Reading(NamedTuple):
    """`fields`: a struct. `whole`: whether, after a look at them, all of an object is read nevertheless."""

    fields: type[msgspec.Struct]
    whole: Callable[[Any], bool] | None = None


def dictionary(found: msgspec.Struct) -> Object:
    """What a struct holds, by the names that it has in JSON. What it holds in plain JSON is handed over."""
    return {
        name: _plain(value)
        for name, value in zip(found.__struct_encode_fields__, astuple(found), strict=True)
        if value is not UNSET
    }


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return dictionary(value)
    if type(value) is list and value and isinstance(value[0], msgspec.Struct):
        return [dictionary(one) for one in value]
    return value
