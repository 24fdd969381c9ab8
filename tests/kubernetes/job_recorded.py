"""The recorded Job cases as stories: the same requests and kubelet steps, each at a moment of rest."""

import json
import re
from itertools import groupby

from tests.kinds.batch.api.replay import cases
from tests.kubernetes.job_side import Object, Story

from kohort.kinds.batch.compile.names import pod_group_name, template_name, workload_name

_VERBS = {"run, not ready": "unready", "stop and remove": "stop"}
_RUNNING = ("the controller is not running", "the controller is started")
_NOTES = {
    "the foreign finalizer is removed": {"patch": "jobs/held", "body": {"metadata": {"finalizers": None}}},
    "the template's minCount is set to 5": {
        "patch": "workloads/fleet-wl",
        "body": {
            "spec": {
                "podGroupTemplates": [
                    {"name": "lead", "schedulingPolicy": {"basic": {}}},
                    {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 5}}},
                ]
            }
        },
    },
}

# Cases that need more than these servers, whatever plays them.
NOT_PLAYED = {
    "T-14": "other gates", "T-27": "other gates", "T-43": "other gates", "T-44": "other gates", "T-45": "other gates",
    "T-48": "another API", "T-79": "other gates", "J-60": "other gates", "J-61": "other gates",
    "T-21": "a uid is put into the store", "T-40": "a proxy that fails", "T-41": "a proxy that fails",
    "T-42": "a proxy that fails", "T-49": "700 pods", "J-53": "no requests",
    "T-18": "the full minute", "T-24": "a controller of claims", "T-75": "CronJobs: kept apart",
    "T-56": "which pods go depends on whether they are of the same second",
    "T-72": "which pods go depends on whether they are of the same second",
    "T-78": "which pods go depends on whether they are of the same second",
    "T-07": "JobSets", "T-17": "JobSets", "T-85": "JobSets",
}  # fmt: skip


def recorded(minor: str) -> list[Story]:
    return [_recorded(name, case) for name, case in cases(minor).items() if name not in NOT_PLAYED]


def _recorded(name: str, case: Object) -> Story:
    steps: list[Object] = []
    before: list[Object] = []
    requests = _as_given(case)
    for kind, some in groupby(requests, key=lambda one: one.get("kubelet")):
        for one in _merged(list(some)) if kind else some:
            if one.get("note") == _RUNNING[1]:
                before, steps = steps, []
            elif one.get("note") != _RUNNING[0]:
                steps.append(_step(one, case))
    return Story(name.lower(), [one for one in steps if one], [one for one in before if one])


def _as_given(case: Object) -> list[Object]:
    """With places for names that come from a uid."""
    text = json.dumps(case["requests"])
    jobs = [one["body"]["metadata"]["name"] for one in case["requests"] if str(one.get("do")).startswith("POST jobs?")]
    for (_, uid), name in zip(sorted((case.get("uids") or {}).items()), dict.fromkeys(jobs), strict=False):
        workload = workload_name(name, uid)
        group = pod_group_name(workload, template_name(name))
        for made, place in ((group, f"<podgroup {name}>"), (workload, f"<workload {name}>")):
            text = re.sub(rf"(?<=[\"/]){re.escape(made)}(?=\")", place, text)
    found: list[Object] = json.loads(text)
    return found


def _merged(steps: list[Object]) -> list[Object]:
    """What happens to several pods that are there already happens at once."""
    return [{"together": steps}]


def _step(one: Object, case: Object) -> Object:
    if "together" in one:
        return {"kubelet": [_kubelet(each, case) for each in one["together"]]}
    if "do" not in one:
        return _NOTES.get(one["note"], {})
    verb, _, target = one["do"].partition(" ")
    path, _, query = target.partition("?")
    if verb == "POST":
        return {"create": one["body"]}
    path = "/".join(_pod(part, case) if "{p" in part else part for part in path.split("/"))
    if verb == "DELETE":
        policy = query.removeprefix("propagationPolicy=")
        return {"delete": path, **({"options": {"propagationPolicy": policy}} if policy else {})}
    return {"patch": path, "body": one["body"]}


def _kubelet(one: Object, case: Object) -> Object:
    rest = {name: value for name, value in one.items() if name not in {"kubelet", "pod"}}
    return {"do": _VERBS.get(one["kubelet"], one["kubelet"]), "pods": [_pod(one["pod"], case)], **rest}


def _pod(name: str, case: Object) -> str:
    """`base-{p7}` -> `base-{2}`: the second of that base."""
    if "{p" not in name:
        return name
    made = [line.split()[1] for line in case.get("timeline", []) if line.startswith("+Pod ")]
    base = name.split("{p", maxsplit=1)[0]
    return f"{base}{{{[one for one in made if one.split('{p', maxsplit=1)[0] == base].index(name) + 1}}}"
