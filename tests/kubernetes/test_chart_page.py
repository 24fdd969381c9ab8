"""docs/install.md, followed from the first block to the last, on real Kubernetes."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.chartbed import ON_THE_HOST, ROOT, bed, helm_binary
from tests.support.hostproxy import LOOPBACK
from tests.support.pages import Step, steps

from kohort.testing.environment.environment import Environment

pytestmark = pytest.mark.timeout(600)
_PATIENCE = 90.0
_LOOKS = ("kubectl get", "kohort tree", "kohort doctor")


def programs(folder: Path, env: Environment) -> Path:
    """What a reader has: helm, kubectl and kohort. Kohort's own pods are sent to the node that can run them."""
    folder.mkdir()
    (folder / "kubectl").symlink_to(env.assets.path("kubectl"))
    more = " ".join(shlex.quote(word) for word in ON_THE_HOST)
    (folder / "helm").write_text(
        f'#!/bin/sh\ncase "$1" in install|upgrade) exec {helm_binary()} "$@" {more};; esac\nexec {helm_binary()} "$@"\n'
    )
    (folder / "kohort").write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT / "src"} exec {sys.executable} -m kohort.cli.main "$@"\n'
    )
    for name in ("helm", "kohort"):
        (folder / name).chmod(0o755)
    return folder


async def test_the_page(kubernetes_environments: Callable[..., Environment], tmp_path: Path) -> None:
    async with bed("1.37", tmp_path, kubernetes_environments, services=True) as cluster:
        env = await asyncio.to_thread(kubernetes_environments, "1.37", ("kcm", "scheduler"), None, LOOPBACK)
        environment = {
            **os.environ,
            "PATH": f"{programs(tmp_path / 'bin', env)}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "KUBECONFIG": str(cluster.kubeconfig),
        }
        for step in (one for one in steps() if one.page == "install.md"):
            await _follow(step, environment)


async def _follow(step: Step, environment: dict[str, str]) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        process = await asyncio.create_subprocess_shell(
            step.command,
            cwd=ROOT,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = (await process.communicate())[0].decode()
        if step.shown_in(said) and process.returncode == 0:
            return
        assert step.command.startswith(_LOOKS), f"$ {step.command} ({process.returncode})\n{said}"
        assert time.monotonic() < end, f"$ {step.command} ({process.returncode})\n{said}"
        await asyncio.sleep(0.5)
