"""`kohort translate`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from kohort import library, manifest
from kohort.api.kind import Object
from kohort.api.options import context
from kohort.cli.common import (
    UsageError,
    as_json,
    checked,
    choice,
    configured,
    friendly,
    out,
    parse_gates,
    report,
    say,
    write,
)
from kohort.gang.compile import workload_kinds
from kohort.gang.tree import Member
from kohort.library import Compiled

_WIRING_LINES = 20


@friendly
def run(
    filenames: list[str],
    to: str,
    output: str,
    gates: str,
    *,
    recursive: bool,
    children: bool,
    config: str = "",
    assignments: Sequence[str] = (),
) -> int:
    choice("-o", output, ("yaml", "json", "tree"))
    chosen = configured(config, assignments, {"featureGates", "settings"})
    switched = {**chosen.gates, **parse_gates(gates)}
    checked(lambda: context(to, switched))
    documents = manifest.read(filenames, recursive=recursive)
    results = library.compile(documents, to=to, gates=switched, settings=chosen.settings)
    if not results:
        found = ", ".join(document.name for document in documents)
        kinds = ", ".join(kind for _, kind in workload_kinds())
        raise UsageError(f"no workload in the input (found {found}); accepted are {kinds}")
    for result in results:
        report(result.problems)
    if output == "tree":
        show(results, out)
    elif output == "json":
        items = [obj for result in results for obj in _objects(result, children)]
        write(as_json({"apiVersion": "v1", "kind": "List", "items": items}))
    else:
        _yaml(results, children)
    return 0 if all(result.ok for result in results) else 1


def show(results: list[Compiled], console: Console) -> None:
    from kohort.cli.treeprint import tree

    for number, result in enumerate(result for result in results if result.ok):
        if number:
            console.print()
        console.print(tree(result), soft_wrap=False)


def _objects(result: Compiled, children: bool) -> list[Object]:
    return [*result.objects, *(result.children if children else ())]


def _yaml(results: list[Compiled], children: bool) -> None:
    """Objects as YAML; how pods join their group is told in comments, since pods are made by others."""
    parts = []
    for result in results:
        if not result.ok:
            continue
        objects = _objects(result, children)
        if not objects:
            say("note", f"{result.document.label}: no groups: {result.reason}")
            continue
        parts.append(_wiring(result) + "---\n".join(manifest.dump(obj) for obj in objects))
    if parts:
        write("---\n".join(parts))


def _wiring(result: Compiled) -> str:
    lines = [f"# {result.document.name} on Kubernetes {result.minor}"]
    by_group: dict[str, list[Member]] = {}
    for member in (member for plan in result.plans for member in plan.members if member.group):
        by_group.setdefault(str(member.group), []).append(member)
    for group, members in list(by_group.items())[:_WIRING_LINES]:
        sources = members[0].source if len(members) == 1 else f"{members[0].source} … {members[-1].source}"
        pods = sum(member.count for member in members)
        lines.append(f"# pods of {sources} ({pods}): spec.{_flow(result.links[group])}")
    if len(by_group) > _WIRING_LINES:
        lines.append(f"# … and so on for {len(by_group) - _WIRING_LINES} more groups")
    return "\n".join(lines) + "\n"


def _flow(link: Object) -> str:
    """{schedulingGroup: {podGroupName: x}} on one line."""
    ((outer, inner),) = link.items()
    return f"{outer}: {{{', '.join(f'{name}: {value}' for name, value in inner.items())}}}"
