"""What was made of a recorded case, in the words of the recording, and where the two differ."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

from tests.controllers.replay import NS, Player
from tests.controllers.simapi import Key

from kohort.api.kind import Object
from kohort.kinds.batch.control.job.pod import INDEX

TIMES = {"startTime", "completionTime"}
_SERVER = {"uid", "resourceVersion", "creationTimestamp", "namespace", "managedFields", "generation"}


def differences(player: Player) -> list[str]:
    return [*late(player), *codes(player), *statuses(player), *events(player), *creations(player), *looks(player)]


def late(player: Player) -> list[str]:
    return [f"did not happen: {one}" for one in player.late]


def codes(player: Player) -> list[str]:
    return [f"{what}: answered {ours}, not {theirs}" for what, theirs, ours in player.codes if theirs != ours]


# ---- statuses


def statuses(player: Player) -> list[str]:
    found = []
    for job, theirs in (player.case.get("statuses") or {}).items():
        ours = [written(player, status) for status in player.statuses.get(job, [])]
        expected = [_sorted(status) for status in theirs]
        for number in range(max(len(ours), len(expected))):
            one = ours[number] if number < len(ours) else None
            other = expected[number] if number < len(expected) else None
            if one != other:
                found.append(f"status#{number} of {job}:\n    ours   {json.dumps(one)}\n    theirs {json.dumps(other)}")
                break
    return found


def written(player: Player, status: Object) -> Object:
    """A status of ours as the recording writes one."""
    # A counter that somebody set to 0 is not stored by a server that knows its type.
    kept = {name: value for name, value in status.items() if value != 0 or name in {"ready", "terminating"}}
    new: dict[str, Any] = {name: "<time>" if name in TIMES else value for name, value in kept.items()}
    if "conditions" in new:
        members = ("type", "status", "reason", "message")
        new["conditions"] = [[renamed(player, str(one.get(name))) for name in members] for one in new["conditions"]]
    uids = player.pod_uids()
    if "uncountedTerminatedPods" in new:
        new["uncountedTerminatedPods"] = {
            name: [uids.get(uid, uid) for uid in listed] for name, listed in new["uncountedTerminatedPods"].items()
        }
    return _sorted(new)


def _sorted(status: Object) -> Object:
    new: dict[str, Any] = dict(status)
    if "uncountedTerminatedPods" in new:
        new["uncountedTerminatedPods"] = {
            name: sorted(listed) for name, listed in new["uncountedTerminatedPods"].items()
        }
    return {name: new[name] for name in sorted(new)}


def renamed(player: Player, text: str) -> str:
    for ours, theirs in player.theirs().items():
        text = text.replace(ours, theirs)
    text = re.sub(r'-x\d{4}"', '-{?}"', text)  # of a pod that never was
    return text.replace(f"{NS}/", "NS/")


# ---- events

_MERGED = "(combined from similar events): "


def events(player: Player) -> list[str]:
    """As sets; texts that the recorder's merging swallowed may be missing there."""
    theirs = {
        (one[0], one[1], one[2].removeprefix(_MERGED))
        for one in player.case.get("events", [])
        if not isinstance(one, str)
    }
    merged = any(isinstance(one, str) or _MERGED in one[2] for one in player.case.get("events", []))
    ours = {(one.type, one.reason, renamed(player, one.note)) for one in player.driver.events}
    if "..." in player.timeline:  # of hundreds of pods only a few are told by name
        theirs, ours = ({one for one in some if one[1] != "SuccessfulCreate"} for some in (theirs, ours))
    found = [f"event missing: {one}" for one in sorted(theirs - ours)]
    if not merged:
        found += [f"event too many: {one}" for one in sorted(ours - theirs)]
    return found


# ---- what was made, and in which group


def creations(player: Player) -> list[str]:
    if "..." in player.timeline:
        return []
    theirs = sorted(line for line in player.timeline if line.startswith(("+Pod", "+Workload", "+PodGroup")))
    ours = []
    seen: dict[tuple[str, str], Object] = {}
    for look in player.history:
        for key, obj in look.items():
            seen.setdefault((key[0], obj["metadata"]["uid"]), obj)
    names = player.theirs()
    for (kind, _), obj in seen.items():
        if kind in {"Pod", "Workload", "PodGroup"}:
            name = obj["metadata"]["name"]
            group = (obj["spec"].get("schedulingGroup") or {}).get("podGroupName") if kind == "Pod" else None
            ours.append(f"+{kind} {names.get(name, name)}" + (f" in {group}" if group else ""))
    ours.sort()
    return [] if ours == theirs else [f"made:\n    ours   {ours}\n    theirs {theirs}"]


# ---- looks


def looks(player: Player) -> list[str]:
    """Each recorded look is a state that we had, too, in that order."""
    place, before = 0, {}
    found = []
    for look in player.case.get("seen", []):
        for member in ("workloads", "podGroups"):
            if isinstance(look.get(member), list):
                before[member] = look[member]
        wanted = {**look, **{member: before[member] for member in before if member in look}}
        empty = not look.get("jobs") and not look.get("pods")  # so it looks before anything was made, too
        place = max(place, player.last) if empty else place
        match = next((n for n in range(place, len(player.history)) if not _unlike(player, wanted, n)), None)
        if match is None:
            last = len(player.history) - 1
            found.append(f"never looked like {look['at']!r}: {_unlike(player, wanted, last)}")
        else:
            place = match
    return found


def _unlike(player: Player, look: Object, number: int) -> str:
    state = player.history[number]
    return (
        _jobs(player, look.get("jobs"), state)
        or _objects(look.get("workloads"), state, "Workload")
        or _objects(look.get("podGroups"), state, "PodGroup")
        or _pods(player, look.get("pods"), state)
    )


def _jobs(player: Player, wanted: Any, state: dict[Key, Object]) -> str:
    for name, theirs in (wanted or {}).items():
        job = state.get(("Job", NS, name))
        if not isinstance(theirs, dict):
            continue
        if job is None:
            return f"no Job {name}"
        status = theirs.get("status", {}) if "metadata" in theirs else theirs
        ours = written(player, job.get("status") or {})
        if ours != _sorted(status):
            return f"status of {name}: {ours}, not {_sorted(status)}"
    return ""


def _objects(wanted: Any, state: dict[Key, Object], kind: str) -> str:
    if not isinstance(wanted, list):
        return ""
    ours = sorted((_plain(obj) for key, obj in state.items() if key[0] == kind), key=_name)
    theirs = sorted((_nulls(_stood_in(obj)) for obj in wanted if isinstance(obj, dict) and "spec" in obj), key=_name)
    return "" if ours == theirs else f"{kind}: {json.dumps(ours)}, not {json.dumps(theirs)}"


def _plain(obj: Object) -> Object:
    """Without the status, which is a scheduler's and a claim controller's."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in _SERVER}
    return _nulls(_stood_in({"metadata": _times(meta), "spec": obj.get("spec") or {}}))


def _times(meta: Object) -> Object:
    return {name: "<time>" if name == "deletionTimestamp" else value for name, value in meta.items()}


def _stood_in(obj: Object) -> Object:
    """Uids do not tell more than the kind and name beside them."""
    new: Object = {name: deepcopy(obj[name]) for name in ("metadata", "spec")}
    for owner in new["metadata"].get("ownerReferences") or ():
        owner["uid"] = "<uid>"
    if "deletionTimestamp" in new["metadata"]:  # the collector takes owners away in an order that is its own
        new["metadata"].pop("ownerReferences", None)
    return new


def _nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _nulls(item) for name, item in value.items() if item is not None}
    return [_nulls(item) for item in value] if isinstance(value, list) else value


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _pods(player: Player, wanted: Any, state: dict[Key, Object]) -> str:
    if not isinstance(wanted, list):
        return ""
    names = player.theirs()
    ours = {names.get(key[2], key[2]): obj for key, obj in state.items() if key[0] == "Pod"}
    if not all(isinstance(one, dict) for one in wanted):
        return ""  # only their number is told
    listed = {str(one.get("name") or one["metadata"]["name"]): one for one in wanted}
    if set(ours) != set(listed):
        return f"pods {sorted(ours)}, not {sorted(listed)}"
    for name, theirs in listed.items():
        problem = _pod(player, ours[name], theirs)
        if problem:
            return f"pod {name}: {problem}"
    return ""


def _pod(player: Player, pod: Object, theirs: Object) -> str:
    meta = pod["metadata"]
    whole = theirs.get("metadata") or {}
    if pod["status"].get("phase") != theirs["phase"]:
        return f"{pod['status'].get('phase')}, not {theirs['phase']}"
    if sorted(meta.get("finalizers") or []) != sorted((whole if whole else theirs).get("finalizers") or []):
        return f"finalizers {meta.get('finalizers')}"
    deleting = bool(whole.get("deletionTimestamp") or theirs.get("deleting"))
    if bool(meta.get("deletionTimestamp")) != deleting:
        return f"deleting: {not deleting}"
    if "index" in theirs and (meta.get("annotations") or {}).get(INDEX) != theirs["index"]:
        return f"index {meta.get('annotations')}"
    if not whole and bool(pod["spec"].get("nodeName")) != bool(theirs.get("bound")):
        return f"bound: {pod['spec'].get('nodeName')}"
    return _whole_pod(player, pod, theirs) if whole else ""


def _whole_pod(player: Player, pod: Object, theirs: Object) -> str:
    cluster_uids = {uid: label for label, uid in (player.case.get("uids") or {}).items()}
    text = json.dumps({"metadata": pod["metadata"], "spec": pod["spec"]})
    for uid, label in cluster_uids.items():
        text = text.replace(uid, label)
    ours = json.loads(renamed(player, text))
    for member in ("labels", "annotations", "generateName", "ownerReferences"):
        one, other = ours["metadata"].get(member), theirs["metadata"].get(member)
        if (one or None) != (other or None):
            return f"{member} {one}, not {other}"
    return _within(theirs.get("spec") or {}, ours["spec"], "spec")


def _within(theirs: Any, ours: Any, path: str) -> str:
    """What the recording says of a pod's spec (it leaves defaults out) is there."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return next((text for name in theirs if (text := _within(theirs[name], ours.get(name), f"{path}.{name}"))), "")
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = enumerate(zip(theirs, ours, strict=True))
        return next((text for n, (one, other) in pairs if (text := _within(one, other, f"{path}[{n}]"))), "")
    return "" if theirs == ours else f"{path}: {ours}, not {theirs}"
