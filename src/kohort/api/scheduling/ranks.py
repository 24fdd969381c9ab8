"""The rank of a pod among those it works with, from the labels and annotations that its operator writes.

Those of our own kinds are in their bundles; here is what all pods may say, and other operators' words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kohort.api.bundle import bundles, derived

Said = Mapping[str, str]
Rank = tuple[int, ...]  # compared from the left

RANK: Final = "kohort.dev/rank"  # a label or an annotation, for pods that say it in no other way
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_KUEUE_LABEL: Final = "kueue.x-k8s.io/pod-group-pod-index-label"
_KUEUE: Final = "kueue.x-k8s.io/pod-group-pod-index"
_KOORDINATOR: Final = "gang.scheduling.koordinator.sh/network-topology-index"
_REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
_REPLICA: Final = "training.kubeflow.org/replica-index"
_FIRST_TYPES: Final = frozenset({"master", "chief", "launcher"})
_RAY_TYPE: Final = "ray.io/node-type"
_RAY_REPLICA: Final = "ray.io/worker-group-replica-index"
_RAY_HOST: Final = "ray.io/replica-host-index"
_STATEFUL_SET: Final = "apps.kubernetes.io/pod-index"

ANNOTATIONS: Final = (RANK, COMPLETION_INDEX, _KUEUE_LABEL, _KOORDINATOR)  # the others are labels


def rank_of(labels: Said, annotations: Said) -> Rank | None:
    """None: it has none, or says something that is no number."""
    known = _keys()
    if known.isdisjoint(labels) and known.isdisjoint(annotations):
        return None
    for source in _SOURCES:
        found = source(labels, annotations)
        if found is not None:
            return found
    return None


@derived
def _keys() -> frozenset[str]:
    """All labels and annotations that say something of a rank: most pods have none of them."""
    of_kinds = frozenset(key for wanted in _labels() for keys in wanted for key in keys)
    return of_kinds | {*ANNOTATIONS, _KUEUE, _REPLICA, _RAY_TYPE, _RAY_REPLICA, _STATEFUL_SET}


def _own(labels: Said, annotations: Said) -> Rank | None:
    return _numbers(labels.get(RANK) or annotations.get(RANK))


def _kueue(labels: Said, annotations: Said) -> Rank | None:
    return _numbers(labels.get(annotations.get(_KUEUE_LABEL) or _KUEUE))


def _koordinator(_: Said, annotations: Said) -> Rank | None:
    return _numbers(annotations.get(_KOORDINATOR))


@derived
def _labels() -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Of the families of kinds; those that make objects of another one say more, and come first."""
    return tuple(one.ranks for one in reversed(bundles()) if one.ranks)


def _bundles(labels: Said, annotations: Said) -> Rank | None:
    for wanted in _labels():
        found = [
            next((said[key] for key in keys for said in (labels, annotations) if key in said), None) for keys in wanted
        ]
        if None not in found:
            return _numbers(*found)
    return None


def _job(labels: Said, annotations: Said) -> Rank | None:
    return _numbers("0", labels.get(COMPLETION_INDEX) or annotations.get(COMPLETION_INDEX))


def _training(labels: Said, _: Said) -> Rank | None:
    """Masters come before workers."""
    first = labels.get(_REPLICA_TYPE, "").lower() in _FIRST_TYPES
    return _numbers("0" if first else "1", labels.get(_REPLICA))


def _ray(labels: Said, _: Said) -> Rank | None:
    """The head comes first; hosts of a replica are neighbours."""
    if labels.get(_RAY_TYPE) == "head":
        return (0, 0, 0)
    return _numbers("1", labels.get(_RAY_REPLICA), labels.get(_RAY_HOST, "0"))


def _stateful_set(labels: Said, _: Said) -> Rank | None:
    return _numbers(labels.get(_STATEFUL_SET))


def _numbers(*values: str | None) -> Rank | None:
    found = [value for value in values if value is not None and value.isascii() and value.isdecimal()]
    return tuple(map(int, found)) if len(found) == len(values) else None


_SOURCES: Final[tuple[Callable[[Said, Said], Rank | None], ...]] = (
    _own,
    _kueue,
    _koordinator,
    _bundles,
    _job,
    _training,
    _ray,
    _stateful_set,
)
