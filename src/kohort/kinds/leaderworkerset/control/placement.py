"""Subgroups, and who shares a domain with whom: labels and pod affinity (spec lws 2.5, 2.6)."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import size
from kohort.kinds.leaderworkerset.control.reading import key_hash, template_of

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def subgroup_policy(lws: Object) -> Object:
    found: Object = template_of(lws).get("subGroupPolicy") or {}
    return found


def subgroup_index(lws: Object, worker: int) -> int | None:
    """The subgroup of a pod (0: the leader); None where it is in none."""
    policy = subgroup_policy(lws)
    pods = policy.get("subGroupSize")
    if not pods:
        return None
    if worker == 0:
        return None if policy.get("subGroupPolicyType") == "LeaderExcluded" else 0
    # Where only size - 1 is divisible, the leader is one more pod in the first subgroup.
    return worker // int(pods) if size(lws) % int(pods) == 0 else (worker - 1) // int(pods)


def subgroup_labels(lws: Object, leader: str, worker: int) -> dict[str, str]:
    index = subgroup_index(lws, worker)
    if index is None:
        return {}
    return {constants.SUBGROUP_INDEX: str(index), constants.SUBGROUP_KEY: key_hash(f"{leader}/{index}")}


def keep_apart(spec: Object, topology: str, key: str, value: str) -> None:
    """With pods of the same value of a label, and away from those of others, in domains of a node label."""
    affinity = spec["affinity"] = dict(spec.get("affinity") or {})
    terms = {side: list((affinity.get(side) or {}).get(_REQUIRED) or ()) for side in ("podAffinity", "podAntiAffinity")}
    if all(any(one.get("topologyKey") == topology for one in found) for found in terms.values()):
        return
    own = {"key": key, "operator": "In", "values": [value]}
    others = [{"key": key, "operator": "Exists"}, {"key": key, "operator": "NotIn", "values": [value]}]
    for side, expressions in (("podAffinity", [own]), ("podAntiAffinity", others)):
        term: dict[str, Any] = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology}
        affinity[side] = {**(affinity.get(side) or {}), _REQUIRED: [*terms[side], term]}
