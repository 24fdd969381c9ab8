"""`kohort explain`: why something waits, or where it runs, asked of a cluster through its API or of a saved state."""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from kohort.cli.common import UsageError, as_json, choice, friendly, out, say, write
from kohort.cli.explainprint import page
from kohort.cli.lookup import Found, find_in_cluster, find_in_state
from kohort.cli.up import default_folder
from kohort.kube.client import Client
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError, ConfigError, TransportError
from kohort.scheduler.ask import Answer, about
from kohort.scheduler.gather import look
from kohort.scheduler.snapshot import SnapshotError, load


@friendly
def explain(target: str, namespace: str, kubeconfig: str, context: str, state: str, output: str) -> int:
    choice("-o", output, ("text", "json"))
    kind, _, name = target.rpartition("/")
    if not name:
        raise UsageError(f'"{target}": no name; accepted is NAME or KIND/NAME, for example job/train')
    if state:
        found = _from_state(state, kind, name, namespace or "default")
    else:
        try:
            found = asyncio.run(_from_cluster(kubeconfig, context, kind, name, namespace))
        except (ConfigError, TransportError, NotServedError) as error:
            raise UsageError(str(error)) from None
        except ApiError as error:
            raise UsageError(f"the API server refused: {error}") from None
    return _print(found, output)


def _print(found: Found, output: str) -> int:
    answers = [about(found.core, root, member) for root, member in found.roots]
    for problem in found.unread:
        say("warning", f"not looked at, the answer may be wrong: {problem}")
    if output == "json":
        write(as_json({"asked": found.asked, "note": found.note, "answers": [_json(one) for one in answers]}))
    else:
        out.print(page(found, answers, datetime.now(UTC)))
    return 0


def _json(answer: Answer) -> dict[str, Any]:
    told = asdict(answer)
    told["explanation"] = told.pop("told")
    return told


def _from_state(path: str, kind: str, name: str, namespace: str) -> Found:
    try:
        document = msgspec.json.decode(Path(path).read_bytes())
        core = load(document)
    except OSError as error:
        raise UsageError(f"--state {path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, SnapshotError) as error:
        raise UsageError(f"--state {path}: {error}") from None
    core.sync(0.0)
    return find_in_state(core, kind, name, namespace)


async def _from_cluster(kubeconfig: str, context: str, kind: str, name: str, namespace: str) -> Found:
    async with Client.connect(config(kubeconfig), context=context or None, manager="kohort-explain") as client:
        where = namespace or client.namespace
        return await find_in_cluster(client, await look(client), kind, name, where)


def config(kubeconfig: str) -> str | None:
    """The file that was named; else what the environment says; else that of `kohort up`."""
    if kubeconfig or os.environ.get("KUBECONFIG"):
        return kubeconfig or None
    own = default_folder() / "kubeconfig"
    return str(own) if own.exists() else None
