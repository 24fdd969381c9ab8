"""Grove's controllers are killed after every single write, and refused at some: what comes out is the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.controllers.driver import KilledError
from tests.e2e.grove_short import clique, group
from tests.kinds.grove.control.world import GroveWorld
from tests.support.sampling import points

from kohort.controllers.reconcile import Write
from kohort.kinds.grove.api import constants

Life = Callable[[GroveWorld], None]
KINDS = ("PodCliqueSet", "PodCliqueScalingGroup", "PodClique", "PodGang", "Workload", "CompositePodGroup", "PodGroup")
OTHERS = ("Service", "ServiceAccount", "Secret", "Role", "RoleBinding", "HorizontalPodAutoscaler")


def comes_up(world: GroveWorld) -> None:
    scaling = {"autoScalingConfig": {"minReplicas": 1, "maxReplicas": 3}}
    world.set("a", clique("x", 2, 1, spec=scaling), clique("l"), clique("w"), groups=[group("g", ["l", "w"], 2)])
    settle(world, lambda: None)


def grows_and_shrinks(world: GroveWorld) -> None:
    world.set("a", clique("x"), clique("w"), groups=[group("g", ["w"], 2)])
    settle(world, lambda: None)
    settle(world, lambda: world.scale("PodCliqueScalingGroup", "a-0-g", 3))
    settle(world, lambda: world.scale("PodCliqueScalingGroup", "a-0-g", 1))
    settle(world, lambda: world.patch("PodCliqueSet", "a", {"spec": {"replicas": 2}}))
    settle(world, lambda: world.patch("PodCliqueSet", "a", {"spec": {"replicas": 1}}))


def rolls(world: GroveWorld) -> None:
    world.set("a", clique("x", 2, 1), clique("w"), groups=[group("g", ["w"], 2)])
    settle(world, lambda: None)
    settle(world, lambda: _image(world, "tool:2"), 60)


def is_made_again(world: GroveWorld) -> None:
    """A pod is lost and cannot be placed for too long; then there is room again."""
    world.set("a", clique("x", 2), clique("y"), template={"terminationDelay": "20s"})
    settle(world, lambda: None, 10)
    settle(world, lambda: _lose(world, "a-0-x"), 40)
    settle(world, lambda: _room(world), 40)


def goes(world: GroveWorld) -> None:
    world.set("a", clique("x", 2), clique("w"), groups=[group("g", ["w"], 2)])
    settle(world, lambda: None)
    settle(world, lambda: world.delete("PodCliqueSet", "a"), 20)


LIVES: list[Life] = [comes_up, grows_and_shrinks, rolls, is_made_again, goes]


def _image(world: GroveWorld, image: str) -> None:
    path = "/spec/template/cliques/{}/spec/podSpec/containers/0/image"
    changes = [{"op": "replace", "path": path.format(index), "value": image} for index in (0, 1)]
    world.patch("PodCliqueSet", "a", changes, "json")


def _lose(world: GroveWorld, pclq: str) -> None:
    world.places = False
    for pod in world.every("Pod"):
        if pod["metadata"]["labels"][constants.PODCLIQUE] == pclq:
            world.api.delete(("Pod", "lab", pod["metadata"]["name"]), grace=0)


def _room(world: GroveWorld) -> None:
    world.places = True
    world.drive()


def settle(world: GroveWorld, change: Callable[[], None], seconds: float = 15) -> None:
    """Something happens, and time passes; controllers that are killed meanwhile are started again a moment later."""
    change()
    end = world.api.clock.seconds + seconds
    while world.api.clock.seconds < end:
        try:
            world.run(end - world.api.clock.seconds)
        except KilledError:
            end += 3
            world.run(0.5)
            world.start()


def ended(world: GroveWorld) -> str:
    """Everything but what is random (names, uids, times), or tells how it came about."""
    found: list[Any] = []
    for kind in KINDS:
        for obj in world.every(kind):
            spec = json.loads(json.dumps(obj["spec"]))
            for one in spec.get("podgroups") or ():
                one["podReferences"] = len(one["podReferences"])
            meta = obj["metadata"]
            found.append([kind, meta["name"], meta.get("labels"), spec, _told(obj.get("status") or {})])
    found += [[kind, name] for kind in OTHERS for name in world.names(kind)]
    for pod in world.every("Pod"):
        marks, spec = pod["metadata"]["labels"], pod["spec"]
        found.append(
            ["Pod", marks, bool(spec.get("nodeName")), spec["containers"][0]["image"], spec["schedulingGroup"]]
        )
    return json.dumps(sorted(found, key=json.dumps), sort_keys=True, indent=1)


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _told(one) for key, one in value.items() if not key.endswith(("At", "Time"))}
    return [_told(one) for one in value] if isinstance(value, list) else value


class Killer:
    def __init__(self, world: GroveWorld, number: int) -> None:
        self.world, self.number, self.count = world, number, 0
        world.driver.before_write = self.before

    def before(self, write: Write) -> None:
        self.count += 1
        if self.count == self.number:
            self.world.api.do(write)  # sent, and the answer is never read
            raise KilledError


def lived(life: Life, number: int = 0) -> tuple[str, int]:
    world = GroveWorld()
    killer = Killer(world, number)
    life(world)
    return ended(world), killer.count


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_killed_between_any_two_writes(life: Life) -> None:
    expected, writes = lived(life)
    assert writes > 20
    for number in points(writes, life.__name__):
        found, _ = lived(life, number)
        assert found == expected, f"killed after write {number}"


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_refused_at_some_write(life: Life) -> None:
    """Every fifth: a refusal is looked at again as a kill is, only sooner."""
    expected, writes = lived(life)
    for number in range(LIVES.index(life) % 5 + 1, writes + 1, 5):
        world = GroveWorld()
        count = 0

        def before(write: Write, world: GroveWorld = world, number: int = number) -> None:
            nonlocal count
            count += 1
            if count == number:
                world.api.refusals.append((write.verb, write.kind, 1))

        world.driver.before_write = before
        life(world)
        assert ended(world) == expected, f"refused at write {number}"
