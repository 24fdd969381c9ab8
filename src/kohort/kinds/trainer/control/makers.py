"""The controllers of this family, each made from a `Setup`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.kinds.setup import Maker
from kohort.kinds.trainer.control.controller import trainjob_controller

MAKERS: Final[Mapping[str, Maker]] = {
    "trainjob": lambda setup: trainjob_controller(setup.ctx, grouping=setup.grouping, listener=setup.listener),
}
