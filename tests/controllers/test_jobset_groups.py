"""Gangs of JobSets (spec jobset 4.4, 4.5), and a JobSet whose controller is killed at every write."""

from __future__ import annotations

import json
from typing import Any

from tests.controllers import kubelet
from tests.controllers.driver import Driver, KilledError
from tests.controllers.simapi import CONTENT, SimApi

from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.controllers.job.controller import job_controller
from kohort.controllers.jobset.controller import jobset_controller
from kohort.controllers.script import Write
from kohort.gang.compile import CompileContext

NS = "lab"
GROUPS = ("Workload", "PodGroup")


class World:
    def __init__(self) -> None:
        base = Context.of("1.37", options=DEFAULT_OPTIONS)
        self.ctx = CompileContext(base.generation, base.gates, base.options)
        self.api = SimApi(base, groups={"", "batch", "scheduling.k8s.io", "jobset.x-k8s.io"})
        self.driver = Driver(self.api)
        self.start()

    def start(self) -> None:
        self.driver.start(jobset_controller(self.ctx), job_controller(self.ctx))

    def run(self, seconds: float = 4) -> None:
        self.api.clock.run(seconds)

    def jobset(self, name: str, replicas: int = 2, **spec: Any) -> Object:
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}
        job = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": {"spec": pod}}
        whole = {"replicatedJobs": [{"name": "w", "replicas": replicas, "template": {"spec": job}}], **spec}
        meta = {"name": name, "namespace": NS}
        body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": whole}
        verdict = self.api.create(body, NS)
        assert verdict.object is not None, verdict
        return verdict.object

    def patch(self, name: str, change: Object) -> None:
        verdict = self.api.patch(("JobSet", NS, name), change, CONTENT["merge"])
        assert verdict.object is not None, verdict

    def pods_do(self, *steps: str, **details: Any) -> None:
        for pod in self.pods():
            for step in steps:
                kubelet.step(self.api, ("Pod", NS, pod["metadata"]["name"]), {"kubelet": step, **details})

    def pods(self) -> list[Object]:
        every = self.api.every("Pod")
        return [pod for pod in every if pod["status"]["phase"] not in {"Succeeded", "Failed"}]

    def names(self, kind: str) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.api.every(kind))

    def reasons(self) -> list[str]:
        return [one.reason for one in self.driver.events if one.regarding["kind"] == "JobSet"]

    def conditions(self, name: str) -> list[str]:
        status = self.api.objects["JobSet", NS, name].get("status") or {}
        return [f"{one['type']}={one['status']}" for one in status.get("conditions") or ()]


def gang_spec() -> Object:
    return {"scheduling": {"schedulingPolicy": {"gang": {}}}}


def test_groups_come_before_jobs_and_pods_are_in_them() -> None:
    world = World()
    world.jobset("fleet", **gang_spec())
    world.run()
    made = [kind for verb, kind, code in world.api.calls if verb == "create" and code == 201]
    assert made.index("Workload") < made.index("PodGroup") < made.index("Job") < made.index("Pod")
    assert world.names("PodGroup") == ["pg-fleet"]
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in world.pods()} == {"pg-fleet"}
    assert world.api.every("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
    assert len(world.pods()) == 4
    assert world.reasons() == ["WorkloadCreated", "PodGroupCreated"]


def test_without_a_gang_nothing_is_made() -> None:
    world = World()
    world.jobset("plain")
    world.run()
    assert not any(world.names(kind) for kind in GROUPS)
    assert len(world.pods()) == 4


def test_suspended_jobs_name_groups_that_come_with_the_resume() -> None:
    world = World()
    world.jobset("nap", suspend=True, **gang_spec())
    world.run()
    assert not any(world.names(kind) for kind in GROUPS)
    links = [job["spec"]["template"]["spec"]["schedulingGroup"] for job in world.api.every("Job")]
    assert links == [{"podGroupName": "pg-nap"}] * 2
    world.patch("nap", {"spec": {"suspend": False}})
    world.run()
    assert world.names("PodGroup") == ["pg-nap"]
    assert len(world.pods()) == 4
    world.patch("nap", {"spec": {"suspend": True}})
    world.run()
    assert not any(world.names(kind) for kind in GROUPS)
    assert not world.pods()


def test_a_restart_keeps_the_groups_and_the_end_takes_them() -> None:
    world = World()
    world.jobset("retry", failurePolicy={"maxRestarts": 1}, **gang_spec())
    world.run()
    before = [obj["metadata"]["uid"] for kind in GROUPS for obj in world.api.every(kind)]
    kubelet.step(world.api, ("Pod", NS, world.pods()[0]["metadata"]["name"]), {"kubelet": "fail", "exit": 1})
    world.run(8)
    assert before == [obj["metadata"]["uid"] for kind in GROUPS for obj in world.api.every(kind)]
    assert len(world.pods()) == 4
    world.pods_do("succeed")
    world.run(8)
    assert world.conditions("retry")[-1] == "Completed=True"
    assert not any(world.names(kind) for kind in GROUPS)
    assert "PodGroupDeleted" in world.reasons()


def test_a_name_that_is_taken_is_told_and_nothing_starts() -> None:
    world = World()
    policy = {"schedulingPolicy": {"basic": {}}}
    stranger = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "pg-late"},
        "spec": policy,
    }
    assert world.api.create(stranger, NS).code == 201
    world.jobset("late", **gang_spec())
    world.run(10)
    assert "GangNameConflict" in world.reasons()
    assert not world.names("Job")


def test_a_group_that_is_going_is_waited_for() -> None:
    world = World()
    world.jobset("again", **gang_spec())
    world.run()
    world.pods_do("bind", "run")
    world.api.delete(("PodGroup", NS, "pg-again"))
    world.run(6)
    assert len(world.pods()) == 4  # they go on
    assert world.api.every("PodGroup")[0]["metadata"]["deletionTimestamp"]


# ---- killed at any write


def life(world: World) -> None:
    world.jobset("life", failurePolicy={"maxRestarts": 2}, **gang_spec())
    settle(world)
    pods = sorted(pod["metadata"]["name"] for pod in world.pods())
    kubelet.step(world.api, ("Pod", NS, pods[0]), {"kubelet": "fail", "exit": 1})
    settle(world)
    world.patch("life", {"spec": {"suspend": True}})
    settle(world)
    world.patch("life", {"spec": {"suspend": False}})
    settle(world)
    world.pods_do("succeed")
    settle(world)


def settle(world: World, seconds: float = 12) -> None:
    end = world.api.clock.seconds + seconds
    while world.api.clock.seconds < end:
        try:
            world.run(end - world.api.clock.seconds)
        except KilledError:
            end += 3
            world.run(0.5)
            world.start()


def ended(world: World) -> str:
    jobset = world.api.objects["JobSet", NS, "life"]["status"]
    status = {name: value for name, value in jobset.items() if name != "conditions"}
    jobs = [
        [job["metadata"]["name"], job["status"].get("succeeded"), job["status"].get("failed")]
        for job in world.api.every("Job")
    ]
    held = [pod["metadata"]["name"] for pod in world.api.every("Pod") if pod["metadata"].get("finalizers")]
    groups = [world.names(kind) for kind in (*GROUPS, "Service")]
    return json.dumps([status, world.conditions("life"), sorted(jobs), held, groups], sort_keys=True, indent=1)


def lived(number: int = 0) -> tuple[str, int]:
    world, count = World(), 0

    def before(write: Write) -> None:
        nonlocal count
        count += 1
        if count == number:
            world.api.do(write)
            raise KilledError

    world.driver.before_write = before
    life(world)
    return ended(world), count


def test_killed_between_any_two_writes() -> None:
    expected, writes = lived()
    assert '"Completed=True"' in expected
    for number in range(1, writes + 1):
        found, _ = lived(number)
        assert found == expected, f"killed after write {number}"
