"""A simulated cluster in a few words, for scenarios: make, run, let pods do something, look."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.controllers import kubelet
from tests.controllers.cluster import job_of
from tests.controllers.driver import Driver
from tests.controllers.simapi import CONTENT, SimApi

from kohort.api.kind import Context, Object
from kohort.api.releases import Gate
from kohort.controllers.controller import Controller
from kohort.gang.compile import CompileContext
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.control.cronjob.controller import cronjob_controller
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.batch.control.ttl import ttl_controller
from kohort.kinds.batch.settings import JobSettings

NS = "lab"
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}


class World:
    def __init__(self, minor: str = "1.37", *, off: tuple[Gate, ...] = (), start: bool = True, **settings: Any) -> None:
        base = Context.of(minor)
        self.api = SimApi(base)
        self.ctx = Context(base.release, base.gates - set(off), base.options)
        self.settings = SettingsByKind(JobSettings(**settings))
        self.driver = Driver(self.api)
        if start:
            self.start()

    # ---- the controllers

    def controllers(self, *, off: tuple[Gate, ...] = (), grouping: bool = True) -> list[Controller]:
        gates = self.ctx.gates - set(off)
        ctx = CompileContext(self.ctx.release, gates, self.ctx.options, settings=self.settings)
        return [job_controller(ctx, grouping=grouping), cronjob_controller(), ttl_controller()]

    def start(self, **options: Any) -> None:
        self.driver.start(*self.controllers(**options))

    def run(self, seconds: float = 3.0) -> None:
        self.api.clock.run(seconds)

    # ---- the user

    def make(self, body: Object) -> Object:
        verdict = self.api.create(deepcopy(body), NS)
        assert verdict.object is not None, verdict
        return deepcopy(verdict.object)

    def job(self, name: str, **spec: Any) -> Object:
        return self.make(job_of(name, **spec))

    def gang(self, name: str, size: int, **spec: Any) -> Object:
        whole = {"parallelism": size, "completions": size, "completionMode": "Indexed", "scheduling": GANG, **spec}
        return self.job(name, **whole)

    def patch(self, kind: str, name: str, change: Object) -> None:
        verdict = self.api.patch((kind, NS, name), change, CONTENT["merge"])
        assert verdict.object is not None, verdict

    def delete(self, kind: str, name: str, propagation: str | None = "Background") -> None:
        self.api.delete((kind, NS, name), propagation=propagation)

    # ---- the kubelet

    def pod_does(self, pod: str | Object, *steps: str, **details: Any) -> None:
        name = pod if isinstance(pod, str) else pod["metadata"]["name"]
        for step in steps:
            kubelet.step(self.api, ("Pod", NS, name), {"kubelet": step, **details})

    def pods_do(self, *steps: str, **details: Any) -> None:
        for pod in self.active():
            self.pod_does(pod, *steps, **details)

    # ---- looking

    def every(self, kind: str) -> list[Object]:
        return self.api.every(kind)

    def find(self, kind: str, name: str) -> Object:
        found = self.api.find(kind, name)
        assert found is not None, f"no {kind} {name}"
        return found

    def status(self, job: str) -> Object:
        return dict(self.find("Job", job).get("status") or {})

    def conditions(self, job: str) -> list[str]:
        return [f"{one['type']}={one['status']} {one['reason']}" for one in self.status(job).get("conditions") or ()]

    def active(self) -> list[Object]:
        return [
            pod
            for pod in self.every("Pod")
            if pod["status"]["phase"] not in {"Succeeded", "Failed"} and not pod["metadata"].get("deletionTimestamp")
        ]

    def group_of(self, pod: Object) -> str | None:
        found: str | None = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
        return found

    def minimum(self, kind: str = "PodGroup") -> int | None:
        (found,) = self.every(kind)
        return self.minimum_of(found)

    def minimum_of(self, found: Object) -> int | None:
        block = found["spec"] if found["kind"] == "PodGroup" else found["spec"]["podGroupTemplates"][0]
        least: int | None = (block["schedulingPolicy"].get("gang") or {}).get("minCount")
        return least

    def reasons(self, kind: str = "") -> list[str]:
        return [one.reason for one in self.driver.events if not kind or one.type == kind]
