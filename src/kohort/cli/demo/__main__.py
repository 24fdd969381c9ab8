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
from kohort.cli.demo.stories import POOLS, STORIES, Story
from kohort.cli.demo.watching import Tale, follow
from kohort.embedded import whole
from kohort.kube.client import Client
from kohort.server.server import Server
from kohort.server.settings import Settings

LIMIT: Final = 50.0  # seconds that all stories together may take
_LOOK: Final = 0.05
_NEXT: Final = """
your own cluster, for kubectl:
  kohort up --detach
  export KUBECONFIG=~/.local/share/kohort/kubeconfig
  kubectl apply -f examples/jobset-hello.yaml
  kubectl get jobsets,workloads,podgroups,pods
  kohort down
"""


async def tell(screen: Screen, stories: Sequence[Story], limit: float = LIMIT) -> bool:
    """True if every promise was kept."""
    watch = Stopwatch()
    with tempfile.TemporaryDirectory(prefix="kohort-demo-") as folder:
        settings = Settings(data=Path(folder), minor="1.37", gates={}, port=0, in_memory=True)
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(Server(settings))
            client = await stack.enter_async_context(whole(server, POOLS))
            nodes = sum(pool.count for pool in POOLS)
            screen.say(
                f"Kubernetes 1.37 in this process at {server.url}: API server, controllers, gang scheduler, "
                f"{nodes} virtual nodes; ready after {watch.seconds:.1f} s"
            )
            await _play(screen, client, stories, limit)
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
    out.print(_NEXT, end="")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
