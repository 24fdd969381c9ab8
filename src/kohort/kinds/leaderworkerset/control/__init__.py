"""The LeaderWorkerSet controller (spec lws 2 and 3, and its gangs: section 4). It makes the pods itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.kinds.controllers import Maker
from kohort.kinds.leaderworkerset.control.controller import leaderworkerset_controller

MAKERS: Final[Mapping[str, Maker]] = {
    "leaderworkerset": lambda setup: leaderworkerset_controller(setup.ctx, grouping=setup.grouping),
}
