"""All three layers die before and after every single write of the topmost; the end is the same as if they had not.

Writes of the layers below have tests of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.controllers.driver import KilledError
from tests.controllers.late import LateDriver
from tests.kinds.trainer.compile.build import COMPOSITE, initializer, rjob, trainer
from tests.kinds.trainer.control.training import Training
from tests.support.sampling import points

from kohort.controllers.reconcile import Write

Life = Callable[[Training], None]
OURS = ("TrainJob", "ConfigMap", "Secret", "Workload", "CompositePodGroup", "PodGroup")


def torch_to_the_end(world: Training) -> None:
    world.runtime()
    settle(world, lambda: world.job(nodes=3))
    settle(world, lambda: world.pods_do("bind", "run"))
    settle(world, lambda: world.pods_do("succeed"))


def mpi_suspended_and_resumed(world: Training) -> None:
    world.runtime(trainer("launcher"), rjob("node"), ml={"mpi": {}})
    settle(world, lambda: world.job(nodes=2, suspend=True))
    settle(world, lambda: world.suspend(False))
    settle(world, world.suspend)
    settle(world, lambda: world.suspend(False), 3)
    settle(world, lambda: world.pods_do("bind", "run", "succeed"), 3)


def stages_as_a_tree(world: Training) -> None:
    entries = [
        {"targetReplicatedJobs": ["dataset-initializer"], "schedulingPolicy": {"basic": {}}},
        {"targetReplicatedJobs": ["node"]},
    ]
    scheduling = {"schedulingPolicy": {"basic": {}}, "replicatedJobs": entries}
    after = trainer(after=[("dataset-initializer", "Complete")])
    world.runtime(initializer("dataset-initializer"), after, workload={"scheduling": scheduling})
    settle(world, lambda: world.job(nodes=2))
    settle(world, lambda: world.pods_do("bind", "run", "succeed"))
    settle(world, lambda: world.pods_do("bind", "run", "succeed"))


def failure_and_restart(world: Training) -> None:
    once = trainer()
    once["template"]["spec"]["backoffLimit"] = 0
    world.runtime(once, template={"failurePolicy": {"maxRestarts": 1}})
    settle(world, lambda: world.job(nodes=2))
    settle(world, lambda: world.pods_do("bind", "run"))
    settle(world, lambda: world.pods_do("fail", exit=1), 12)
    settle(world, world.stop_pods)
    settle(world, lambda: world.pods_do("bind", "run"))
    settle(world, lambda: world.pods_do("succeed"))


def too_late(world: Training) -> None:
    world.runtime()
    settle(world, lambda: world.job(nodes=2, activeDeadlineSeconds=6), 4)
    settle(world, lambda: None, 10)
    settle(world, world.stop_pods)


def patched_while_suspended(world: Training) -> None:
    world.runtime()
    settle(world, lambda: world.job(nodes=2, suspend=True))
    pod = {"nodeSelector": {"disk": "ssd"}}
    template = {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]}}
    entry = {"manager": "acme.io/tool", "trainingRuntimeSpec": {"template": template}}
    settle(world, lambda: world.patch({"spec": {"runtimePatches": [entry]}}))
    settle(world, lambda: world.suspend(False))


LIVES: list[Life] = [
    torch_to_the_end,
    mpi_suspended_and_resumed,
    stages_as_a_tree,
    failure_and_restart,
    too_late,
    patched_while_suspended,
]


def settle(world: Training, change: Callable[[], Any], seconds: float = 6) -> None:
    """Something happens, and time passes; controllers that are killed meanwhile are started again a moment later."""
    change()
    end = world.api.clock.seconds + seconds * world.pace
    while world.api.clock.seconds < end:
        try:
            world.run(end - world.api.clock.seconds)
        except KilledError:
            end += 2
            world.run(0.5)
            world.start()


def ended(world: Training) -> str:
    """Everything but what is random or tells how it came about."""
    shown = []
    for kind in ("TrainJob", "JobSet", "Job", "Workload", "CompositePodGroup", "PodGroup", "ConfigMap", "Secret"):
        for obj in sorted(world.api.every(kind), key=lambda one: str(one["metadata"]["name"])):
            status = {name: value for name, value in (obj.get("status") or {}).items() if not name.endswith("Time")}
            conditions = [[one["type"], one["status"], one["reason"]] for one in status.pop("conditions", None) or ()]
            owners = [one["kind"] for one in obj["metadata"].get("ownerReferences") or ()]
            spec = {} if kind == "Job" else obj.get("spec")
            shown.append([kind, obj["metadata"]["name"], owners, spec, status, sorted(conditions)])
    pods = sorted(
        [pod["metadata"]["name"].rsplit("-", 1)[0], pod["status"]["phase"], pod["spec"].get("schedulingGroup")]
        for pod in world.api.every("Pod")
    )
    return json.dumps([shown, pods], sort_keys=True, indent=1)


def is_ours(write: Write) -> bool:
    return write.kind in OURS or (write.kind == "JobSet" and write.verb in {"apply", "delete"})


def lived(life: Life, number: int = 0, *, sent: bool = False) -> tuple[str, int]:
    world = Training(options=COMPOSITE)
    count = 0

    def before(write: Write) -> None:
        nonlocal count
        count += is_ours(write)
        if count == number and is_ours(write):
            if sent:
                world.api.do(write)
            raise KilledError

    world.driver.before_write = before
    life(world)
    return ended(world), count


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_killed_between_any_two_writes(life: Life) -> None:
    expected, writes = lived(life)
    assert writes >= 6
    # Before a write is after the one before it: nothing is remembered either way.
    for number, sent in [(1, False), *((number, True) for number in points(writes, life.__name__))]:
        found, _ = lived(life, number, sent=sent)
        assert found == expected, f"killed at write {number} ({'after' if sent else 'before'} it)"


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_refused_at_any_write(life: Life) -> None:
    """A 500 at any write: the same end."""
    expected, writes = lived(life)
    for number in points(writes, life.__name__):
        world = Training(options=COMPOSITE)
        count = 0

        def before(write: Write, world: Training = world, number: int = number) -> None:
            nonlocal count
            count += is_ours(write)
            if count == number and is_ours(write):
                world.api.refusals.append((write.verb, write.kind, 1))

        world.driver.before_write = before
        life(world)
        assert ended(world) == expected, f"refused at write {number}"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_watches_are_late_reordered_and_repeated(life: Life, seed: int) -> None:
    expected, _ = lived(life)
    world = Training(options=COMPOSITE, driver=lambda api: LateDriver(api, seed=seed))
    world.pace = 3
    life(world)
    assert ended(world) == expected
