"""What one reconcile of a TrainJob sees, and whose an object is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import controller_of
from kohort.controllers.reconcile import ReconcileError
from kohort.kinds.trainer.api.constants import spec_of


class BuildError(ReconcileError):
    """Something is wrong; people are told."""


class WaitError(ReconcileError):
    """Something has to happen first, and will."""


@dataclass(frozen=True, slots=True)
class TrainJobView:
    """`runtime`: the one that the job names, as it is now. `companions`: whatever has one of the names that its objects
    get (ConfigMaps, Secrets, PodGroups of other projects). `groups`: Workloads, CompositePodGroups and PodGroups that
    refer to it or have its name."""

    job: Object | None
    jobset: Object | None
    runtime: Object | None
    companions: Sequence[Object]
    groups: Sequence[Object]
    now: datetime

    def found(self, like: Object) -> Object | None:
        """What there is already under the name of an object that is to be made."""
        return next((obj for obj in self.companions if _names(obj) == _names(like)), None)


def _names(obj: Object) -> tuple[Any, ...]:
    return obj.get("apiVersion"), obj.get("kind"), obj["metadata"]["name"]


def owned_by(obj: Object) -> str:
    owner = controller_of(obj)
    return "nobody" if owner is None else f"{owner.get('kind')} {owner.get('name')} (uid {owner.get('uid')})"


def is_suspended(obj: Object | None) -> bool:
    return bool(spec_of(obj or {}).get("suspend"))
