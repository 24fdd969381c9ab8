"""Gates of Kohort itself: what the workload APIs call feature gates of their own controllers.

They live beside the gates of Kubernetes in `Context.options`. People come here for gangs, so what makes gangs is on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kohort.api.kind import Context
from kohort.api.releases import parse_gates, release


@dataclass(frozen=True, slots=True)
class Option:
    default: bool
    kind: str
    meaning: str
    alias: str = ""  # the name upstream gives it


OPTIONS: Final = {
    "GangScheduling": Option(True, "JobSet", "gang configuration of JobSets", "JobSetWorkloadAwareSchedulingAPI"),
    "GangOfGangs": Option(True, "JobSet", "JobSet trees as CompositePodGroups", "JobSetGangOfGangs"),
    "GangQuorumShrink": Option(False, "JobSet", "a gang that has started waits for no more pods than are left to run"),
    "InPlaceRestart": Option(False, "JobSet", "restart strategy InPlaceRestart"),
    "RestartJob": Option(False, "JobSet", "failure policy actions RestartJob…"),
    "ElasticJobSet": Option(False, "JobSet", "change of parallelism and completions after creation"),
    "WorkloadAwareScheduling": Option(True, "LeaderWorkerSet", "spec.scheduling of LeaderWorkerSets"),
    "LWSGangOfGangs": Option(True, "LeaderWorkerSet", "several scheduling levels as CompositePodGroups"),
    "LWSVolcano": Option(False, "LeaderWorkerSet", "the scheduler provider is Volcano, which has no spec.scheduling"),
    "GroveGangScheduling": Option(True, "PodCliqueSet", "groups for PodCliqueSets, not only a schedulerName"),
    "GroveTopology": Option(True, "PodCliqueSet", "topology constraints of PodCliqueSets"),
    "GroveFlat": Option(False, "PodCliqueSet", "no CompositePodGroups even where they are served"),
    "GroveKai": Option(False, "PodCliqueSet", "schedulerName kai-scheduler is allowed"),
    "GroveVolcano": Option(False, "PodCliqueSet", "schedulerName volcano is allowed"),
    "GroveLpx": Option(False, "PodCliqueSet", "schedulerName lpx-scheduler is allowed"),
    "TrainJobWorkloadAwareScheduling": Option(True, "TrainJob", "podGroupPolicy.workload of training runtimes"),
    "TrainJobCompositePodGroup": Option(False, "TrainJob", "several levels of groups as CompositePodGroups"),
    "TrainJobStatus": Option(False, "TrainJob", "status.trainerStatus, progress as the training code reports it"),
}
DEFAULT_OPTIONS: Final = frozenset(name for name, option in OPTIONS.items() if option.default)
_ALIASES: Final = {option.alias: name for name, option in OPTIONS.items() if option.alias}


def known_option(name: str) -> str | None:
    """The option of that name or alias."""
    return name if name in OPTIONS else _ALIASES.get(name)


def context(minor: str, gates: Mapping[str, bool] | None = None) -> Context:
    """A minor with gates switched, Kubernetes' and ours, by name; ValueError names one that is neither."""
    given = release(minor)
    wanted = dict(gates or {})
    ours = {option: value for name, value in wanted.items() if (option := known_option(name))}
    # GangScheduling is a name of both worlds on 1.35 and 1.36: it then switches both.
    theirs = {name: value for name, value in wanted.items() if not known_option(name) or name in set(given.gates)}
    options = {name for name in OPTIONS if ours.get(name, name in DEFAULT_OPTIONS)}
    return Context(given, parse_gates(given.minor, theirs), frozenset(options))
