"""LimitRanges and quotas beside real Kubernetes: random limits, random pods, the same answers.

KOHORT_ADMISSION_SEED repeats a run; the seed is in the output of a failure.
"""

import asyncio
import os
import random
import re
import secrets
import time
from collections.abc import Callable
from typing import Any

from tests.server.admission.world import Object, World

from kohort.apimachinery import quantity
from kohort.testing.client import Client
from kohort.testing.environment import Environment

ROUNDS, PODS = 6, 20
CPU, MEMORY = ["50m", "100m", "0.5", "1", "1500m", "2", "3"], ["64Mi", "128Mi", "0.5Gi", "1Gi", "1G", "3Gi"]
HARD = {
    "pods": ["1", "3", "6"],
    "count/pods": ["4", "9"],
    "cpu": ["2", "5"],
    "requests.cpu": ["1", "4500m"],
    "limits.cpu": ["3", "8"],
    "memory": ["1Gi", "3G"],
    "requests.memory": ["512Mi", "4Gi"],
    "limits.memory": ["2Gi", "6Gi"],
    "requests.ephemeral-storage": ["1Gi"],
    "requests.example.org/gpu": ["2"],
}
_UNSCOPED = {"requests.ephemeral-storage", "requests.example.org/gpu"}
SCOPES: list[list[str]] = [[], [], [], ["NotBestEffort"], ["Terminating"], ["NotTerminating", "NotBestEffort"]]


class Dice:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def amounts(self, chance: float = 0.6) -> dict[str, str]:
        found = {}
        for name, values in (("cpu", CPU), ("memory", MEMORY)):
            if self.maybe(chance):
                found[name] = self.random.choice(values)
        return found

    def limits(self) -> list[Object]:
        container: Object = {"type": "Container"}
        if self.maybe(0.4):
            container |= {"min": {"cpu": self.random.choice(CPU[:2])}}
        if self.maybe(0.5):
            container |= {"max": {"cpu": "2", "memory": "1Gi"}, "default": {"cpu": "1", "memory": "512Mi"}}
        if self.maybe(0.4):
            container |= {"defaultRequest": {"cpu": "100m"}}
        if self.maybe(0.3):
            container |= {"maxLimitRequestRatio": {"cpu": self.random.choice(["1", "2.5", "10"])}}
        whole: Object = {"type": "Pod", "max": {"cpu": "4"}}
        if self.maybe(0.4):
            whole |= {"min": {"memory": "100Mi"}}
        if self.maybe(0.3):
            whole |= {"maxLimitRequestRatio": {"cpu": "3"}}
        return [one for one in (container, whole) if self.maybe(0.6) and len(one) > 1]

    def quota(self) -> Object:
        scopes = self.random.choice(SCOPES)
        able = [name for name in sorted(HARD) if not scopes or name not in _UNSCOPED]
        names = self.random.sample(able, self.random.randint(1, 4))
        spec: Object = {"hard": {name: self.random.choice(HARD[name]) for name in names}}
        if scopes:
            spec["scopes"] = scopes
        return {"metadata": {"name": "q"}, "spec": spec}

    def container(self, name: str) -> Object:
        resources = {}
        if self.maybe(0.7):
            resources["requests"] = self.amounts()
        if self.maybe(0.5):
            resources["limits"] = self.amounts()
        if self.maybe(0.1):
            resources["limits"] = {**resources.get("limits", {}), "example.org/gpu": "1"}
        return {"name": name, "image": "i", "resources": resources}

    def pod(self, name: str) -> Object:
        spec: Object = {"containers": [self.container(f"c{n}") for n in range(self.random.randint(1, 2))]}
        if self.maybe(0.3):
            spec["initContainers"] = [self.container("i0")]
            if self.maybe(0.5):
                spec["initContainers"][0]["restartPolicy"] = "Always"
        if self.maybe(0.3):
            spec["activeDeadlineSeconds"] = 5
        return {"metadata": {"name": name}, "spec": spec}


def tidy(message: str) -> tuple[str, list[str]]:
    """Where several things are wrong, upstream lists some of them in the order of a Go map."""
    lead, found, rest = message.partition(" is forbidden: ")
    inner = re.fullmatch(r"\[(.*)\]", rest)
    return lead + found, sorted(re.split(r", (?=minimum|maximum|cpu max|memory max)", inner[1])) if inner else [rest]


def seen(code: int, body: Object) -> Any:
    if code == 422:  # the rules of the pod, which other tests compare
        return code, len(body["details"]["causes"])
    if code != 201:
        return code, tidy(body["message"])
    spec = body["spec"]
    given = [one["resources"] for member in ("containers", "initContainers") for one in spec.get(member) or []]
    return code, _amounts(given), (body["metadata"].get("annotations") or {}).get("kubernetes.io/limit-ranger")


def _amounts(given: list[Object]) -> list[Object]:
    """A real server writes amounts in their shortest form, here they stay as they were written."""
    return [
        {
            kind: {name: str(quantity.parse(one)) for name, one in found.items()}
            for kind, found in resources.items()
            if found
        }
        for resources in given
    ]


def test_random_pods_get_the_same_answers(kubernetes_environments: Callable[..., Environment]) -> None:
    seed = int(os.environ.get("KOHORT_ADMISSION_SEED") or secrets.randbelow(10**9))
    print(f"KOHORT_ADMISSION_SEED={seed}")
    client = kubernetes_environments("1.37", ("kcm",)).client()
    asyncio.run(_compare(client, Dice(seed), seed))


async def _compare(client: Client, dice: Dice, seed: int) -> None:
    world, codes = await World.make(), []
    for number in range(ROUNDS):
        root = await world.namespace(f"adm-{number}")
        client.create("/api/v1/namespaces", {"metadata": {"name": f"adm-{number}"}})
        setup: list[tuple[str, Object]] = []
        limits = dice.limits()
        if limits:
            setup.append(("limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}}))
        if not limits or dice.maybe(0.6):
            setup.append(("resourcequotas", dice.quota()))
        for plural, body in setup:
            client.create(f"{root}/{plural}", body)
            await world.made(f"{root}/{plural}", body)
        _wait(client, root, setup)
        for n in range(PODS):
            body = dice.pod(f"p{n}")
            theirs = client.request("POST", f"{root}/pods", body)
            ours = await world.ask("POST", f"{root}/pods", body)
            codes.append(theirs.code)
            told = f"KOHORT_ADMISSION_SEED={seed}: {setup} {body}"
            assert seen(ours.code, ours.body) == seen(theirs.code, theirs.json()), told
        await _same_usage(client, world, root, seed)
    assert {201, 403} <= set(codes), f"KOHORT_ADMISSION_SEED={seed}: {sorted(set(codes))} says little"


def _wait(client: Client, root: str, setup: list[tuple[str, Object]]) -> None:
    """Until the real controller has looked at a quota, and the real plugin has heard of the limits."""
    end = time.monotonic() + 20
    if any(plural == "resourcequotas" for plural, _ in setup):
        while "used" not in client.get(f"{root}/resourcequotas/q").get("status", {}):
            assert time.monotonic() < end
            time.sleep(0.1)
    time.sleep(0.5)


async def _same_usage(client: Client, world: World, root: str, seed: int) -> None:
    if (await world.ask("GET", f"{root}/resourcequotas/q")).code != 200:
        return
    await world.admission.quotas.sync()
    ours = (await world.ask("GET", f"{root}/resourcequotas/q")).body["status"]["used"]
    theirs = client.get(f"{root}/resourcequotas/q")["status"]["used"]
    amounts = [{name: one.value for name, one in quantity.parse_all(used).items()} for used in (ours, theirs)]
    assert amounts[0] == amounts[1], f"KOHORT_ADMISSION_SEED={seed}"
