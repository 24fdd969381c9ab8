"""What takes part in the build of a TrainJob, and when (spec trainjob 2.1).

A plugin serves some runtimes and has something to say at some of three points: the policy of its framework (counts,
variables, volumes), the policy of groups (which needs final counts), and the objects that it builds. Upstream's order
within a point is random; here it is the order of this table, always, and what is built is made in that order (D7):
groups, then what the JobSet mounts, then the JobSet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kohort.api.kind import Object
from kohort.gang.compile import CompileContext
from kohort.kinds.trainer.api.constants import spec_of
from kohort.kinds.trainer.api.fitting import ml_policy
from kohort.kinds.trainer.api.groups import wants_groups
from kohort.kinds.trainer.compile import flux, frameworks, jobset, mpi, others, progress, workload
from kohort.kinds.trainer.compile.draft import Draft, size


@dataclass(frozen=True, slots=True)
class Plugin:
    """`serves`: whether a runtime asks for it."""

    name: str
    serves: Callable[[Object], bool]
    framework: Callable[[Draft], None] | None = None
    groups: Callable[[Draft, CompileContext], None] | None = None
    build: Callable[[Draft], Iterable[Object]] | None = None


def _framework(name: str) -> Callable[[Object], bool]:
    return lambda runtime: ml_policy(runtime).get(name) is not None


def _pod_groups(name: str) -> Callable[[Object], bool]:
    return lambda runtime: (spec_of(runtime).get("podGroupPolicy") or {}).get(name) is not None


def _plain(runtime: Object) -> bool:
    """Also for xgboost and flux, as upstream: flux relies on it for its count."""
    return not any(ml_policy(runtime).get(name) is not None for name in ("torch", "mpi", "jax"))


def _always(_: Object) -> bool:
    return True


PLUGINS: Final = (
    Plugin("workload", wants_groups, groups=workload.enforce),
    Plugin("plain", _plain, framework=size),
    Plugin("torch", _framework("torch"), framework=frameworks.torch),
    Plugin("jax", _framework("jax"), framework=frameworks.jax),
    Plugin("xgboost", _framework("xgboost"), framework=frameworks.xgboost),
    Plugin("mpi", _framework("mpi"), framework=mpi.enforce, build=mpi.build),
    Plugin("flux", _framework("flux"), framework=flux.enforce, build=flux.build),
    Plugin("progress", _always, framework=progress.enforce, build=progress.build),
    Plugin("coscheduling", _pod_groups("coscheduling"), groups=others.mark_coscheduling, build=others.coscheduling),
    Plugin("volcano", _pod_groups("volcano"), groups=others.mark_volcano, build=others.volcano),
    Plugin("jobset", _always, framework=jobset.fill, build=jobset.build),
)


def of(runtime: Object) -> tuple[Plugin, ...]:
    """Those that take part in the build with a runtime, in order."""
    return tuple(plugin for plugin in PLUGINS if plugin.serves(runtime))
