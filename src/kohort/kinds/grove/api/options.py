"""What Grove keeps in its operator's configuration, as options of a Context.

Upstream's `gangScheduling: true` of the default-scheduler profile is the option GroveGangScheduling. Profiles of other
schedulers are off unless their option is on; the two that this project serves are always there.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Context, Object
from kohort.api.releases import Gate

GANG: Final = "GroveGangScheduling"  # make Workloads and groups, not only schedulerName
TOPOLOGY: Final = "GroveTopology"  # topology-aware scheduling: constraints are accepted and translated
FLAT: Final = "GroveFlat"  # no CompositePodGroups even where they are served

DEFAULT_SCHEDULER: Final = "default-scheduler"
KOHORT: Final = "kohort"
GANG_BACKENDS: Final = (DEFAULT_SCHEDULER, KOHORT)  # schedulers that read Workloads and groups
PROFILES: Final = {"kai-scheduler": "GroveKai", "volcano": "GroveVolcano", "lpx-scheduler": "GroveLpx"}
TOPOLOGY_AWARE: Final = frozenset({"kai-scheduler"})  # those with a topology object of their own

OPTIONS: Final = frozenset({GANG, TOPOLOGY, FLAT, *PROFILES.values()})


def enabled(scheduler: str, ctx: Context) -> bool:
    return scheduler in GANG_BACKENDS or (scheduler in PROFILES and ctx.on(PROFILES[scheduler]))


def enabled_names(ctx: Context) -> tuple[str, ...]:
    return (*GANG_BACKENDS, *(name for name in PROFILES if enabled(name, ctx)))


def scheduler_name(pod_spec: Any) -> str:
    """The scheduler of a pod template; the default profile where it names none."""
    return str((pod_spec or {}).get("schedulerName") or DEFAULT_SCHEDULER)


def scheduler_of(obj: Object) -> str:
    """The scheduler of a valid PodCliqueSet: that of its first clique, since all agree."""
    cliques = obj["spec"]["template"]["cliques"]
    return scheduler_name(cliques[0]["spec"].get("podSpec"))


def is_tree(ctx: Context) -> bool:
    """Phase 3: hierarchical groups. Otherwise the mapping is flat."""
    return ctx.release.has_composites and ctx.on(Gate.COMPOSITE) and not ctx.on(FLAT)
