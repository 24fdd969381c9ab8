"""A server with controllers of Deployments and their like, real or ours, as the lives of such objects need it."""

import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.kubernetes.job_side import MANAGER, Object, Side, Told

from kohort.controllermanager import pods as pods_
from kohort.controllermanager import registry as manager
from kohort.controllers.runtime import Runtime
from kohort.kube.client import Client
from kohort.kube.clock import LoopClock
from kohort.server import timestamps
from kohort.server.server import Server
from kohort.server.settings import Settings

APPS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
CONTROLLERS = ("deployment", "replicaset", "statefulset", "daemonset", "replicationcontroller")
NODES = {"node-a": {"kind": "gpu"}, "node-b": {"kind": "gpu"}, "node-c": {"kind": "cpu"}}
CALM = 1.5  # seconds
_PLURALS = {
    "deployments": "apis/apps/v1", "replicasets": "apis/apps/v1", "statefulsets": "apis/apps/v1",
    "daemonsets": "apis/apps/v1", "replicationcontrollers": "api/v1", "pods": "api/v1", "resourcequotas": "api/v1",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Life:
    """Steps are pairs: what is done, and to what."""

    name: str
    steps: list[tuple[str, Any]]


class AppsSide(Side):
    def kinds(self) -> dict[str, str]:
        apps = dict.fromkeys((*APPS, "ControllerRevision"), "apps/v1")
        return {**apps, **dict.fromkeys(("ReplicationController", "Pod", "PersistentVolumeClaim", "Event"), "v1")}

    def is_consistent(self, space: str) -> bool:
        """Whether all controllers have seen what is there: what they count is what can be counted."""
        for kind in (*APPS, "ReplicationController"):
            for obj in self.every(kind, space):
                status, meta = obj.get("status") or {}, obj["metadata"]
                if status.get("observedGeneration", 0) < meta.get("generation", 0):
                    return False
                if kind in {"ReplicaSet", "ReplicationController"}:
                    own = [
                        pod for pod in self.every("Pod", space) if _owner(pod) == meta["uid"] and pods_.is_active(pod)
                    ]
                    if status.get("replicas", 0) != len(own):
                        return False
                    if status.get("readyReplicas", 0) != sum(map(pods_.is_ready, own)):
                        return False
        return True


def _owner(obj: Object) -> str:
    return next((str(one["uid"]) for one in obj["metadata"].get("ownerReferences") or () if one.get("controller")), "")


async def furnish(client: Client) -> None:
    for name, labels in NODES.items():
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        await client.of(node).create(node)


@asynccontextmanager
async def embedded(minor: str) -> AsyncIterator[AppsSide]:
    """Our server and our controllers in this process."""
    clock = LoopClock(datetime(2026, 11, 1, tzinfo=UTC))
    token = timestamps.NOW.set(clock.now)
    try:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            chosen = Settings(folder, minor, {}, port=0, in_memory=True, listen=False, custom_kinds=False)
            server = await stack.enter_async_context(Server(chosen, clock))
            client = await stack.enter_async_context(Client.within(server.api, manager="user", clock=clock))
            await furnish(client)
            worker = await stack.enter_async_context(Client.within(server.api, manager=MANAGER, clock=clock))
            side = AppsSide(client, minor, clock)
            await stack.enter_async_context(side.watched())
            runtime = Runtime(worker, manager.make(CONTROLLERS), clock=clock)
            await stack.enter_async_context(runtime)
            await runtime.ready()
            yield side
    finally:
        timestamps.NOW.reset(token)


# ---- playing


@dataclass
class Player:
    """One life on one side. `calm`: how long nothing must have happened before nothing will."""

    side: AppsSide
    life: Life
    calm: float = CALM
    told: Told = field(default_factory=Told)

    @property
    def space(self) -> str:
        return self.life.name

    async def play(self) -> Told:
        await self.side.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.space}})
        for step in self.life.steps:
            codes = await self._do(*step)
            self.side.touch(self.space)
            try:
                await self.side.rest(self.space, lambda: self.calm if self.side.is_consistent(self.space) else 20.0)
            except TimeoutError:
                self.told.problem = f"no rest after {json.dumps(step)[:300]}"
                break
            self.told.looks.append({"step": step, "codes": codes, **look(self.side, self.space)})
        return self.told

    async def _do(self, verb: str, what: Any) -> list[int]:
        match verb:
            case "create":
                plural = what["kind"].lower() + "s"
                return [(await self.side.ask("POST", self._path(plural), what))["code"]]
            case "patch":
                path, body = what
                return [(await self.side.ask("PATCH", self._path(path), body))["code"]]
            case "delete":
                path, options = what
                return [(await self.side.ask("DELETE", self._path(path), options))["code"]]
            case "several":
                return [code for step in what for code in await self._do(*step)]
            case "wait":
                await self.side.clock.sleep(what)
                return []
            case _:
                return [await self._kubelet(pod, verb) for pod in self._chosen(verb, what)]

    def _path(self, target: str) -> str:
        plural, _, rest = target.partition("/")
        return f"/{_PLURALS[plural]}/namespaces/{self.space}/{plural}" + (f"/{rest}" if rest else "")

    def _chosen(self, verb: str, count: int | None) -> list[Object]:
        """Those of one image are alike; which of them it is must not matter."""
        alive = [pod for pod in self.side.every("Pod", self.space) if pods_.is_active(pod)]
        found = [pod for pod in alive if pods_.is_ready(pod) != (verb == "ready")]
        return sorted(found, key=_alike)[: len(found) if count is None else count]

    async def _kubelet(self, pod: Object, verb: str) -> int:
        now = self.side.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": str(verb == "ready"), "lastTransitionTime": now}
        body = {"status": {"phase": "Failed" if verb == "fail" else "Running", "conditions": [ready]}}
        path = self._path(f"pods/{pod['metadata']['name']}")
        if verb == "remove":
            return int((await self.side.ask("DELETE", path))["code"])
        return int((await self.side.ask("PATCH", f"{path}/status", body))["code"])


def _alike(pod: Object) -> tuple[str, str, str]:
    named = pod["metadata"]["name"] if _is_named(pod) else ""
    return _image(pod), named, json.dumps((pod["spec"].get("affinity") or {}), sort_keys=True)


def _is_named(pod: Object) -> bool:
    """Of a StatefulSet, or made by hand: others have random ends."""
    labels = pod["metadata"].get("labels") or {}
    return "statefulset.kubernetes.io/pod-name" in labels or "generateName" not in pod["metadata"]


def _image(obj: Object) -> str:
    return str(obj["spec"]["containers"][0]["image"])


# ---- looking

_LEFT_OUT = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"}
# Of a server with a type for DaemonSets of long ago (docs/differences.md).
_OLD = {"deprecated.daemonset.template.generation", "pod-template-generation"}
_TIMES = {"lastTransitionTime", "lastUpdateTime", "lastProbeTime", "startTime", "deletionTimestamp"}


def look(side: AppsSide, space: str) -> Object:
    """Everything that is there, without what may differ between two servers."""
    names = dict(_names(side, space))
    found: Object = {}
    for kind in (*APPS, "ReplicationController"):
        found[kind] = [_plain(_unnumbered(obj), names) for obj in side.every(kind, space)]
    found["ControllerRevision"] = [
        _plain({**obj, "data": _image({"spec": obj["data"]["spec"]["template"]["spec"]})}, names)
        for obj in side.every("ControllerRevision", space)
    ]
    found["Pod"] = [_plain(_short(pod), names) for pod in side.every("Pod", space)]
    claims = side.every("PersistentVolumeClaim", space)
    found["PersistentVolumeClaim"] = [
        _plain({"metadata": _without(one["metadata"], "finalizers")}, names) for one in claims
    ]
    told = [
        one for one in side.every("Event", space) if one["involvedObject"]["kind"] in {*APPS, "ReplicationController"}
    ]
    found["Event"] = [[one["involvedObject"]["kind"], one["type"], one["reason"]] for one in told]
    found["Event"] = list({_text(one): one for one in found["Event"]}.values())
    return {kind: sorted(some, key=_text) for kind, some in found.items()}


def _unnumbered(obj: Object) -> Object:
    """In how many writes a ReplicaSet comes to its size depends on what its Deployment has seen."""
    if obj["kind"] != "ReplicaSet":
        return obj
    status = _without(obj.get("status") or {}, "observedGeneration")
    return {**obj, "metadata": _without(obj["metadata"], "generation"), "status": status}


def _text(obj: Any) -> str:
    return json.dumps(obj, sort_keys=True)


def _without(meta: Object, *names: str) -> Object:
    return {name: value for name, value in meta.items() if name not in names}


def _names(side: AppsSide, space: str) -> Iterable[tuple[str, str]]:
    """Hashes and random ends, as what they stand for."""
    for rs in side.every("ReplicaSet", space):
        hashed = (rs["metadata"].get("labels") or {}).get("pod-template-hash")
        if hashed:
            yield hashed, f"<{_image(rs['spec']['template'])}>"
    for revision in side.every("ControllerRevision", space):
        hashed = revision["metadata"]["labels"].get("controller-revision-hash")
        if hashed:  # a DaemonSet's; those of a StatefulSet are equal to the letter
            yield hashed, f"<{_image(revision['data']['spec']['template'])}>"
    yield from ((node, "<node>") for node in NODES)  # which of them comes first is nobody's promise
    for pod in side.pods[space]:
        if not _is_named(pod):
            yield pod["metadata"]["name"], f"{pod['metadata']['generateName']}?????"


def _short(pod: Object) -> Object:
    """A pod's spec without what an API server makes of it."""
    spec, status = pod["spec"], pod.get("status") or {}
    volumes = [one for one in spec.get("volumes") or () if "persistentVolumeClaim" in one]
    kept = {name: spec.get(name) for name in ("hostname", "subdomain", "affinity", "tolerations", "nodeSelector")}
    ready = pods_.is_ready(pod)
    return {
        "metadata": pod["metadata"],
        "spec": {**kept, "image": _image(pod), "volumes": volumes},
        "status": {"phase": status.get("phase"), "ready": ready},
    }


def _plain(obj: Object, names: dict[str, str]) -> Any:
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True)))) if names else None

    def plain(value: Any, name: str = "") -> Any:
        if name in _TIMES and isinstance(value, str):
            return "<time>"
        if isinstance(value, str):
            # What follows a hash in a name was found with it; longest first, twice for names within names.
            for _ in range(2):
                value = pattern.sub(lambda match: names[match[0]], value) if pattern is not None else value
            return value
        if isinstance(value, list):
            return sorted((plain(one) for one in value), key=_text)
        if isinstance(value, dict):
            kept = {key: one for key, one in value.items() if key not in _LEFT_OUT | _OLD and one not in (None, {}, [])}
            found = {key: plain(one, key) for key, one in kept.items()}
            return {key: one for key, one in found.items() if one != {}}
        return value

    return plain(obj)
