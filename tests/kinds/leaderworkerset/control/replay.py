"""The recorded lives of LeaderWorkerSets, played on the simulated API with our controller.

Upstream's StatefulSets are left out: what they made are pods, and those are compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from tests.controllers import kubelet
from tests.controllers.compare import _within
from tests.controllers.driver import Driver
from tests.controllers.simapi import CONTENT, Change, Key, SimApi

from kohort.api import patch as patches
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.gang.compile import CompileContext
from kohort.kinds.leaderworkerset.api import LEADER_WORKER_SET, constants
from kohort.kinds.leaderworkerset.control import volcano
from kohort.kinds.leaderworkerset.control.controller import leaderworkerset_controller

PATIENCE = 20.0
KINDS = {
    "lws": (constants.API_VERSION, constants.KIND),
    "pod": ("v1", "Pod"),
    "service": ("v1", "Service"),
    "sts": ("apps/v1", "StatefulSet"),
    "wpodgroup": ("scheduling.k8s.io/v1beta1", "PodGroup"),
}
NODES = {f"n-{rack}-{shelf}": {"rack": rack, "shelf": f"{rack}{shelf}"} for rack in "acb" for shelf in "12"}
NODES["tight-0"] = {"pool": "tight"}
ROOM = {"tight-0": 3}
REVISION_OF_STATEFULSET = "controller-revision-hash"


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parents[3] / "recorded" / "lws.json").read_text())
    return found


def cases() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = recorded()["cases"]
    return found


class Player:
    def __init__(self, name: str) -> None:
        self.case, self.space = cases()[name], name
        by_volcano = self.case["set"] != "default"
        ctx = Context.of("1.37", options=DEFAULT_OPTIONS | ({constants.VOLCANO} if by_volcano else set()))
        self.api = SimApi(ctx, groups={"", "scheduling.k8s.io", constants.GROUP})
        for node, labels in NODES.items():
            meta = {"name": node, "labels": labels, "uid": node}
            self.api.objects["Node", "", node] = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
        self.driver = Driver(self.api)
        self.api.watchers.append(self._changed)
        if self.case["set"] == "novolcano":
            self.api.unserved.add("PodGroup")  # whosoever's: here nobody else makes any
        full = CompileContext(ctx.release, ctx.gates, ctx.options)
        self.driver.start(leaderworkerset_controller(full, grouping=self.case["set"] != "novolcano"))
        self.rules: list[tuple[str, str]] = [(".", "run")]
        self.held = ""
        self.statuses: dict[str, list[Object]] = {}
        self.made: dict[tuple[str, str], list[Object]] = {}  # (kind, name) -> each as it was created
        self.problems: list[str] = []
        self.recreated: dict[str, list[str]] = {}
        self._uids: dict[str, str] = {}

    # ---- the requests

    def play(self) -> Player:
        before: dict[str, Object] = {}
        for line in self.case["timeline"]:
            if "conditions" in line and "lws" in line:
                before[line["lws"]] = {key: value for key, value in line.items() if key != "lws"}
            elif "up" in line:
                self._until(self._is_up)
                self._uids = self._pod_uids()
                before.clear()
            elif "seen" in line:
                before.clear()
                self._seen(line)
            elif "kubelet" in line:
                self._wait(before)
                self._kubelet(line["kubelet"])
            elif "code" in line:
                self._wait(before)
                self._request(line)
        self._wait(before)
        self.api.clock.run(5)
        return self

    def _until(self, holds: Any) -> bool:
        return self.api.clock.run(PATIENCE, holds)

    def _is_up(self) -> bool:
        every = [obj for key, obj in self.api.objects.items() if key[0] == constants.KIND]
        return bool(every) and all(_available(obj) for obj in every)

    def _wait(self, before: dict[str, Object]) -> None:
        self._until(lambda: all((self.statuses.get(name) or [{}])[-1] == told for name, told in before.items()))

    def _seen(self, line: dict[str, Any]) -> None:
        self.api.clock.run(5)  # what is looked at had come to rest
        pods = {name: re.sub(r" unbound| on \S+", "", text) for name, text in (line.get("pods") or {}).items()}
        wanted = {"status": line.get("status"), "pods": pods}
        if "status" not in line:
            del wanted["status"]

        def now() -> dict[str, Any]:
            found = next((obj for key, obj in self.api.objects.items() if key[0] == constants.KIND), None)
            status = None if found is None else written(found.get("status") or {})
            return {key: value for key, value in (("status", status), ("pods", self._pods())) if key in wanted}

        if not self._until(lambda: now() == wanted):
            self.problems.append(
                f"seen {line['seen']!r}:\n   ours   {json.dumps(now())}\n   theirs {json.dumps(wanted)}"
            )
        if any("deleting" in text for text in pods.values()):
            return  # in the middle of it
        uids = self._pod_uids()
        self.recreated[line["seen"]] = sorted(name for name in uids if self._uids.get(name, uids[name]) != uids[name])
        self._uids = uids

    def _pod_uids(self) -> dict[str, str]:
        return {key[2]: obj["metadata"]["uid"] for key, obj in self.api.objects.items() if key[0] == "Pod"}

    def _pods(self) -> dict[str, str]:
        return {key[2]: _line(obj) for key, obj in self.api.objects.items() if key[0] == "Pod"}

    def _request(self, line: dict[str, Any]) -> None:
        if "create" in line:
            version, kind = KINDS[line["create"]]
            body = {"apiVersion": version, "kind": kind, **deepcopy(line["object"])}
            own = kind == constants.KIND and _has_own_labels(body)
            code = self._force(body) if own else self.api.create(body, self.space).code
        else:
            code = self._change(line)
        if code != line["code"]:
            self.problems.append(f"{json.dumps(line)[:200]}: {code}")

    def _force(self, body: Object) -> int:
        """Labels of ours in templates are refused (docs/differences.md); upstream takes them, and overwrites them."""
        LEADER_WORKER_SET.default(body, self.api.ctx)
        body["metadata"] |= {"namespace": self.space, "uid": "forced", "generation": 1}
        self.api._store(body)
        return 201

    def _change(self, line: dict[str, Any]) -> int:
        sort, name, *rest = str(line.get("patch") or line.get("delete")).split("/")
        key = (KINDS[sort][1], self.space, name)
        if key not in self.api.objects:
            return 404
        if "delete" in line:
            return self.api.delete(key, propagation=line.get("propagationPolicy") or "Background").code
        body = line["with"]
        if rest == ["scale"] and body["spec"]["replicas"] is None:
            body = {"spec": {"replicas": 0}}
        return self.api.patch(key, body, CONTENT["merge"]).code

    # ---- kubelet and scheduler

    def _kubelet(self, told: dict[str, Any]) -> None:
        if "lets deleted pods go" in told:
            self.held = "" if told["lets deleted pods go"] else str(told["but not"])
        for name, what in told.items():
            key = ("Pod", self.space, name)
            if what == "phase Failed":
                kubelet.step(self.api, key, {"kubelet": "fail", "exit": 1})
            elif isinstance(what, str) and "restarted" in what:
                self.api.clock.run(1.5)  # moments are whole seconds
                self._restart(key, init=what.startswith("init"))
            elif what in ("run", "unready", "wait"):
                self.rules.append((name, what))
        for key in [key for key in self.api.objects if key[0] == "Pod"]:
            self._drive(key)

    def _restart(self, key: Key, *, init: bool) -> None:
        if init:
            status = {"name": "prep", "restartCount": 1, "state": {"waiting": {}}}
            self.api.set_status(key, lambda pod: pod["status"].update(initContainerStatuses=[status]))
        else:
            kubelet.step(self.api, key, {"kubelet": "run", "restarts": 1})

    def _mode(self, name: str) -> str:
        return next(mode for pattern, mode in reversed(self.rules) if re.search(pattern, name))

    def _drive(self, key: Key) -> None:
        pod = self.api.objects.get(key)
        if pod is None:
            return
        if pod["metadata"].get("deletionTimestamp"):
            if not (self.held and re.search(self.held, key[2])) and pod["metadata"].get("deletionGracePeriodSeconds"):
                kubelet.step(self.api, key, {"kubelet": "stop and remove", "exit": 143})
            return
        if pod["status"]["phase"] == "Failed" or not (pod["spec"].get("nodeName") or self._bind(key, pod)):
            return
        mode = self._mode(key[2])
        ready = any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions") or ())
        if mode == "run" and not ready:
            kubelet.step(self.api, key, {"kubelet": "run"})
        elif mode == "unready" and (ready or pod["status"]["phase"] == "Pending"):
            kubelet.step(self.api, key, {"kubelet": "run, not ready"})

    def _bind(self, key: Key, pod: Object) -> bool:
        here = [obj["spec"].get("nodeName") for found, obj in self.api.objects.items() if found[0] == "Pod"]
        free = {name: labels for name, labels in NODES.items() if here.count(name) < ROOM.get(name, 100)}
        node = next((name for name, labels in free.items() if self._fits(pod, labels)), None)
        if node is None:
            self.api.clock.later(0.5, lambda: self._drive(key))
            return False
        self.api.set_status(key, lambda found: found["spec"].update(nodeName=node))
        return True

    def _fits(self, pod: Object, labels: dict[str, str]) -> bool:
        spec = pod["spec"]
        if any("persistentVolumeClaim" in one for one in spec.get("volumes") or ()):
            return False  # no volume was ever provisioned
        named = (spec.get("schedulingGroup") or {}).get("podGroupName")
        if named is not None and not self._is_whole(named):
            return False
        if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
            return False
        return all(self._alone(pod, labels, term) for term in _terms(spec))

    def _is_whole(self, group: str) -> bool:
        found = self.api.objects.get(("PodGroup", self.space, group))
        mates = [
            obj
            for key, obj in self.api.objects.items()
            if key[0] == "Pod" and (obj["spec"].get("schedulingGroup") or {}).get("podGroupName") == group
        ]
        return found is not None and len(mates) >= int(found["spec"]["schedulingPolicy"]["gang"]["minCount"])

    def _alone(self, pod: Object, labels: dict[str, str], term: Object) -> bool:
        """Nobody with another value of the key in this domain, and own company, if any, here."""
        domain, key = term["topologyKey"], term["labelSelector"]["matchExpressions"][0]["key"]
        own = pod["metadata"]["labels"][key]
        if domain not in labels:
            return False
        pods = [obj for found, obj in self.api.objects.items() if found[0] == "Pod" and obj["spec"].get("nodeName")]
        for other in pods:
            value = other["metadata"]["labels"].get(key)
            here = NODES[other["spec"]["nodeName"]].get(domain) == labels[domain]
            if value is not None and (here if value != own else not here):
                return False
        return True

    def _changed(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.kind == "Pod" and change.new is not None:
            key = ("Pod", self.space, name)
            self.api.clock.later(0.2, lambda: self._drive(key))
        if change.old is None and change.new is not None:
            self.made.setdefault((change.kind, name), []).append(deepcopy(change.new))
        if change.kind == constants.KIND and change.new is not None and change.new.get("status"):
            known, status = self.statuses.setdefault(name, []), written(change.new["status"])
            if not known or known[-1] != status:
                known.append(status)


def _available(lws: Object) -> bool:
    status = lws.get("status") or {}
    told = {one["type"]: one for one in status.get("conditions") or ()}.get("Available") or {}
    return told.get("status") == "True" and told.get("observedGeneration") == lws["metadata"].get("generation")


def _has_own_labels(lws: Object) -> bool:
    template = (lws["spec"]["leaderWorkerTemplate"].get("workerTemplate") or {}).get("metadata") or {}
    return any(key.startswith(constants.PREFIX) for key in template.get("labels") or ())


def _terms(spec: Object) -> Iterator[Object]:
    found = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    yield from found.get("requiredDuringSchedulingIgnoredDuringExecution") or ()


def _line(pod: Object) -> str:
    status, meta = pod["status"], pod["metadata"]
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())
    parts = [status["phase"], "ready" if ready else "", f"rev {meta['labels'].get(constants.REVISION)}"]
    parts.append("deleting" if meta.get("deletionTimestamp") else "")
    parts += [f"finalizers {one}" for one in meta.get("finalizers") or ()]
    return " ".join(part for part in parts if part)


def written(status: Object) -> Object:
    new = {key: value for key, value in status.items() if key not in ("hpaPodSelector", "conditions") and value}
    new["conditions"] = [f"{one['type']}={one['status']}" for one in status.get("conditions") or ()]
    return new


# ---- what is compared


def problems(player: Player) -> list[str]:
    return player.problems


def _told(player: Player) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for line in player.case["timeline"]:
        if "lws" in line and "conditions" in line:
            found.setdefault(line["lws"], []).append({key: value for key, value in line.items() if key != "lws"})
    return found


def conditions(player: Player) -> list[str]:
    """Every set of conditions that they had is one that we had."""
    found = []
    for name, theirs in _told(player).items():
        ours = [one["conditions"] for one in player.statuses.get(name, [])]
        missing = [one["conditions"] for one in theirs if one["conditions"] not in ours]
        if missing:
            found.append(f"conditions of {name}: never {missing}, but {ours}")
    return found


def last(player: Player) -> list[str]:
    found = []
    for name, theirs in _told(player).items():
        ours = (player.statuses.get(name) or [{}])[-1]
        told = {key: value for key, value in theirs[-1].items() if key not in ("deleting", "finalizers")}
        if ours != told:
            found.append(f"last status of {name}:\n   ours   {ours}\n   theirs {told}")
    return found


_TOLD = {"pod": "Pod", "service": "Service", "revision": "ControllerRevision", "podgroup": volcano.ALIAS}


def created(player: Player) -> list[str]:
    """Pods, by name and revision; Services and ControllerRevisions by name."""
    theirs: set[tuple[str, str, Any]] = set()
    ours: set[tuple[str, str, Any]] = set()
    for line in player.case["timeline"]:
        if "created" in line:
            theirs |= {(kind, line[kind], line["created"]) for kind in _TOLD if kind in line}
    for (kind, name), every in player.made.items():
        for obj in every:
            if kind == "Pod":
                ours.add(("pod", name, f"rev {obj['metadata']['labels'].get(constants.REVISION)}"))
            elif kind in _TOLD.values():
                ours.add((next(word for word, one in _TOLD.items() if one == kind), name, True))
    if any("up" in line for line in player.case["timeline"]):  # of the start, nothing is told
        return [f"not made: {sorted(theirs - ours, key=str)}"] if theirs - ours else []
    return [] if ours == theirs else [f"made:\n   ours   {sorted(ours, key=str)}\n   theirs {sorted(theirs, key=str)}"]


def _plain(text: str) -> str:
    """Without the counts, which depend on the moment; a rollout's steps may be joined."""
    text = re.sub(r"with \d+ groups ready", "with n groups ready", text)
    text = re.sub(r"Updating replicas? .*", "Updating replicas", text)
    text = re.sub(r"deleting surge replicas? .*", "deleting surge replicas", text)
    return re.sub(r"(Created worker) pods", r"\1 statefulset", text)


def events(player: Player) -> list[str]:
    lines = [line for line in player.case["timeline"] if "event" in line and "on" not in line]
    theirs = {_plain(line["event"]) for line in lines if "Created leader statefulset" not in line["event"]}
    about = [one for one in player.driver.events if one.regarding["kind"] == constants.KIND]
    ours = {_plain(f"{one.type} {one.reason}: {one.note}") for one in about if "Created leader" not in one.note}
    found = [f"events missing: {sorted(theirs - ours)}"] if theirs - ours else []
    if not any("up" in line for line in player.case["timeline"]) and ours - theirs:
        found.append(f"events too many: {sorted(ours - theirs)}")
    return found


def facts(player: Player) -> list[str]:
    """Which pods were new at a look."""
    found = []
    for name, theirs in (player.case.get("facts") or {}).items():
        label = name.removeprefix("recreated: ")
        if name.startswith("recreated: ") and label in player.recreated and player.recreated[label] != theirs:
            found.append(f"{name}: {player.recreated[label]}, not {theirs}")
    return found


# ---- objects as they were made

_LISTS = {"pods": "Pod", "services": "Service", "revisions": "ControllerRevision", "pvcs": "PersistentVolumeClaim"}
_LISTS["podgroups"] = volcano.ALIAS


def objects(player: Player) -> list[str]:
    found = []
    for member, kind in _LISTS.items():
        rows: dict[str, list[Object]] = {}
        for row in player.case.get(member) or ():
            # A name may have been there several times; which of them a row is like is not told.
            wholes = [patches.merge(deepcopy(one), row["differs"]) for one in rows.get(row.get("like", ""), ())]
            rows.setdefault(row["name"], []).extend(wholes or [row])
            told = [_unlike(player, kind, row["name"], whole) for whole in wholes or [row]]
            found += [] if [] in told else told[-1]
    return found


def _unlike(player: Player, kind: str, name: str, theirs: Object) -> list[str]:
    made = player.made.get((kind, name)) or []
    if not made:
        return [f"{kind} {name} was never made"]
    told = [text for obj in made if (text := _difference(kind, obj, theirs)) is not None]
    return [] if len(told) < len(made) else [f"{kind} {name}: {told[-1]}"]


def _difference(kind: str, ours: Object, theirs: Object) -> str | None:
    meta = ours["metadata"]
    for member in ("labels", "annotations"):
        wanted = {key: value for key, value in (theirs.get(member) or {}).items() if key != REVISION_OF_STATEFULSET}
        known = {key: value for key, value in (meta.get(member) or {}).items() if "kohort.dev" not in key}
        if known != wanted:
            return f"{member} {known}, not {wanted}"
    if kind in ("Service", "ControllerRevision", volcano.ALIAS) and _owners(meta) != (theirs.get("owners") or []):
        return f"owners {_owners(meta)}, not {theirs.get('owners')}"
    if kind == "ControllerRevision":
        return None if ours["data"] == theirs["data"] and ours["revision"] == theirs["revision"] else f"{ours['data']}"
    spec = theirs.get("spec") or {}
    if kind in ("Service", "PersistentVolumeClaim", volcano.ALIAS):  # defaults of theirs are a server's
        return (
            _within(ours["spec"], {**recorded()["about"]["leftOutWhenEqual"]["service spec"], **spec}, "spec") or None
        )
    tolerations = [one for one in ours["spec"].get("tolerations") or () if one.get("tolerationSeconds") != 300]
    spec = {key: value for key, value in spec.items() if key not in ("nodeName",)}
    if "tolerations" in spec:
        spec["tolerations"] = [one for one in spec["tolerations"] if one.get("tolerationSeconds") != 300]
    return _within(spec, {**ours["spec"], "tolerations": tolerations}, "spec") or None


def _owners(meta: Object) -> list[str]:
    return [
        f"{one['kind']} {one['name']} (controller, blockOwnerDeletion)" for one in meta.get("ownerReferences") or ()
    ]
