"""A server with a Job controller, real or ours, as stories of Jobs need it: what is there, and whether it rests.

A namespace rests when nothing has changed in it for longer than the controller gathers changes, a canary Job has been
looked at and told of since, and still nothing has changed.
"""

import asyncio
import itertools
import json
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from kohort.controllers.runtime import Runtime
from kohort.gang.compile import CompileContext
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.settings import JobSettings
from kohort.kinds.controllers import make, probe
from kohort.kube.client import Client
from kohort.kube.clock import REAL, Clock, LoopClock
from kohort.kube.errors import ApiError
from kohort.kube.informer import Informer
from kohort.server import timestamps
from kohort.server.controllers import PodTermination
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.testing.environment.versions import MINORS

Object = dict[str, Any]
Uids = dict[tuple[str, str], list[str]]  # namespace and name of a Job -> its uids, in order

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

    def kinds(self) -> dict[str, str]:
        version = MINORS[self.minor].workload_api
        return {"Job": "batch/v1", "Pod": "v1", "Workload": version, "PodGroup": version, "Event": "v1"}

    @asynccontextmanager
    async def watched(self) -> AsyncIterator["Side"]:
        async with AsyncExitStack() as stack:
            for kind, api_version in self.kinds().items():
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
        path, own = "/apis/batch/v1/namespaces/default/jobs", uuid4().hex[:8]
        for number in itertools.count():
            name = f"canary-{own}-{number}"
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


@asynccontextmanager
async def embedded(minor: str, uids: Mapping[tuple[str, str], list[str]], settings: JobSettings) -> AsyncIterator[Any]:
    """Our server and our Job controller in this process; Jobs get the uids that they had elsewhere, in that order.

    -> (Side, a function that starts the controller)
    """
    clock = LoopClock(datetime(2026, 11, 1, tzinfo=UTC))
    token = timestamps.NOW.set(clock.now)
    left = {key: list(known) for key, known in uids.items()}
    try:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            chosen = Settings(folder, minor, {}, port=0, in_memory=True, listen=False, custom_kinds=False)
            server = await stack.enter_async_context(Server(chosen, clock))
            _give_uids(server, left)
            for ender in [one for one in server.controllers.controllers if isinstance(one, PodTermination)]:
                server.controllers.controllers.remove(ender)  # the stories say themselves when a pod has stopped
                await ender.stop()
            client = await stack.enter_async_context(Client.within(server.api, manager="user", clock=clock))
            await furnish(client)
            worker = await stack.enter_async_context(Client.within(server.api, manager=MANAGER, clock=clock))
            side = await stack.enter_async_context(Side(client, minor, clock).watched())
            ctx = CompileContext(
                server.ctx.release, server.ctx.gates, server.ctx.options, settings=SettingsByKind(settings)
            )

            async def start() -> None:
                setup = await probe(worker, ctx)
                runtime = await stack.enter_async_context(Runtime(worker, make(setup), clock=clock))
                await runtime.ready()

            yield side, start
    finally:
        timestamps.NOW.reset(token)


def _give_uids(server: Server, left: dict[tuple[str, str], list[str]]) -> None:
    mutate = server.api.core.mutate

    async def with_uid(attrs: Any) -> None:
        if attrs.operation == "CREATE" and attrs.resource.kind == "Job" and not attrs.dry_run:
            known = left.get((attrs.namespace, attrs.object["metadata"]["name"]))
            if known:
                attrs.object["metadata"]["uid"] = known.pop(0)
        await mutate(attrs)

    server.api.core.mutate = with_uid  # type: ignore[method-assign]
