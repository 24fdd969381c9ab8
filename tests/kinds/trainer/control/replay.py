"""The recorded lives of TrainJobs, played on the simulated API with our TrainJob, JobSet and Job controllers."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import yaml
from tests.controllers import kubelet
from tests.controllers.driver import Driver
from tests.controllers.simapi import CONTENT, Change, SimApi
from tests.kinds.jobset.control.replay import written
from tests.kinds.trainer.api.recorded import cases, expanded
from tests.kinds.trainer.compile.test_recorded import bare

from kohort.api import patch as patches
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.gang.compile import CompileContext, Lookup
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.jobset.control.controller import jobset_controller
from kohort.kinds.trainer import admission
from kohort.kinds.trainer.api.constants import API_VERSION
from kohort.kinds.trainer.control.controller import trainjob_controller
from kohort.kinds.trainer.settings import TrainJobSettings

PATIENCE = 12.0
KINDS = {
    "TrainJob": (API_VERSION, "TrainJob"),
    "TrainingRuntime": (API_VERSION, "TrainingRuntime"),
    "ClusterTrainingRuntime": (API_VERSION, "ClusterTrainingRuntime"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "ConfigMap": ("v1", "ConfigMap"),
    "Secret": ("v1", "Secret"),
    "PriorityClass": ("scheduling.k8s.io/v1", "PriorityClass"),
    "coscheduling": ("scheduling.x-k8s.io/v1alpha1", "PodGroup.scheduling.x-k8s.io"),
}
HOOKED = {"", "batch", "scheduling.k8s.io", "jobset.x-k8s.io", "trainer.kubeflow.org"}
_OTHERS = {
    "PodGroup.scheduling.x-k8s.io": "scheduling.x-k8s.io/v1alpha1 PodGroup",
    "PodGroup.scheduling.volcano.sh": "scheduling.volcano.sh/v1beta1 PodGroup",
}


def timelines() -> list[str]:
    """Cases with a life, not only dry runs."""
    return [name for name in cases() if name[0] in "rslz"]


class Player:
    def __init__(self, name: str) -> None:
        self.name, self.case = name, cases()[name]
        base = Context.of("1.37", options=DEFAULT_OPTIONS)
        groups = HOOKED - {"trainer.kubeflow.org"} if name == "z-nohooks" else HOOKED
        self.api = SimApi(base, groups=groups)
        self.driver = Driver(self.api)
        self.api.watchers.append(self._changed)
        settings = SettingsByKind(TrainJobSettings(flux_view_image="<default flux view image>"))
        self.ctx = CompileContext(base.release, base.gates, base.options, settings=settings)
        self.driver.start(trainjob_controller(self.ctx), jobset_controller(self.ctx), job_controller(self.ctx))
        self.rules: list[tuple[str, str]] = [(".", "run")]
        self.statuses: dict[str, list[Object]] = {}
        self.jobs: list[tuple[str, bool]] = []
        self.made: dict[tuple[str, str], Object] = {}  # everything, as first stored
        self.lives: list[tuple[str, str, str]] = []  # kind, name, made or gone
        self.codes: list[str] = []
        self.changes: dict[str, list[Object]] = {}  # of JobSets

    def play(self) -> Player:
        before: dict[str, Object] = {}
        asked = False
        for line in self.case["timeline"]:
            at_once, asked = asked, "patch" in line  # what was asked at once is asked at once
            if "TrainJob" in line and isinstance(line.get("status"), dict):
                before[line["TrainJob"]] = sorted_rows(line["status"])
            if isinstance(line.get("kubelet"), dict):
                self._wait(before)
                self.rules += list(line["kubelet"].items())
                for key in [key for key in self.api.objects if key[0] == "Pod"]:
                    self._drive(key)
            elif any(verb in line for verb in ("create", "patch", "delete", "apply")) and "code" in line:
                if not at_once:
                    self._wait(before)
                self._request(line)
        self._wait(before)
        self.api.clock.run(15)
        return self

    def _wait(self, before: dict[str, Object]) -> None:
        """Until the TrainJobs are as the recording had them at this moment; or as they stay, if they never are."""

        def reached() -> bool:
            return all((self.statuses.get(name) or [{}])[-1] == status for name, status in before.items())

        self.api.clock.run(0.3)
        self.api.clock.run(PATIENCE, reached)

    # ---- requests, with Trainer's admission in front

    def _request(self, line: dict[str, Any]) -> None:
        code = self._create(line) if "create" in line else self._change(line)
        if code >= 400 or line["code"] >= 400:
            code, wanted = code // 100, line["code"] // 100  # 403 of a webhook there is 422 here
        else:
            wanted = line["code"]
        if code != wanted:
            self.codes.append(f"{json.dumps(line)[:200]}: {code}")

    def _create(self, line: dict[str, Any]) -> int:
        version, kind = KINDS[line["create"]]
        body = {"apiVersion": version, "kind": kind, **expanded(deepcopy(line["object"]))}
        if kind == "PriorityClass":
            self.api.priority_classes.append(body)
        return self._admitted(body, None) or self.api.create(body, self.name).code

    def _change(self, line: dict[str, Any]) -> int:
        target = str(line.get("patch") or line.get("delete") or line.get("apply")).partition(" as ")[0]
        sort, name = target.split("/")
        kind = KINDS[sort][1]
        key = (kind, "" if kind == "ClusterTrainingRuntime" else self.name, name)
        if key not in self.api.objects:
            return 404
        if "delete" in line:
            return self.api.delete(key, propagation=line.get("propagationPolicy") or "Background").code
        if "apply" in line:
            return self._apply(key, line)
        content = CONTENT["json" if isinstance(line["with"], list) else "merge"]
        old = deepcopy(self.api.objects[key])
        refused = self._admitted(admit_merge(old, line["with"]), old)
        return refused or self.api.patch(key, line["with"], content).code

    def _apply(self, key: Any, line: dict[str, Any]) -> int:
        """By a manager of its own: here only entries of runtimePatches, which are keyed by manager."""
        who = line["apply"].partition(" as ")[2]
        entries = line["with"]["spec"]["runtimePatches"]
        theirs = {"one": "a.io/one", "two": "b.io/two"}[who]
        stored = self.api.objects[key]["spec"].get("runtimePatches") or []
        kept = [one for one in stored if one["manager"] != theirs]
        merged = sorted([*kept, *entries], key=lambda one: str(one["manager"]))
        return self.api.patch(key, {"spec": {"runtimePatches": merged}}, CONTENT["merge"]).code

    def _admitted(self, body: Object, old: Object | None) -> int:
        """What the embedded server asks beside the object itself."""
        if body["kind"] != "TrainJob" or "trainer.kubeflow.org" not in self.api.groups:
            return 0
        body["metadata"].setdefault("namespace", self.name)
        ref = body["spec"]["runtimeRef"]
        ref.setdefault("kind", "ClusterTrainingRuntime")
        ctx = CompileContext(self.ctx.release, self.ctx.gates, self.ctx.options, Lookup(self.api.objects.values()))
        return 422 if admission.validate(body, old, ctx).errors else 0

    # ---- the kubelet

    def _drive(self, key: Any) -> None:
        pod = self.api.objects.get(key)
        if pod is None or pod["status"]["phase"] in {"Succeeded", "Failed"}:
            if pod is not None and pod["metadata"].get("deletionTimestamp"):
                self.api.delete(key, grace=0)
            return
        if pod["metadata"].get("deletionTimestamp"):
            kubelet.step(self.api, key, {"kubelet": "stop and remove", "exit": 143})
            return
        if not pod["spec"].get("nodeName"):
            kubelet.step(self.api, key, {"kubelet": "bind"})
        found = next(mode for pattern, mode in reversed(self.rules) if re.search(pattern, key[2]))
        mode, _, code = found.partition(":")
        steps = {"run": "run", "ok": "succeed", "fail": "fail"}
        kubelet.step(self.api, key, {"kubelet": steps[mode], "exit": int(code or 1)})

    # ---- watching

    def _changed(self, change: Change) -> None:
        meta = change.object["metadata"]
        name = meta["name"]
        if change.kind == "Pod" and change.new is not None:
            key = ("Pod", meta["namespace"], name)
            self.api.clock.later(0.2, lambda: self._drive(key))
        if change.kind == "Job" and change.old is None and change.new is not None:
            self.jobs.append((name, bool(change.new["spec"].get("suspend"))))
        if change.old is None and change.new is not None:
            self.made.setdefault((_OTHERS.get(change.kind, change.kind), name), deepcopy(change.new))
        if change.old is None or change.new is None:
            self.lives.append((_OTHERS.get(change.kind, change.kind), name, "gone" if change.new is None else "made"))
        if change.kind == "JobSet" and change.old is not None and change.new is not None:
            seen = _changes(change.old, change.new)
            if seen:
                self.changes.setdefault(name, []).append(seen)
        if change.kind == "TrainJob" and change.new is not None and change.new.get("status") is not None:
            known = self.statuses.setdefault(name, [])
            status = job_status(change.new["status"])
            if not known or known[-1] != status:
                known.append(status)


def admit_merge(old: Object, patch: Any) -> Object:
    merged: Object = (
        patches.json_patch(deepcopy(old), patch) if isinstance(patch, list) else patches.merge(deepcopy(old), patch)
    )
    return merged


def job_status(status: Object) -> Object:
    """As the recording writes it."""
    rows = status.get("jobsStatus") or []
    new = written({**status, "replicatedJobsStatus": rows})
    rows = new.pop("replicatedJobsStatus")
    if rows:
        new["jobsStatus"] = rows
    return sorted_rows(new)


def sorted_rows(status: Object) -> Object:
    """Upstream's order of rows is that of its JobSet, which is no promise."""
    if "jobsStatus" not in status:
        return status
    return {**status, "jobsStatus": sorted(status["jobsStatus"], key=lambda row: str(row["name"]))}


# ---- what is compared: each gives the differences as texts


def codes(player: Player) -> list[str]:
    return player.codes


def _recorded(player: Player) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for line in player.case["timeline"]:
        if "TrainJob" in line and isinstance(line.get("status"), dict):
            found.setdefault(line["TrainJob"], []).append(sorted_rows(line["status"]))
    return found


def _conditions(statuses: list[Object]) -> list[list[str]]:
    found: list[list[str]] = []
    for status in statuses:
        seen = status.get("conditions") or []
        if seen and (not found or found[-1] != seen):
            found.append(seen)
    return found


def conditions(player: Player) -> list[str]:
    """Every set of conditions that a TrainJob had, in order."""
    found = []
    theirs = _recorded(player)
    for name in sorted({*theirs, *player.statuses}):
        one, other = _conditions(player.statuses.get(name, [])), _conditions(theirs.get(name, []))
        if one != other:
            found.append(f"conditions of {name}:\n   ours   {one}\n   theirs {other}")
    return found


def last(player: Player) -> list[str]:
    return [
        f"last status of {name}:\n   ours   {(player.statuses.get(name) or [{}])[-1]}\n   theirs {statuses[-1]}"
        for name, statuses in _recorded(player).items()
        if (player.statuses.get(name) or [{}])[-1] != statuses[-1] and player.name[0] != "r"
    ]


def jobs(player: Player) -> list[str]:
    theirs = sorted(
        (line["Job"], bool(line["suspend"])) for line in player.case["timeline"] if "Job" in line and line.get("made")
    )
    ours = sorted(player.jobs)
    if player.name[0] == "r" or ours == theirs:
        return []
    return [f"Jobs:\n   ours   {ours}\n   theirs {theirs}"]


def events(player: Player) -> list[str]:
    """Reasons only: theirs quote a webhook's text and Go types."""
    theirs = {line["event"].partition(": ")[0] for line in player.case["timeline"] if "event" in line}
    about = [one for one in player.driver.events if one.regarding["kind"] == "TrainJob"]
    ours = {f"{one.type} {one.reason}" for one in about}
    return [] if ours == theirs else [f"events: missing {sorted(theirs - ours)}, too many {sorted(ours - theirs)}"]


_SEEN = ("ConfigMap", "Secret", "JobSet", *_OTHERS.values())


def lives(player: Player) -> list[str]:
    """What was made and what went, of every kind that a TrainJob owns, as often as it did."""
    theirs = sorted(
        (line["kind"], line["name"], "made" if line.get("made") else "gone")
        for line in player.case["timeline"]
        if "kind" in line and (line.get("made") or line.get("gone"))
    )
    ours = sorted(one for one in player.lives if one[0] in _SEEN)
    if ours == theirs:
        return []
    more, less = list(ours), []
    for one in theirs:
        if one in more:
            more.remove(one)
        else:
            less.append(one)
    return [f"made and gone: missing {less}, too many {more}"]


def jobsets(player: Player) -> list[str]:
    """Every change of a JobSet's metadata and spec, in order."""
    theirs: dict[str, list[Object]] = {}
    for line in player.case["timeline"]:
        if line.get("kind") == "JobSet" and "changed" in line:
            seen = {path: value for path, value in line["changed"].items() if path in _PATHS}
            if seen:
                theirs.setdefault(line["name"], []).append(seen)
    return [
        f"changes of JobSet {name}:\n   ours   {player.changes.get(name)}\n   theirs {theirs.get(name)}"
        for name in sorted({*theirs, *player.changes})
        if player.changes.get(name) != theirs.get(name)
    ]


_PATHS = ("labels", "annotations", "spec.suspend", "spec.replicatedJobs")


def _changes(old: Object, new: Object) -> Object:
    def parts(obj: Object) -> Object:
        return {
            "labels": obj["metadata"].get("labels"),
            "annotations": obj["metadata"].get("annotations"),
            "spec.suspend": obj["spec"].get("suspend"),
            "spec.replicatedJobs": bare(obj["spec"])["replicatedJobs"],
        }

    before, after = parts(old), parts(new)
    return {path: value for path, value in after.items() if value != before[path]}


def objects(player: Player) -> list[str]:
    """ConfigMaps, Secrets and PodGroups as recorded; JobSets are compared in compile/test_recorded.py."""
    found = []
    for row in player.case.get("objects") or ():
        if row["kind"] == "JobSet":
            continue
        ours = player.made.get((row["kind"], row["name"]))
        if ours is None:
            found.append(f"{row['kind']} {row['name']} was not made")
            continue
        found += [f"{row['kind']} {row['name']}: {text}" for text in _unlike(ours, row)]
    return found


def _unlike(ours: Object, row: Object) -> list[str]:
    found = []
    owners = [
        f"{one['apiVersion']} {one['kind']} {one['name']}, controller, blockOwnerDeletion"
        for one in ours["metadata"].get("ownerReferences") or ()
        if one.get("controller") and one.get("blockOwnerDeletion")
    ]
    if owners != row["owners"]:
        found.append(f"owners {owners}, not {row['owners']}")
    for member in ("spec", "type", "immutable"):
        if ours.get(member) != row.get(member):
            found.append(f"{member} {ours.get(member)}, not {row.get(member)}")
    data = ours.get("data") or {}
    if set(data) != set(row.get("data") or {}):
        found.append(f"data has {sorted(data)}")
    for key, value in (row.get("data") or {}).items():
        found += _text(key, str(data.get(key)), value)
    return found


def _text(key: str, ours: str, theirs: Any) -> list[str]:
    if isinstance(theirs, str):
        return [] if theirs.startswith("<") or ours == theirs else [f"{key} is {ours!r}, not {theirs!r}"]
    if "YAML of" in theirs:
        return _snapshot(yaml.safe_load(ours), theirs["YAML of"])
    # A script of Flux: ours is another, with the same values. Upstream's init script names a host that it never uses.
    values = dict(theirs["a script with"])
    if key == "init.sh":
        values.pop("mainHost")
        values.pop("fluxroot")
    return [f"{key} lacks {name} {value!r}" for name, value in values.items() if value.strip() not in ours]


def _snapshot(ours: Any, theirs: Any) -> list[str]:
    same = (ours["apiVersion"], ours["kind"], ours["metadata"]["name"]) == (
        theirs["apiVersion"],
        theirs["kind"],
        theirs["metadata"]["name"],
    )
    problems = [] if same else [f"the snapshot is of {ours['kind']} {ours['metadata']['name']}"]
    if ours["metadata"].get("labels") != theirs["metadata"].get("labels"):
        problems.append(f"labels {ours['metadata'].get('labels')}")
    if ours["spec"]["mlPolicy"] != theirs["spec"]["mlPolicy"]:
        problems.append(f"mlPolicy {ours['spec']['mlPolicy']}")
    names = [[one["name"] for one in side["spec"]["template"]["spec"]["replicatedJobs"]] for side in (ours, theirs)]
    return problems if names[0] == names[1] else [*problems, f"jobs {names}"]
