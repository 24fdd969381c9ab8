"""`kohort plan`: would it start now, where, and who would have to go; if not, why, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rich.text import Text

from kohort.api.objects import name_of, namespace_of
from kohort.cli import drain
from kohort.cli.common import UsageError, answering, choice, configured, count, out, say
from kohort.cli.explainprint import SHORT, WHOLE, answer_lines, label_line, some
from kohort.cli.lines import Hanging
from kohort.cli.lookup import Found, find_in_cluster, is_kind
from kohort.cli.quotawait import waiting_for_quota
from kohort.cli.targets import connected, print_data, state_document
from kohort.cli.up import read_pools, read_profile
from kohort.gang.settings import DEFAULTS
from kohort.manifest import read
from kohort.plan.clustercopy import ClusterCopy, described, read_cluster, read_snapshot
from kohort.plan.existing import Applied, Existing, Pair, existing, would_apply
from kohort.plan.plan import Outcome, Victim, plan
from kohort.scheduler.clusterlist import list_cluster
from kohort.scheduler.rootstatus import RootState, RootStatus, root_status
from kohort.scheduler.snapshot import SnapshotError

if TYPE_CHECKING:
    from kohort.kube.client import Client

FORMS = ("text", "wide", "json", "yaml")
_FIELDS = 3  # that would change, in a message
_STARTED = (RootState.RUNNING, RootState.PARTLY)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What is asked, and about which cluster. `before`: files that are submitted first."""

    filename: tuple[str, ...]
    before: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    recursive: bool = False
    namespace: str = ""
    kubeconfig: str = ""
    context: str = ""
    state: str = ""
    cluster: str = ""
    config: str = ""
    assignments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """One workload of the files."""

    found: Found
    statuses: list[RootStatus] = field(default_factory=list)
    lacks: str = ""  # what of it has no pods, and why

    @property
    def starts(self) -> bool:
        """All its groups have what they need at least; a workload that has no pods has nothing to start."""
        return (
            bool(self.statuses)
            and not self.lacks
            and all(one.state in _STARTED and not one.missing for one in self.statuses)
        )


@answering
def run(asked: PlanOptions, output: str) -> int:
    choice("-o", output, FORMS)
    if asked.drain:
        _check_drain(asked)
        return drain.run(asked.drain, asked.state, asked.kubeconfig, asked.context, output)
    if not asked.filename:
        raise UsageError("-f FILE or --drain NODE: one of the two is wanted")
    chosen = configured(asked.config, asked.assignments, ("featureGates", "profile", "settings"))
    before, files = _files(asked.before, asked.recursive), _files(asked.filename, asked.recursive)
    targets = workloads(obj for objects in files for obj in objects)
    if not targets:
        raise UsageError(f"-f {', '.join(asked.filename)}: no workload, group or pod is in it")
    cluster, namespace, pairs = _cluster(asked, targets)
    there = {one.key: one for one in would_apply(cluster.minor, pairs)}
    there |= {one.key: one for one in _seen(cluster, targets, namespace) if one.key not in there}

    def is_new(obj: dict[str, Any]) -> bool:
        return (str(obj.get("kind")), namespace_of(obj) or namespace, name_of(obj)) not in there

    targets, files = [obj for obj in targets if is_new(obj)], [[obj for obj in one if is_new(obj)] for one in files]

    async def look(client: Client) -> list[Planned]:
        return await look_at(client, targets, namespace)

    profile = read_profile("profile", chosen.profile)
    settings = chosen.settings or DEFAULTS
    result: Outcome[list[Planned]] = Outcome([])
    if targets:
        result = plan(cluster, [*before, *files], look, namespace=namespace, profile=profile, settings=settings)
    for problem in cluster.unread:
        say("warning", f"not looked at, the answer may be wrong: {problem}")
    starts = not there and not result.refused and all(one.starts for one in result.found)
    if output in {"json", "yaml"}:
        print_data(output, _data(result, there.values(), starts=starts))
    else:
        _print(result, there.values(), wide=output == "wide")
    return 0 if starts else 1


def _check_drain(asked: PlanOptions) -> None:
    beside = {"-f": asked.filename, "--with": asked.before, "--cluster": asked.cluster, "--config": asked.config}
    given = [option for option, value in beside.items() if value]
    if given:
        raise UsageError(f"--drain and {', '.join(given)}: a drain is asked about alone, of a cluster or a --state")


def _files(paths: Sequence[str], recursive: bool) -> list[list[dict[str, Any]]]:
    """The objects of each."""
    found: dict[str, list[dict[str, Any]]] = {}
    wrong: list[str] = []
    for document in read(paths, recursive=recursive):
        found.setdefault(document.source, []).append(document.obj)
        wrong += [f"{document.source}: {document.label}: {text}" for text in _lacks_of_object(document.obj)]
    if wrong:
        raise UsageError("\n".join(wrong))
    return list(found.values())


def _lacks_of_object(obj: Mapping[str, Any]) -> Iterator[str]:
    """Without these no server can be told what it is."""
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name), str) or not obj[name]:
            yield f"{name}: Required value: a Kubernetes object names it"
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not (meta.get("name") or meta.get("generateName")):
        yield "metadata.name: Required value: a Kubernetes object names it"


def workloads(objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What can start or not; the rest of a file comes with it."""
    return [obj for obj in objects if is_kind(str(obj.get("kind")))]


async def look_at(client: Client, targets: Sequence[dict[str, Any]], namespace: str) -> list[Planned]:
    """How these stand in the copy."""
    seen = await list_cluster(client)
    made = []
    for obj in targets:
        space = namespace_of(obj) or namespace
        try:
            found = await find_in_cluster(client, seen, str(obj["kind"]), name_of(obj), space)
        except UsageError:
            continue  # refused, which is told beside
        statuses = [root_status(found.core, root, member) for root, member in found.roots]
        made.append(Planned(found, statuses, await _lacks(client, found, space) if statuses else ""))
    return made


async def _lacks(client: Client, found: Found, namespace: str) -> str:
    """Why a part of it has no pods, though another part has."""
    short = [one.message for one in await waiting_for_quota(client, namespace) if found.uid in one.uids]
    if short:
        return f"a part of it waits for a quota: {short[0]}"
    return f"PodGroup {found.bare[0]} has no pods: its controller could not make them" if found.bare else ""


def _cluster(asked: PlanOptions, targets: Sequence[dict[str, Any]]) -> tuple[ClusterCopy, str, list[Pair]]:
    """And the namespace that is meant where an object names none; and those of the files that it has already, as far
    as they are in it: files have pods and groups only."""
    given = [option for option, value in (("--state", asked.state), ("--cluster", asked.cluster)) if value]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)}: one cluster is asked about; leave out one of the two")
    if asked.state:
        return _snapshot(asked.state), asked.namespace or "default", []
    if asked.cluster:
        nodes = [node for pool in read_pools(asked.cluster) for node in pool.nodes()]
        return described(nodes), asked.namespace or "default", []

    async def ask(client: Client) -> tuple[ClusterCopy, str, list[Pair]]:
        namespace = asked.namespace or client.namespace
        return await read_cluster(client), namespace, await existing(client, targets, namespace)

    return connected(asked.kubeconfig, asked.context, "kohort-plan", ask)


def _snapshot(path: str) -> ClusterCopy:
    try:
        return read_snapshot(state_document(path))
    except SnapshotError as error:
        raise UsageError(f"--state {path}: {error}") from None


def _seen(cluster: ClusterCopy, targets: Sequence[dict[str, Any]], namespace: str) -> Iterator[Existing]:
    """Those whose pods and groups are there: they have been decided about."""
    known = {
        (str(one["kind"]), str(obj["metadata"].get("namespace", "default")), str(one["name"]))
        for name in ("pods", "podgroups", "compositepodgroups", "workloads")
        for obj in cluster.of(name)
        for one in obj["metadata"].get("ownerReferences") or ()
    }
    for obj in targets:
        found = Existing(str(obj["kind"]), namespace_of(obj) or namespace, name_of(obj), Applied.UNKNOWN)
        if found.key in known:
            yield found


# ---- printing


def _data(result: Outcome[list[Planned]], there: Iterable[Existing], *, starts: bool) -> dict[str, Any]:
    workloads = [
        {
            "kind": one.found.kind,
            "namespace": one.found.namespace,
            "name": one.found.name,
            "starts": one.starts,
            "note": one.found.note or one.lacks,
            "roots": [asdict(status) for status in one.statuses],
        }
        for one in result.found
    ]
    victims, known = [asdict(one) for one in result.victims], [asdict(one) for one in there]
    return {
        "starts": starts,
        "workloads": workloads,
        "existing": known,
        "victims": victims,
        "refused": result.refused,
    }


def _there(one: Existing) -> Text:
    name = Text.assemble(f"{one.kind} ", (one.name, "bold"), f" in {one.namespace} ")
    what = f"{one.kind.lower()}/{one.name}"
    ended = f", and has ended ({one.ended})" if one.ended else ""
    refused = one.applied is Applied.REFUSED
    does = ""
    if refused:
        does = f"kubectl apply would be refused: {one.message}; "
    elif one.applied is Applied.CONFIGURED:
        does = f"kubectl apply would update it ({some(one.fields, _FIELDS)}), which is not planned; "
    elif one.applied is Applied.UNCHANGED:
        does = "kubectl apply would leave it unchanged; "
    helps = f"kubectl delete {what} first, or give it another name" if one.ended or refused else ""
    text = f": it is in the cluster already{ended}; {does}{helps or f'kohort explain {what} says how it stands'}"
    return Text.assemble(name, ("does not start", "yellow"), text)


def _print(result: Outcome[list[Planned]], there: Iterable[Existing], *, wide: bool) -> None:
    shown, page = WHOLE if wide else SHORT, out.to(wide=wide)
    for text in result.refused:
        say("error", f"the API server would refuse {text}")
    for known in there:
        page.print(Hanging(_there(known)))
    for number, one in enumerate(result.found):
        if number:
            page.print()
        page.print(Hanging(_title(one)))
        for status in one.statuses:
            for line in answer_lines(status, alone=len(one.statuses) == 1, planned=True, shown=shown):
                page.print(line)
    for text in _victims(result.victims, shown.nodes):
        page.print(label_line("evicted", Text(text, "yellow")))


def _title(one: Planned) -> Text:
    name = Text.assemble(f"{one.found.kind} ", (one.found.name, "bold"), f" in {one.found.namespace} ")
    if not one.statuses:
        return Text.assemble(name, ("does not start", "yellow"), f": {one.found.note}")
    placed, pending = sum(status.placed for status in one.statuses), sum(status.pending for status in one.statuses)
    if not one.starts:
        some = f": {placed} of {count(placed + pending, 'pod')} would have a node" if placed and pending else ""
        some += f": {one.lacks}" if one.lacks else ""
        return Text.assemble(name, ("does not start", "yellow"), some)
    more = f", {pending} more would wait" if pending else ""
    return Text.assemble(name, ("starts", "green"), f": {count(placed, 'pod')} at once{more}")


def _victims(victims: Sequence[Victim], most: int) -> list[str]:
    """A line for each owner."""
    by_owner = Counter((one.namespace, one.owner or f"Pod {one.name}") for one in victims)
    lines = []
    for (namespace, owner), number in sorted(by_owner.items()):
        named = [one.name for one in victims if (one.namespace, one.owner) == (namespace, owner)]
        pods = some(named, most)
        lines.append(f"{owner} in {namespace}: {count(number, 'pod')}{f' ({pods})' if pods else ''}")
    return lines
