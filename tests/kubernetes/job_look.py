"""What is there after a step of a story, without what may differ between two servers; and where two tellings part."""

import copy
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.kubernetes.job_side import MANAGER, Object, Side, Told

_TIMES = {
    "startTime", "completionTime", "lastTransitionTime", "lastProbeTime", "deletionTimestamp", "startedAt",
    "finishedAt", "time",
}  # fmt: skip
_LEFT_OUT = {"resourceVersion", "creationTimestamp", "uid", "managedFields"}
_COLLECTED_FIELDS = {"f:ownerReferences", "f:finalizers"}
_MANAGERS = {"kohort-collector": MANAGER}  # of ours: pods that nobody runs
_UNMADE = re.compile(r'pods "([^"]*-)[a-z0-9]{5}"(?= is forbidden)')  # of a pod that never was
_COMBINED = "(combined from similar events): "


def look(side: Side, space: str) -> Object:
    plain = plainer(side, space)
    found: Object = {}
    for kind in ("Job", "Workload", "PodGroup", "Pod"):
        found[kind] = sorted((_whole(plain, obj) for obj in side.every(kind, space)), key=_order)
    about = [one for one in side.every("Event", space) if one["involvedObject"]["kind"] == "Job"]
    texts = {(*_who(one), one["type"], one["reason"], one["message"].removeprefix(_COMBINED)) for one in about}
    merged = any(one["message"].startswith(_COMBINED) for one in about)
    counts = Counter((*rest, _UNMADE.sub(r'pods "\1?????"', plain(text))) for *rest, text in texts)
    # How often something fails that is tried again and again is a matter of time.
    told = [[*what, 1 if merged or what[3] == "FailedCreate" else count] for what, count in counts.items()]
    found["Event"], found["merged"] = sorted(told), merged
    return found


def _order(obj: Object) -> str:
    return json.dumps([obj["metadata"]["name"], obj["metadata"].get("annotations"), obj], sort_keys=True)


def _who(event: Object) -> tuple[str, str]:
    about = event["involvedObject"]
    return about["apiVersion"], about["name"]


def _whole(plain: Callable[[Any], Any], obj: Object) -> Object:
    new: Object = plain(obj)
    if "deletionTimestamp" in new["metadata"]:
        new["metadata"].pop("ownerReferences", None)  # the collector takes them away in an order that is its own
    if "deletionTimestamp" in new["metadata"] and obj["kind"] == "Job":
        # Whether its pods count as failed depends on who is first, the collector or the Job's last look.
        new["status"].pop("failed", None)
        return new
    new["metadata"]["managedFields"] = sorted(
        [
            _MANAGERS.get(one["manager"], one["manager"]),
            one["operation"],
            one.get("subresource", ""),
            _owned(plain, one),
        ]
        for one in obj["metadata"].get("managedFields") or ()
    )
    return new


def _owned(plain: Callable[[Any], Any], one: Object) -> str:
    fields = _keys(plain(one["fieldsV1"]))
    # What collectors take away, our server's do not write into the books.
    meta = {name: owned for name, owned in fields.get("f:metadata", {}).items() if name not in _COLLECTED_FIELDS}
    fields = {name: owned for name, owned in fields.items() if name != "f:metadata"}
    return json.dumps({**fields, **({"f:metadata": meta} if meta else {})}, sort_keys=True)


def _keys(fields: Any) -> Any:
    """Which fields: the owner's uid is not one that tells anything."""
    if not isinstance(fields, dict):
        return fields
    return {re.sub(r'"uid":"[^"]*"', '"uid":"?"', name): _keys(fields[name]) for name in sorted(fields)}


def plainer(side: Side, space: str) -> Callable[[Any], Any]:
    """Random ends of names, times, uids and versions stand for themselves."""
    known = {pod["metadata"]["name"]: _stem(pod) for pod in side.pods[space]}
    known |= {pod["metadata"]["uid"]: f"<uid of {_stem(pod)}>" for pod in side.pods[space]}
    pattern = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True)))) if known else None

    def plain(value: Any, name: str = "") -> Any:
        if name in _TIMES and isinstance(value, str):
            return "<time>"
        if isinstance(value, str):
            return pattern.sub(lambda match: known[match[0]], value) if pattern is not None else value
        if isinstance(value, list):
            return [plain(one) for one in value]
        if isinstance(value, dict):
            # A null and nothing are the same to everybody who reads it.
            kept = {key: one for key, one in value.items() if key not in _LEFT_OUT and one is not None}
            return {key: plain(one, key) for key, one in kept.items()}
        return value

    return plain


def _stem(pod: Object) -> str:
    meta = pod["metadata"]
    return f"{meta['generateName']}?????" if meta.get("generateName") else str(meta["name"])


# ---- comparing


def differences(real: Told, ours: Told) -> list[str]:
    """Where two tellings part, in words; of the first step that differs only."""
    if real.problem or ours.problem:
        return [f"real: {real.problem or 'rests'}; ours: {ours.problem or 'rests'}"]
    for one, other in map(_unmerged, real.looks, ours.looks):
        if one != other:
            head = f"after {json.dumps(one['step'])[:300]}"
            return [head, *(line for line in apart(one, other, "") if line)]
    return []


def _unmerged(*looks: Object) -> list[Object]:
    """A recorder puts more than ten events that are alike into one: then only that there were such can be compared."""
    if not any(one.get("merged") for one in looks):
        return list(looks)
    return [
        {**one, "merged": True, "Event": sorted({tuple(event[:4]) for event in one.get("Event", ())})} for one in looks
    ]


def apart(real: Any, ours: Any, path: str) -> list[str]:
    if real == ours:
        return []
    if isinstance(real, dict) and isinstance(ours, dict):
        return [
            line
            for name in sorted({*real, *ours})
            for line in apart(real.get(name, "(absent)"), ours.get(name, "(absent)"), f"{path}.{name}")
        ]
    if isinstance(real, list) and isinstance(ours, list):
        if len(real) == len(ours):
            pairs = enumerate(zip(real, ours, strict=True))
            return [line for place, (one, other) in pairs for line in apart(one, other, f"{path}[{place}]")]
        only, more = copy.deepcopy(real), copy.deepcopy(ours)
        for one in real:
            if one in more:
                only.remove(one)
                more.remove(one)
        short = [*(f"{path}: only real: {json.dumps(one)[:900]}" for one in only)]
        return short + [f"{path}: only ours: {json.dumps(one)[:900]}" for one in more]
    return [f"{path}: real {json.dumps(real)[:700]}, ours {json.dumps(ours)[:700]}"]
