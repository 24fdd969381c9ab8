"""What a pod asks for: the sums of kube-scheduler (KEP-753 for sidecars, KEP-2837 for the pod's own resources)."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.place.requests import allocatable, pod_requests, running_spec


def _container(cpu: str | None = None, limit: str | None = None, **more: Any) -> dict[str, Any]:
    resources = {}
    if cpu:
        resources["requests"] = {"cpu": cpu}
    if limit:
        resources["limits"] = {"cpu": limit}
    return {"resources": resources, **more}


def _init(cpu: str) -> dict[str, Any]:
    return _container(cpu)


def _sidecar(cpu: str) -> dict[str, Any]:
    return _container(cpu, restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [_container("1"), _container("500m")]}, 1500),
        ({"containers": [_container(limit="2")]}, 2000),
        ({"containers": [_container("1", "2")]}, 1000),
        ({"containers": [_container("1")], "initContainers": [_init("3")]}, 3000),
        ({"containers": [_container("2")], "initContainers": [_init("1")]}, 2000),
        ({"containers": [_container("1")], "initContainers": [_sidecar("1")]}, 2000),
        # An init container runs beside the sidecars that were started before it, not after it.
        ({"containers": [_container("1")], "initContainers": [_sidecar("1"), _init("3")]}, 4000),
        ({"containers": [_container("1")], "initContainers": [_init("3"), _sidecar("1")]}, 3000),
        ({"containers": [_container("1")], "initContainers": [_sidecar("1"), _sidecar("1")]}, 3000),
        ({"containers": [_container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [_container("1")], "resources": {"requests": {"cpu": "4"}}}, 4000),
        ({"containers": [_container("1")], "resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}}, 5000),
        ({"containers": [_container("1")], "resources": {"limits": {"cpu": "4"}}}, 1000),
        ({"containers": [_container()], "resources": {"limits": {"cpu": "4"}}}, 4000),
    ],
)
def test_cpu(spec: dict[str, Any], cpu: int) -> None:
    assert pod_requests(spec) == {"cpu": cpu, "pods": 1}


def test_a_pod_that_asks_for_nothing_is_one_pod() -> None:
    assert pod_requests({"containers": [{}]}) == {"pods": 1}


def test_the_pod_level_has_no_say_over_devices() -> None:
    spec = {
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": 4}}}],
        "resources": {"requests": {"nvidia.com/gpu": 1}},
    }
    assert pod_requests(spec)["nvidia.com/gpu"] == 4


def test_allocatable_falls_back_to_capacity() -> None:
    assert allocatable({"capacity": {"cpu": "4", "memory": "1Gi"}}) == {"cpu": 4000, "memory": 1 << 30}
    assert allocatable({"allocatable": {"cpu": "3"}, "capacity": {"cpu": "4"}}) == {"cpu": 3000}


@pytest.mark.parametrize(("wanted", "given", "cpu"), [("1", "2", 2000), ("3", "2", 3000), ("1", None, 1000)])
def test_a_resize_under_way_counts_the_larger(wanted: str, given: str | None, cpu: int) -> None:
    status = {"name": "c", "allocatedResources": {"cpu": given} if given else {}}
    obj = {"spec": {"containers": [_container(wanted, name="c")]}, "status": {"containerStatuses": [status]}}
    assert pod_requests(running_spec(obj)) == {"cpu": cpu, "pods": 1}
