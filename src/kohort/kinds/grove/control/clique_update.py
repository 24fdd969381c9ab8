"""Rolling a PodClique's pods to a new template: the ill at once, the ready one by one (spec grove 1.9)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, name_of, status_of
from kohort.apimachinery import times
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.control import podstate
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.grove.control.writing import number


def is_updating(status: dict[str, Any]) -> bool:
    progress: dict[str, Any] = status.get("updateProgress") or {}
    return bool(progress) and not progress.get("updateEndedAt")


def begin(pcs: CliqueSet, pclq: Object, expected: str, status: dict[str, Any], now: datetime) -> bool:
    """Starts an update, or starts it over, if the set has come to another generation. Whether it did.

    A standalone clique has a first one that ends at once: its status always tells which template it has. Members of a
    scaling group are replaced as a whole by the group, unless the user deletes pods one by one (OnDelete).
    """
    if not _may_begin(pcs, pclq) or not pcs.stored_hash:
        return False
    progress = status.get("updateProgress")
    if progress is None and status.get("currentPodCliqueSetGenerationHash") == pcs.stored_hash:
        return False
    if progress is not None and progress.get("podCliqueSetGenerationHash") == pcs.stored_hash:
        return False
    started = times.seconds(now)
    status["updateProgress"] = {
        "updateStartedAt": started,
        "podCliqueSetGenerationHash": pcs.stored_hash,
        "podTemplateHash": expected,
        **({"updateEndedAt": started} if pcs.on_delete else {}),
    }
    return True


def _may_begin(pcs: CliqueSet, pclq: Object) -> bool:
    if pcs.on_delete:
        return True
    if label(pclq, constants.SCALING_GROUP):
        return False
    return not pcs.is_rolling or pcs.rolling_replica == number(pclq, constants.SET_INDEX)


def step(pclq: Object, pods: Sequence[Object], status: dict[str, Any], now: datetime) -> list[Object]:
    """The pods to be deleted next; the progress in `status` goes on."""
    if not is_updating(status):
        return []
    progress: dict[str, Any] = status["updateProgress"]
    target = str(progress["podTemplateHash"])
    if label(pclq, constants.TEMPLATE_HASH) != target:
        return []  # the set has not written the new template yet
    staying = [pod for pod in pods if not is_deleting(pod)]
    old = [pod for pod in staying if label(pod, constants.TEMPLATE_HASH) != target]
    ready = [pod for pod in old if podstate.is_ready(pod)]
    ill = [pod for pod in old if not podstate.is_ready(pod)]
    chosen = progress.get("readyPodsSelectedToUpdate")
    if chosen is not None:
        current = [pod for pod in ready if name_of(pod) == chosen["current"]]
        if current or not _is_replaced(pclq, staying, target):
            return [*ill, *current]
    if ready:
        enough = sum(map(podstate.is_ready, staying)) >= int(pclq["spec"].get("minAvailable") or 1)
        return [*ill, *_next(progress, ready)] if enough else ill
    if not old:
        progress.pop("readyPodsSelectedToUpdate", None)
        progress["updateEndedAt"] = times.seconds(now)
    return ill


def _is_replaced(pclq: Object, staying: Sequence[Object], target: str) -> bool:
    """Every pod is there, and those of the new template are ready."""
    new = [pod for pod in staying if label(pod, constants.TEMPLATE_HASH) == target]
    return len(staying) >= int(pclq["spec"].get("replicas") or 0) and all(map(podstate.is_ready, new))


def _next(progress: dict[str, Any], ready: list[Object]) -> list[Object]:
    """The oldest; of the same age, the one of the lowest index."""
    oldest = min(
        ready, key=lambda pod: (str(pod["metadata"].get("creationTimestamp")), number(pod, constants.POD_INDEX))
    )
    before = progress.get("readyPodsSelectedToUpdate")
    chosen: dict[str, Any] = {"current": name_of(oldest)}
    if before is not None:
        chosen["completed"] = [*(before.get("completed") or ()), before["current"]]
    progress["readyPodsSelectedToUpdate"] = chosen
    return [oldest]


def settle(pcs: CliqueSet, pclq: Object, expected: str, status: dict[str, Any]) -> None:
    """Which template and generation the clique has reached."""
    if is_updating(status) or status.get("updatedReplicas") != status.get("replicas"):
        return
    progress = status.get("updateProgress")
    if progress is not None:
        status["currentPodTemplateHash"] = progress["podTemplateHash"]
        status["currentPodCliqueSetGenerationHash"] = progress["podCliqueSetGenerationHash"]
    elif label(pclq, constants.TEMPLATE_HASH) == expected and pcs.stored_hash:
        status["currentPodTemplateHash"] = expected
        status["currentPodCliqueSetGenerationHash"] = pcs.stored_hash


def is_current(pcs: CliqueSet, pclq: Object) -> bool:
    """Enough pods of the template of today are ready."""
    clique, status = pcs.clique_of(pclq), status_of(pclq)
    least = int(pclq["spec"].get("minAvailable") or 0)
    if not clique or is_deleting(pclq):
        return False
    expected = pcs.template_hash(clique)
    return (
        label(pclq, constants.TEMPLATE_HASH) == expected
        and status.get("currentPodTemplateHash") == expected
        and bool(pcs.stored_hash)
        and status.get("currentPodCliqueSetGenerationHash") == pcs.stored_hash
        and int(status.get("readyReplicas") or 0) >= least
        and int(status.get("updatedReplicas") or 0) >= least
    )
