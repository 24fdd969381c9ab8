"""What an evaluation carries along: its variables, and what it may still cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kohort.server.crd.cel.values import CostError, NoOverloadError

MISSING: Final = object()


class Frame:
    """Variables of one evaluation, and what it may still cost."""

    __slots__ = ("left", "names")

    def __init__(self, variables: Mapping[str, Any], budget: int) -> None:
        self.names = dict(variables)
        self.left = budget

    def pay(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise CostError


Step = Callable[[Frame], Any]


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NoOverloadError("a boolean is wanted")
    return value
