"""The recorded lives of JobSets, played on the simulated API with our JobSet and Job controllers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from tests.controllers import kubelet
from tests.controllers.compare import _within
from tests.controllers.driver import Driver
from tests.controllers.lab import Lab, Place
from tests.controllers.simapi import CONTENT, Change, Key, SimApi

from kohort.api.kind import Context, Object
from kohort.api.releases import Gate
from kohort.api.result import WriteResult
from kohort.gang.compile import CompileContext
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.batch.settings import JobSettings
from kohort.kinds.jobset.api import placement
from kohort.kinds.jobset.api.volumes import against_existing
from kohort.kinds.jobset.control.controller import jobset_controller
from kohort.kinds.jobset.control.inplace import ATTEMPT
from kohort.kinds.jobset.control.placement import placement_controller
from kohort.kinds.jobset.settings import JobSetSettings

PATIENCE = 12.0
KINDS = {
    "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "job": ("batch/v1", "Job"),
    "service": ("v1", "Service"),
    "pod": ("v1", "Pod"),
    "pvc": ("v1", "PersistentVolumeClaim"),
    "workload": ("scheduling.k8s.io/v1beta1", "Workload"),
    "podgroup": ("scheduling.k8s.io/v1beta1", "PodGroup"),
    "priorityclass": ("scheduling.k8s.io/v1", "PriorityClass"),
    "configmap": ("v1", "ConfigMap"),
}
GATED = ("InPlaceRestart", "RestartJob", "ElasticJobSet")
_EXAMPLES = re.compile(r" \(e\.g\. .*?'\)(?=[,\]]|$)")  # servers give some with a refusal
_COUNTERS = ("ready", "succeeded", "failed", "active", "suspended")


@cache
def cases() -> dict[str, dict[str, Any]]:
    text = (Path(__file__).parents[3] / "recorded" / "jobset.json").read_text()
    found: dict[str, dict[str, Any]] = json.loads(text)["cases"]
    return found


class Player:
    def __init__(self, name: str) -> None:
        self.case = cases()[name]
        self.space = self.case["namespace"]
        base = Context.of("1.36" if self.case["set"] == "k136" else "1.37")
        options = base.options | set(GATED if self.case["set"] == "gated" else ())
        gates = frozenset[Gate]() if self.case["set"] == "nogang" else base.gates
        ctx = Context(base.release, gates, options)
        self.api = SimApi(ctx, groups={"", "batch", "scheduling.k8s.io", "jobset.x-k8s.io"})
        for named, value in (("petty", 5), ("grand", 900)):
            self.api.priority_classes.append({"kind": "PriorityClass", "metadata": {"name": named}, "value": value})
        self.driver = Driver(self.api)
        self.api.watchers.append(self._changed)
        both = SettingsByKind(JobSetSettings(parity=True), JobSettings(parity=True))  # the lab ran upstream's of both
        full = CompileContext(ctx.release, ctx.gates, ctx.options, settings=both)
        self.driver.between = True
        self.lab = Lab(self.api, self.space)
        self.api.plugins += [self._complete, self._judge]
        self.driver.start(jobset_controller(full), job_controller(full), placement_controller())
        self.jobs_seen: dict[str, dict[str, Any]] = {}  # what the recording has said of Jobs so far
        self.gone: set[str] = set()  # JobSets that the recording saw go
        self.held: str = ""  # pods that do not end although they are told to
        for place in self.lab.places:
            self._node(place)
        self.rules: list[tuple[str, str]] = [(".", "run")]
        self.statuses: dict[str, list[Object]] = {}
        self.jobs: list[tuple[str, str, bool]] = []
        self.codes: list[str] = []
        self.made: dict[str, Object] = {}  # Jobs, each as it was made first
        self.born: list[Object] = []  # pods, as they were made

    def play(self) -> Player:
        before: dict[str, Object] = {}
        for line in self.case["timeline"]:
            if "jobset" in line and isinstance(line.get("status"), dict):
                before[line["jobset"]] = line["status"]
            if "job" in line:
                self.jobs_seen[line["job"]] = {**self.jobs_seen.get(line["job"], {}), **line}
            if "jobset" in line and line.get("gone"):
                before.pop(line["jobset"], None)
                self.gone.add(line["jobset"])
            if isinstance(line.get("kubelet"), str):
                self._wait(before)
                self.held = f"-{line['kubelet'].split()[-1].split('-', 1)[-1]}-" if "holds" in line["kubelet"] else ""
                self._apply_rules()
            elif any(word in line for word in ("annotate", "container restartCount", "node")) and "pod" not in line:
                self._wait(before)
                self._happens(line)
            elif str(line.get("delete", "")).startswith("pod of index"):
                self._wait(before)
                self.api.delete(self._pod_key(line["delete"].split()[-1]))
            elif isinstance(line.get("kubelet"), dict):
                self._wait(before)
                self.rules += list(line["kubelet"].items())
                self._apply_rules()
            elif any(verb in line for verb in ("create", "patch", "delete")) and "code" in line:
                self._wait(before)
                self._request(line)
        self._wait(before)
        self.api.clock.run(15)
        return self

    # ---- the cluster

    def _node(self, place: Place) -> None:
        meta = {"name": place.name, "labels": dict(place.labels), "resourceVersion": "1", "uid": place.name}
        self.api.objects["Node", "", place.name] = {"kind": "Node", "apiVersion": "v1", "metadata": meta}

    def _webhook(self, jobset: Object) -> WriteResult | None:
        """It is asked before the server looks whether the name is free."""
        problems = list(against_existing(jobset, self.api.every("PersistentVolumeClaim")))
        return WriteResult(422, "Invalid", tuple(problems)) if problems else None

    def _complete(self, obj: Object) -> WriteResult | None:
        """What upstream's webhooks do to pods."""
        if obj["kind"] != "Pod":
            return None
        leader = placement.leader_of(obj, self.lab.pods())
        placement.complete(obj, leader, self.lab.labels_of)
        why = placement.refusal(obj, leader)
        return WriteResult(403, "Forbidden", message=why) if why else None

    def _judge(self, obj: Object) -> WriteResult | None:
        """Kinds that the simulated API does not judge, as far as cases ask for it."""
        name, spec = obj["metadata"]["name"], obj.get("spec") or {}
        if obj["kind"] == "Service" and "." in name:
            text = f'Service "{name}" is invalid: metadata.name: Invalid value: "{name}": must not contain dots'
            return WriteResult(422, "Invalid", message=text)
        if obj["kind"] == "PersistentVolumeClaim":
            spec.setdefault("volumeMode", "Filesystem")
            if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
                where = "spec.resources[storage]: Required value"
                return WriteResult(422, "Invalid", message=f'PersistentVolumeClaim "{name}" is invalid: {where}')
        return None

    def _pod_key(self, index: str) -> Key:
        def has(pod: Object) -> bool:
            return (pod["metadata"].get("annotations") or {}).get(placement.INDEX) == index

        name = next(pod["metadata"]["name"] for pod in self.lab.pods() if has(pod))
        return ("Pod", self.space, name)

    def _happens(self, line: dict[str, Any]) -> None:
        if "annotate" in line:
            attempt = line[ATTEMPT]
            self.api.set_status(
                self._pod_key(line["annotate"].split()[-1]),
                lambda pod: pod["metadata"]["annotations"].update({ATTEMPT: attempt}),
            )
        elif "container restartCount" in line:
            count = line["container restartCount"]
            self.api.set_status(
                self._pod_key("0"), lambda pod: pod["status"]["containerStatuses"][0].update(restartCount=count)
            )
        elif line["node"] == "two more places":
            self.lab.places.append(Place("g1", {"pool": "gang"}, "gangonly", 2))
            self._apply_rules()
        else:
            place = next(one for one in self.lab.places if one.name == "zone-x")
            place.labels["zone"] = "w"
            self._node(place)
            self.api.set_status(self._pod_key("0"), lambda pod: pod["metadata"]["annotations"].update(touched="yes"))

    def _wait(self, before: dict[str, Object]) -> None:
        """Until the JobSets are as the recording had them at this moment; or as they stay, if they never are."""

        def reached() -> bool:
            left = any(("JobSet", self.space, name) in self.api.objects for name in self.gone)
            as_seen = all(self._is_as(name, seen) for name, seen in self.jobs_seen.items())
            return (
                not left
                and as_seen
                and all((self.statuses.get(name) or [{}])[-1] == one for name, one in before.items())
            )

        self.api.clock.run(PATIENCE, reached)

    def _is_as(self, name: str, seen: Mapping[str, Any]) -> bool:
        """Whether a Job has come as far: its conditions, its size."""
        job = self.api.objects.get(("Job", self.space, name))
        if job is None or "*" in name or seen.get("gone"):
            return True
        sizes = all(
            job["spec"].get(member) == seen[member] for member in ("parallelism", "completions") if member in seen
        )
        known = {f"{one['type']}={one['status']}" for one in job.get("status", {}).get("conditions") or ()}
        pods = job["spec"].get("parallelism") if "parallelism" in seen and "conditions" not in seen else None
        return (
            sizes
            and {one.split()[0] for one in seen.get("conditions") or ()} <= known
            and pods in (None, job.get("status", {}).get("ready"))
        )

    def _request(self, line: dict[str, Any]) -> None:
        if "create" in line:
            version, kind = KINDS[line["create"]]
            body = {"apiVersion": version, "kind": kind, **deepcopy(line["object"])}
            for owner in body["metadata"].get("ownerReferences") or ():  # uids are left out of the recording
                owner["uid"] = self.api.objects[owner["kind"], self.space, owner["name"]]["metadata"]["uid"]
            self.gone.discard(str(body["metadata"].get("name")))
            denied = self._webhook(body) if kind == "JobSet" else None
            code = (denied or self.api.create(body, self.space)).code
        else:
            sort, name, *rest = str(line.get("patch") or line.get("delete")).split("/")
            key = (KINDS[sort][1], self.space, name)
            if key not in self.api.objects:
                code = 404
            elif "patch" in line:
                content = CONTENT["json" if isinstance(line["with"], list) else "merge"]
                code = self.api.patch(key, line["with"], content, *rest).code
            else:
                code = self.api.delete(key, propagation=line.get("propagationPolicy") or "Background").code
        if code != line["code"]:
            self.codes.append(f"{json.dumps(line)[:200]}: {code}")

    # ---- the kubelet

    def _mode(self, name: str) -> str:
        return next(mode for pattern, mode in reversed(self.rules) if re.search(pattern, name))

    def _apply_rules(self) -> None:
        for key in list(self.api.objects):
            if key[0] == "Pod":
                self._drive(key)

    def _drive(self, key: Any) -> None:
        pod = self.api.objects.get(key)
        if pod is None or pod["status"]["phase"] in {"Succeeded", "Failed"}:
            if pod is not None and pod["metadata"].get("deletionTimestamp"):
                self.api.delete(key, grace=0)
            return
        if pod["metadata"].get("deletionTimestamp"):
            if self.held and self.held in key[2]:
                return
            kubelet.step(self.api, key, {"kubelet": "stop and remove", "exit": 143})
            return
        mode, _, code = self._mode(key[2]).partition(":")
        if not self.lab.bind(key):
            return
        steps = {"run": "run", "unready": "run, not ready", "ok": "succeed", "fail": "fail"}
        if mode in steps:
            kubelet.step(self.api, key, {"kubelet": steps[mode], "exit": int(code or 1)})

    def _changed(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.kind == "Pod" and change.old is None and change.new is not None:
            self.born.append(deepcopy(change.new))
        if change.kind == "Pod" and change.new is not None:
            key = ("Pod", self.space, name)
            self.api.clock.later(0.2, lambda: self._drive(key))
            for other in self.lab.pods():  # one that came or went may be what others waited for
                if not other["spec"].get("nodeName") and other["metadata"]["name"] != name:
                    again = ("Pod", self.space, other["metadata"]["name"])
                    self.api.clock.later(0.2, lambda again=again: self._drive(again))  # type: ignore[misc]
        if change.kind == "Job" and change.old is None and change.new is not None:
            labels = change.new["metadata"].get("labels") or {}
            self.made.setdefault(name, deepcopy(change.new))
            attempt = labels.get("jobset.sigs.k8s.io/restart-attempt", "")
            self.jobs.append((name, attempt, bool(change.new["spec"].get("suspend"))))
        if change.kind == "JobSet" and change.new is not None and change.new.get("status"):
            known = self.statuses.setdefault(name, [])
            status = written(change.new["status"])
            if not known or known[-1] != status:
                known.append(status)


def written(status: Object) -> Object:
    """As the recording writes it."""
    new = dict(status)
    if "conditions" in new:
        new["conditions"] = [
            f"{one['type']}={one['status']} {one['reason']}: {one['message']}" for one in new["conditions"]
        ]
    rows = new.get("replicatedJobsStatus") or []
    new["replicatedJobsStatus"] = [{k: v for k, v in row.items() if v or k not in _COUNTERS} for row in rows]
    return new


def conditions(statuses: list[Object]) -> list[list[str]]:
    """The different sets of conditions, in order."""
    found: list[list[str]] = []
    for status in statuses:
        seen = status.get("conditions") or []
        if not found or found[-1] != seen:
            found.append(seen)
    return found


def codes(player: Player) -> list[str]:
    return player.codes


def _recorded(player: Player) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for line in player.case["timeline"]:
        if "jobset" in line and isinstance(line.get("status"), dict):
            found.setdefault(line["jobset"], []).append(line["status"])
    return found


def _ours(player: Player, name: str) -> list[Object]:
    """A generated name is written with a star."""
    pattern = re.escape(name).replace(r"\*", ".*")
    return next((one for known, one in player.statuses.items() if re.fullmatch(pattern, known)), [{}])


def condition_sets(player: Player) -> list[str]:
    return [
        f"conditions of {name}:\n   ours   {conditions(_ours(player, name))}\n   theirs {conditions(statuses)}"
        for name, statuses in _recorded(player).items()
        if conditions(_ours(player, name)) != conditions(statuses)
    ]


def last_statuses(player: Player) -> list[str]:
    return [
        f"last status of {name}:\n   ours   {_ours(player, name)[-1]}\n   theirs {statuses[-1]}"
        for name, statuses in _recorded(player).items()
        if _ours(player, name)[-1] != statuses[-1]
    ]


def jobs(player: Player) -> list[str]:
    """Every Job that was made: of which attempt, suspended or not."""
    theirs = [
        (line["job"], str(line.get("restart-attempt") or ""), bool(line.get("suspend")))
        for line in player.case["timeline"]
        if "job" in line and line.get("created")
    ]
    ours = [(re.sub(r"-x\d{4}-", "-*-", name), attempt, held) for name, attempt, held in player.jobs]
    return [] if sorted(ours) == sorted(theirs) else [f"Jobs:\n   ours   {sorted(ours)}\n   theirs {sorted(theirs)}"]


def events(player: Player) -> list[str]:
    lines = [line for line in player.case["timeline"] if "event" in line and "on" not in line]
    theirs = {_EXAMPLES.sub("", line["event"]) for line in lines if "already exists" not in line["event"]}
    about = [one for one in player.driver.events if one.regarding["kind"] == "JobSet"]
    told = [one for one in about if "already exists" not in one.note]
    assert all(one.action == "Reconciling" for one in told)
    ours = {_EXAMPLES.sub("", f"{one.type} {one.reason}: {one.note}") for one in told}
    return [] if ours == theirs else [f"events: missing {sorted(theirs - ours)}, too many {sorted(ours - theirs)}"]


# ---- Jobs as they were made

_PREFIX = "jobset.sigs.k8s.io/"


def job_objects(player: Player) -> list[str]:
    """Labels, annotations and spec of every Job that the recording shows."""
    rows: dict[str, Object] = {}
    for row in player.case.get("jobs") or ():
        rows.setdefault(row["name"], row)  # the first attempt
    found = []
    for name, row in rows.items():
        whole = rows[row["like"]] if "like" in row else row
        ours = player.made.get(name)
        if ours is None or "labels" not in whole:
            continue
        found += [f"{name}: {text}" for text in _unlike(ours, whole, row.get("differs") or {})]
    return found


def _unlike(ours: Object, whole: Object, differs: Object) -> list[str]:
    labels = _merged(whole, differs, "labels")
    known = {key: "<uid>" if key.endswith("-uid") else value for key, value in _labels(ours).items()}
    wanted = {key: value for key, value in labels.items() if value is not None and not key.endswith("job-key")}
    found = []
    if any(known.get(key) != value for key, value in wanted.items()):
        found.append(f"labels {known}, not {labels}")
    notes = {key: value for key, value in _merged(whole, differs, "annotations").items() if key != "+"}
    own = ours["metadata"].get("annotations") or {}
    if any(own.get(key) != value for key, value in notes.items() if value is not None):
        found.append(f"annotations {own}, not {notes}")
    missing = [key for key in _labels(ours) if key.startswith(_PREFIX) and own.get(key) != _labels(ours)[key]]
    if missing:
        found.append(f"annotations lack {missing}")
    template_notes = (whole["spec"].get("template", {}).get("metadata") or {}).get("annotations") or {}
    known_notes = ours["spec"]["template"]["metadata"].get("annotations") or {}
    for key, value in template_notes.items():
        changed = differs.get(f"spec.template.metadata.annotations.{key}", value)
        if key != "+" and known_notes.get(key) != changed:
            found.append(f"pod template's annotation {key}: {known_notes.get(key)}, not {changed}")
    if not differs:
        template = whole["spec"].get("template", {})
        spec = {**whole["spec"], "template": {"spec": template.get("spec", {})}}
        spec.pop("selector", None)
        problem = _within(spec, ours["spec"], "spec")
        found += [problem] if problem else []
    return found


def _merged(whole: Object, differs: Object, member: str) -> Object:
    changed = {key.removeprefix(f"{member}."): value for key, value in differs.items() if key.startswith(f"{member}.")}
    return {**(whole.get(member) or {}), **changed, **(differs.get(member) or {})}


def _labels(obj: Object) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


# ---- pods as they were made

_RANDOM = re.compile(r"-[^-]*$")


def pods(player: Player) -> list[str]:
    """How often each pod was made, with which nodeSelector, affinity and label of its priority."""
    rows = player.case.get("pods") or ()
    whole = {row["name"]: row for row in reversed(rows) if "like" not in row}
    theirs: dict[str, list[str]] = {}
    for row in rows:
        seen = _flat(whole[row.get("like", row["name"])])
        for path, value in (row.get("differs") or {}).items():
            seen = {key: one for key, one in seen.items() if not f"{key}.".startswith(f"{path}.")}
            seen |= _spread({path: value})
        theirs.setdefault(_RANDOM.sub("", row["name"]), []).append(_told(seen))
    ours: dict[str, list[str]] = {}
    for pod in player.born:
        name = re.sub(r"^(.*)-x\d{4}-", r"\1-*-", _RANDOM.sub("", pod["metadata"]["name"]))
        ours.setdefault(name, []).append(_told(_flat({"labels": pod["metadata"]["labels"], "spec": pod["spec"]})))
    return [
        f"pods {name}:\n   ours   {ours.get(name)}\n   theirs {wanted}"
        for name, wanted in sorted(theirs.items())
        if set(ours.get(name, ())) != set(wanted)
    ]


def _flat(row: Object) -> dict[str, Any]:
    labels = {f"labels.{key}": value for key, value in (row.get("labels") or {}).items()}
    return labels | _spread({f"spec.{name}": row["spec"].get(name) for name in ("nodeSelector", "affinity")})


def _spread(values: Mapping[str, Any]) -> dict[str, Any]:
    """Members of objects by their whole path, as `differs` writes them."""
    found: dict[str, Any] = {}
    for path, value in values.items():
        if isinstance(value, dict):
            found |= _spread({f"{path}.{name}": one for name, one in value.items()}) or {path: {}}
        else:
            found[path] = value
    return found


def _told(seen: Mapping[str, Any]) -> str:
    wanted = ("spec.nodeSelector", "spec.affinity", f"labels.{placement.PRIORITY}")
    kept = {key: value for key, value in seen.items() if key.startswith(wanted) and value is not None}
    return json.dumps(kept, sort_keys=True)
