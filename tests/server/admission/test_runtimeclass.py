"""RuntimeClass through the API: overhead and nodes of the class, and refusals in kube-apiserver's words."""

from typing import Any

import pytest
from tests.server.admission.world import World, pod

CLASS = {
    "metadata": {"name": "sandbox"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
}


async def world_with_class() -> tuple[World, str]:
    world = await World.make()
    root = await world.namespace("rc")
    await world.made("/apis/node.k8s.io/v1/runtimeclasses", CLASS)
    return world, root


async def test_a_pod_gets_the_overhead_and_the_nodes_of_its_class() -> None:
    world, root = await world_with_class()
    made = await world.made(f"{root}/pods", pod("p", runtimeClassName="sandbox", nodeSelector={"zone": "a"}))
    assert made["spec"]["overhead"] == {"cpu": "250m"}
    assert made["spec"]["nodeSelector"] == {"zone": "a", "kata": "yes"}
    assert {"key": "kata", "operator": "Exists"} in made["spec"]["tolerations"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "absent"}, 'RuntimeClass "absent" not found'),
        (
            {"runtimeClassName": "sandbox", "overhead": {"cpu": "1"}},
            "Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        ({"overhead": {"cpu": "1"}}, "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        (
            {"runtimeClassName": "sandbox", "nodeSelector": {"kata": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no",
        ),
    ],
)
async def test_what_does_not_fit_the_class_is_refused(spec: dict[str, Any], why: str) -> None:
    world, root = await world_with_class()
    answer = await world.ask("POST", f"{root}/pods", pod("p", **spec))
    assert (answer.code, answer.message) == (403, f'pods "p" is forbidden: pod rejected: {why}')
