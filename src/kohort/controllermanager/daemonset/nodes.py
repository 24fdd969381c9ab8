"""Which nodes a DaemonSet's pods belong on, and how a pod is tied to its node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import meta_of, name_of
from kohort.apimachinery.labels import node_meets_term, tolerates
from kohort.controllermanager import history
from kohort.controllermanager import pods as pods_
from kohort.controllermanager.podtemplate import new_pod

_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NO_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")
_FIELD: Final = "metadata.name"


class Fit(NamedTuple):
    """`run`: a pod is to be there; `stay`: one that is there may stay."""

    run: bool
    stay: bool


_NEVER: Final = Fit(run=False, stay=False)


@dataclass(frozen=True, slots=True)
class Demand:
    """What the template asks of a node, read once for all nodes."""

    node_name: str
    labels: Mapping[str, str]
    terms: Sequence[Mapping[str, Any]] | None
    tolerations: Sequence[Mapping[str, Any]]

    def fit(self, node: Object) -> Fit:
        name, labels = name_of(node), meta_of(node).get("labels") or {}
        if self.node_name not in ("", name) or any(labels.get(key) != value for key, value in self.labels.items()):
            return _NEVER
        if self.terms is not None and not any(node_meets_term(term, labels, name) for term in self.terms):
            return _NEVER
        taints = (node.get("spec") or {}).get("taints") or ()
        bad = [one.get("effect") for one in taints if not tolerates(self.tolerations, one)]
        return Fit(run=not {"NoSchedule", "NoExecute"} & set(bad), stay="NoExecute" not in bad)


def demand(ds: Object) -> Demand:
    spec = _spec(ds)
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    return Demand(
        str(spec.get("nodeName") or ""),
        spec.get("nodeSelector") or {},
        None if required is None else required.get("nodeSelectorTerms") or (),
        _tolerations(spec),
    )


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _spec(ds: Object) -> dict[str, Any]:
    found: dict[str, Any] = (ds["spec"].get("template") or {}).get("spec") or {}
    return found


def _tolerations(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those of the template, and those that every daemon has: a node's trouble is no reason to leave it."""
    found = list(spec.get("tolerations") or ())
    for key, effect in (*_TOLERATED, *((_NO_NETWORK,) if spec.get("hostNetwork") else ())):
        wanted = {"key": key, "operator": "Exists", "effect": effect}
        if wanted not in found:
            found.append(wanted)
    return found


def target(pod: Object) -> str:
    """The node that a pod is on, or is to be on."""
    name = pods_.node_of(pod)
    if name:
        return name
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for rule in term.get("matchFields") or ():
            if rule.get("key") == _FIELD and rule.get("operator") == "In" and len(rule.get("values") or ()) == 1:
                return str(rule["values"][0])
    return ""


def daemon(ds: Object, node: str, hashed: str) -> Object:
    """A pod for one node: the scheduler is left no choice, but has a say."""
    pod = new_pod(ds, ds["spec"].get("template") or {})
    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), history.HASH: hashed}
    spec = pod["spec"]
    affinity = copied(spec.get("affinity") or {})
    only = {"matchFields": [{"key": _FIELD, "operator": "In", "values": [node]}]}
    affinity["nodeAffinity"] = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": [only]}}
    spec["affinity"] = affinity
    spec["tolerations"] = _tolerations(spec)
    return pod
