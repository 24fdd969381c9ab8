"""The same trees of owners, deleted in the same ways, on real Kubernetes 1.37 with its controllers and on ours.

What is left at the end, with which owners and finalizers, must be equal. `KOHORT_SEED` chooses other trees.
"""

import asyncio
import os
import time
from random import Random
from typing import Any

import pytest
from tests.server.controllers.world import World, reference

from kohort.testing.client import Client
from kohort.testing.environment import Environment

SEED = int(os.environ.get("KOHORT_SEED", "1"))
TREES = int(os.environ.get("KOHORT_TREES", "30"))
Object = dict[str, Any]
Left = dict[str, tuple[tuple[str, ...], tuple[str, ...], bool]]


def plan(number: int) -> tuple[list[Object], list[tuple[str, str]]]:
    """Objects in the order of their creation, with the names of their owners; then deletions."""
    random = Random(f"{SEED}/{number}")
    made: list[Object] = []
    for place in range(random.randint(3, 9)):
        owners = random.sample([one["name"] for one in made], min(len(made), random.choice([0, 1, 1, 2])))
        held = random.random() < 0.15
        blocks = {owner: random.choice([True, False]) for owner in owners}
        made.append({"name": f"o{place}", "owners": blocks, "finalizers": ["a.io/hold"] if held else []})
    roots = random.sample([one["name"] for one in made], random.randint(1, 2))
    return made, [(name, random.choice(["Background", "Foreground", "Orphan"])) for name in roots]


def body(one: Object, known: dict[str, Object]) -> Object:
    references = [reference(known[owner], block=block) for owner, block in one["owners"].items()]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": one["name"], "ownerReferences": references, "finalizers": one["finalizers"]},
    }


def left(items: list[Object], known: dict[str, Object]) -> Left:
    found: Left = {}
    leaving = {item["metadata"]["name"] for item in items if "deletionTimestamp" in item["metadata"]}
    for item in items:
        meta = item["metadata"]
        if meta["name"] in known:
            going = meta["name"] in leaving
            # Which references something on its way out has lost before depends on who was looked at first; so does
            # whether a reference to an owner that a finalizer of somebody holds is taken away.
            named = {one["name"] for one in meta.get("ownerReferences", ())} - leaving
            owners = () if going else tuple(sorted(named))
            found[meta["name"]] = (owners, tuple(sorted(meta.get("finalizers", ()))), going)
    return found


def on_real(client: Client) -> list[Left]:
    places: list[tuple[str, dict[str, Object]]] = []
    for number in range(TREES):
        objects, deletions = plan(number)
        space = client.create("/api/v1/namespaces", {"metadata": {"generateName": "gc-"}})["metadata"]["name"]
        path, known = f"/api/v1/namespaces/{space}/configmaps", dict[str, Object]()
        for one in objects:
            known[one["name"]] = client.create(path, body(one, known))
        time.sleep(0.3)  # let the collector see them before their owners go
        for name, policy in deletions:
            client.request("DELETE", f"{path}/{name}", {"propagationPolicy": policy})
            time.sleep(0.5)  # what two deletions at once leave depends on which is looked at first
        places.append((path, known))
    return _settled(client, places)


def _settled(client: Client, places: list[tuple[str, dict[str, Object]]]) -> list[Left]:
    before: list[Left] = []
    calm = 0
    deadline = time.monotonic() + 150
    while calm < 8 and time.monotonic() < deadline:
        time.sleep(1)
        now = [left(client.get(path)["items"], known) for path, known in places]
        calm = calm + 1 if now == before else 0
        before = now
    return before


async def on_ours() -> list[Left]:
    found: list[Left] = []
    for number in range(TREES):
        objects, deletions = plan(number)
        async with World() as world:
            path, known = "/api/v1/namespaces/ns/configmaps", dict[str, Object]()
            for one in objects:
                known[one["name"]] = await world.post(path, body(one, known))
            await world.quiet()
            for name, policy in deletions:
                await world.ask("DELETE", f"{path}/{name}", {"propagationPolicy": policy})
                await world.quiet()
            await world.quiet(120)
            listed = await world.get(path)
            assert listed is not None
            found.append(left(listed["items"], known))
    return found


@pytest.mark.timeout(400)
def test_the_same_is_left() -> None:
    print(f"KOHORT_SEED={SEED} KOHORT_TREES={TREES}")
    with Environment("1.37", ("kcm",)) as env:
        real = on_real(env.client())
    ours = asyncio.run(on_ours())
    wrong = [
        f"#{number} {plan(number)}\n  real {one}\n  ours {other}"
        for number, (one, other) in enumerate(zip(real, ours, strict=True))
        if one != other
    ]
    assert len({len(one) for one in real}) > 2
    shown = "\n".join(wrong[:5])
    assert not wrong, f"{len(wrong)} of {TREES} differ (KOHORT_SEED={SEED}):\n{shown}"
