"""The pure life of a node: working, drained, failed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kohort.api.kind import Object
from kohort.sim import nodelife
from kohort.sim.cluster import Pool

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def node(state: str = "") -> Object:
    (made,) = Pool(name="n", count=1, annotations={nodelife.STATE: state} if state else {}).nodes()
    return made


def applied(one: Object, *, lifecycle: bool = True) -> Object:
    change = nodelife.step(one, NOW, lifecycle=lifecycle)
    return {**one, "spec": {**one["spec"], **change.spec}, "status": {**one["status"], **change.status}}


def ready(one: Object) -> str:
    return next(str(item["status"]) for item in one["status"]["conditions"] if item["type"] == "Ready")


def pod(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name, **more.pop("meta", {})}, "spec": more, "status": {"phase": "Running"}}


def tolerating(name: str, seconds: int | None) -> Object:
    found = {"key": nodelife.UNREACHABLE, "effect": "NoExecute", "operator": "Exists"}
    return pod(name, tolerations=[found if seconds is None else {**found, "tolerationSeconds": seconds}])


def test_a_node_becomes_ready_once() -> None:
    one = applied(node())
    assert ready(one) == "True"
    assert nodelife.step(one, NOW, lifecycle=True) == nodelife.Change({}, {})


def test_a_failed_node_is_marked_and_heals() -> None:
    one = applied(applied(node()) | {"metadata": node("failed")["metadata"]})
    assert ready(one) == "Unknown"
    assert [(taint["key"], taint["effect"]) for taint in one["spec"]["taints"]] == [
        (nodelife.UNREACHABLE, "NoSchedule"),
        (nodelife.UNREACHABLE, "NoExecute"),
    ]
    assert nodelife.step(one, NOW, lifecycle=True) == nodelife.Change({}, {})
    healed = applied(one | {"metadata": node()["metadata"]})
    assert ready(healed) == "True"
    assert healed["spec"]["taints"] == []


def test_with_a_controller_manager_a_failed_kubelet_only_falls_silent() -> None:
    one = applied(node()) | {"metadata": node("failed")["metadata"]}
    assert nodelife.step(one, NOW, lifecycle=False) == nodelife.Change({}, {})


def test_who_leaves_a_lost_node_and_when() -> None:
    lost = applied(applied(node()) | {"metadata": node("failed")["metadata"]})
    pods = [pod("at-once"), tolerating("soon", 30), tolerating("never", None)]
    found = nodelife.leaving(lost, pods, NOW)
    assert [one["metadata"]["name"] for one in found.now] == ["at-once"]
    assert found.at == NOW + timedelta(seconds=30)
    later = nodelife.leaving(lost, pods, NOW + timedelta(seconds=30))
    assert [one["metadata"]["name"] for one in later.now] == ["at-once", "soon"]


def test_a_drained_node_is_cordoned_and_emptied_but_for_daemons() -> None:
    one = applied(node("drained"))
    assert one["spec"]["unschedulable"] is True
    daemon = pod("d", meta={"ownerReferences": [{"kind": "DaemonSet", "controller": True}]})
    over = {**pod("o"), "status": {"phase": "Succeeded"}}
    found = nodelife.leaving(one, [pod("p"), daemon, over], NOW)
    assert [gone["metadata"]["name"] for gone in found.now] == ["p"]
    assert nodelife.leaving(node(), [pod("p")], NOW) == nodelife.Leaving()


def test_an_unknown_state_is_none() -> None:
    assert nodelife.state_of(node("tired")) == ""


def test_annotations_of_a_node_are_those_of_its_pods() -> None:
    node: Object = {
        "metadata": {"annotations": {"sim.kohort.dev/run-seconds": "2", "sim.kohort.dev/start-seconds": "0"}}
    }
    batch, service = nodelife.usual(node, "Never"), nodelife.usual(node, "Always")
    assert batch is not None
    assert service is not None
    assert (batch.run_seconds, batch.start_seconds) == (2.0, 0.0)
    assert (service.run_seconds, service.start_seconds) == (None, 0.0), "services do not end"
    assert nodelife.usual({"metadata": {"annotations": {nodelife.STATE: "failed"}}}, "Never") is None
