"""The controllers there are. A new kind is a module and a line here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kohort.api.releases import SCHEDULING_GROUP
from kohort.controllers.controller import Controller
from kohort.gang.compile import CompileContext
from kohort.kinds.batch.control.cronjob.controller import cronjob_controller
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.batch.control.ttl import ttl_controller
from kohort.kinds.batch.settings import JobSettings
from kohort.kinds.grove.control.controller import (
    clustertopologybinding_controller,
    podclique_controller,
    podcliquescalinggroup_controller,
    podcliqueset_controller,
    podgang_controller,
)
from kohort.kinds.jobset.control.controller import jobset_controller
from kohort.kinds.jobset.control.placement import placement_controller
from kohort.kinds.leaderworkerset.control.controller import leaderworkerset_controller
from kohort.kinds.trainer.compile.draft import Listener
from kohort.kinds.trainer.control.controller import trainjob_controller
from kohort.kube.client import Client

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Setup:
    """What controllers are made from. `grouping`: whether the server has Workloads and PodGroups.

    `listener`: who takes reports of progress of TrainJobs, where somebody does.
    """

    ctx: CompileContext
    grouping: bool = True
    listener: Listener | None = None


MAKERS: Final[Mapping[str, Callable[[Setup], Controller]]] = {
    "job": lambda setup: job_controller(setup.ctx, grouping=setup.grouping),
    "cronjob": lambda setup: cronjob_controller(),
    "ttl-after-finished": lambda setup: ttl_controller(),
    "jobset-placement": lambda setup: placement_controller(),
    "jobset": lambda setup: jobset_controller(setup.ctx, grouping=setup.grouping),
    "trainjob": lambda setup: trainjob_controller(setup.ctx, grouping=setup.grouping, listener=setup.listener),
    "podcliqueset": lambda setup: podcliqueset_controller(setup.ctx),
    "podcliquescalinggroup": lambda setup: podcliquescalinggroup_controller(setup.ctx),
    "podclique": lambda setup: podclique_controller(setup.ctx, grouping=setup.grouping),
    "podgang": lambda setup: podgang_controller(setup.ctx, grouping=setup.grouping),
    "leaderworkerset": lambda setup: leaderworkerset_controller(setup.ctx, grouping=setup.grouping),
    "clustertopologybinding": lambda setup: clustertopologybinding_controller(),
}


# Those that need nothing but Kubernetes' own kinds; a JobSet is served by a server that has the CRD, or by ours.
BUILT_IN: Final = ("job", "cronjob", "ttl-after-finished")


# Controllers that only make sense together, under the name by which people ask for them; the first has the main kind.
_TOGETHER: Final[Mapping[str, tuple[str, ...]]] = {
    "jobset": ("jobset", "jobset-placement"),
    "grove": ("podcliqueset", "podcliquescalinggroup", "podclique", "podgang", "clustertopologybinding"),
}
_PARTS: Final = frozenset(part for parts in _TOGETHER.values() for part in parts)
FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: (name,) for name in MAKERS if name not in _PARTS},
    **_TOGETHER,
}


def make(setup: Setup, names: Iterable[str] = BUILT_IN) -> list[Controller]:
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        raise ValueError(f"controller {', '.join(unknown)}: not known; accepted are {', '.join(MAKERS)}")
    return [MAKERS[name](setup) for name in names]


async def probe(client: Client, ctx: CompileContext) -> Setup:
    """Whether the server serves groups in the version of this release (T-48: upstream would wait for ever)."""
    if ctx.settings.of(JobSettings).parity:
        return Setup(ctx)
    kind = "PodGroup" if ctx.release.has_pod_groups else "Workload"
    served = await client.discovery.versions(SCHEDULING_GROUP, kind)
    if ctx.release.workload_version in served:
        return Setup(ctx)
    log.error(
        "the server does not serve %ss as %s (served: %s): Jobs run without groups, and nothing starts together",
        kind,
        ctx.release.api_version,
        ", ".join(served) or "none",
    )
    return Setup(ctx, grouping=False)
