"""Grove's startup order: an init container that waits until so many pods of other cliques of its gang are ready.

What it waits for stands in its arguments (`--podcliques=NAME:MINIMUM`), so that no container has to run to know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.sim.pod import Container, Pod

NAME: Final = "grove-initc"
_FLAG: Final = "--podcliques="


def parents(container: Container) -> list[tuple[str, int]]:
    """PodCliques, and how many of their pods have to be ready. None for any other container."""
    if container.name != NAME:
        return []
    found = []
    for argument in container.args:
        clique, _, minimum = argument.removeprefix(_FLAG).partition(":")
        if argument.startswith(_FLAG) and minimum.isdigit():
            found.append((clique, int(minimum)))
    return found


def gang(pod: Pod) -> tuple[str, str] | None:
    """The gang whose pods a pod waits for; None if it waits for nobody (any more)."""
    labels = pod.metadata.labels
    if not labels.gang or pod.over or not any(parents(one) for one in pod.spec.init_containers):
        return None
    begun = any("running" in (one.get("state") or {}) for one in pod.status.container_statuses)
    return None if begun else (pod.metadata.namespace, labels.gang)


def holds(container: Container, gang: Iterable[Pod]) -> bool | None:
    """Whether it has to wait on, with these pods in its gang; None: it waits for nobody."""
    wanted = parents(container)
    if not wanted:
        return None
    ready: dict[str, int] = {}
    for pod in gang:
        if pod.ready:
            ready[pod.metadata.labels.clique] = ready.get(pod.metadata.labels.clique, 0) + 1
    return any(ready.get(clique, 0) < minimum for clique, minimum in wanted)
