"""The recorded Job cases played on the simulated API: the same requests and kubelet steps, at moments that correspond.

The recording says in which order things were stored. A request is sent when everything has happened that the recording
has before it: as many statuses of each Job, as many pods, as many objects gone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.controllers import kubelet
from tests.controllers.driver import Driver
from tests.controllers.simapi import CONTENT, Change, Key, SimApi
from tests.kinds.batch.api import replay as recorded

from kohort.api.kind import Context, Object
from kohort.api.releases import Gate
from kohort.controllers.controller import Controller
from kohort.gang.compile import CompileContext
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.control.cronjob.controller import cronjob_controller
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.batch.control.ttl import ttl_controller
from kohort.kinds.batch.settings import JobSettings

NS = "lab"
PATIENCE = 120.0  # virtual seconds that a request may wait for what the recording has before it
PLURALS = {
    "jobs": "Job",
    "pods": "Pod",
    "workloads": "Workload",
    "podgroups": "PodGroup",
    "cronjobs": "CronJob",
    "configmaps": "ConfigMap",
    "resourcequotas": "ResourceQuota",
}


def compile_context(ctx: Context, *, parity: bool = True, **settings: Any) -> CompileContext:
    return CompileContext(
        ctx.release, ctx.gates, ctx.options, settings=SettingsByKind(JobSettings(parity=parity, **settings))
    )


def without(ctx: Context, *gates: Gate) -> Context:
    return Context(ctx.release, ctx.gates - set(gates), ctx.options)


def controllers(ctx: Context) -> list[Controller]:
    return [job_controller(compile_context(ctx)), cronjob_controller(), ttl_controller()]


@dataclass
class Player:
    minor: str
    name: str
    statuses: dict[str, list[Object]] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    gone: Counter[str] = field(default_factory=Counter)
    going: Counter[str] = field(default_factory=Counter)
    let_go: int = 0  # pods that lost the finalizer and stayed
    history: list[dict[Key, Object]] = field(default_factory=list)
    codes: list[tuple[str, int, int]] = field(default_factory=list)  # request, theirs, ours
    late: list[str] = field(default_factory=list)  # requests whose time never came
    uids: dict[str, str] = field(default_factory=dict)
    last: int = 0  # the state right after the last request

    def __post_init__(self) -> None:
        self.case = recorded.cases(self.minor)[self.name]
        self.ctx = recorded.gates(self.minor, self.name)
        stand_in = recorded.Cluster(self.ctx, self.case)
        self.api = SimApi(self.ctx, job_uids=stand_in.uid)
        self.api.watchers.append(self._note)
        self.driver = Driver(self.api)
        run = re.search(r"\+Job \S+-(299\d{5})'", str(self.case.get("timeline")))
        if run:  # the run of a CronJob is called after its minute
            self.api.clock.begin = datetime.fromtimestamp(int(run[1]) * 60 - 20, UTC)
        self.timeline = [str(line) for line in self.case.get("timeline", [])]
        self.place = 0

    # ---- playing

    def play(self) -> Player:
        if self.name != "T-21":
            self.driver.start(*controllers(self.ctx))
        requests = list(self.case.get("requests", []))
        if (self.minor, self.name) == ("1.37", "T-45"):  # T-79 was played in the middle of it
            middle = requests.index({"note": "gates on"})
            requests[middle:middle] = recorded.cases("1.37")["T-79"]["requests"]
        for number, request in enumerate(requests):
            place = self._place_of(request)
            self._wait(self._place_before(requests, number) if place is None else place)
            self._do(request)
            self.place = self.place if place is None else place + 1
            self.last = len(self.history) - 1
        self._wait(len(self.timeline))
        self.api.clock.run(2.5)
        return self

    def _wait(self, place: int) -> None:
        before = self.timeline[:place]
        if "with kube-scheduler" in self.case["title"]:
            self._schedule(before)
        statuses = Counter(line.split()[1] for line in before if re.match(r"~Job \S+ status#", line))
        made = Counter(line.split()[0][1:] for line in before if line.startswith("+"))
        gone = Counter(line.split()[0][1:] for line in before if line.startswith("-"))
        going = Counter(line.split()[0][1:] for line in before if re.match(r"~\w+ \S+ (?!status).*deleting", line))
        let_go = sum(1 for line in before if line.startswith("~Pod") and "finalizers []" in line)

        def reached() -> bool:
            enough = all(len(self.statuses.get(job, [])) > count for job, count in statuses.items())
            happened = self.made >= made and self.gone >= gone and self.going >= going and self.let_go >= let_go
            return enough and happened

        if not self.api.clock.run(PATIENCE, reached):
            self.late.append(f"all before line {place}: {self.timeline[place - 1 : place]}")

    def _schedule(self, lines: list[str]) -> None:
        """Bind the pods that the recording's scheduler bound."""
        for line in lines:
            if line.startswith("~Pod ") and line.endswith(" bound"):
                base = _base(line.split()[1])
                self.api.clock.run(PATIENCE, lambda base=base: bool(self._made_pods(base)))  # type: ignore[misc]
                key = ("Pod", NS, self.ours(line.split()[1]))
                if key in self.api.objects and not self.api.objects[key]["spec"].get("nodeName"):
                    kubelet.step(self.api, key, {"kubelet": "bind"})

    def _place_before(self, requests: list[dict[str, Any]], number: int) -> int:
        """Of a request that left no line: what stands before the next one's line had happened.

        Not if the request makes the controller go on: then that is its doing.
        """
        if not self.driver.on or ("do" in requests[number] and requests[number]["code"] < 400):
            return self.place
        later = (self._place_of(one) for one in requests[number + 1 :])
        return next((one for one in later if one is not None), self.place)

    def _place_of(self, request: dict[str, Any]) -> int | None:
        """The number of recorded lines before the one that the request caused, if there is one."""
        pattern = _line_of(request)
        if pattern is None:
            return None
        found = [number for number in range(self.place, len(self.timeline)) if re.match(pattern, self.timeline[number])]
        # A CronJob's changes are not told apart; in the recordings the user's is the last.
        return found[-1 if "CronJob" in pattern else 0] if found else None

    def _do(self, request: dict[str, Any]) -> None:
        if "kubelet" in request:
            kubelet.step(self.api, ("Pod", NS, self.ours(request["pod"])), request)
        elif "do" in request:
            verb, _, target = request["do"].partition(" ")
            path, _, query = target.partition("?")
            body = self._filled(request.get("body"))
            ours = self._request(verb, path, query, body)
            self.codes.append((request["do"], request["code"], ours))
        else:
            self._note_step(request["note"])

    def _request(self, verb: str, path: str, query: str, body: Any) -> int:
        plural, _, rest = path.partition("/")
        name, _, subresource = rest.partition("/")
        kind = PLURALS.get(plural, (body or {}).get("kind", plural))
        key = (kind, NS, self.ours(name))
        if verb == "POST":
            if kind == "Pod" and self.api.every("Job") and not self.codes[-1][0].startswith("POST pods"):
                self.api.clock.run(1.1)  # in a later second than the Job's own
            verdict = self.api.create(body, NS, strict="Strict" in query)
            if verdict.object is not None:
                meta = verdict.object["metadata"]
                for label in (kind.upper(), meta["name"].upper()):
                    self.uids[f"{label}_UID"] = meta["uid"]
            return verdict.code
        if key not in self.api.objects:
            return 404
        if verb == "DELETE":
            policy = query.removeprefix("propagationPolicy=") or None
            return self.api.delete(key, propagation=policy).code
        return self.api.patch(key, body, CONTENT["merge"], subresource).code

    def _filled(self, body: Any) -> Any:
        text = json.dumps(body)
        for label, uid in {**(self.case.get("uids") or {}), **self.uids}.items():
            text = text.replace(f'"{label}"', f'"{uid}"')
        self.api.clock.run(1.0 if "<time>" in text else 0.0)  # each has its own
        return json.loads(text.replace("<time>", self.api.clock.now.strftime("%Y-%m-%dT%H:%M:%SZ")))

    def _note_step(self, note: str) -> None:
        """What was done to the cluster."""
        match note:
            case "the controller is not running" | "the controller is killed (9)":
                self.driver.stop()
            case "API server and controller: gate off; the Job is that of T-45":
                self.api.ctx = without(self.ctx, Gate.JOB)
            case "the controller is started" | "controller: gate on" | "gates on":
                self.api.ctx = self.ctx
                self.driver.start(*controllers(self.ctx))
            case "controller: gate off":
                self.driver.start(*controllers(without(self.ctx, Gate.JOB)))
            case "the controller is started, creates work again":
                self.api.refusals.clear()
                self.driver.start(*controllers(self.ctx))
            case "the next three creates of a Workload are answered with 500":
                self.api.refusals.append(("create", "Workload", 3))
            case "the next create of a PodGroup is answered with 500":
                self.api.refusals.append(("create", "PodGroup", 1))
            case "creates of a PodGroup are answered with 500":
                self.api.refusals.append(("create", "PodGroup", 10**6))
            case "the foreign finalizer is removed":
                self.api.patch(("Job", NS, "held"), {"metadata": {"finalizers": None}}, CONTENT["merge"])
            case "the template's minCount is set to 5":
                key = ("Workload", NS, "fleet-wl")
                spec = deepcopy(self.api.objects[key]["spec"])
                spec["podGroupTemplates"][1]["schedulingPolicy"]["gang"]["minCount"] = 5
                self.api.patch(key, {"spec": spec}, CONTENT["merge"])
            case "API server and controller: gate off":
                self.driver.start(*controllers(self.ctx))  # the context of the case is without it
            case _ if note.startswith("API server: Workload API switched off"):
                self.api.unserved = {"Workload", "PodGroup"}
                self.driver.start(*controllers(self.ctx))
            case _ if note.startswith("API server: Topology"):
                pass  # the context of the case says so
            case _ if note.startswith("POST jobs, as "):
                self._store_job(note)
            case _:
                raise AssertionError(f"unknown note: {note}")

    def _store_job(self, note: str) -> None:
        spec, _ = json.JSONDecoder().raw_decode(note.removeprefix("POST jobs, as "))
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "trainer"}, "spec": spec}
        assert self.api.create(body, NS).code == 201

    # ---- watching

    def _note(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.kind == "Job" and change.new is not None:
            known = self.statuses.setdefault(name, [])
            status = deepcopy(change.new.get("status") or {})
            if not known or known[-1] != status or change.old is None:
                known.append(status)
        if change.kind == "Pod" and change.old and change.new:
            before, after = (one["metadata"].get("finalizers") for one in (change.old, change.new))
            self.let_go += bool(before and not after)
        if (change.new or {}).get("metadata", {}).get("deletionTimestamp") and not _is_going(change.old):
            self.going[change.kind] += 1
        if change.old is None:
            self.made[change.kind] += 1
        if change.new is None:
            self.gone[change.kind] += 1
        if len(self.api.objects) < 60:
            self.history.append(dict(self.api.objects))

    # ---- names: the n-th pod of a base is the n-th pod of that base

    def recorded_pods(self) -> list[str]:
        return [line.split()[1] for line in self.timeline if line.startswith("+Pod ")]

    def ours(self, name: str) -> str:
        if "{p" not in name:
            return name
        base = _base(name)
        same = [one for one in self.recorded_pods() if _base(one) == base]
        return self._made_pods(base)[same.index(name)]

    def _made_pods(self, base: str) -> list[str]:
        return [key[2] for key in self.api.order if key[2][:-5] == base]

    def theirs(self) -> dict[str, str]:
        """Our pod names -> theirs."""
        found: dict[str, str] = {}
        counts: Counter[str] = Counter()
        for name in self.recorded_pods():
            if "{p" not in name:
                found[name] = name
                continue
            base = _base(name)
            made = self._made_pods(base)
            if counts[base] < len(made):
                found[made[counts[base]]] = name
            counts[base] += 1
        return found

    def pod_uids(self) -> dict[str, str]:
        """Our uids -> POD3_UID: the third pod that was made there."""
        numbers = {name: number for number, name in enumerate(self.recorded_pods(), 1)}
        names = self.theirs()
        known = {obj["metadata"]["name"]: obj["metadata"]["uid"] for look in self.history for obj in look.values()}
        return {uid: f"POD{numbers[names[name]]}_UID" for name, uid in known.items() if name in names}


def _is_going(obj: Object | None) -> bool:
    return bool((obj or {}).get("metadata", {}).get("deletionTimestamp"))


def _base(name: str) -> str:
    return name.split("{p", maxsplit=1)[0]


def _line_of(request: dict[str, Any]) -> str | None:  # noqa: PLR0911 - one for each sort of request
    """A pattern of the line that the request left in the recording."""
    if "kubelet" in request:
        running = r"(Running|\(other\))"
        words = {"bind": "bound", "run": running, "run, not ready": running, "succeed": "Succeeded"}
        word = words.get(request["kubelet"], "Failed")
        return rf"~Pod {re.escape(request['pod'])} .*{word}"
    if "do" not in request:
        notes = {
            "the foreign finalizer is removed": r"-Job held$",
            "the template's minCount is set to 5": r"~Workload fleet-wl spec",
        }
        return notes.get(request["note"])
    if request["code"] >= 400:
        return None
    verb, _, target = request["do"].partition(" ")
    plural, _, rest = target.partition("?")[0].partition("/")
    name = rest.partition("/")[0] or ((request.get("body") or {}).get("metadata") or {}).get("name", "")
    kind = PLURALS.get(plural)
    if kind is None:
        return None
    named = rf"{kind} {re.escape(name)}"
    if verb == "POST":
        return rf"\+{named}( |$)"
    if verb == "DELETE":
        return rf"(-{named}$|~{named} .*deleting)"
    if rest.endswith("/status"):
        return rf"~{named} status"
    return rf"~{named}$" if kind == "CronJob" else rf"~{named} (\(spec|labels|spec)"
