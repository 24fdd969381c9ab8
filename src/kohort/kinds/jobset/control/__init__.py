"""The JobSet controller (spec jobset 2, and its gangs: sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.kinds.controllers import Maker
from kohort.kinds.jobset.control.controller import jobset_controller
from kohort.kinds.jobset.control.placement import placement_controller

MAKERS: Final[Mapping[str, Maker]] = {
    "jobset": lambda setup: jobset_controller(setup.ctx, grouping=setup.grouping),
    "jobset-placement": lambda _: placement_controller(),
}
