"""The short forms of the recorded scenarios as API objects, and their steps played on a simulated API."""

from __future__ import annotations

from typing import Any

from tests.place.cluster import pod_spec
from tests.scheduler.sim import Sim

Json = dict[str, Any]


def priority_of(item: Json) -> int:
    return int(item.get("priority", "p0").removeprefix("p").split("-")[0])


def pod_body(item: Json) -> Json:
    spec = pod_spec(item)
    spec["schedulerName"] = item.get("schedulerName", "default-scheduler")
    spec["priority"] = priority_of(item)
    spec["preemptionPolicy"] = "Never" if "never" in item.get("priority", "") else "PreemptLowerPriority"
    if "in" in item:
        spec["schedulingGroup"] = {"podGroupName": item["in"]}
    if "node" in item:
        spec["nodeName"] = item["node"]
    if item.get("gates"):
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    if "claim" in item:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": item["claim"]}}]
    status: Json = {"phase": ""}
    if item.get("gates"):  # the API server says so
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    if "nominated" in item:
        status["nominatedNodeName"] = item["nominated"]
    if "started" in item:
        status["startTime"] = f"{10_000 - item['started']:05}"
    return {"metadata": {"labels": item.get("labels", {})}, "spec": spec, "status": status}


def group_body(item: Json, *, composite: bool) -> Json:
    gang = {"minGroupCount" if composite else "minCount": item["gang"]} if "gang" in item else None
    spec: Json = {
        "schedulingPolicy": {"basic": {}} if gang is None else {"gang": gang},
        "priority": priority_of(item),
        "disruptionMode": {item.get("disruption", "single"): {}},
    }
    if "parent" in item:
        spec["parentCompositePodGroupName"] = item["parent"]
    if "topology" in item:
        spec["schedulingConstraints"] = {"topology": [{"key": item["topology"]}]}
    if "preemptionPolicy" in item:
        spec["preemptionPolicy"] = item["preemptionPolicy"]
    return {"spec": spec, "status": {}}


def create(sim: Sim, item: Json) -> None:
    if item.get("nextSecond"):
        sim.now += 1
    if "node" in item and "pod" not in item:
        labels = {"kubernetes.io/hostname": item["node"], **item.get("labels", {})}
        body: Json = {"metadata": {"labels": labels}, "spec": {"taints": item.get("taints") or []}}
        body["status"] = {"allocatable": {"cpu": item["cpu"], "memory": "64Gi", "pods": "110"}}
        sim.put("node", item["node"], body)
    elif "pod" in item:
        body = pod_body(item)
        if item.get("deleting"):
            body["metadata"]["deletionTimestamp"] = sim.stamp()
        sim.put("pod", item["pod"], body)
    elif "pdb" in item:
        body = {"spec": {"selector": {"matchLabels": item["match"]}}, "status": {"disruptionsAllowed": item["allowed"]}}
        sim.put("pdb", item["pdb"], body)
    elif "claim" in item:
        # Recorded with a claim that is bound to a volume usable everywhere.
        sim.core.cache.storage.set_volume(item["claim"], {"metadata": {"name": item["claim"]}, "spec": {}})
        sim.put("claim", item["claim"], {"spec": {"accessModes": [item["mode"]], "volumeName": item["claim"]}})
    elif "composite" in item:
        sim.put("composite", item["composite"], group_body(item, composite=True))
    else:
        sim.put("group", item["group"], group_body(item, composite=False))


def change(sim: Sim, target: str, what: Json) -> None:
    kind, name = target.split("/")
    body = sim.objects[kind][name]
    if "minCount" in what:
        body["spec"]["schedulingPolicy"]["gang"]["minCount"] = what["minCount"]
        body["metadata"]["generation"] += 1
    elif "ungate" in what:
        body["spec"].pop("schedulingGates")
        body["status"].pop("conditions")
    elif "phase" in what:
        body["status"]["phase"] = what["phase"]
    elif "bind" in what:
        body["spec"]["nodeName"] = what["bind"]
    else:
        raise AssertionError(f"no such change: {what}")
    sim.tell(kind, name)


def play(sim: Sim, step: Json) -> None:
    """One step, up to the point where its outcome is looked at."""
    if "scheduler" in step:
        if step["scheduler"] == "stop":
            sim.running = False
        else:
            sim.restart()
    if "kubelet" in step:
        if step["kubelet"] == "slow":
            sim.slow = True
        else:
            sim.finish_deletions()
    sim.refuse.update(step.get("refuseBinding", {}))
    if "during" in step:
        inner = step["during"]["do"]

        def meanwhile() -> None:
            for one in inner:
                play(sim, one)

        sim.before_binding = meanwhile
    for item in step.get("create", ()):
        create(sim, item)
        if step.get("live"):
            sim.settle()
    for target in step.get("delete", ()):
        sim.delete(*target.split("/"))
    for target, what in step.get("set", ()):
        change(sim, target, what)
    if "wait" in step:
        sim.settle(step["wait"])
