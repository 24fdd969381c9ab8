"""A random history of nodes that fail, are drained and come back under gangs, up to four at once, on a whole cluster.

What is asked after every step is computed from nodes and pods alone: a gang whose rack has room for all gangs that live
there is whole and still there, and who was not on a lost node runs on untouched. Hundreds of gangs in virtual time:
tests/scheduler/test_failure_histories.py.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import pytest
from tests.e2e.jobs import INDEX
from tests.e2e.test_healing import RACK, come_back, drain, fail, ring

from kohort.api.kind import Object
from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")
RACKS, NODES, GANGS, SIZE, STEPS = 3, 6, 4, 3, 8
NAME = "batch.kubernetes.io/job-name"
Members = dict[str, dict[str, Object]]  # by gang and rank


@pytest.fixture
def pools() -> Sequence[Pool]:
    """Nodes for one pod each."""
    capacity = {"cpu": "1", "memory": "8Gi", "pods": "110"}
    return (Pool(name="node", count=RACKS * NODES, capacity=capacity, topology=(Level(RACK, RACKS),)),)


class History:
    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.dice = cluster, random.Random(seed)
        self.racks: dict[str, str] = {}  # of nodes
        self.down: dict[str, str] = {}  # node -> how it went
        self.alone = self.checked = 0

    async def begin(self) -> None:
        nodes = (await self.cluster.client.kind("v1", "Node").list()).items
        self.racks = {one["metadata"]["name"]: one["metadata"]["labels"][RACK] for one in nodes}
        for number in range(GANGS):
            body = ring(f"ring-{number}", SIZE, topology="rack=required")
            body["spec"]["template"]["spec"]["tolerations"] = [
                {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "tolerationSeconds": 0}
            ]
            await self.cluster.create(body)

    async def members(self) -> Members:
        """That run on a node that is up, and are not on their way out."""
        found: Members = defaultdict(dict)
        for pod in await self.cluster.pods(NAME):
            runs = pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
            if runs and pod["spec"]["nodeName"] not in self.down:
                labels = pod["metadata"]["labels"]
                found[labels[NAME]][labels[INDEX]] = pod
        return found

    async def step(self) -> None:
        if self.down and self.dice.random() < 0.45:
            for node in self.dice.sample(sorted(self.down), self.dice.randint(1, len(self.down))):
                await self._return(node)
        else:
            up = sorted(set(self.racks) - set(self.down))
            for node in self.dice.sample(up, min(self.dice.randint(1, 4), len(up) - RACKS)):
                await self._take(node)

    async def _take(self, node: str) -> None:
        self.down[node] = self.dice.choice(("failed", "drained"))
        if self.down[node] == "failed":
            await fail(self.cluster, node)
            return
        pods = [one for one in await self.cluster.pods(NAME) if one["spec"].get("nodeName") == node]
        for pod in pods:
            await drain(self.cluster, pod)
        if not pods:
            await self.cluster.client.kind("v1", "Node").patch(node, {"spec": {"unschedulable": True}})

    async def _return(self, node: str) -> None:
        if self.down.pop(node) == "failed":
            await come_back(self.cluster, node)
        else:
            await self.cluster.client.kind("v1", "Node").patch(node, {"spec": {"unschedulable": None}})

    def whole(self, survivors: Members) -> dict[str, str]:
        """Gangs that must be whole now, and where: room in their rack for all that live there. A gang that has lost
        everybody may begin anew in any rack, and take that room: then nobody is sure."""
        homes = {gang: self._rack(pods) for gang, pods in survivors.items() if pods}
        if len(homes) < GANGS:
            self.alone += 1
            return {}
        living: dict[str, int] = defaultdict(int)
        for home in homes.values():
            living[home] += SIZE
        room = {rack: sum(self.racks[node] == rack for node in set(self.racks) - set(self.down)) for rack in living}
        return {gang: home for gang, home in homes.items() if room[home] >= living[home]}

    def _rack(self, pods: dict[str, Object]) -> str:
        (found,) = {self.racks[pod["spec"]["nodeName"]] for pod in pods.values()}  # never in two
        return found

    async def check(self, survivors: Members) -> None:
        wanted = self.whole(survivors)

        async def settled() -> bool:
            now = await self.members()
            return all(len(now[gang]) == SIZE for gang in wanted)

        await self.cluster.until(settled, 150, what=f"{sorted(wanted)} are whole, {self.down} down")
        now = await self.members()
        for gang, home in wanted.items():
            assert self._rack(now[gang]) == home
        for gang, pods in survivors.items():
            for rank, pod in pods.items():
                assert now[gang][rank]["metadata"]["uid"] == pod["metadata"]["uid"], f"{gang} {rank} was disturbed"
            assert len({self.racks[one["spec"]["nodeName"]] for one in now[gang].values()}) <= 1
        self.checked += len(wanted)


@pytest.mark.parametrize("seed", [1, 4])
async def test_replacements_stay_in_their_rack_and_siblings_where_they_are(cluster: Cluster, seed: int) -> None:
    history = History(cluster, seed)
    await history.begin()

    async def started() -> bool:
        return sum(map(len, (await history.members()).values())) == GANGS * SIZE

    await cluster.until(started, 150, what="all gangs run")
    for _ in range(STEPS):
        await history.step()
        await history.check(await history.members())
    assert history.checked >= STEPS  # the model had something to say
