"""Rules of workload kinds about the pods made for them: what a kind's operator has a webhook for pods for.

A bundle names a module that has these functions (`Bundle.pods`). Servers other than ours do not ask them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Protocol

from kohort.api.bundle import bundles, derived
from kohort.api.kind import Object


class Cluster(Protocol):
    """What the rules may look at beside the pod."""

    def pods_with_prefix(self, namespace: str, prefix: str) -> Sequence[Object]:
        """Those whose names begin so: there may be thousands of others."""

    def node_labels(self, name: str) -> Mapping[str, str] | None: ...


class PodRules(Protocol):
    def admit_pod(self, pod: Object, namespace: str, cluster: Cluster) -> None:
        """Fill in a new pod, in place."""

    def refuse_pod(self, pod: Object, namespace: str, cluster: Cluster) -> str:
        """Why a new pod is not let in; empty if it is."""

    def mark(self, pod: Object) -> None:
        """The part of `admit_pod` that changes metadata and follows from this pod alone."""

    def depends_on_others(self, annotations: Collection[str]) -> bool:
        """Whether `admit_pod` looks at other pods for one with these annotations."""


@derived
def pod_rules() -> tuple[PodRules, ...]:
    found: list[PodRules] = [import_module(one.pods) for one in bundles() if one.pods]
    return tuple(found)
