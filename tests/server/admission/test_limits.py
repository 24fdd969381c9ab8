"""LimitRanger through the API: answers recorded from Kubernetes 1.37."""

from typing import Any

import pytest
from tests.server.admission.world import World, pod

LIMITS = [
    {
        "type": "Container",
        "default": {"cpu": "500m", "memory": "1Gi"},
        "defaultRequest": {"cpu": "100m"},
        "min": {"cpu": "50m"},
        "max": {"cpu": "2", "memory": "2Gi"},
        "maxLimitRequestRatio": {"cpu": "10"},
    },
    {"type": "Pod", "max": {"cpu": "3"}},
    {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}},
]


async def limited() -> tuple[World, str]:
    world = await World.make()
    root = await world.namespace("lr")
    await world.made(f"{root}/limitranges", {"metadata": {"name": "a"}, "spec": {"limits": LIMITS}})
    return world, root


async def test_containers_get_what_they_do_not_ask_for() -> None:
    world, root = await limited()
    init = [{"name": "i", "image": "i"}]
    made = await world.made(f"{root}/pods", pod("p5", initContainers=init))
    filled = {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}}
    assert made["spec"]["containers"][0]["resources"] == filled
    assert made["spec"]["initContainers"][0]["resources"] == filled
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container c0; cpu, memory "
        "limit for container c0; cpu, memory request for init container i; cpu, memory limit for init container i"
    }


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        pod("p1", {"requests": {"cpu": "10m"}}),
        (
            'pods "p1" is forbidden: [minimum cpu usage per Container is 50m, but request is 10m, cpu max limit to '
            "request ratio per Container is 10, but provided ratio is 50.000000]"
        ),
    ),
    (
        pod("p2", {"limits": {"cpu": "3"}}),
        'pods "p2" is forbidden: maximum cpu usage per Container is 2, but limit is 3',
    ),
    (
        pod("p3", {"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, {"limits": {"cpu": "2"}}),
        'pods "p3" is forbidden: maximum cpu usage per Pod is 3, but limit is 5',
    ),
    (
        pod("p4", {"requests": {"cpu": "50m"}, "limits": {"cpu": "1", "memory": "9Gi"}}),
        (
            'pods "p4" is forbidden: [maximum memory usage per Container is 2Gi, but limit is 9Gi, cpu max limit to '
            "request ratio per Container is 10, but provided ratio is 20.000000]"
        ),
    ),
]


@pytest.mark.parametrize(("body", "message"), REFUSED)
async def test_pods_outside_the_limits(body: dict[str, Any], message: str) -> None:
    world, root = await limited()
    answer = await world.ask("POST", f"{root}/pods", body)
    assert (answer.code, answer.message, answer.body["details"]) == (
        403,
        message,
        {"name": body["metadata"]["name"], "kind": "pods"},
    )


async def test_what_limits_make_of_a_pod_is_judged() -> None:
    world, root = await limited()
    answer = await world.ask("POST", f"{root}/pods", pod("p6", {"requests": {"cpu": "2", "memory": "3Gi"}}))
    assert answer.code == 422
    assert (
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 500m'
        in (answer.message)
    )


async def test_claims() -> None:
    world, root = await limited()

    def claim(size: str) -> dict[str, Any]:
        return {
            "metadata": {"name": "v"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
        }

    answer = await world.ask("POST", f"{root}/persistentvolumeclaims", claim("10Gi"))
    assert answer.message == (
        'persistentvolumeclaims "v" is forbidden: maximum storage usage per PersistentVolumeClaim is 5Gi, but request '
        "is 10Gi"
    )
    assert (await world.ask("POST", f"{root}/persistentvolumeclaims", claim("2Gi"))).code == 201


async def test_other_namespaces_are_free() -> None:
    world, _ = await limited()
    other = await world.namespace("free")
    made = await world.made(f"{other}/pods", pod("p", {"limits": {"cpu": "9"}}))
    assert "annotations" not in made["metadata"]


async def test_every_pod_is_told_what_it_got() -> None:
    world, root = await limited()
    first, second = [await world.made(f"{root}/pods", pod(name)) for name in ("a", "b")]
    assert second["metadata"]["annotations"] == first["metadata"]["annotations"]


@pytest.mark.parametrize("value", ["x", "", [], {}, True, "1 Gi", "1e"])
async def test_an_amount_that_is_none_locks_nobody_out(value: Any) -> None:
    world, _root = await limited()
    other = await world.namespace("odd")
    limits = [{"type": "Container", "max": {"cpu": value}}]
    body = {"metadata": {"name": "b"}, "spec": {"limits": limits}}
    answer = await world.ask("POST", f"{other}/limitranges", body)
    if answer.code != 201:
        assert answer.code in (400, 422)
        return
    assert (await world.ask("POST", f"{other}/pods", pod("p"))).code in (201, 403, 422)
