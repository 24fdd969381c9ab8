"""ResourceQuota through the API: answers recorded from Kubernetes 1.37, and writes that come together."""

import asyncio
import contextlib
from typing import Any

import pytest
from tests.server.admission.world import World, pod

HARD = {
    "pods": "2",
    "requests.cpu": "1",
    "limits.memory": "1Gi",
    "count/configmaps": "3",
    "secrets": "1",
    "services": "2",
    "services.nodeports": "0",
    "requests.nvidia.com/gpu": "1",
}


def quota(name: str, hard: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}


async def quoted(*quotas: dict[str, Any]) -> tuple[World, str]:
    world = await World.make()
    root = await world.namespace("rq")
    for one in quotas:
        await world.made(f"{root}/resourcequotas", one)
    return world, root


async def used(world: World, root: str, name: str) -> dict[str, str]:
    await world.admission.quotas.sync()
    found = (await world.ask("GET", f"{root}/resourcequotas/{name}")).body
    assert found["status"]["hard"] == found["spec"]["hard"]
    return dict(found["status"]["used"])


def sized(name: str, cpu: str, memory: str, **spec: Any) -> dict[str, Any]:
    return pod(name, {"requests": {"cpu": cpu}, "limits": {"memory": memory}}, **spec)


async def test_what_recorded_servers_answered() -> None:
    world, root = await quoted(quota("a", HARD))

    async def refused(path: str, body: dict[str, Any]) -> str:
        answer = await world.ask("POST", f"{root}/{path}", body)
        assert answer.code == 403, answer.body
        return answer.message

    lead = 'pods "p" is forbidden: '
    assert await refused("pods", pod("p")) == (
        f"{lead}failed quota: a: must specify limits.memory for: c0; requests.cpu for: c0"
    )
    big = pod("p", {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi", "cpu": "2"}})
    assert await refused("pods", big) == (
        f"{lead}exceeded quota: a, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1"
    )
    await world.made(f"{root}/pods", sized("p2", "600m", "600Mi"))
    assert await refused("pods", sized("p", "600m", "600Mi")) == (
        f"{lead}exceeded quota: a, requested: limits.memory=600Mi,requests.cpu=600m, used: "
        "limits.memory=600Mi,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1"
    )
    for n in range(3):
        await world.made(f"{root}/configmaps", {"metadata": {"name": f"c{n}"}})
    assert await refused("configmaps", {"metadata": {"name": "c"}}) == (
        'configmaps "c" is forbidden: exceeded quota: a, requested: count/configmaps=1, used: count/configmaps=3, '
        "limited: count/configmaps=3"
    )
    await world.made(f"{root}/secrets", {"metadata": {"name": "s1"}})
    assert await refused("secrets", {"metadata": {"name": "s2"}}) == (
        'secrets "s2" is forbidden: exceeded quota: a, requested: secrets=1, used: secrets=1, limited: secrets=1'
    )
    service = {"metadata": {"name": "s1"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    assert await refused("services", service) == (
        'services "s1" is forbidden: exceeded quota: a, requested: services.nodeports=1, used: services.nodeports=0, '
        "limited: services.nodeports=0"
    )
    assert await used(world, root, "a") == {
        "count/configmaps": "3",
        "limits.memory": "600Mi",
        "pods": "1",
        "requests.cpu": "600m",
        "requests.nvidia.com/gpu": "0",
        "secrets": "1",
        "services": "0",
        "services.nodeports": "0",
    }


UNFIT = "unsupported scope applied to resource"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}, f'spec.scopes: Invalid value: ["BestEffort"]: {UNFIT}'),
    ({"hard": {"services": "1"}, "scopes": ["Terminating"]}, f'spec.scopes: Invalid value: ["Terminating"]: {UNFIT}'),
    (
        {"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]},
        'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
    ),
    ({"hard": {"pods": "1"}, "scopes": ["Foo"]}, 'spec.scopes: Invalid value: ["Foo"]: unsupported scope'),
    (
        {"hard": {"bogus": "1"}},
        'spec.hard[bogus]: Invalid value: "bogus": must be a standard resource type or fully qualified',
    ),
    ({"hard": {"cpu": "-1"}}, 'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
    ({"hard": {"pods": "1500m"}}, 'spec.hard[pods]: Invalid value: "1500m": must be an integer'),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED)
async def test_quotas_that_make_no_sense(spec: dict[str, Any], message: str) -> None:
    world, root = await quoted()
    answer = await world.ask("POST", f"{root}/resourcequotas", {"metadata": {"name": "z"}, "spec": spec})
    assert (answer.code, answer.message) == (422, f'ResourceQuota "z" is invalid: {message}')


async def test_scopes_do_not_change() -> None:
    world, root = await quoted(quota("im", {"pods": "1"}, scopes=["BestEffort"]))
    change, media = {"spec": {"scopes": ["NotBestEffort"]}}, "application/merge-patch+json"
    answer = await world.ask("PATCH", f"{root}/resourcequotas/im", change, media=media)
    assert answer.message == (
        'ResourceQuota "im" is invalid: spec.scopes: Invalid value: ["NotBestEffort"]: field is immutable'
    )


@pytest.mark.parametrize("value", ["x", "", [], {}, True, "1 Gi", "1e", "٣"])
async def test_an_amount_that_is_none_is_refused_and_locks_nobody_out(value: Any) -> None:
    world, root = await quoted()
    answer = await world.ask("POST", f"{root}/resourcequotas", quota("z", {"pods": value}))
    if answer.code != 201:
        assert answer.code in (400, 422)
        return
    assert (await world.ask("POST", f"{root}/pods", pod("p"))).code in (201, 403)


async def test_what_is_gone_or_has_ended_is_free_again() -> None:
    world, root = await quoted(quota("a", {"pods": "1", "count/pods": "2"}))
    await world.made(f"{root}/pods", pod("p"))
    assert (await world.ask("POST", f"{root}/pods", pod("q"))).code == 403
    done = await world.ask(
        "PATCH", f"{root}/pods/p/status", {"status": {"phase": "Succeeded"}}, media="application/merge-patch+json"
    )
    assert done.code == 200
    await world.made(f"{root}/pods", pod("q"))
    assert await used(world, root, "a") == {"pods": "1", "count/pods": "2"}
    assert (await world.ask("POST", f"{root}/pods", pod("r"))).code == 403, "count/pods counts those that ended, too"
    await world.ask("DELETE", f"{root}/pods/p?gracePeriodSeconds=0")
    assert await used(world, root, "a") == {"pods": "1", "count/pods": "1"}


async def test_scopes_pick_pods() -> None:
    gold = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["gold"]}]}
    world, root = await quoted(
        quota("best-effort", {"pods": "1"}, scopes=["BestEffort"]),
        quota("terminating", {"pods": "1"}, scopes=["Terminating"]),
        quota("gold", {"pods": "0"}, scopeSelector=gold),
        quota("objects", {"count/configmaps": "5"}, scopes=["BestEffort"]),
    )
    await world.made("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "gold"}, "value": 5})
    await world.made(f"{root}/pods", pod("b1"))
    assert "exceeded quota: best-effort" in (await world.ask("POST", f"{root}/pods", pod("b2"))).message
    await world.made(f"{root}/pods", sized("n1", "1", "1Gi"))
    await world.made(f"{root}/pods", sized("n2", "1", "1Gi"))
    await world.made(f"{root}/pods", sized("t1", "1", "1Gi", activeDeadlineSeconds=5))
    over = await world.ask("POST", f"{root}/pods", sized("t2", "1", "1Gi", activeDeadlineSeconds=5))
    assert "exceeded quota: terminating" in over.message
    over = await world.ask("POST", f"{root}/pods", sized("g", "1", "1Gi", priorityClassName="gold"))
    assert "exceeded quota: gold, requested: pods=1, used: pods=0, limited: pods=0" in over.message
    assert await used(world, root, "terminating") == {"pods": "1"}


async def test_claims_by_class() -> None:
    by_class = "fast.storageclass.storage.k8s.io/requests.storage"
    world, root = await quoted(quota("a", {by_class: "5Gi", "requests.storage": "20Gi"}))

    async def claim(name: str, size: str, sort: str) -> int:
        resources = {"requests": {"storage": size}}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, "storageClassName": sort}
        body = {"metadata": {"name": name}, "spec": spec}
        return (await world.ask("POST", f"{root}/persistentvolumeclaims", body)).code

    assert [await claim("a", "4Gi", "fast"), await claim("b", "2Gi", "fast"), await claim("c", "9Gi", "slow")] == [
        201,
        403,
        201,
    ]
    assert await used(world, root, "a") == {by_class: "4Gi", "requests.storage": "13Gi"}


async def test_an_update_that_takes_more() -> None:
    world, root = await quoted(quota("a", {"services.nodeports": "0"}))
    made = await world.made(f"{root}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    made["spec"]["type"] = "NodePort"
    answer = await world.ask("PUT", f"{root}/services/s", made)
    assert answer.code == 403
    assert "exceeded quota: a, requested: services.nodeports=1" in answer.message


async def test_writes_that_come_together_do_not_slip_through() -> None:
    world, root = await quoted(quota("a", {"count/configmaps": "10"}))
    answers = await asyncio.gather(
        *(world.ask("POST", f"{root}/configmaps", {"metadata": {"name": f"c{n}"}}) for n in range(40))
    )
    assert sorted(one.code for one in answers) == [201] * 10 + [403] * 30


async def test_a_dry_run_is_checked_and_costs_nothing() -> None:
    world, root = await quoted(quota("a", {"secrets": "1"}))
    for _ in range(3):
        assert (await world.ask("POST", f"{root}/secrets?dryRun=All", {"metadata": {"name": "s"}})).code == 201
    await world.made(f"{root}/secrets", {"metadata": {"name": "s"}})
    assert (await world.ask("POST", f"{root}/secrets?dryRun=All", {"metadata": {"name": "t"}})).code == 403


async def test_statuses_follow_by_themselves() -> None:
    world, root = await quoted(quota("a", {"secrets": "9"}))
    task = asyncio.ensure_future(world.admission.quotas.run())
    try:
        await world.made(f"{root}/secrets", {"metadata": {"name": "s"}})
        for _ in range(1500):
            found = (await world.ask("GET", f"{root}/resourcequotas/a")).body
            if found.get("status", {}).get("used") == {"secrets": "1"}:
                break
            await asyncio.sleep(0.02)
        assert found["status"] == {"hard": {"secrets": "9"}, "used": {"secrets": "1"}}
        settled = found["metadata"]["resourceVersion"]
        await asyncio.sleep(0.2)
        again = (await world.ask("GET", f"{root}/resourcequotas/a")).body
        assert again["metadata"]["resourceVersion"] == settled, "a status that is right is not written again"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
