"""The controllers of this family, each made from a `Setup`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.kinds.jobset.control.controller import jobset_controller
from kohort.kinds.jobset.control.placement import placement_controller
from kohort.kinds.setup import Maker

MAKERS: Final[Mapping[str, Maker]] = {
    "jobset": lambda setup: jobset_controller(setup.ctx, grouping=setup.grouping),
    "jobset-placement": lambda _: placement_controller(),
}
