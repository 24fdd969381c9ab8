"""`python -m kohort.cli.demo`: exit 0 if all promises were kept, 1 if not."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from kohort.cli.common import out
from kohort.cli.demo.screen import Screen, Stopwatch
from kohort.cli.demo.stories import POOLS, RACKS, STORIES, Story, more
from kohort.cli.demo.watching import Tale, follow
from kohort.cli.lookup import find_in_cluster
from kohort.cli.tree import page
from kohort.embedded import whole
from kohort.kube.client import Client
from kohort.scheduler.clusterlist import list_cluster
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import Pool

LIMIT: Final = 40.0  # seconds that the stories of one cluster may take
_LOOK: Final = 0.05
_NEXT: Final = """
your own cluster, for kubectl:
  kohort up --detach
  export KUBECONFIG=~/.local/share/kohort/kubeconfig
  kubectl apply -f examples/jobset-hello.yaml
  kubectl get jobsets,workloads,podgroups,pods
  kohort down
"""


async def tell(
    screen: Screen, stories: Sequence[Story], limit: float = LIMIT, *, pools: Sequence[Pool] = POOLS, tree: str = ""
) -> bool:
    """True if every promise was kept. `tree`: the workload that is shown as a tree at the end, NAMESPACE/NAME."""
    watch = Stopwatch()
    with tempfile.TemporaryDirectory(prefix="kohort-demo-") as folder:
        settings = Settings(data=Path(folder), minor="1.37", gates={}, port=0, in_memory=True)
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(Server(settings))
            client = await stack.enter_async_context(whole(server, pools))
            nodes = sum(pool.count for pool in pools)
            screen.say(
                f"Kubernetes 1.37 in this process at {server.url}: API server, controllers, gang scheduler, "
                f"{nodes} virtual nodes; ready after {watch.seconds:.1f} s"
            )
            await _play(screen, client, stories, limit)
            if tree:
                await _tree(screen, client, *tree.split("/"))
    return screen.summary(watch.seconds)


async def _play(screen: Screen, client: Client, stories: Sequence[Story], limit: float) -> None:
    async with AsyncExitStack() as stack:
        for story in stories:
            await client.kind("v1", "Namespace").create(_namespace(story))
            tale = Tale(story)
            await follow(tale, client, stack)
            screen.tales.append(tale)
            screen.say(f"\n{story.name}: {story.title}\n  {story.asks}", "bold")
        screen.say("")
        with screen.showing():
            for tale in screen.tales:
                tale.began = time.monotonic()
                for obj in tale.story.objects:
                    await client.of(obj).create(obj, tale.story.name)
            await _until_told(screen, limit)
    screen.say("")


async def _tree(screen: Screen, client: Client, namespace: str, name: str) -> None:
    screen.say(f"$ kohort tree -n {namespace} {name}", "bold")
    out.print(page(await find_in_cluster(client, await list_cluster(client), "", name, namespace)))
    screen.say("")


def _namespace(story: Story) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": story.name}}


async def _until_told(screen: Screen, limit: float) -> None:
    end = asyncio.get_running_loop().time() + limit
    while not all(tale.told for tale in screen.tales) and asyncio.get_running_loop().time() < end:
        screen.look()
        await asyncio.sleep(_LOOK)
    screen.look()


def main() -> int:
    import uvloop

    logging.getLogger("kohort").setLevel(logging.CRITICAL)
    screen = Screen(out)
    kept = uvloop.run(tell(screen, STORIES))
    if kept:
        out.print("\n[bold]and the other kinds, on racks of machines with GPUs[/]")
        kept = uvloop.run(tell(Screen(out), more(), pools=RACKS, tree="llm/chat"))
    out.print(_NEXT, end="")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
