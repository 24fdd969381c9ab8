"""`kohort demo`, `make demo`, `python -m kohort.cli.demo`: exit 0 if all promises were kept, 1 if not."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kohort.cli.common import example_path, out
from kohort.cli.demo import scenes
from kohort.cli.demo.screen import Screen, Stopwatch
from kohort.cli.demo.stories import POOLS, TOGETHER, WAITS, Story, kinds, racks
from kohort.cli.demo.watching import Tale, follow
from kohort.cli.explainprint import page
from kohort.cli.lookup import find_in_cluster
from kohort.embedded import whole
from kohort.kube.client import Client
from kohort.scheduler.clusterlist import list_cluster
from kohort.scheduler.rootstatus import root_status
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import Pool

LIMIT: Final = 180.0  # seconds that the stories of one cluster may take on a machine that has other work, too
_LOOK: Final = 0.05
_SCENES: Final = {"preempts": scenes.preempts, "heals": scenes.heals}
# In the order in which they are told, and in one line each.
PARTS: Final = {
    "together": "Gangs start together",
    "waits": "A gang that does not fit waits as a whole, and says why",
    "preempts": "An urgent gang takes the room of another: all of it or nothing",
    "heals": "A node dies under a gang",
    "kinds": "All other kinds, on racks of machines with GPUs",
}


@contextlib.asynccontextmanager
async def stage(screen: Screen, pools: Sequence[Pool]) -> AsyncIterator[Client]:
    """A cluster in this process, without a port that anybody would have to free."""
    watch, nodes = Stopwatch(), sum(pool.count for pool in pools)
    screen.say(f"starting Kubernetes 1.37 in this process, with {nodes} virtual nodes ...")
    with tempfile.TemporaryDirectory(prefix="kohort-demo-") as folder:
        settings = Settings(data=Path(folder), minor="1.37", gates={}, port=0, in_memory=True)
        async with Server(settings) as server, whole(server, pools) as client:
            screen.say(f"API server, controllers and gang scheduler are ready after {watch.seconds:.1f} s")
            yield client


async def tell(
    screen: Screen, stories: Sequence[Story], limit: float = LIMIT, *, pools: Sequence[Pool] = POOLS
) -> bool:
    """Stories on a cluster of their own; true if every promise was kept."""
    watch = Stopwatch()
    async with stage(screen, pools) as client:
        await side_by_side(screen, client, stories, limit)
    return screen.summary(watch.seconds)


async def side_by_side(screen: Screen, client: Client, stories: Sequence[Story], limit: float = LIMIT) -> None:
    async with AsyncExitStack() as stack:
        tales = [Tale(story) for story in stories]
        for tale in tales:
            await client.kind("v1", "Namespace").create(_namespace(tale.story))
            await follow(tale, client, stack)
            screen.say(f"{tale.story.name}: {tale.story.title}")
            screen.say(f"  {tale.story.asks}", "dim")
        screen.tales += tales
        with screen.showing(tales):
            for tale in tales:
                tale.began = time.monotonic()
                for obj in tale.story.objects:
                    await client.of(obj).create(obj, tale.story.name)
            await _until_told(screen, tales, limit)


def _namespace(story: Story) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": story.name}}


async def _until_told(screen: Screen, tales: Sequence[Tale], limit: float) -> None:
    end = asyncio.get_running_loop().time() + limit
    while not all(tale.told for tale in tales) and asyncio.get_running_loop().time() < end:
        screen.look()
        await asyncio.sleep(_LOOK)
    screen.look()


async def explained(screen: Screen, client: Client, namespace: str, name: str) -> None:
    """What `kohort explain` says of a workload."""
    screen.say(f"\n$ kohort explain -n {namespace} job {name}", "bold")
    found = await find_in_cluster(client, await list_cluster(client), "job", name, namespace)
    answers = [root_status(found.core, root, member) for root, member in found.roots]
    screen.console.print(page(found, answers, datetime.now(UTC)))


async def perform(screen: Screen, parts: Sequence[str]) -> bool:
    """The parts that share a cluster, then the kinds on another; a table at the end."""
    watch = Stopwatch()
    shared = [part for part in parts if part != "kinds"]
    if shared:
        async with stage(screen, POOLS) as client:
            for part in shared:
                await _part(screen, client, part)
    if "kinds" in parts:
        screen.heading(PARTS["kinds"])
        async with stage(screen, racks()) as client:
            await side_by_side(screen, client, kinds())
    screen.say("")
    return screen.summary(watch.seconds)


async def _part(screen: Screen, client: Client, part: str) -> None:
    screen.heading(PARTS[part])
    if part in _SCENES:
        await scenes.play(screen, client, _SCENES[part])
    elif part == "waits":
        await side_by_side(screen, client, WAITS)
        await explained(screen, client, "giant", "giant")
        await client.kind("batch/v1", "Job").delete("giant", "giant", propagation="Foreground")
    else:
        await side_by_side(screen, client, TOGETHER)


def main(only: Sequence[str] = ()) -> int:
    import uvloop

    logging.getLogger("kohort").setLevel(logging.CRITICAL)
    kept = uvloop.run(perform(Screen(out), [part for part in PARTS if not only or part in only]))
    out.print(_next(), end="", markup=False)
    return 0 if kept else 1


def _next() -> str:
    return f"""
A cluster of your own, for kubectl; its nodes are virtual as well:
  kohort up --detach --cluster {example_path("cluster.yaml")}
  export KUBECONFIG=~/.local/share/kohort/kubeconfig
  kubectl apply -f {example_path("jobset-hello.yaml")}
  kubectl get jobsets,workloads,podgroups,pods
  kohort explain   # all that waits, and why
  kohort down
"""


if __name__ == "__main__":
    from kohort.cli.main import app

    app(["demo", *sys.argv[1:]], prog_name="kohort")
