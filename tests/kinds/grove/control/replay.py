"""The recorded lives of PodCliqueSets, played on the simulated API with our Grove controllers.

The recorder's operator made no groups, so gang scheduling is off here. What is compared is what the recording shows at
its points of rest: objects, statuses and pods, with the stand-ins that its README explains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from tests.controllers.driver import Driver
from tests.controllers.simapi import CONTENT, Change, Key, SimApi

from kohort.api.kind import Context, Object
from kohort.api.result import WriteResult
from kohort.gang.compile import CompileContext
from kohort.gang.settings import SettingsByKind
from kohort.kinds.grove.api import constants, options
from kohort.kinds.grove.control.controller import (
    clustertopologybinding_controller,
    podclique_controller,
    podcliquescalinggroup_controller,
    podcliqueset_controller,
    podgang_controller,
)
from kohort.kinds.grove.settings import PodCliqueSetSettings

REST = 12.0  # seconds in which things come to rest
WAITER = "initc:v0.0.0-master+$Format:%H$"
KINDS = {
    "pcs": (constants.API_VERSION, "PodCliqueSet"),
    "pclq": (constants.API_VERSION, "PodClique"),
    "pcsg": (constants.API_VERSION, "PodCliqueScalingGroup"),
    "ctb": (constants.API_VERSION, "ClusterTopologyBinding"),
    "podgang": (constants.SCHEDULER_API_VERSION, "PodGang"),
    "pod": ("v1", "Pod"),
    "service": ("v1", "Service"),
    "serviceaccount": ("v1", "ServiceAccount"),
    "secret": ("v1", "Secret"),
    "role": ("rbac.authorization.k8s.io/v1", "Role"),
    "rolebinding": ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    "hpa": ("autoscaling/v2", "HorizontalPodAutoscaler"),
    "resourceclaim": ("resource.k8s.io/v1", "ResourceClaim"),
    "quota": ("v1", "ResourceQuota"),
}
# What a server fills in, and what the recording itself calls unsure: gated pods are counted on an old cache there, and
# errors are told in the words of Go.
_LEFT_OPEN = re.compile(
    r"scheduleGatedReplicas$|spec\.clusterIPs$|^spec\.type$|service-account\.uid$|^dataKeys$|serviceAccount$"
    r"|fieldRef\.apiVersion$|exactly\.(allocationMode|count)$|lastErrors\[0\]\.description$"
)
_MARK = re.compile(r"<[tg]\d+>")


@cache
def recording() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parents[3] / "recorded" / "grove.json").read_text())
    return found


def cases() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = recording()["cases"]
    return found


class Player:
    def __init__(self, name: str) -> None:
        self.case, self.space = cases()[name], name
        base = Context.of("1.37")
        chosen = set(base.options) - {options.GANG, options.TOPOLOGY}
        if self.case["set"] == "tas":
            chosen.add(options.TOPOLOGY)
        if self.case["set"] == "auth":
            chosen.add("GroveLpx")
        ctx = Context(base.release, base.gates, frozenset(chosen))
        self.api = SimApi(ctx, groups={"", constants.GROUP, constants.SCHEDULER_GROUP})
        self.driver = Driver(self.api)
        self.api.watchers.append(self._changed)
        settings = SettingsByKind(PodCliqueSetSettings(init_container_image=WAITER))
        full = CompileContext(ctx.release, ctx.gates, ctx.options, settings=settings)
        self.driver.start(
            podcliqueset_controller(full),
            podcliquescalinggroup_controller(full),
            podclique_controller(full),
            podgang_controller(full),
            clustertopologybinding_controller(),
        )
        self.rules: list[tuple[str, str]] = [(".", "run")]
        self.held: list[str] = []  # whose deletions the kubelet does not finish
        self.places: set[str] = {"t-lost"}  # values of node selectors that a node has
        self.slots = 2  # of example.net/slot
        self.order: dict[tuple[str, str], list[str]] = {}  # pods of a PodClique and index, as they came
        self.deleted: dict[str, int] = {}  # PodCliques
        self.marks: dict[str, str] = {}  # ours -> theirs, and back
        self.codes: list[str] = []
        self.unlike: list[str] = []

    # ---- playing

    def play(self) -> Player:
        for line in self.case["timeline"]:
            if not isinstance(line, dict):
                continue
            if "seen" in line:
                self._look(line["seen"])
            elif "note" in line:
                self._note(line["note"])
            elif "kubelet" in line:
                self._tell_kubelet(line["kubelet"])
            elif "code" in line:
                self._request(line)
        return self

    def _look(self, point: str) -> None:
        resolved = Seen(self.case["seen"]).at(point)
        for _ in range(80):
            if not any(self._compare(resolved, quiet=True)):
                break
            self.api.clock.run(0.5)
        self.unlike += [f"{point}: {text}" for text in self._compare(resolved)]

    def _note(self, text: str) -> None:
        self.api.clock.run(REST)
        if "get the gate" in text:
            self._gate(text.partition("gate ")[2].partition(" ")[0])
        elif text.startswith("a node"):
            self.places.add(self.space)
        elif text.startswith("the node loses"):
            self.places.clear()
            for key in self._pods():
                self.api.delete(key, grace=0)
        elif text == "all pods deleted":
            for key in self._pods():
                self.api.delete(key, grace=0)
        self._drive_all()
        self.api.clock.run(1)

    def _gate(self, name: str) -> None:
        """Somebody's webhook puts one more gate on pods."""
        create = self.api.create

        def gated(body: Object, namespace: str = "lab", *, strict: bool = False) -> WriteResult:
            if body["kind"] == "Pod":
                body = deepcopy(body)
                body["spec"]["schedulingGates"].append({"name": name})
            return create(body, namespace, strict=strict)

        self.api.create = gated  # type: ignore[method-assign]

    def _tell_kubelet(self, told: Any) -> None:
        self.api.clock.run(REST)
        if isinstance(told, dict):
            self.rules += list(told.items())
        elif "finishes no" in told:
            self.held.append(told.rpartition(" ")[2])
        else:
            self.held.clear()
        self._drive_all()

    def _request(self, line: dict[str, Any]) -> None:
        self.api.clock.run(REST)
        code = self._code(line)
        if code != line["code"]:
            self.codes.append(f"{json.dumps(line)[:160]}: {code}")

    def _code(self, line: dict[str, Any]) -> int:
        if "create" in line:
            version, kind = KINDS[line["create"].partition("/")[0]]
            body = _filled({"apiVersion": version, "kind": kind, **deepcopy(line["object"])})
            return self.api.create(body, self.space).code
        sort, name, *rest = str(line.get("patch") or line.get("delete") or line.get("scale") or line["get"]).split("/")
        kind = KINDS[sort][1]
        if sort == "pod":
            name = self._real(name)
        key = (kind, "" if sort == "ctb" else self.space, name)
        if key not in self.api.objects:
            return 404
        if "get" in line:
            return 200
        if "scale" in line or rest == ["scale"]:
            replicas = line["replicas"] if "scale" in line else line["with"]["spec"]["replicas"]
            return self.api.patch(key, {"spec": {"replicas": replicas}}, CONTENT["merge"]).code
        if "delete" in line:
            return self.api.delete(key, propagation=line.get("propagationPolicy") or "Background").code
        content = CONTENT["json" if isinstance(line["with"], list) else "merge"]
        return self.api.patch(key, line["with"], content).code

    # ---- kubelet and scheduler

    def _pods(self) -> list[Key]:
        return [key for key in self.api.objects if key[0] == "Pod"]

    def _drive_all(self) -> None:
        for key in self._pods():
            self._drive(key)

    def _changed(self, change: Change) -> None:
        obj = change.object
        if change.kind == "Pod" and change.new is not None:
            name = obj["metadata"]["name"]
            marks = obj["metadata"]["labels"]
            slot = (marks.get(constants.PODCLIQUE, ""), marks.get(constants.POD_INDEX, ""))
            if name not in self.order.setdefault(slot, []):
                self.order[slot].append(name)
            self.api.clock.later(0.2, lambda: self._drive(("Pod", self.space, name)))
        if change.kind == "PodClique" and change.new is None:
            self.deleted[obj["metadata"]["name"]] = self.deleted.get(obj["metadata"]["name"], 0) + 1

    def _drive(self, key: Key) -> None:
        pod = self.api.objects.get(key)
        if pod is None:
            return
        marks = pod["metadata"]["labels"]
        who = f"{marks.get(constants.PODCLIQUE)}/{marks.get(constants.POD_INDEX)}"
        if pod["metadata"].get("deletionTimestamp"):
            if not any(re.search(pattern, who) for pattern in self.held):
                self.api.delete(key, grace=0)
            return
        if not pod["spec"].get("nodeName"):
            if pod["spec"].get("schedulingGates") or not self._fits(pod):
                return
            self.api.set_status(key, lambda one: one["spec"].update(nodeName="n1"))
        mode = next(mode for pattern, mode in reversed(self.rules) if re.search(pattern, who))
        self.api.set_status(key, lambda one: _report(one, mode))

    def _fits(self, pod: Object) -> bool:
        if pod["spec"].get("schedulerName") != options.DEFAULT_SCHEDULER:
            return False
        chosen = (pod["spec"].get("nodeSelector") or {}).values()
        if any(value not in self.places for value in chosen):
            return False
        if pod["spec"].get("resourceClaims"):
            return False
        if not _slots(pod):
            return True
        taken = sum(
            _slots(one) for key, one in self.api.objects.items() if key[0] == "Pod" and one["spec"].get("nodeName")
        )
        return taken + _slots(pod) <= self.slots

    # ---- comparing

    def _real(self, stand_in: str) -> str:
        """`a-0-x-*1'`: the second pod of index 1."""
        clique, _, rest = stand_in.partition("-*")
        index = rest.rstrip("'")
        return self.order[clique, index][len(rest) - len(index)]

    def stand_in(self, name: str) -> str:
        for (clique, index), names in self.order.items():
            if name in names:
                return f"{clique}-*{index}" + "'" * names.index(name)
        return name

    def _compare(self, resolved: dict[str, dict[str, Any]], *, quiet: bool = False) -> Iterator[str]:
        for sort, rows in resolved.items():
            ours = {
                self.stand_in(name): obj for (kind, _, name), obj in self.api.objects.items() if kind == KINDS[sort][1]
            }
            theirs = {name: row for name, row in rows.items() if not (sort == "serviceaccount" and name == "default")}
            if set(ours) != set(theirs):
                yield f"{sort}: {sorted(set(ours) - set(theirs))} too many, {sorted(set(theirs) - set(ours))} missing"
            for name in sorted(set(ours) & set(theirs)):
                row = self._row(sort, ours[name])
                told = {key: value for key, value in theirs[name].items() if (sort, key) != ("hpa", "status")}
                yield from (f"{sort} {name} {text}" for text in self._differ(row, told, quiet))

    def _row(self, sort: str, obj: Object) -> dict[str, Any]:
        """An object as the recording writes it."""
        meta = obj["metadata"]
        row: dict[str, Any] = {
            "labels": meta.get("labels") or {},
            "annotations": meta.get("annotations") or {},
            "finalizers": meta.get("finalizers") or [],
            "owner": [
                f"{one['kind']}/{one['name']}"
                + (" controller" if one.get("controller") else "")
                + (" blocks" if one.get("blockOwnerDeletion") else "")
                for one in meta.get("ownerReferences") or ()
            ],
            "spec": deepcopy(obj.get("spec") or {}),
            "status": {} if sort == "pod" else _status(obj.get("status") or {}),
        }
        row |= {key: obj[key] for key in ("rules", "roleRef", "subjects", "type") if key in obj}
        if sort == "pcs":
            row["spec"] = {"replicas": obj["spec"].get("replicas", 0)}
        if sort == "pod":
            status = obj["status"]
            row |= {
                "node": bool(row["spec"].pop("nodeName", "")),
                "phase": status.get("phase"),
                "ready": any(
                    one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ())
                ),
                "status": {},
                "deleting": bool(meta.get("deletionTimestamp")),
            }
            row["spec"] = _pod_spec(row["spec"])
        chosen = (row["status"].get("updateProgress") or {}).get("readyPodsSelectedToUpdate")
        if chosen:
            row["status"] = deepcopy(row["status"])
            named = row["status"]["updateProgress"]["readyPodsSelectedToUpdate"]
            named["current"] = self.stand_in(chosen["current"])
            if "completed" in chosen:
                named["completed"] = [self.stand_in(name) for name in chosen["completed"]]
        if sort == "pclq":
            row["spec"]["podSpec"] = _pod_spec(row["spec"]["podSpec"])
        if sort == "podgang":
            for one in row["spec"]["podgroups"]:
                one["podReferences"] = sorted(self.stand_in(ref["name"]) for ref in one["podReferences"])
        return row

    def _differ(self, ours: Any, theirs: Any, quiet: bool, path: str = "") -> Iterator[str]:
        if _LEFT_OPEN.search(path):
            return
        if isinstance(theirs, str) and theirs in {"PLAIN", "FILLED"} and isinstance(ours, dict):
            theirs = _pod_spec(deepcopy(recording()["about"]["podSpecs"][theirs]))
        if isinstance(theirs, dict) and isinstance(ours, dict):
            for key in {**theirs, **(ours if path else {})}:
                new, old = ours.get(key), theirs.get(key)
                yield from self._differ(new, old, quiet, f"{path}.{key}" if path else key)
        elif isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
            for index, (new, old) in enumerate(zip(ours, theirs, strict=True)):
                yield from self._differ(new, old, quiet, f"{path}[{index}]")
        elif isinstance(theirs, str) and isinstance(ours, str) and _MARK.fullmatch(theirs):
            if not self._is_mark(ours, theirs, quiet):
                yield f"{path}: {ours}, not {theirs}"
        elif theirs in {"<time>", "<uid>"} if isinstance(theirs, str) else False:
            if not ours:
                yield f"{path}: none"
        elif (ours or None) != (theirs or None):
            yield f"{path}: {ours!r}, not {theirs!r}"

    def _is_mark(self, ours: str, theirs: str, quiet: bool) -> bool:
        """Hashes are called as they were seen first; the same one always the same."""
        known, back = self.marks.get(ours), self.marks.get(theirs)
        if known is None and back is None:
            if not quiet:
                self.marks |= {ours: theirs, theirs: ours}
            return True
        return back == ours or (known is not None and back is None)


def _slots(pod: Object) -> int:
    requests = (pod["spec"]["containers"][0].get("resources") or {}).get("requests") or {}
    return int(requests.get("example.net/slot") or 0)


def _filled(obj: Object) -> Object:
    """PLAIN and FILLED stand for pod specs."""
    for clique in ((obj.get("spec") or {}).get("template") or {}).get("cliques") or ():
        named = clique["spec"].get("podSpec")
        if isinstance(named, str):
            clique["spec"]["podSpec"] = deepcopy(recording()["about"]["podSpecs"][named])
    return obj


def _report(pod: Object, mode: str) -> None:
    """What a kubelet of the recorder's wrote."""
    status = pod["status"]
    if mode == "wait":
        return
    ready = mode == "run"
    last = {"lastState": {"terminated": {"exitCode": 1}}} if mode == "crash" else {}
    state = {"terminated": {"exitCode": 1}} if mode == "exit" else {"running": {}}
    status["containerStatuses"] = [
        {"name": one["name"], "ready": ready, "started": mode in {"run", "unready"}, "state": state, **last}
        for one in pod["spec"]["containers"]
    ]
    status["phase"] = "Running"
    others = [one for one in status.get("conditions") or () if one["type"] != "Ready"]
    status["conditions"] = [*others, {"type": "Ready", "status": str(ready)}]


def _status(status: Object) -> Object:
    new = dict(status)
    if "conditions" in new:
        new["conditions"] = [
            f"{one['type']}={one['status']} {one['reason']}: {one['message']}" for one in new["conditions"]
        ]
    return new


def _pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """Without what the recording leaves out, env as a map."""
    left_out = recording()["about"]["leftOutWhenEqual"]
    found = {key: value for key, value in spec.items() if left_out["pod spec"].get(key, object()) != value}
    for kind in ("containers", "initContainers"):
        if kind in found:
            found[kind] = [_container(one, left_out["container"]) for one in found[kind]]
    return found


def _container(container: dict[str, Any], left_out: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in container.items() if left_out.get(key, object()) != value}
    if isinstance(found.get("env"), list):
        found["env"] = {one["name"]: _env(one) for one in found["env"]}
    return found


def _env(entry: dict[str, Any]) -> str:
    if "valueFrom" in entry:
        return f"from {entry['valueFrom']['fieldRef']['fieldPath']}"
    return str(entry.get("value", ""))


def events(player: Player) -> list[str]:
    """Events that the recording has and we do not. It lacks some: busy sets are limited by its client."""
    theirs = set()
    for line in player.case.get("events") or ():
        kind, _, rest = re.sub(r" x\d+$", "", line).partition("/")
        if kind != "HorizontalPodAutoscaler" and "combined from similar" not in rest:
            theirs.add(f"{kind}/{rest.partition(': ')[0]}" if "Failed" in rest else f"{kind}/{rest}")
    ours = set()
    for told in player.driver.events:
        note = re.sub(r"[a-z0-9.-]+-x\d{4}", lambda found: player.stand_in(found[0]), told.note)
        about = f"{told.regarding['kind']}/{told.regarding['metadata']['name']} {told.type} {told.reason}"
        ours.add(about if "Failed" in told.reason else f"{about}: {note}")
    return [f"event {text}" for text in sorted(theirs - ours)]


class Seen:
    """What a recording shows, written out: `like`, `asIn` and `differs` resolved."""

    def __init__(self, seen: dict[str, Any]) -> None:
        self._seen = seen
        self._points: dict[str, dict[str, dict[str, Any]]] = {}

    def at(self, point: str) -> dict[str, dict[str, Any]]:
        if point not in self._points:
            self._points[point] = {sort: self._rows(sort, rows) for sort, rows in self._seen[point].items()}
        return self._points[point]

    def _rows(self, sort: str, rows: Any) -> dict[str, Any]:
        if isinstance(rows, str):
            return self.at(rows.removeprefix("as in "))[sort]
        found: dict[str, Any] = {}
        for name, row in rows.items():
            if "like" in row:
                base = found[row["like"]]
            elif "asIn" in row:
                base = self.at(row["asIn"])[sort][row.get("row", name)]
            else:
                found[name] = row
                continue
            found[name] = _changed(base, row.get("differs") or {})
        return found


def _changed(base: Any, differs: dict[str, Any]) -> Any:
    new = deepcopy(base)
    for path, value in differs.items():
        steps = re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", path)
        keys: list[Any] = [int(inner) if inner.isdigit() else inner or outer for inner, outer in steps]
        place = new
        for key in keys[:-1]:
            if isinstance(place, dict) and isinstance(place.get(key), str) and place[key] in {"PLAIN", "FILLED"}:
                place[key] = deepcopy(recording()["about"]["podSpecs"][place[key]])
            place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
        if value is None and isinstance(place, dict):
            place.pop(keys[-1], None)
        else:
            place[keys[-1]] = deepcopy(value)
    return new
