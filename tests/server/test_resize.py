"""`resize` of a pod: the answers that Kubernetes 1.37.1 gave to the same requests."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.admission.world import World

Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
ONLY = "spec: Forbidden: only cpu and memory resources are mutable"
NO_REQUESTS = "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"
NO_LIMITS = "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"
NO_SUPPORT = "spec: Forbidden: Pod running on node without support for resize"
RUNNING = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": {"running": {}}}


def pod() -> Object:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "example.org/x": "1"}}
    first = [
        {"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}},
        {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
    ]
    containers = [{"name": "c", "image": "i", "resources": resources}, {"name": "d", "image": "i"}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, "initContainers": first}}


def requests(**given: str) -> Callable[[Object], Any]:
    return lambda one: one["spec"]["containers"][0]["resources"]["requests"].update(given)


def container(place: int = 0, **given: Any) -> Callable[[Object], Any]:
    return lambda one: one["spec"]["containers"][place].update(given)


CASES: dict[str, tuple[Callable[[Object], Any], str]] = {
    "more": (requests(cpu="2"), ""),
    "the same in other words": (requests(cpu="1000m"), ""),
    "first amounts": (container(1, resources={"requests": {"cpu": "1"}}), ""),
    "a sidecar": (lambda one: one["spec"]["initContainers"][1]["resources"]["requests"].update(cpu="2"), ""),
    "an init container": (lambda one: one["spec"]["initContainers"][0]["resources"]["requests"].update(cpu="2"), ""),
    "above the limit": (
        requests(cpu="3"),
        'spec.containers[0].resources.requests: Invalid value: "3": must be less than or equal to cpu limit of 2',
    ),
    "less than nothing": (
        requests(cpu="-1"),
        'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ),
    "removed": (lambda one: one["spec"]["containers"][0]["resources"]["requests"].pop("memory"), NO_REQUESTS),
    "limits removed": (
        lambda one: one["spec"]["containers"][0]["resources"].pop("limits"),
        f"[{NO_REQUESTS}, {NO_LIMITS}, {ONLY}]",
    ),
    "another resource": (
        lambda one: one["spec"]["containers"][0]["resources"]["limits"].update({"example.org/x": "2"}),
        ONLY,
    ),
    "its policy": (container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]), ONLY),
    "renamed": (
        container(name="z"),
        "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
    ),
    "fewer": (
        lambda one: one["spec"]["containers"].pop(),
        "spec.containers: Forbidden: containers may not be added or removed on resize",
    ),
}


async def resized(change: Callable[[Object], Any], status: Object | None = None) -> tuple[int, Object]:
    world = await World.make()
    await world.made(PODS, pod())
    if status is not None:
        assert (await world.ask("PATCH", f"{PODS}/p/status", {"status": status}, media=MERGE)).code == 200
    wanted = pod()
    change(wanted)
    answer = await world.ask("PUT", f"{PODS}/p/resize", wanted)
    return answer.code, answer.body


@pytest.mark.parametrize("case", CASES)
def test_a_resize_gets_the_answer_of_a_real_server(case: str) -> None:
    change, wrong = CASES[case]
    code, body = asyncio.run(resized(change))
    assert (code, body.get("message", "")) == ((422, f'Pod "p" is invalid: {wrong}') if wrong else (200, ""))


def test_nothing_but_resources_is_written() -> None:
    def change(one: Object) -> None:
        requests(cpu="2")(one)
        container(image="other")(one)
        one["metadata"]["labels"] = {"a": "b"}
        one["spec"]["schedulerName"] = "other"

    code, body = asyncio.run(resized(change))
    assert code == 200
    assert body["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert (body["spec"]["containers"][0]["image"], body["spec"]["schedulerName"]) == ("i", "default-scheduler")
    assert "labels" not in body["metadata"]
    assert body["metadata"]["generation"] == 2


@pytest.mark.parametrize(("given", "code"), [({}, 422), ({"resources": {}}, 200)])
def test_a_running_container_says_whether_its_node_can(given: Object, code: int) -> None:
    status = {"phase": "Running", "containerStatuses": [{**RUNNING, **given}]}
    found, body = asyncio.run(resized(requests(cpu="2"), status))
    assert found == code
    assert code == 200 or body["message"] == f'Pod "p" is invalid: {NO_SUPPORT}'


def test_a_resize_counts_for_the_quota() -> None:
    async def run() -> tuple[int, str]:
        world = await World.make()
        hard = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "3500m"}}}
        await world.made("/api/v1/namespaces/default/resourcequotas", hard)
        plain: Object = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
        await world.made(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [plain]}})
        more = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}}
        answer = await world.ask("PATCH", f"{PODS}/p/resize", more, media="application/strategic-merge-patch+json")
        return answer.code, answer.message

    code, message = asyncio.run(run())
    assert code == 403
    assert "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=2, limited: requests.cpu=3500m" in message
