"""Which nodes are looked at when pods and taints come, in whatever order."""

from __future__ import annotations

from typing import Any

from kohort.controllermanager.node.eviction import taint_eviction_controller
from kohort.controllers.controller import Key

NO_EXECUTE = {"key": "gone", "effect": "NoExecute"}


def node(*taints: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "n"}, "spec": {"taints": list(taints)}}


def pod(where: str = "n", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "d"}, "spec": {"nodeName": where, **spec}}


class Told:
    """What the controller enqueues for a change."""

    def __init__(self) -> None:
        of_node, of_pod = taint_eviction_controller().watches
        self._of_node, self._of_pod = of_node.handler, of_pod.handler

    def node(self, old: Any, new: Any) -> list[Key]:
        return [one.key for one in self._of_node(old, new)]

    def pod(self, old: Any, new: Any) -> list[Key]:
        return [one.key for one in self._of_pod(old, new)]


def test_a_pod_that_comes_to_a_tainted_node_is_looked_at() -> None:
    told = Told()
    assert told.node(None, node(NO_EXECUTE)) == [Key("", "n")]
    assert told.pod(None, pod("")) == []
    assert told.pod(pod(""), pod()) == [Key("", "n")]
    assert told.pod(pod(tolerations=[{"operator": "Exists"}]), pod()) == [Key("", "n")]
    assert told.pod(pod(), pod()) == []


def test_a_taint_that_comes_after_the_pod_is_looked_at_with_its_node() -> None:
    told = Told()
    told.node(None, node())
    assert told.pod(None, pod()) == []
    assert told.node(node(), node(NO_EXECUTE)) == [Key("", "n")]


def test_nobody_is_looked_at_when_the_taint_has_gone() -> None:
    told = Told()
    told.node(None, node(NO_EXECUTE))
    assert told.node(node(NO_EXECUTE), node()) == [Key("", "n")]
    assert told.pod(pod(""), pod()) == []
    told.node(node(), node(NO_EXECUTE))
    told.node(node(NO_EXECUTE), None)
    assert told.pod(pod(""), pod()) == []
