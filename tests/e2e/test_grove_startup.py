"""Startup order of a PodCliqueSet: containers begin when those before them are ready (spec grove 1.9, 2.2)."""

from __future__ import annotations

from tests.e2e.grove_short import clique, cliqueset, group

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

SLOW = {"sim.kohort.dev/ready-seconds": "6"}


def began(pod: Object) -> str:
    return str(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"])


def ready(pod: Object) -> str:
    (found,) = [one for one in pod["status"]["conditions"] if one["type"] == "Ready"]
    assert found["status"] == "True", found
    return str(found["lastTransitionTime"])


async def by_clique(cluster: Cluster, count: int) -> dict[str, list[Object]]:
    async def all_ready() -> list[Object]:
        pods = await cluster.pods()
        done = [pod for pod in pods if "True" in [c["status"] for c in _of(pod) if c["type"] == "Ready"]]
        return pods if len(done) == count else []

    found: dict[str, list[Object]] = {}
    for pod in await cluster.until(all_ready):
        found.setdefault(pod["metadata"]["labels"]["grove.io/podclique"], []).append(pod)
    return found


def _of(pod: Object) -> list[Object]:
    return list((pod.get("status") or {}).get("conditions") or ())


async def test_in_order_each_clique_waits_for_the_one_before(cluster: Cluster) -> None:
    await cluster.create(
        cliqueset(
            "a",
            clique("router", 2, 1, annotations=SLOW),
            clique("prefill", 2, annotations=SLOW),
            clique("decode", 2),
            groups=[group("g", ["prefill", "decode"], 2, 1)],
            template={"cliqueStartupType": "CliqueStartupTypeInOrder"},
        )
    )
    pods = await by_clique(cluster, 10)
    router, prefill, decode = pods["a-0-router"], pods["a-0-g-0-prefill"], pods["a-0-g-0-decode"]
    assert min(map(ready, router)) <= min(map(began, prefill))  # one of two is enough: minAvailable is 1
    assert max(map(ready, prefill)) <= min(map(began, decode))
    assert max(map(began, router)) < min(map(began, prefill)) < min(map(began, decode))
    # a scaled replica waits only for its own
    assert max(map(ready, pods["a-0-g-1-prefill"])) <= min(map(began, pods["a-0-g-1-decode"]))
    (waiter,) = decode[0]["status"]["initContainerStatuses"]
    assert waiter["state"]["terminated"]["exitCode"] == 0


async def test_pods_wait_on_while_those_before_them_are_not_ready(cluster: Cluster) -> None:
    await cluster.create(
        cliqueset(
            "a",
            clique("first", annotations={"sim.kohort.dev/never-ready": "true"}),
            clique("second"),
            template={"cliqueStartupType": "CliqueStartupTypeInOrder"},
        )
    )

    async def waits() -> bool:
        pods = await cluster.pods()
        return [pod["status"].get("phase") for pod in pods] == ["Running", "Pending"] and any(
            "running" in one["state"] for one in pods[1]["status"].get("initContainerStatuses") or ()
        )

    await cluster.until(waits)
    pods = await cluster.pods()
    assert pods[1]["spec"].get("nodeName")  # it has its place all the same
    (initialized,) = [one for one in _of(pods[1]) if one["type"] == "Initialized"]
    assert (initialized["status"], initialized["reason"]) == ("False", "ContainersNotInitialized")

    async def begun() -> bool:
        return (await cluster.pods())[1]["status"]["phase"] == "Running"

    await cluster.never(begun, 20)
    first = str(pods[0]["metadata"]["name"])
    await cluster.patch("v1", "Pod", first, {"metadata": {"annotations": {"sim.kohort.dev/never-ready": "false"}}})
    await cluster.until(begun)
