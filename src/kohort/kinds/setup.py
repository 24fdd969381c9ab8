"""What controllers of all kinds are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.controllers.controller import Controller
from kohort.gang.compile import CompileContext

if TYPE_CHECKING:
    from kohort.kinds.trainer.compile.draft import Listener


@dataclass(frozen=True, slots=True)
class Setup:
    """`grouping`: whether the server has Workloads and PodGroups.

    `listener`: who takes reports of progress of TrainJobs, where somebody does.
    """

    ctx: CompileContext
    grouping: bool = True
    listener: Listener | None = None


Maker = Callable[[Setup], Controller]
