"""Grove's controllers: PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang, ClusterTopologyBinding (spec grove)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.kinds.controllers import Maker
from kohort.kinds.grove.control.controller import (
    clustertopologybinding_controller,
    podclique_controller,
    podcliquescalinggroup_controller,
    podcliqueset_controller,
    podgang_controller,
)

MAKERS: Final[Mapping[str, Maker]] = {
    "podcliqueset": lambda setup: podcliqueset_controller(setup.ctx),
    "podcliquescalinggroup": lambda setup: podcliquescalinggroup_controller(setup.ctx),
    "podclique": lambda setup: podclique_controller(setup.ctx, grouping=setup.grouping),
    "podgang": lambda setup: podgang_controller(setup.ctx, grouping=setup.grouping),
    "clustertopologybinding": lambda _: clustertopologybinding_controller(),
}
