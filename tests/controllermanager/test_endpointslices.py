"""EndpointSlices of a Service: who is in them, in how many, and how few are rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.controllermanager.build import pod

from kohort.api.kind import Object
from kohort.controllermanager.endpoint import backends, legacy, slices
from kohort.controllers.reconcile import Answer, Reconcile, Write

PORT = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}


def service(**spec: Any) -> Object:
    given = {"selector": {"app": "web"}, "ports": [PORT], "clusterIP": "10.0.0.9", "ipFamilies": ["IPv4"], **spec}
    meta = {"name": "web", "namespace": "lab", "uid": "uid-svc", "labels": {"team": "x"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": given}


def backend(number: int, **given: Any) -> Object:
    found = pod(f"p{number:04}", **given)
    found["status"]["podIP"] = f"10.1.{number // 200}.{number % 200 + 1}"
    return found


def run(steps: Reconcile) -> list[Write]:
    writes: list[Write] = []
    answers: list[Answer] | None = None
    try:
        while True:
            step = next(steps) if answers is None else steps.send(answers)
            writes += step.writes
            answers = [Answer(one.body) for one in step.writes]
    except StopIteration:
        return writes


class Kept:
    """The slices of a Service over several reconciles."""

    def __init__(self, svc: Object) -> None:
        self.service, self.slices, self.made = svc, dict[str, Object](), 0

    def play(self, pods: Sequence[Object]) -> list[str]:
        """The verbs of what was written."""
        writes = run(slices.reconcile(self.service, pods, list(self.slices.values()), lambda _: {}))
        for write in writes:
            if write.verb == "create":
                self.made += 1
                name = f"web-{self.made}"
                self.slices[name] = {**write.body, "metadata": {**write.body["metadata"], "name": name}}
            elif write.verb == "update":
                self.slices[write.name] = write.body
            else:
                del self.slices[write.name]
        return [write.verb for write in writes]

    @property
    def sizes(self) -> list[int]:
        return [len(one["endpoints"]) for one in self.slices.values()]

    @property
    def names(self) -> set[str]:
        return {one["targetRef"]["name"] for found in self.slices.values() for one in found["endpoints"]}


def test_one_pod_is_one_endpoint() -> None:
    kept = Kept(service())
    one = backend(1)
    one["spec"] |= {"hostname": "h", "subdomain": "web"}
    assert kept.play([one]) == ["create"]
    (found,) = kept.slices.values()
    assert found["addressType"] == "IPv4"
    assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert found["endpoints"] == [
        {
            "addresses": ["10.1.0.2"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": {"kind": "Pod", "namespace": "lab", "name": "p0001", "uid": "uid-p0001"},
            "hostname": "h",
            "nodeName": "n1",
        }
    ]
    assert found["metadata"]["labels"] == {
        "team": "x",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert kept.play([one]) == []


@pytest.mark.parametrize(
    ("given", "publish", "expected"),
    [
        ({}, False, (True, True, False)),
        ({"ready": None}, False, (False, False, False)),
        ({"ready": None}, True, (True, False, False)),
        ({"deletionTimestamp": "2026-11-16T11:00:00Z"}, False, (False, True, True)),
        ({"phase": "Succeeded"}, False, None),
    ],
)
def test_conditions(given: dict[str, Any], publish: bool, expected: tuple[bool, ...] | None) -> None:
    kept = Kept(service(publishNotReadyAddresses=publish))
    kept.play([backend(1, **given)])
    found = [tuple(one["conditions"].values()) for part in kept.slices.values() for one in part["endpoints"]]
    assert found == ([expected] if expected else [])


def test_a_hundred_in_a_slice_and_as_few_writes_as_possible() -> None:
    kept = Kept(service())
    pods = [backend(number) for number in range(250)]
    assert kept.play(pods) == ["create"] * 3
    assert sorted(kept.sizes) == [50, 100, 100]
    assert kept.play([*pods, backend(300)]) == ["update"]  # into the one with room
    left = [*pods[1:], backend(300)]
    assert kept.play(left) == ["update"]
    assert kept.play([*left[1:], backend(301)]) == ["update"]  # one goes, another takes its place
    assert kept.names == {one["metadata"]["name"] for one in [*left[1:], backend(301)]}
    assert max(kept.sizes) <= 100


def test_nobody_is_an_empty_slice_that_is_used_again() -> None:
    kept = Kept(service())
    assert kept.play([]) == ["create"]
    assert kept.play([]) == []
    assert kept.play([backend(1)]) == ["update"]
    assert kept.play([]) == ["update"]
    assert kept.sizes == [0]
    assert kept.made == 1


def test_pods_that_mean_another_number_by_a_port_are_in_another_slice() -> None:
    kept = Kept(service(ports=[{**PORT, "targetPort": "web"}]))
    pods = []
    for number, port in ((1, 8080), (2, 9090), (3, None)):
        one = backend(number)
        ports = [{"name": "web", "containerPort": port}] if port else []
        one["spec"]["containers"] = [{"name": "c", "ports": ports}]
        pods.append(one)
    kept.play(pods)
    assert sorted(part["ports"][0]["port"] for part in kept.slices.values()) == [8080, 9090]
    assert kept.names == {"p0001", "p0002"}  # the third has no such port


def test_changed_labels_of_the_service_reach_its_slices() -> None:
    kept = Kept(service(clusterIP="None"))
    kept.play([backend(1)])
    (found,) = kept.slices.values()
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    kept.service["metadata"]["labels"] = {"team": "y"}
    assert kept.play([backend(1)]) == ["update"]


def test_legacy_endpoints_have_ready_and_other_addresses() -> None:
    pods = [backend(2), backend(1), backend(3, ready=None), backend(4, deletionTimestamp="2026-11-16T11:00:00Z")]
    (write,) = run(legacy.reconcile(service(), pods, None))
    (subset,) = write.body["subsets"]
    assert [one["ip"] for one in subset["addresses"]] == ["10.1.0.2", "10.1.0.3"]
    assert [one["ip"] for one in subset["notReadyAddresses"]] == ["10.1.0.4"]
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert run(legacy.reconcile(service(), pods, write.body)) == []
    (gone,) = run(legacy.reconcile(None, [], write.body))
    assert gone.verb == "delete"


def test_legacy_endpoints_hold_a_thousand() -> None:
    pods = [backend(number, ready=None if number < 5 else 1.0) for number in range(1003)]
    (write,) = run(legacy.reconcile(service(), pods, None))
    (subset,) = write.body["subsets"]
    assert (len(subset["addresses"]), len(subset["notReadyAddresses"])) == (998, 2)
    assert write.body["metadata"]["annotations"] == {"endpoints.kubernetes.io/over-capacity": "truncated"}


def test_two_states_are_compared_anew_whenever_one_of_them_is_another() -> None:
    old, new = backend(1), backend(1)
    moved = backend(2)
    pairs = [(old, new), (old, new), (old, moved), (moved, old), (new, old), (moved, moved)]
    assert [backends.same(*pair) for pair in pairs] == [
        backends._counts(one) == backends._counts(other) for one, other in pairs
    ]
    assert backends.same(old, new)
    assert not backends.same(old, moved)
