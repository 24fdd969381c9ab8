"""A large JobSet, compiled and rendered: 8 ReplicatedJobs of 256 Jobs, as replica gangs and as a tree of gangs."""

from __future__ import annotations

from typing import Any

from bench.result import Result, best
from kohort.api import admit
from kohort.api.kind import Context
from kohort.api.options import DEFAULT_OPTIONS
from kohort.gang.compile import CompileContext
from kohort.gang.render import render
from kohort.kinds.jobset.api import JOBSET
from kohort.kinds.jobset.compile.jobset import compile_object

JOBS, REPLICAS, PODS = 8, 256, 8


def _jobset(gang: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pod = {"template": {"spec": {"containers": [{"name": "main", "image": "trainer:1"}]}}}
    template = {"spec": {"parallelism": PODS, "completions": PODS, **pod}}
    jobs = [{"name": f"slice-{number}", "replicas": REPLICAS, "template": template, **gang} for number in range(JOBS)]
    metadata = {"name": "large", "namespace": "ml", "uid": "0a4c1c5e-6ad8-4d1c-8c1e-0c9a5d1f3b77"}
    spec["replicatedJobs"] = jobs
    return {"apiVersion": JOBSET.api_version, "kind": JOBSET.kind, "metadata": metadata, "spec": spec}


def _measured(obj: dict[str, Any], groups: int) -> float:
    ctx = Context.of("1.37", options=DEFAULT_OPTIONS)
    assert admit.check(obj, ctx) == []
    whole = admit.defaulted(obj, JOBSET, ctx)
    how = CompileContext(ctx.release, ctx.gates, ctx.options)

    def work() -> int:
        (plan,) = compile_object(whole, how).plans
        return len(render(plan, "1.37").objects)

    assert work() == 1 + groups
    return best(work, times=25)


def run() -> list[Result]:
    replica_gangs = _jobset({"gangConfig": {"gangMode": "ReplicatedGang"}})
    entries = [{"targetReplicatedJobs": [f"slice-{number}"], "job": {}} for number in range(JOBS)]
    tree = _jobset({}, scheduling={"schedulingPolicy": {"gang": {}}, "replicatedJobs": entries})
    size, jobs = f"{JOBS} x {REPLICAS}", JOBS * REPLICAS
    return [
        Result(f"JobSet {size}, replica gangs", _measured(replica_gangs, jobs), promise=0.05),
        Result(f"JobSet {size}, tree of gangs", _measured(tree, jobs + JOBS + 1), promise=0.05),
    ]
