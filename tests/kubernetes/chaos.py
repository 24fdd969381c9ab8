"""One random run: some gangs, two machines with `kohort run`, bad weather and worse between them and the API server.

Everything is thrown by a die with the run's seed: what is asked for, what happens, in which order. Real time is not
repeated, so a seed brings back the same plan, not every interleaving.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web
from tests.kubernetes.ground import COMPOSITES, GROUPS, HIGH, Ground, Takeover, moment
from tests.kubernetes.machines import Command, Job, Machine, Within
from tests.support.real import ACCOUNT

from kohort.place.profile import Profile
from kohort.run.options import Election, Options
from kohort.run.process import look
from kohort.scheduler.settings import SchedulerSettings
from kohort.testing.proxy import Dice, Proxy

Json = dict[str, Any]
CPU = 4  # of each node; each pod takes one
CALM_SECONDS = 240.0  # so long after the storm everything must be well
FAREWELL_SECONDS = 5.0  # a process that has no processor for longer leaves its lease to expire
ROUND = 8  # of so many seeds in a row each kind of run is one


class Run:
    """One namespace, its nodes, two machines, and a die."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self.ground, self.seed, self.chance = ground, seed, random.Random(seed)
        self.space = f"chaos-{seed}"
        self.typed = seed % ROUND == 2  # the command itself, to be killed for good
        self.rate = self.chance.choice((0.03, 0.12, 0.25))
        self.gangs: dict[str, tuple[int, int]] = {}  # groups without a parent -> minimum, pods
        self.trees: dict[str, int] = {}  # -> pods, all of which must be placed
        self.nodes: list[str] = []
        self.machines: list[Machine] = []
        self.met: Counter[str] = Counter()
        self.wrongs: list[str] = []

    # ---- what is asked for

    def _pod(self, name: str, group: str, priority: str) -> Json:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec: Json = {"schedulerName": "kohort", "containers": [container], "nodeSelector": {"chaos": self.space}}
        spec |= {"schedulingGroup": {"podGroupName": group}, "terminationGracePeriodSeconds": 0}
        spec |= {"priorityClassName": priority} if priority else {}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    def _group(self, name: str, size: int, least: int, priority: str = "", parent: str = "") -> list[Json]:
        spec: Json = {"schedulingPolicy": {"gang": {"minCount": least}}}
        spec |= {"priorityClassName": priority} if priority else {}
        if parent:
            spec |= {"parentCompositePodGroupName": parent, "workloadRef": {"workloadName": "w", "templateName": name}}
        group = {"apiVersion": GROUPS[0], "kind": GROUPS[1], "metadata": {"name": name}, "spec": spec}
        return [group, *(self._pod(f"{name}-{number}", name, priority) for number in range(size))]

    def flat(self, size: int, least: int, priority: str = "") -> list[Json]:
        name = f"g{len(self.gangs)}"
        self.gangs[name] = (least, size)
        return self._group(name, size, least, priority)

    def tree(self, branches: int, size: int) -> list[Json]:
        name = f"t{len(self.trees)}"
        self.trees[name] = branches * size
        spec = {
            "schedulingPolicy": {"gang": {"minGroupCount": branches}},
            "workloadRef": {"workloadName": "w", "templateName": name},
        }
        root = {"apiVersion": COMPOSITES[0], "kind": COMPOSITES[1], "metadata": {"name": name}, "spec": spec}
        below = [self._group(f"{name}-b{number}", size, size, parent=name) for number in range(branches)]
        return [root, *(one for group in below for one in group)]

    def wishes(self) -> list[list[Json]]:
        """A gang, a tree, a gang that may be smaller than it is, and more, in any order; not all of it fits."""
        chance = self.chance
        size = chance.randint(3, 6)
        wanted = [
            self.flat(chance.randint(2, 5), 2),
            self.tree(2, chance.randint(1, 3)),
            self.flat(size, size - chance.randint(1, 2)),
        ]
        room = len(self.nodes) * CPU * chance.uniform(0.8, 1.5)
        while sum(size for _, size in self.gangs.values()) + sum(self.trees.values()) < room:
            size = chance.randint(2, 6)
            wanted.append(self.flat(size, size, chance.choice(("", "", HIGH))))
        chance.shuffle(wanted)
        return wanted

    async def ask(self, wanted: list[list[Json]]) -> None:
        for objects in wanted:
            groups = [one for one in objects if one["kind"] != "Pod"]
            for one in groups:
                await self.ground.create(one, self.space)
            pods = [one for one in objects if one["kind"] == "Pod"]
            await asyncio.gather(*(self.ground.create(one, self.space) for one in pods))
            await asyncio.sleep(self.chance.choice((0, 0, 0.2, 1)))

    async def node(self) -> None:
        name = f"{self.space}-{len(self.nodes)}"
        self.nodes.append(name)
        nodes = self.ground.client.resource("nodes")
        amounts = {"cpu": str(CPU), "memory": "64Gi", "pods": "110"}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"chaos": self.space}}}
        await self.ground.create(body)
        status = {"status": {"allocatable": amounts, "capacity": amounts}}
        await self.ground.insist(lambda: nodes.patch(name, status, subresource="status"))
        await self.ground.insist(lambda: nodes.patch(name, {"spec": {"taints": None}}))

    # ---- what happens

    async def trouble(self) -> None:
        chance = self.chance
        usual = (self.dies, self.dies, self.ends, self.silence, self.theft, self.cut, self.grows)
        events = [self.falls] if chance.random() < 0.7 else []
        events += [chance.choice(usual) for _ in range(chance.randint(1, 3))]
        dear = {5: self.server, 7: self.store}.get(self.seed % ROUND)  # felt by all runs of this moment
        if dear is not None:
            events.insert(chance.randrange(len(events) + 1), dear)
        for event in events:
            await asyncio.sleep(chance.uniform(0.1, 1.5))
            self.met[event.__name__] += 1
            await event()

    def _victim(self) -> Machine:
        leaders = [one for one in self.machines if one.leads]
        return leaders[0] if leaders and self.chance.random() < 0.8 else self.chance.choice(self.machines)

    async def falls(self) -> None:
        """Whoever binds first dies in the middle of it; meanwhile a more important gang comes."""
        for one in self.machines:
            one.trap.arm(self.chance.randint(1, 6))
        waits = [asyncio.ensure_future(one.trap.sprung.wait()) for one in self.machines]
        await asyncio.wait(waits, timeout=20, return_when=asyncio.FIRST_COMPLETED)
        for one, wait in zip(self.machines, waits, strict=True):
            wait.cancel()
            one.trap.disarm()
            if one.trap.sprung.is_set():
                self.met["died while binding"] += 1
                if self.chance.random() < 0.5:
                    size = self.chance.randint(2, 8)
                    await self.ask([self.flat(size, size, HIGH)])
                await self._dies(one)

    async def dies(self) -> None:
        await self._dies(self._victim())

    async def _dies(self, one: Machine) -> None:
        await one.kill()
        await asyncio.sleep(self.chance.choice((0.0, 1.0, 7.0)))
        await one.start()

    async def ends(self) -> None:
        one = self._victim()
        await one.stop()
        await asyncio.sleep(self.chance.choice((0.0, 1.0)))
        await one.start()

    async def silence(self) -> None:
        """Nothing gets to the server or back, for longer than a lease lasts or not."""
        one = self._victim()
        one.proxy.hush()
        await asyncio.sleep(self.chance.choice((1.0, 3.0, 8.0)))
        one.proxy.speak()

    async def theft(self) -> None:
        await self.ground.theft(self.space)

    async def cut(self) -> None:
        for one in self.machines:
            one.proxy.cut()

    async def grows(self) -> None:
        await self.node()

    async def server(self) -> None:
        await self.ground.server_killed()

    async def store(self) -> None:
        await self.ground.store_paused(self.chance.uniform(1.0, 5.0))

    # ---- what must be

    def _sends(self, request: web.BaseRequest, trap: Any) -> None:
        leaders = [one.number for one in self.machines if one.leads]
        if len(leaders) > 1:
            self.wrongs.append("two lead at a time")
        trap.sees(request)

    def wrong(self, pods: list[Json], groups: list[Json], composites: list[Json]) -> list[str]:
        """What is not yet, or not any more, as it should be."""
        found = [*dict.fromkeys(self.wrongs), *self._history(pods)]
        found += [f"machine {one.number} ended: {one.ended}" for one in self.machines if one.ended]
        on = Counter(one["spec"]["nodeName"] for one in pods if one["spec"].get("nodeName"))
        found += [f"{node} has {count} pods" for node, count in on.items() if count > CPU]
        free = len(self.nodes) * CPU - sum(on.values())
        of: dict[str, list[Json]] = {}
        for one in pods:
            of.setdefault(one["spec"]["schedulingGroup"]["podGroupName"], []).append(one)
        for name, (least, size) in self.gangs.items():
            found += self._flat(name, least, size, of.get(name, []), free)
        for name, size in self.trees.items():
            found += self._tree(name, size, [one for key in of if key.startswith(f"{name}-") for one in of[key]], free)
        for kind, objects in (("PodGroup", groups), ("CompositePodGroup", composites)):
            for one in objects:
                found += self._said(kind, one, of)
        return found

    def _history(self, pods: list[Json]) -> list[str]:
        taken = Counter(one.uid for machine in self.machines for one in machine.proxy.bindings)
        found = [f"{uid} was bound {count} times" for uid, count in taken.items() if count > 1]
        mine = {one["metadata"]["uid"] for one in pods}
        found += [f"{uid} was bound and is gone" for uid in taken if uid not in mine]
        found += [one for one in self.ground.wrong if f"{self.space}/" in one]
        found += [str(one) for one in self.ground.takeovers if one.lease == self.space and not self._given_up(one)]
        return found

    def _given_up(self, takeover: Takeover) -> bool:
        """Whether its holder let go of the lease between its last renewal and the takeover."""
        releases = (one for machine in self.machines for one in machine.proxy.releases if one.lease == takeover.lease)
        return any(takeover.since <= moment(one.renew_time) <= takeover.at for one in releases)

    def _flat(self, name: str, least: int, size: int, pods: list[Json], free: int) -> list[str]:
        bound = sum(1 for one in pods if one["spec"].get("nodeName"))
        if len(pods) != size:
            return [f"{name} has {len(pods)} pods of {size}"]
        if 0 < bound < least:
            return [f"{name} is half-bound: {bound} of {least}"]
        if bound < size and free >= max(least - bound, 1):
            return [f"{name} is lost: {bound} of {size} are bound, {free} would fit"]
        return []

    def _tree(self, name: str, size: int, pods: list[Json], free: int) -> list[str]:
        bound = sum(1 for one in pods if one["spec"].get("nodeName"))
        if len(pods) != size:
            return [f"{name} has {len(pods)} pods of {size}"]
        if bound not in {0, size}:
            return [f"{name} is half-bound: {bound} of {size}"]
        return [f"{name} is lost: {free} would fit"] if not bound and free >= size else []

    def _said(self, kind: str, group: Json, of: dict[str, list[Json]]) -> list[str]:
        """Bound and told so, or waiting and told why."""
        name = group["metadata"]["name"]
        pods = [one for key in of if key == name or key.startswith(f"{name}-b") for one in of[key]]
        bound = any(one["spec"].get("nodeName") for one in pods)
        conditions = {one["type"]: one for one in (group.get("status") or {}).get("conditions") or ()}
        told = conditions.get(f"{kind}InitiallyScheduled")
        if bound and (told is None or told["status"] != "True"):
            return [f"{kind} {name} is bound and does not say so: {told}"]
        if not bound and (told is None or told["status"] != "False" or not told.get("message")):
            return [f"{kind} {name} waits and does not say why: {told}"]
        return []

    def seen(self) -> list[str]:
        """By the watches."""
        ground = self.ground
        kinds = (ground.pods, ground.groups, ground.composites)
        return self.wrong(*(kind.cache.indexed("space", self.space) for kind in kinds))

    async def listed(self) -> list[str]:
        """By the server itself, which another run may have killed just now."""
        client, found = self.ground.client, list[list[Json]]()
        for kind in (client.resource("pods"), client.kind(*GROUPS), client.kind(*COMPOSITES)):
            told = await self.ground.insist(lambda kind=kind: kind.list(self.space))  # type: ignore[misc]
            assert told is not None
            found.append(told.items)
        return self.wrong(*found)

    # ---- from the beginning to the end

    async def play(self) -> float:
        """The seconds that it took."""
        began = time.monotonic()
        async with AsyncExitStack() as stack:
            wanted = await self._prepare(stack)
            early = self.chance.randint(1, len(wanted))
            await self.ask(wanted[:early])
            for machine in self.machines:
                await machine.start()
                stack.push_async_callback(machine.kill)
            await asyncio.gather(self.trouble(), self.ask(wanted[early:]))
            await self._settle()
        await self._clear()
        return time.monotonic() - began

    async def _prepare(self, stack: AsyncExitStack) -> list[list[Json]]:
        ground, chance = self.ground, self.chance
        await ground.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.space}})
        for _ in range(chance.randint(2, 4)):
            await self.node()
        election = Election(name=self.space, namespace=ACCOUNT[0], retry=1)
        chosen = Options(controllers=(), namespaces=(self.space,), election=election)
        settings = SchedulerSettings(
            namespaces=frozenset({self.space}),
            first_backoff=0.2,
            longest_backoff=2.0,
            retry_after=15.0,
            bind_concurrency=chance.choice((2, 64)),
            # No spread by default: four watches less for each of many processes.
            profile=Profile(default_spread=(), patience=chance.choice((0.0, 2.0)), hold_limit=4.0),
        )
        own = ground.folder / self.space
        own.mkdir(parents=True)
        found = None
        while found is None:
            found = await ground.insist(lambda: look(ground.client, chosen))
        job = Job(chosen, found.plan, settings, own, ground.token)
        for number in range(2):
            dice = Dice(chance.getrandbits(32), rate=self.rate)
            folder = ground.folder / "pki"
            proxy = Proxy(ground.env.url, ground.env.ca_file, folder, dice, secure=self.typed)
            await stack.enter_async_context(proxy)
            machine: Machine = (Command if self.typed else Within)(number, proxy, job, chance)
            proxy.sends = lambda request, machine=machine: self._sends(request, machine.trap)  # type: ignore[misc]
            self.machines.append(machine)
        return self.wishes()

    async def _settle(self) -> None:
        """Good weather: soon all is well; and when the machines have stopped, it still is, and none holds the lease."""
        for machine in self.machines:
            machine.proxy.dice.bad = False
        end = time.monotonic() + CALM_SECONDS
        while wrong := self.seen():
            assert time.monotonic() < end, self._told(wrong)
            await asyncio.sleep(0.3)
        stopped = {machine.identity for machine in self.machines}  # one that was killed holds its lease to the end
        began = time.monotonic()
        await asyncio.gather(*(machine.stop() for machine in self.machines))
        in_time = time.monotonic() - began < FAREWELL_SECONDS
        wrong = await self.listed()
        leases = self.ground.client.kind("coordination.k8s.io/v1", "Lease")
        lease = await self.ground.insist(lambda: leases.get(self.space, ACCOUNT[0]))
        if in_time and lease is not None and lease["spec"].get("holderIdentity") in stopped:
            wrong.append("the lease is still held by whoever was stopped")
        assert not wrong, self._told(wrong)

    def _told(self, wrong: list[str]) -> str:
        weather = sum((one.proxy.dice.met for one in self.machines), Counter())
        return f"{'; '.join(wrong)}; met {dict(self.met)}, {dict(weather)}"

    async def _clear(self) -> None:
        client, ground = self.ground.client, self.ground
        await ground.insist(lambda: client.resource("pods").delete_all(self.space, grace=0))
        for kind in (GROUPS, COMPOSITES):
            await ground.insist(lambda kind=kind: client.kind(*kind).delete_all(self.space))  # type: ignore[misc]
        for name in self.nodes:
            await ground.insist(lambda name=name: client.resource("nodes").delete(name))  # type: ignore[misc]
