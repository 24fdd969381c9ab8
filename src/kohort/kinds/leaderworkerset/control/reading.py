"""What the controller reads from a LeaderWorkerSet and from its pods."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha1
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, label, name_of, number
from kohort.kinds.leaderworkerset.api import constants

_ENDED: Final = ("Succeeded", "Failed")


# ---- any object


# ---- the set


def template_of(lws: Object) -> Object:
    found: Object = (lws.get("spec") or {}).get("leaderWorkerTemplate") or {}
    return found


def rolling(lws: Object) -> Object:
    strategy = (lws.get("spec") or {}).get("rolloutStrategy") or {}
    found: Object = strategy.get("rollingUpdateConfiguration") or {}
    return found


def leader_name(lws: Object, index: int) -> str:
    return f"{name_of(lws)}-{index}"


def is_unique(lws: Object) -> bool:
    """Whether each group has a subdomain of its own."""
    return ((lws.get("spec") or {}).get("networkConfig") or {}).get("subdomainPolicy") == "UniquePerReplica"


def subdomain(lws: Object, index: int) -> str:
    return leader_name(lws, index) if is_unique(lws) else name_of(lws)


def topology(lws: Object) -> str:
    """The node label of whose values each group has one to itself. An empty one asks for nothing."""
    return annotation(lws, constants.EXCLUSIVE_TOPOLOGY) or ""


def key_hash(text: str) -> str:
    return sha1(text.encode(), usedforsecurity=False).hexdigest()


# ---- pods


def group_index(pod: Object) -> int:
    return number(label(pod, constants.GROUP_INDEX))


def worker_index(pod: Object) -> int:
    return number(label(pod, constants.WORKER_INDEX))


def revision_of(pod: Object) -> str:
    return label(pod, constants.REVISION)


def incarnation_of(obj: Object) -> int:
    return number(label(obj, constants.INCARNATION), 0)


def size_of(leader: Object) -> int:
    return number(annotation(leader, constants.SIZE) or "", 1)


def phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def has_ended(pod: Object) -> bool:
    return phase(pod) in _ENDED


def is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return phase(pod) == "Running" and any(
        one.get("type") == "Ready" and one.get("status") == "True" for one in conditions
    )


def containers_of(pod: Object) -> list[Mapping[str, Any]]:
    """The statuses of all containers."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
