"""What the scheduler hands to the engine of the objects that it reads."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from kohort.place.rulelimits import MOST_REQUIREMENTS
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import Owner, Pod, asked, lean
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.sources import SOURCES

TERM = {"topologyKey": "k", "labelSelector": {"matchLabels": {"a": "b"}}}
RULES: dict[str, Any] = {
    "nodeSelector": {"zone": "a"},
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}],
}
REST: dict[str, Any] = {
    "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}],
    "initContainers": [{"name": "i", "restartPolicy": "Always"}],
    "overhead": {"cpu": "100m"},
    "hostNetwork": True,
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    "nodeName": "n",
}


def pod(spec: dict[str, Any]) -> Pod:
    meta = {"name": "p", "namespace": "d", "uid": "u", "labels": {"a": "b"}, "annotations": {"x": "y"}}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


@pytest.mark.parametrize(
    "spec", [{}, REST, RULES, {**REST, **RULES}, {name: type(rule)() for name, rule in RULES.items()}]
)
def test_a_pod_is_asked_for_as_the_api_has_it(spec: dict[str, Any]) -> None:
    one = pod(spec)
    whole = msgspec.to_builtins(one)
    assert asked(one)["spec"] == whole["spec"]
    assert asked(one)["metadata"].items() <= whole["metadata"].items()


def test_rules_are_not_copied() -> None:
    one = pod(RULES)
    spec = asked(one)["spec"]
    assert spec["affinity"] is one.spec.affinity
    assert spec["tolerations"] is one.spec.tolerations
    assert spec["topologySpreadConstraints"] is one.spec.topology_spread_constraints


def test_of_a_service_only_whom_it_selects_is_kept() -> None:
    """A tenant's Services may have thousands of ports, and managers of each: a hundred of them were 250 MiB."""
    source = next(one for one in SOURCES if one.kind == "Service")
    ports = [{"name": f"p{number}", "port": number} for number in range(1, 100)]
    meta = {"name": "s", "namespace": "n", "uid": "u", "resourceVersion": "7", "managedFields": [{"manager": "m"}]}
    body = {"metadata": meta, "spec": {"selector": {"app": "x"}, "ports": ports}, "status": {"loadBalancer": {}}}
    found = msgspec.to_builtins(msgspec.convert(body, source.decode))
    assert found["spec"] == {"selector": {"app": "x"}}
    assert not {"managedFields", "status"} & {*found, *found["metadata"]}


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController"])
def test_selectors_of_services_and_controllers_come_and_go(kind: str) -> None:
    core = SchedulerCore(SchedulerSettings(), lambda: "")
    sources = {one.kind: one for one in SOURCES}
    selectors, meta = core.cache.default_selectors, {"name": "o", "namespace": "default", "uid": "u"}
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
    labels = {"app": "x", "tier": "y"}
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "default", "labels": labels}}, Pod)
    pod.metadata.owner_references = [msgspec.convert(owner, Owner)]
    assert selectors.selector(pod) is None
    service = msgspec.convert({"metadata": meta, "spec": {"selector": {"app": "x"}}}, sources["Service"].decode)
    sources["Service"].put(core, service)
    assert selectors.selector(pod) == {"matchLabels": {"app": "x"}}
    wanted = {"tier": "y"} if kind == "ReplicationController" else {"matchLabels": {"tier": "y"}}
    one = msgspec.convert({"metadata": meta, "spec": {"selector": wanted}}, sources[kind].decode)
    sources[kind].put(core, one)
    assert selectors.selector(pod) == {"matchLabels": labels}
    sources["Service"].drop(core, service)
    assert selectors.selector(pod) == {"matchLabels": {"tier": "y"}}
    sources[kind].drop(core, one)
    assert selectors.selector(pod) is None


def test_what_is_kept_for_the_next_pod_of_the_same_spec_goes_in_calm_moments() -> None:
    """Pods of a cluster share no specs, and one that is gone may have had a thousand containers."""
    core = SchedulerCore(SchedulerSettings(names=frozenset({"default-scheduler"})), lambda: "")
    pod = msgspec.convert(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
        },
        Pod,
    )
    containers, before = pod.spec.containers, sys.getrefcount(pod.spec.containers)
    core.cache.set_pod(pod)
    core.cache.equivalence_class(core.cache.members["u"])
    core.drop_pod(pod)
    core.cache.forget_specs()
    assert sys.getrefcount(containers) == before


@pytest.mark.parametrize(("containers", "kept"), [(1, True), (1000, False)])
def test_of_specs_that_were_seen_few_are_kept_and_no_large_one(containers: int, kept: bool) -> None:
    """To free sixty-four of them, of a thousand containers each, held the loop for 134 ms."""
    core = SchedulerCore(SchedulerSettings(names=frozenset({"default-scheduler"})), lambda: "")
    held = []
    for number in range(100):
        body = {"containers": [{"resources": {"requests": {"cpu": f"{number + 1}m"}}}] * containers}
        meta = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"}
        pod = msgspec.convert({"metadata": meta, "spec": body}, Pod)
        core.cache.set_pod(pod)
        before = len(core.cache._of_specs)
        core.cache.equivalence_class(core.cache.members[f"u{number}"])
        held.append(len(core.cache._of_specs) - before)
    assert min(held) >= 0, "none goes with all the others"
    assert len(core.cache.forget_specs()) == (64 if kept else 0)


def test_rules_that_are_forgotten_by_the_clock_are_counted() -> None:
    """Whoever gives memory back would not know of them."""
    core = SchedulerCore(SchedulerSettings(names=frozenset({"default-scheduler"})), lambda: "")
    for number in range(100):
        term = {"topologyKey": "k", "labelSelector": {"matchLabels": {"a": f"{number}"}}}
        rules = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        meta = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"}
        one = msgspec.convert({"metadata": meta, "spec": rules}, Pod)
        core.cache.set_pod(one)
        core.cache.equivalence_class(core.cache.members[f"u{number}"])
        core.drop_pod(one)
    core.cache.forget_specs()
    assert core.rules_forgotten == 0
    core.notices(1000.0)
    assert core.rules_forgotten == 100


@pytest.mark.parametrize("rules", [1, MOST_REQUIREMENTS + 1])
def test_what_a_pod_asks_for_is_read_once(rules: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of one with more rules than are accepted, which waits for ever: to read them all was 10 ms each time."""
    core = SchedulerCore(SchedulerSettings(names=frozenset({"default-scheduler"})), lambda: "")
    rule = {"key": "zone", "operator": "NotIn", "values": [f"v{number}" for number in range(rules)]}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    meta = {"name": "p", "namespace": "default", "uid": "u", "labels": {"a": "b"}}
    core.cache.set_pod(msgspec.convert({"metadata": meta, "spec": {"affinity": {"nodeAffinity": node}}}, Pod))
    read: list[str] = []
    of_spec = core.cache.state.signatures.of_spec

    def counted(*args: Any, **kwargs: Any) -> Any:
        read.append("spec")
        return of_spec(*args, **kwargs)

    monkeypatch.setattr(core.cache.state.signatures, "of_spec", counted)
    member = core.cache.members["u"]
    found = {core.cache.equivalence_class(member).excess for _ in range(3)}
    assert bool(found.pop()) is (rules > MOST_REQUIREMENTS)
    assert not found
    assert len(read) == 1


def _many(count: int) -> dict[str, dict[str, Any]]:
    """Rules of each sort that name so much."""
    rule = {"key": "zone", "operator": "NotIn", "values": [f"v{number}" for number in range(count)]}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    terms = [{"topologyKey": "k", "labelSelector": {"matchLabels": {"a": f"{number}"}}} for number in range(count)]
    between = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    return {
        "nodes": {"affinity": {"nodeAffinity": node}},
        "pods": {"affinity": {"podAntiAffinity": between}},
        "spread": {"topologySpreadConstraints": [{**spread, "topologyKey": f"k{number}"} for number in range(count)]},
        "tolerations": {"tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(count)]},
        "labels": {"nodeSelector": {f"k{number}": "v" for number in range(count)}},
    }


@pytest.mark.parametrize("sort", list(_many(1)))
def test_of_rules_that_are_too_many_only_that_is_kept(sort: str) -> None:
    """What is said of the pod is the same, each time that it is read; it is not placed."""
    core = SchedulerCore(SchedulerSettings(names=frozenset({"default-scheduler"})), lambda: "")
    signatures = core.cache.state.signatures
    large = pod({**REST, **_many(MOST_REQUIREMENTS + 1)[sort]})
    kept = lean(large)
    assert len(msgspec.json.encode(large)) > 30_000
    assert len(msgspec.json.encode(kept)) < 1000
    said = signatures.of_spec(asked(large)["spec"]).excess
    assert "are accepted" in said
    again = msgspec.json.decode(msgspec.json.encode(kept), type=Pod)
    assert [signatures.of_spec(asked(one)["spec"]).excess for one in (kept, lean(kept), again)] == [said] * 3
    assert large.spec.too_many is None, "who else holds it keeps what it was"


@pytest.mark.parametrize("sort", list(_many(1)))
def test_rules_that_are_accepted_are_kept(sort: str) -> None:
    one = pod({**REST, **_many(100)[sort]})
    assert lean(one) is one


def test_of_ports_those_are_kept_that_a_node_has_once() -> None:
    many = [{"containerPort": number, "protocol": "TCP"} for number in range(1, 4000)]
    ports = [*many, {"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}]
    containers = [{"name": "c", "ports": ports}, {"name": "d", "ports": many}]
    found = asked(pod({"containers": containers, "initContainers": containers[1:]}))["spec"]
    assert found == {"containers": [{"ports": ports[-1:]}, {}], "initContainers": [{}]}
    whole = asked(pod({"containers": containers, "hostNetwork": True}))["spec"]
    assert whole == {"containers": [{"ports": ports}, {"ports": many}], "hostNetwork": True}
