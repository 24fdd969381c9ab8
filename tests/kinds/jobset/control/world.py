"""A simulated cluster for JobSets: make, let pods do something, let time pass, look."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.controllers import kubelet
from tests.controllers.driver import Driver, KilledError
from tests.controllers.simapi import CONTENT, SimApi

from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.gang.compile import CompileContext
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.jobset.control.controller import jobset_controller
from kohort.kinds.jobset.control.placement import placement_controller
from kohort.kinds.jobset.settings import JobSetSettings

NS = "lab"
GROUPS = ("Workload", "CompositePodGroup", "PodGroup")
MORE = {"RestartJob", "ElasticJobSet", "InPlaceRestart"}


class World:
    def __init__(
        self,
        minor: str = "1.37",
        *,
        options: set[str] | None = None,
        driver: Callable[[SimApi], Driver] = Driver,
        grouping: bool = True,
        **settings: Any,
    ) -> None:
        base = Context.of(minor, options=DEFAULT_OPTIONS | (MORE if options is None else options))
        self.ctx = CompileContext(
            base.release, base.gates, base.options, settings=SettingsByKind(JobSetSettings(**settings))
        )
        self.api = SimApi(base, groups={"", "batch", "scheduling.k8s.io", "jobset.x-k8s.io"})
        self.grouping = grouping
        self.pace = 1.0  # how much longer everything takes
        self.driver = driver(self.api)
        self.start()

    def start(self) -> None:
        jobsets = jobset_controller(self.ctx, grouping=self.grouping)
        self.driver.start(jobsets, job_controller(self.ctx, grouping=self.grouping), placement_controller())

    def run(self, seconds: float = 4) -> None:
        self.api.clock.run(seconds)

    def settle(self, seconds: float = 8) -> None:
        """Time passes; a process that is killed meanwhile is started again a moment later."""
        end = self.api.clock.seconds + seconds * self.pace
        while self.api.clock.seconds < end:
            try:
                self.run(end - self.api.clock.seconds)
            except KilledError:
                end += 3
                self.run(0.5)
                self.start()

    # ---- the user

    def jobset(self, name: str, *jobs: Object, **spec: Any) -> Object:
        whole = {"replicatedJobs": list(jobs) or [replicated("w", 2, 2)], **spec}
        meta = {"name": name, "namespace": NS}
        body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": whole}
        verdict = self.api.create(body, NS)
        assert verdict.object is not None, verdict
        return verdict.object

    def patch(self, name: str, change: Any, kind: str = "JobSet") -> None:
        content = CONTENT["json" if isinstance(change, list) else "merge"]
        verdict = self.api.patch((kind, NS, name), change, content)
        assert verdict.object is not None, verdict

    def suspend(self, name: str, value: bool) -> None:
        self.patch(name, {"spec": {"suspend": value}})

    # ---- the kubelet

    def pods(self) -> list[Object]:
        """Those that live, by Job and index: names have a random end."""
        every = self.api.every("Pod")
        found = [pod for pod in every if pod["status"]["phase"] not in {"Succeeded", "Failed"}]
        return sorted(found, key=lambda pod: str(pod["spec"].get("hostname") or pod["metadata"]["name"]))

    def pod_does(self, pod: Object, *steps: str, **details: Any) -> None:
        for step in steps:
            kubelet.step(self.api, ("Pod", NS, pod["metadata"]["name"]), {"kubelet": step, **details})

    def pods_do(self, *steps: str, **details: Any) -> None:
        for pod in self.pods():
            self.pod_does(pod, *steps, **details)

    # ---- looking

    def names(self, kind: str) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.api.every(kind))

    def groups(self) -> list[str]:
        return [name for kind in GROUPS for name in self.names(kind)]

    def events(self, reason: str) -> list[str]:
        return [one.note for one in self.driver.events if one.reason == reason]

    def reasons(self) -> list[str]:
        return [one.reason for one in self.driver.events if one.regarding["kind"] == "JobSet"]

    def status(self, name: str) -> Object:
        found = self.api.find("JobSet", name, NS) or {}
        return dict(found.get("status") or {})

    def conditions(self, name: str) -> list[str]:
        return [f"{one['type']}={one['status']}" for one in self.status(name).get("conditions") or ()]

    def ended(self) -> str:
        """Everything but what is random (uids, times) or tells how it came about (versions)."""
        sets = [
            [one["metadata"]["name"], {**one["status"], "conditions": self.conditions(one["metadata"]["name"])}]
            for one in self.api.every("JobSet")
        ]
        jobs = [
            [one["metadata"]["name"], _attempts(one), _counted(one["status"]), one["spec"].get("suspend")]
            for one in self.api.every("Job")
        ]
        pods = [
            [one["spec"].get("hostname"), one["status"]["phase"], one["metadata"].get("finalizers"), _link(one)]
            for one in self.api.every("Pod")
        ]
        groups = [
            [one["kind"], one["metadata"]["name"], one["spec"]] for kind in GROUPS for one in self.api.every(kind)
        ]
        rest = [self.names(kind) for kind in ("Service", "PersistentVolumeClaim")]
        found = [sorted(part, key=str) for part in (sets, jobs, pods, groups)]
        return json.dumps([*found, rest], sort_keys=True, indent=1, default=str)


def _attempts(job: Object) -> Object:
    return {key: value for key, value in job["metadata"]["labels"].items() if key.endswith("attempt")}


def _link(pod: Object) -> Any:
    return pod["spec"].get("schedulingGroup") or pod["spec"].get("workloadRef")


def _counted(status: Object) -> Object:
    kept = {name: value for name, value in status.items() if not name.endswith("Time") and name != "conditions"}
    kept["conditions"] = [[one["type"], one["status"]] for one in status.get("conditions") or ()]
    return kept


def replicated(name: str, replicas: int, pods: int, *, job: Object | None = None, **fields: Any) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": {"spec": pod}, **(job or {})}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **fields}
