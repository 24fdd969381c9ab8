"""Stories of Jobs played on a server, whichever it is, and what is there whenever nothing more happens.

A story is data: objects to create, requests, what a kubelet says of pods. Every story has a namespace of its own, so
that hundreds are played at once. After each step its namespace comes to rest: nothing has changed for longer than the
controller gathers changes, a canary Job has been looked at since, and still nothing has changed.
"""

import asyncio
import copy
import itertools
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kohort.controllers.registry import make, probe
from kohort.controllers.runtime import Runtime
from kohort.gang.compile import CompileContext
from kohort.gang.compile.job_names import pod_group_name, template_name, workload_name
from kohort.kube.client import Client
from kohort.kube.clock import REAL, Clock, LoopClock
from kohort.kube.errors import ApiError
from kohort.kube.informer import Informer
from kohort.server import ages
from kohort.server.collect import PodEnder
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.testing.bed.versions import MINORS

Object = dict[str, Any]
Uids = dict[tuple[str, str], list[str]]  # namespace and name of a Job -> its uids, in order

CALM = 1.6  # seconds: a Job controller gathers changes for one
COLLECTED = 22.0  # seconds: the collector of pods that nobody runs comes by every 20
LONGEST = 20.0  # deadlines and ttls up to this are waited for
PATIENCE = 180.0
NODE = "n1"
MANAGER = "kube-controller-manager"
_MERGE = "application/merge-patch+json"


@dataclass(frozen=True, eq=False)
class Story:
    """`before`: steps that are done while no controller runs."""

    name: str
    steps: list[Object]
    before: list[Object] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"  (no controller) {json.dumps(one)}" for one in self.before]
        return "\n".join([self.name, *lines, *(f"  {json.dumps(one)}" for one in self.steps)])


@dataclass
class Told:
    """What became of a story: after each step the answer and everything that is there."""

    looks: list[Object] = field(default_factory=list)
    problem: str = ""


class Side:
    """A server with a Job controller, seen through a client."""

    def __init__(self, client: Client, minor: str, clock: Clock = REAL) -> None:
        self.client, self.minor, self.clock = client, minor, clock
        self.changed: dict[str, float] = defaultdict(float)
        self.pods: dict[str, list[Object]] = defaultdict(list)  # all there ever were, in the order they were seen
        self.uids: Uids = defaultdict(list)
        self.informers: dict[str, Informer[Object]] = {}
        self.heard: set[str] = set()
        self.canary: asyncio.Task[None] | None = None
        self._round = asyncio.Condition()

    @asynccontextmanager
    async def watched(self) -> AsyncIterator["Side"]:
        version = MINORS[self.minor].workload_api
        kinds = {"Job": "batch/v1", "Pod": "v1", "Workload": version, "PodGroup": version, "Event": "v1"}
        async with AsyncExitStack() as stack:
            for kind, api_version in kinds.items():
                resource = self.client.kind(api_version, kind)
                spaces = {"ns": lambda obj: [obj["metadata"].get("namespace", "")]}
                informer: Informer[Object] = Informer(resource, indexers=spaces, clock=self.clock)
                informer.handle(added=self._added, deleted=self._seen)
                if kind != "Event":  # one that is told again is nothing new
                    informer.handle(updated=lambda _, new: self._seen(new))
                self.informers[kind] = informer
                await stack.enter_async_context(informer)
            for informer in self.informers.values():
                await informer.ready()
            yield self
            if self.canary is not None:
                self.canary.cancel()

    def touch(self, space: str) -> None:
        self.changed[space] = self.clock.monotonic()

    def _seen(self, obj: Object) -> None:
        self.touch(obj["metadata"].get("namespace", ""))

    def _added(self, obj: Object) -> None:
        self._seen(obj)
        space = obj["metadata"].get("namespace", "")
        if obj["kind"] == "Event" and obj.get("reason") == "Suspended":
            self.heard.add(obj["involvedObject"]["name"])
        if obj["kind"] == "Pod":
            self.pods[space].append(obj)
        if obj["kind"] == "Job":
            self.uids[space, obj["metadata"]["name"]].append(obj["metadata"]["uid"])

    def every(self, kind: str, space: str) -> list[Object]:
        return self.informers[kind].cache.indexed("ns", space)

    # ---- requests

    async def ask(self, method: str, path: str, body: Any = None, **query: str) -> Object:
        """The answer, as far as it is the same wherever it is given."""
        kind = _MERGE if method == "PATCH" else "application/json"
        raw = b"" if body is None else json.dumps(body).encode()
        query = {"fieldManager": "user", **query} if method != "DELETE" else query
        try:
            answer = await self.client.calls.call(method, path, query=query, body=raw, content_type=kind)
        except ApiError as error:
            # Our messages say more than upstream's, on purpose; where and why is the same.
            causes = sorted({(one.field, one.reason) for one in error.causes})
            return {"code": error.code, "reason": error.reason, "causes": causes}
        return {"code": 200, "object": json.loads(answer)}

    # ---- rest

    def begin_canary(self) -> None:
        self.canary = asyncio.create_task(self._sing())

    async def _sing(self) -> None:
        """One small Job after the other: when its event is there, all that was waiting before it has been done."""
        path = "/apis/batch/v1/namespaces/default/jobs"
        for number in itertools.count():
            name = f"canary-{number}"
            self.heard.clear()
            await self.ask("POST", path, job(name, {"suspend": True, "template": _APART}))
            while name not in self.heard:
                await asyncio.sleep(0.03)
            async with self._round:
                self._round.notify_all()
            await asyncio.sleep(0.2)

    async def _after_canary(self) -> None:
        for _ in range(2 if self.canary is not None else 0):  # one that began after this moment
            async with self._round:
                await self._round.wait()

    async def rest(self, space: str, calm: Callable[[], float]) -> None:
        async with self.clock.timeout(PATIENCE):
            while True:
                wait = self.changed[space] + calm() - self.clock.monotonic()
                if wait > 0:
                    await self.clock.sleep(min(wait, 0.5) + 0.01)
                    continue
                before = self.changed[space]
                await self._after_canary()
                if before == self.changed[space] and self.changed[space] + calm() <= self.clock.monotonic():
                    return


_MAIN = {"name": "main", "image": "lab.example/img:1"}
_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [_MAIN]}}
_APART = {"spec": {**_TEMPLATE["spec"], "schedulingGroup": {"podGroupName": "none"}}}  # nothing is made for it


def job(name: str, spec: Object, **meta: Any) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **meta},
        "spec": {"template": _TEMPLATE, **spec},
    }


def _is(obj: Object | None, kind: str, status: str = "True") -> bool:
    conditions = (((obj or {}).get("status")) or {}).get("conditions") or ()
    return any(one["type"] == kind and one["status"] == status for one in conditions)


def finished(obj: Object) -> bool:
    return _is(obj, "Complete") or _is(obj, "Failed")


# ---- playing


class Player:
    """One story on one side."""

    def __init__(self, side: Side, story: Story) -> None:
        self.side, self.story, self.space = side, story, story.name
        self.told = Told()
        self.failures = 0  # since something succeeded: what the next pod waits for
        self.retried = 0.0  # when it has waited long enough
        self.plucked = False
        self.uids: dict[str, str] = {}
        self.jobs = 0
        self.places: dict[str, str] = {}  # pods that the story knows by a name of its own

    async def prepare(self) -> None:
        await self.side.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.space}})
        for step in self.story.before:
            self.told.looks.append({"step": step, "answer": self._plain(await self._do(step))})

    async def play(self) -> Told:
        self.side.touch(self.space)
        if self.story.before:
            await self._look({"begin": True}, [])
        for step in self.story.steps:
            answers = await self._do(step)
            if all(one["code"] >= 400 for one in answers):  # nothing has come of it
                self.told.looks.append({"step": step, "answer": self._plain(answers)})
                continue
            self.side.touch(self.space)
            try:
                await self._look(step, answers)
            except TimeoutError:
                self.told.problem = f"no rest within {PATIENCE:.0f} s of {json.dumps(step)}"
                break
        return self.told

    async def _look(self, step: Object, answers: list[Object]) -> None:
        await self.side.rest(self.space, self._calm)
        self.told.looks.append({"step": step, "answer": self._plain(answers), **look(self.side, self.space)})

    def _calm(self) -> float:
        """How long nothing must have happened before nothing will."""
        now = self.side.clock.monotonic()
        found = [CALM]
        if any(map(_lost, self.side.every("Pod", self.space))):
            found.append(COLLECTED)
        for one in self.side.every("Job", self.space):
            spec = one["spec"]
            if finished(one):
                found.append(_bearable(spec.get("ttlSecondsAfterFinished")) + 2)
            elif not spec.get("suspend") and "deletionTimestamp" not in one["metadata"]:
                found.append(_bearable(spec.get("activeDeadlineSeconds")) + 2)
                if now < self.retried and int(one.get("status", {}).get("active") or 0) < _most(one):
                    found.append(self.retried - self.side.changed[self.space])
        return max(found)

    # ---- steps

    async def _do(self, step: Object) -> list[Object]:
        if "create" in step:
            return [await self._create(self._filled(step["create"]))]
        if "patch" in step:
            return [await self.side.ask("PATCH", self._path(step["patch"]), self._filled(step["body"]))]
        if "delete" in step:
            path = self._path(step["delete"])
            if step["delete"].startswith("pods/"):
                self._failed(1)
                self.plucked = True
            return [await self.side.ask("DELETE", path, step.get("options"))]
        return [answer for one in step["kubelet"] for answer in await self._kubelet(one)]

    async def _create(self, body: Object) -> Object:
        plural = body["kind"].lower() + "s"
        answer = await self.side.ask("POST", self._path(plural, body["apiVersion"]), body, fieldValidation="Strict")
        if answer["code"] == 200:
            meta = answer["object"]["metadata"]
            labels = [f"{body['kind'].upper()}_UID", f"{meta['name'].upper()}_UID"]
            if body["kind"] == "Job":
                self.jobs += 1
                labels = [f"JOB{self.jobs}_UID", *([] if self.jobs > 1 else ["JOB_UID"])]
                self.places |= _names(meta["name"], meta["uid"])
            self.uids |= dict.fromkeys(labels, meta["uid"])
        return answer

    def _filled(self, body: Any) -> Any:
        text = json.dumps(body)
        for label, value in {**self.uids, **self.places}.items():
            text = text.replace(f'"{label}"', f'"{value}"')
        return json.loads(text.replace("<time>", _stamp(self.side)))

    def _path(self, target: str, api_version: str = "") -> str:
        plural, _, rest = target.partition("/")
        name, slash, sub = rest.partition("/")
        known = {"jobs": "batch/v1", "pods": "v1", "configmaps": "v1", "resourcequotas": "v1"}
        version = api_version or known.get(plural) or MINORS[self.side.minor].workload_api
        if plural == "pods":
            name = self._pod_name(name) or name
        name = self.places.get(name, name)
        root = "api" if version == "v1" else "apis"
        return f"/{root}/{version}/namespaces/{self.space}/{plural}" + (f"/{name}{slash}{sub}" if name else "")

    # ---- pods

    async def _kubelet(self, one: Object) -> list[Object]:
        chosen = self._chosen(one["pods"], one["do"])
        if one["do"] in {"fail", "delete"} or (one["do"] == "stop" and self.plucked):
            self._failed(len(chosen))
            self.plucked = self.plucked or one["do"] == "delete"
        self.failures = 0 if one["do"] == "succeed" and chosen else self.failures
        return [answer for pod in chosen for answer in await self._one_pod(pod, one)] or [{"code": 0}]

    def _failed(self, count: int) -> None:
        self.failures += count
        if count:
            self.retried = self.side.clock.monotonic() + 10 * 2 ** (min(self.failures, 3) - 1) + 3

    def _pod_name(self, wish: str) -> str:
        """`base-{2}`: the second pod that was made under that name; else the name itself."""
        match = re.fullmatch(r"(.*)\{(\d+)\}", wish)
        if match is None:
            return wish
        made = [pod for pod in self.side.pods[self.space] if pod["metadata"].get("generateName") == match[1]]
        return str(made[int(match[2]) - 1]["metadata"]["name"]) if len(made) >= int(match[2]) else ""

    def _chosen(self, pods: list[Any], what: str) -> list[Object]:
        """By name, or as places among those that the step can happen to."""
        live = {pod["metadata"]["uid"]: pod for pod in self.side.every("Pod", self.space)}
        there = [live[pod["metadata"]["uid"]] for pod in self.side.pods[self.space] if pod["metadata"]["uid"] in live]
        if pods != ["all"] and isinstance(pods[0], str):
            names = [self._pod_name(one) for one in pods]
            return [pod for name in names for pod in there if pod["metadata"]["name"] == name]
        going = what == "stop"
        fit = [pod for pod in there if _may(pod) and ("deletionTimestamp" in pod["metadata"]) == going]
        fit.sort(key=_index)
        if pods == ["all"]:
            return fit
        return [fit[place] for place in dict.fromkeys(one % len(fit) for one in pods)] if fit else []

    async def _one_pod(self, pod: Object, one: Object) -> list[Object]:
        side, name = self.side, pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{self.space}/pods/{name}"
        if one["do"] == "bind":
            if pod["spec"].get("nodeName"):
                return []
            with suppress(ApiError):
                await side.client.kind("v1", "Pod").bind(name, NODE, self.space)
            return []
        if one["do"] == "delete":
            return [await side.ask("DELETE", path)]
        status = _status(pod, one, _stamp(side))
        answer = await side.ask("PATCH", f"{path}/status", {"status": status})
        if one["do"] == "stop":
            return [answer, await side.ask("DELETE", path, {"gracePeriodSeconds": 0})]
        return [answer]

    # ---- what is compared

    def _plain(self, answers: list[Object]) -> list[Object]:
        plain = plainer(self.side, self.space)
        return [{name: plain(value) for name, value in one.items() if name != "object"} for one in answers]


def _names(name: str, uid: str) -> dict[str, str]:
    workload = workload_name(name, uid)
    return {f"<workload {name}>": workload, f"<podgroup {name}>": pod_group_name(workload, template_name(name))}


def _bearable(seconds: int | None) -> float:
    return float(seconds) if seconds is not None and seconds <= LONGEST else 0.0


def _most(one: Object) -> int:
    spec, done = one["spec"], int(one.get("status", {}).get("succeeded") or 0)
    parallelism = int(spec.get("parallelism", 1))
    return min(parallelism, int(spec["completions"]) - done) if "completions" in spec else 0 if done else parallelism


def _stamp(side: Side) -> str:
    return side.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _may(pod: Object) -> bool:
    return pod["status"].get("phase") not in {"Succeeded", "Failed"}


def _lost(pod: Object) -> bool:
    """Told to stop, and on no node where somebody could say that it has."""
    return "deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName") and _may(pod)


def _index(pod: Object) -> int:
    return int((pod["metadata"].get("annotations") or {}).get("batch.kubernetes.io/job-completion-index") or 0)


def _status(pod: Object, one: Object, now: str) -> Object:
    """What a kubelet would say."""
    what, named = one["do"], one.get("container")
    ready = "True" if what == "run" else "False"
    known = next((it for it in pod["status"].get("conditions") or () if it["type"] == "Ready"), {"status": ""})
    moment = known["lastTransitionTime"] if known["status"] == ready else now
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": moment, "lastProbeTime": now}]
    given = [it if isinstance(it, dict) else {"type": it, "status": "True"} for it in one.get("conditions") or ()]
    conditions += [{"lastTransitionTime": now, "lastProbeTime": now, **it} for it in given]
    before = {it["name"]: it.get("restartCount", 0) for it in pod["status"].get("containerStatuses") or ()}

    def container(name: str, code: int | None) -> Object:
        ended = {"exitCode": code, "startedAt": now, "finishedAt": now, "reason": "Ended"}
        state = {"running": {"startedAt": now}} if code is None else {"terminated": ended}
        count = one.get("restarts", before.get(name, 0))
        same = {"ready": False, "image": "", "imageID": "", "lastState": {}}
        return {"name": name, "restartCount": count, "state": state, **same}

    phase = {"run": "Running", "unready": "Running", "succeed": "Succeeded"}.get(what, "Failed")
    code = None if phase == "Running" else int(one.get("exit", 0))
    status: Object = {"phase": phase, "conditions": conditions}
    status["containerStatuses"] = [
        container(it["name"], code if code is None or named in (None, it["name"]) else 0)
        for it in pod["spec"]["containers"]
    ]
    if "init" in one:
        inits = pod["spec"].get("initContainers") or ()
        status["initContainerStatuses"] = [container(it["name"], one["init"]) for it in inits]
    return status


# ---- what is there, without what may differ


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


# ---- the two sides


FLEET = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "fleetjobs.lab.example"},
    "spec": {
        "group": "lab.example",
        "names": {"kind": "FleetJob", "plural": "fleetjobs", "singular": "fleetjob", "listKind": "FleetJobList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}


async def furnish(client: Client) -> None:
    """What all stories may speak of."""
    await client.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").create(FLEET)
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "batch-high"}}
    await client.of(high).create({**high, "value": 7000})
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    await client.of(node).create(node)


async def played(
    side: Side, stories: Iterable[Story], start: Callable[[], Any], *, per_second: float = 10.0
) -> dict[str, Told]:
    """All of them, at the same time; `start` starts the controller."""
    players = [Player(side, story) for story in stories]
    hands = asyncio.Semaphore(16)

    async def prepare(player: Player) -> None:
        async with hands:
            await player.prepare()

    async def play(player: Player, after: float) -> None:
        await side.clock.sleep(after)  # a controller manager drops events when there are too many at once
        await player.play()

    await asyncio.gather(*(prepare(player) for player in players))
    await start()
    players.sort(key=lambda player: not player.story.before)
    await asyncio.gather(*(play(player, place / per_second) for place, player in enumerate(players)))
    return {player.story.name: player.told for player in players}


@asynccontextmanager
async def embedded(minor: str, uids: Mapping[tuple[str, str], list[str]], settings: Object) -> AsyncIterator[Any]:
    """Our server and our Job controller in this process; Jobs get the uids that they had elsewhere, in that order.

    -> (Side, a function that starts the controller)
    """
    clock = LoopClock(datetime(2026, 11, 1, tzinfo=UTC))
    token = ages.NOW.set(clock.now)
    left = {key: list(known) for key, known in uids.items()}
    try:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            chosen = Settings(folder, minor, {}, port=0, in_memory=True, listen=False, custom_kinds=False)
            server = await stack.enter_async_context(Server(chosen, clock))
            _give_uids(server, left)
            for ender in [one for one in server.jobs.jobs if isinstance(one, PodEnder)]:
                server.jobs.jobs.remove(ender)  # the stories say themselves when a pod has stopped
                await ender.stop()
            client = await stack.enter_async_context(Client.within(server.api, manager="user", clock=clock))
            await furnish(client)
            worker = await stack.enter_async_context(Client.within(server.api, manager=MANAGER, clock=clock))
            side = await stack.enter_async_context(Side(client, minor, clock).watched())
            ctx = CompileContext(server.ctx.generation, server.ctx.gates, server.ctx.options, settings=settings)

            async def start() -> None:
                setup = await probe(worker, ctx)
                runtime = await stack.enter_async_context(Runtime(worker, make(setup), clock=clock))
                await runtime.ready()

            yield side, start
    finally:
        ages.NOW.reset(token)


def _give_uids(server: Server, left: dict[tuple[str, str], list[str]]) -> None:
    mutate = server.api.core.mutate

    async def with_uid(call: Any) -> None:
        if call.operation == "CREATE" and call.resource.kind == "Job" and not call.dry_run:
            known = left.get((call.namespace, call.object["metadata"]["name"]))
            if known:
                call.object["metadata"]["uid"] = known.pop(0)
        await mutate(call)

    server.api.core.mutate = with_uid  # type: ignore[method-assign]


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
    return [{**one, "merged": True, "Event": sorted({tuple(event[:4]) for event in one["Event"]})} for one in looks]


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
