"""TrainJob: a runtime's template becomes a JobSet, its groups come first, and the JobSet's fate is the job's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.kinds.controllers import Maker
from kohort.kinds.trainer.control.controller import trainjob_controller

MAKERS: Final[Mapping[str, Maker]] = {
    "trainjob": lambda setup: trainjob_controller(
        setup.ctx, grouping=setup.grouping, listener=setup.listeners.get("trainjob")
    ),
}
