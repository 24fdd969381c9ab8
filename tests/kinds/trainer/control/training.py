"""A simulated cluster with all three layers: TrainJob, JobSet, Job."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.controllers import kubelet
from tests.controllers.driver import Driver
from tests.controllers.simapi import CONTENT, SimApi
from tests.kinds.trainer.compile.build import runtime, trainer

from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.gang.compile import CompileContext
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.jobset.control.controller import jobset_controller
from kohort.kinds.trainer.api.constants import API_VERSION
from kohort.kinds.trainer.control.controller import trainjob_controller
from kohort.kinds.trainer.control.keys import Keys
from kohort.kinds.trainer.settings import TrainJobSettings

NS = "ml"
KEYS = Keys(ssh=lambda: {"ssh-privatekey": b"k", "ssh-publickey": b"p"}, curve=lambda: {"curve.cert": b"c"})
GROUPS = {"", "batch", "scheduling.k8s.io", "jobset.x-k8s.io", "trainer.kubeflow.org"}


class Training:
    pace = 1.0  # of how long it is waited for what is late

    def __init__(
        self,
        minor: str = "1.37",
        *,
        options: frozenset[str] = DEFAULT_OPTIONS,
        driver: Callable[[SimApi], Driver] = Driver,
        **settings: Any,
    ) -> None:
        base = Context.of(minor, options=options)
        self.ctx = CompileContext(
            base.release, base.gates, base.options, settings=SettingsByKind(TrainJobSettings(**settings))
        )
        self.api = SimApi(base, groups=GROUPS)
        self.driver = driver(self.api)
        self.start()

    def start(self) -> None:
        self.driver.start(
            trainjob_controller(self.ctx, keys=KEYS), jobset_controller(self.ctx), job_controller(self.ctx)
        )

    def run(self, seconds: float = 4) -> None:
        self.api.clock.run(seconds)

    # ---- the user

    def make(self, body: Object) -> Object:
        verdict = self.api.create(deepcopy(body), NS)
        assert verdict.object is not None, verdict
        return deepcopy(verdict.object)

    def runtime(self, *jobs: Object, **options: Any) -> None:
        self.make(runtime(*(jobs or (trainer(),)), **options))

    def job(self, name: str = "job", nodes: int | None = None, **spec: Any) -> Object:
        body: Object = {"runtimeRef": {"name": "rt"}, **spec}
        if nodes is not None:
            body["trainer"] = {**body.get("trainer", {}), "numNodes": nodes}
        return self.make({"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": {"name": name}, "spec": body})

    def patch(self, change: Object, name: str = "job", kind: str = "TrainJob") -> None:
        verdict = self.api.patch((kind, NS, name), change, CONTENT["merge"])
        assert verdict.object is not None, verdict

    def suspend(self, value: bool = True, name: str = "job") -> None:
        self.patch({"spec": {"suspend": value}}, name)

    def delete(self, kind: str, name: str, propagation: str = "Background") -> None:
        self.api.delete((kind, NS, name), propagation=propagation)

    # ---- the kubelet

    def pods(self) -> list[Object]:
        every = self.api.every("Pod")
        return [pod for pod in every if pod["status"]["phase"] not in {"Succeeded", "Failed"}]

    def pods_do(self, *steps: str, only: str = "", **details: Any) -> None:
        for pod in self.pods():
            for step in steps:
                if only in pod["metadata"]["name"]:
                    kubelet.step(self.api, ("Pod", NS, pod["metadata"]["name"]), {"kubelet": step, **details})

    def stop_pods(self) -> None:
        """What a kubelet does with pods that were told to go."""
        for pod in self.api.every("Pod"):
            if pod["metadata"].get("deletionTimestamp"):
                kubelet.step(
                    self.api, ("Pod", NS, pod["metadata"]["name"]), {"kubelet": "stop and remove", "exit": 143}
                )

    # ---- looking

    def names(self, kind: str) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.api.every(kind))

    def find(self, kind: str, name: str = "job") -> Object:
        found = self.api.find(kind, name, NS)
        assert found is not None, f"no {kind} {name}"
        return found

    def conditions(self, name: str = "job") -> list[str]:
        status = self.find("TrainJob", name).get("status") or {}
        return [f"{one['type']}={one['status']} {one['reason']}" for one in status.get("conditions") or ()]

    def reasons(self, kind: str = "Warning") -> list[str]:
        return [one.reason for one in self.driver.events if one.regarding["kind"] == "TrainJob" and one.type == kind]

    def created(self) -> list[str]:
        return [kind for verb, kind, code in self.api.calls if verb in {"create", "apply"} and code == 201]
