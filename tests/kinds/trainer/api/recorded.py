"""The recordings of upstream Trainer: read, expanded, and played against our admission."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.kinds.trainer.api import check_active, check_fit, fit_warnings, stamp_patches
from kohort.kinds.trainer.api.constants import API_VERSION

CTX = Context.of("1.37", options=DEFAULT_OPTIONS)
NOW = "2026-08-21T10:00:00Z"
LATER = "2026-08-21T11:00:00Z"
_REPEAT = re.compile(r"<repeat:(.*?):(\d+)>")
_ENTRIES = re.compile(r"<(\d+) entries like (.*)>")


@cache
def cases() -> dict[str, Any]:
    file = Path(__file__).parents[3] / "recorded" / "trainjob.json"
    found: dict[str, Any] = json.loads(file.read_text())["cases"]
    return found


def expanded(value: Any) -> Any:
    """Long texts and lists are abbreviated in the recordings."""
    if isinstance(value, dict):
        return {name: expanded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [expanded(item) for item in value]
    if not isinstance(value, str):
        return value
    entries = _ENTRIES.fullmatch(value)
    if entries:
        like = json.loads(entries[2])
        named = isinstance(like, dict)
        return [{"name": f"V{number}"} if named else like for number in range(int(entries[1]))]
    return _REPEAT.sub(lambda found: found[1] * int(found[2]), value)


def typed(kind: str, obj: Any, namespace: str) -> Object:
    version = "scheduling.k8s.io/v1" if kind == "PriorityClass" else "v1" if kind == "ConfigMap" else API_VERSION
    made = {"apiVersion": version, "kind": kind, **expanded(deepcopy(obj))}
    if kind in {"TrainJob", "TrainingRuntime"}:
        made["metadata"]["namespace"] = namespace
    return made


class Store:
    """What a case has made before its tries."""

    def __init__(self, case: str) -> None:
        self.case = case
        self.objects: dict[tuple[str, str], Object] = {}
        self.active: dict[str, list[str]] = {}
        for step in cases()[case]["timeline"]:
            if "create" in step and step["code"] == 201:
                self._add(step["create"], step["object"])
            elif "TrainJob" in step and "status" in step:
                counters = step["status"].get("jobsStatus") or []
                self.active[step["TrainJob"]] = [one["name"] for one in counters if one.get("active")]

    def _add(self, kind: str, obj: Any) -> None:
        made = typed(kind, obj, self.case)
        if kind in {"TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"}:
            answer = admit.create(made, CTX)
            assert answer.object is not None, answer.message
            made = answer.object
            made["metadata"]["resourceVersion"] = "7"
            if kind == "TrainJob":
                stamp_patches(made, None, NOW)
        self.objects[kind, made["metadata"]["name"]] = made

    def runtime(self, job: Object) -> Object | None:
        ref = job["spec"]["runtimeRef"]
        return self.objects.get((ref["kind"], ref["name"]))

    def jobset(self, name: str) -> Object:
        return {"status": {"replicatedJobsStatus": [{"name": one, "active": 1} for one in self.active.get(name, [])]}}


class Said:
    """What we answer to a try."""

    def __init__(self, fields: list[str], obj: Object | None, warnings: list[str], message: str) -> None:
        self.fields, self.object, self.warnings, self.message = fields, obj, warnings, message

    @property
    def accepted(self) -> bool:
        return self.object is not None and not self.fields


def answered(store: Store, attempt: Any) -> Said:
    return _patched(store, attempt) if "patch" in attempt else _created(store, attempt)


def _created(store: Store, attempt: Any) -> Said:
    kind = attempt.get("kind", "TrainJob")
    obj = typed(kind, attempt["object"], store.case)
    answer = admit.create(obj, CTX, suffix=lambda: "xxxxx")
    said = Said([cause.field for cause in answer.causes], answer.object, list(answer.warnings), answer.message)
    if answer.object is not None and kind == "TrainJob":
        runtime = store.runtime(answer.object)
        stamp_patches(answer.object, None, NOW)
        said.fields += [error.field for error in check_fit(answer.object, runtime, ())]
        said.warnings += fit_warnings(answer.object, runtime) if runtime else []
    return said


def _patched(store: Store, attempt: Any) -> Said:
    kind, _, name = attempt["of"].partition("/")
    old = store.objects[kind, name]
    new = merged(deepcopy(old), attempt["patch"])
    answer = admit.update(new, old, CTX)
    said = Said([cause.field for cause in answer.causes], answer.object, list(answer.warnings), answer.message)
    if answer.object is not None and kind == "TrainJob":
        stamp_patches(answer.object, old, LATER)
        said.fields += [error.field for error in check_fit(answer.object, store.runtime(answer.object), ())]
        said.fields += [error.field for error in check_active(answer.object, old, store.jobset(name))]
    return said


def merged(target: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made
