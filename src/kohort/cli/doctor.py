"""`kohort doctor`: what is wrong with Kohort on a cluster, and the command that mends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from rich.text import Text

from kohort.cli.common import as_json, choice, friendly, out, write
from kohort.cli.lines import Hanging
from kohort.cli.targets import connected
from kohort.run.examination import examine
from kohort.run.findings import Finding, diagnose, worst

if TYPE_CHECKING:
    from kohort.kube.client import Client

_WORD: Final = {"good": ("ok", "green"), "odd": ("odd", "yellow"), "bad": ("bad", "bold red"), "unknown": ("?", "dim")}
_SAYS: Final = {
    "good": "nothing is wrong",
    "odd": "it works; see what is odd",
    "unknown": "nothing wrong was found; not all could be looked at",
    "bad": "something does not work: see above",
}


@friendly
def run(namespace: str, kubeconfig: str, context: str, output: str) -> int:
    """Exit code 1: something does not work."""
    choice("--output", output, ("text", "json"))

    async def look(client: Client) -> list[Finding]:
        return diagnose(await examine(client, namespace))

    found = connected(kubeconfig, context, "kohort-doctor", look)
    verdict = worst(found)
    if output == "json":
        write(as_json({"verdict": verdict, "findings": [asdict(one) for one in found]}))
    else:
        show(found)
        out.print(Text(_SAYS[verdict], _WORD[verdict][1]))
    return 1 if verdict == "bad" else 0


def show(found: Sequence[Finding]) -> None:
    width = max((len(one.what) for one in found), default=0)
    for one in found:
        word, style = _WORD[one.state]
        line = Text.assemble((f"{word:<4} ", style), (f"{one.what:<{width}}  ", "bold"), one.text)
        out.print(Hanging(line, width + 7))
        if one.mend:
            out.print(Hanging(Text(f"     → {one.mend}", "dim"), 7))
