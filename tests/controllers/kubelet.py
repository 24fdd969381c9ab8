"""What the recorder's stand-in for kubelet and scheduler did to pods."""

from __future__ import annotations

from typing import Any

from tests.controllers.simapi import Key, SimApi

from kohort.api.kind import Object

NODE = "n1"


def step(api: SimApi, key: Key, request: dict[str, Any]) -> None:
    what = request["kubelet"]
    now = api.clock.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if what == "bind":
        api.set_status(key, lambda pod: pod["spec"].update(nodeName=NODE))
    elif what in {"run", "run, not ready"}:
        api.set_status(key, lambda pod: _run(pod, now, request, ready=what == "run"))
    elif what == "succeed":
        api.set_status(key, lambda pod: _end(pod, now, {"exit": 0}, "Succeeded"))
    elif what == "fail":
        api.set_status(key, lambda pod: _end(pod, now, request, "Failed"))
    elif what == "stop and remove":
        api.set_status(key, lambda pod: _end(pod, now, request, "Failed"))
        if key in api.objects:
            api.delete(key, grace=0)
    else:
        raise AssertionError(f"unknown step {what}")


def _run(pod: Object, now: str, request: dict[str, Any], *, ready: bool) -> None:
    statuses = [
        {"name": one["name"], "restartCount": request.get("restarts", 0), "state": {"running": {"startedAt": now}}}
        for one in pod["spec"]["containers"]
    ]
    pod["status"] |= {"phase": "Running", "containerStatuses": statuses}
    _ready(pod, now, "True" if ready else "False")


def _end(pod: Object, now: str, request: dict[str, Any], phase: str) -> None:
    named, status = request.get("container"), pod["status"]
    before = {one["name"]: one.get("restartCount", 0) for one in status.get("containerStatuses") or ()}

    def ended(name: str, code: int) -> dict[str, Any]:
        state = {"terminated": {"exitCode": code, "finishedAt": now}}
        return {"name": name, "restartCount": before.get(name, 0), "state": state}

    status["phase"] = phase
    code = request.get("exit", 0)
    status["containerStatuses"] = [
        ended(one["name"], code if named in (None, one["name"]) else 0) for one in pod["spec"]["containers"]
    ]
    if "init" in request:
        inits = pod["spec"].get("initContainers") or ()
        status["initContainerStatuses"] = [ended(one["name"], request["init"]) for one in inits]
    _ready(pod, now, "False")
    for condition in request.get("conditions") or ():
        given = condition if isinstance(condition, dict) else {"type": condition, "status": "True"}
        status["conditions"].append({"lastTransitionTime": now, **given})


def _ready(pod: Object, now: str, value: str) -> None:
    others = [one for one in pod["status"].get("conditions") or () if one["type"] != "Ready"]
    known = next((one for one in pod["status"].get("conditions") or () if one["type"] == "Ready"), None)
    same = known is not None and known["status"] == value
    pod["status"]["conditions"] = [
        *others,
        known if same else {"type": "Ready", "status": value, "lastTransitionTime": now},
    ]
