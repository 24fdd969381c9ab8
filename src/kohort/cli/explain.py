"""`kohort explain`: why something waits, or where it runs, asked of a cluster through its API or of a saved state."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kohort.cli.common import UsageError, as_json, choice, friendly, out, say, write
from kohort.cli.explainprint import page
from kohort.cli.lookup import Found, find_in_state, in_cluster, split
from kohort.scheduler.rootstatus import root_status
from kohort.scheduler.snapshot import SnapshotError, load


@friendly
def explain(target: str, namespace: str, kubeconfig: str, context: str, state: str, output: str) -> int:
    choice("-o", output, ("text", "json"))
    if state:
        found = _from_state(state, *split(target), namespace or "default")
    else:
        found = in_cluster(target, namespace, kubeconfig, context, "kohort-explain")
    return _print(found, output)


def _print(found: Found, output: str) -> int:
    answers = [root_status(found.core, root, member) for root, member in found.roots]
    for problem in found.unread:
        say("warning", f"not looked at, the answer may be wrong: {problem}")
    if output == "json":
        write(as_json({"asked": found.asked, "note": found.note, "answers": [asdict(one) for one in answers]}))
    else:
        out.print(page(found, answers, datetime.now(UTC)))
    return 0


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
