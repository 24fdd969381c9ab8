"""The controllers of this family, each made from a `Setup`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.kinds.leaderworkerset.control.controller import leaderworkerset_controller
from kohort.kinds.setup import Maker

MAKERS: Final[Mapping[str, Maker]] = {
    "leaderworkerset": lambda setup: leaderworkerset_controller(setup.ctx, grouping=setup.grouping),
}
