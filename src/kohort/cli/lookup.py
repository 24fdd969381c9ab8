"""From what people name to the roots that are scheduled: a Job, a JobSet, a TrainJob... owns pods and groups somewhere
below it, found by owner references; a Workload is named by the groups that were made from it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.api.bundle import bundles
from kohort.cli.common import UsageError
from kohort.cli.quotawait import waiting_for_quota
from kohort.cli.up import default_folder
from kohort.kube.client import Client
from kohort.kube.discovery import NotServedError, ResourceType
from kohort.kube.errors import ApiError
from kohort.scheduler.clusterlist import ClusterList
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import Owner, composite_key
from kohort.scheduler.trees import BrokenChain, Group, PodInfo

Json = dict[str, Any]
Root = tuple[Group | PodInfo | BrokenChain, PodInfo | None]
Parents = dict[str, set[str]]  # uids of the owners of each
_IN_ORDER: Final = frozenset({"Job", "JobSet", "TrainJob"})
_GROUP_KINDS: Final = ("Workload", "CompositePodGroup", "PodGroup", "Pod")


def known_kinds() -> tuple[str, ...]:
    """Who is meant by a name without a kind: the topmost that has it. Bundles are listed from the bottom up."""
    return (*(kind for one in reversed(bundles()) for kind in one.explained), *_GROUP_KINDS)


@dataclass(slots=True)
class Found:
    """What was asked about, and the roots it has."""

    core: SchedulerCore
    kind: str
    namespace: str
    name: str
    roots: list[Root] = field(default_factory=list)
    note: str = ""  # where there are no roots: why
    preempted: list[str] = field(default_factory=list)  # who took pods of it, where it lacks some
    unread: list[str] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)  # groups beside the roots that have no pods, though none is ahead
    uid: str = ""  # of what was asked about; "" if only a saved state was looked at

    @property
    def asked(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def is_kind(word: str) -> bool:
    """Whether a word is a kind that is known without asking a server."""
    return _spelled(word) in known_kinds()


# ---- a saved state


def find_in_state(core: SchedulerCore, kind: str, name: str, namespace: str) -> Found:
    """Only pods and groups are in it: others are found by those they own directly."""
    for one in [_spelled(kind)] if kind else known_kinds():
        roots = _named(core, one, name, namespace)
        if not roots and one not in _GROUP_KINDS:
            owned = (own for own in _things(core, namespace) if any(_is(ref, one, name) for ref in own[1]))
            roots = _roots(core, [thing for thing, _ in owned])
        if roots:
            return Found(core, one, namespace, name, roots)
    raise UsageError(f"{kind + '/' if kind else ''}{name}: not in this state, in namespace {namespace}")


def _spelled(kind: str) -> str:
    """`jobs` is Job; other kinds are taken as they are written."""
    plain = kind.split(".", maxsplit=1)[0].lower()
    return next((one for one in known_kinds() if plain in {one.lower(), f"{one.lower()}s"}), kind)


def _is(reference: Owner, kind: str, name: str) -> bool:
    return (reference.kind.lower(), reference.name) == (kind.lower(), name)


# ---- a cluster


def config_file(kubeconfig: str) -> str | None:
    """The file that was named; else what the environment says; else that of `kohort up`."""
    if kubeconfig or os.environ.get("KUBECONFIG"):
        return kubeconfig or None
    own = default_folder() / "kubeconfig"
    return str(own) if own.exists() else None


async def find_in_cluster(client: Client, seen: ClusterList, kind: str, name: str, namespace: str) -> Found:
    found = await _object(client, kind, name, namespace)
    if found is None:
        wanted = f"{kind}/{name}" if kind else name
        kinds = "" if kind else f" (looked for {', '.join(known_kinds())})"
        raise UsageError(f"{wanted}: not found in namespace {namespace}{kinds}")
    type_, body = found
    return await found_of(client, seen, type_.kind, body, namespace, {})


async def found_of(
    client: Client, seen: ClusterList, kind: str, body: Json, namespace: str, known: dict[str, Parents]
) -> Found:
    """The roots below an object; `known`: who owns whom in each namespace, kept from one object to the next."""
    core, name = seen.core, body["metadata"]["name"]
    made = Found(core, kind, namespace, name, unread=seen.unread, uid=str(body["metadata"]["uid"]))
    made.roots = _named(core, kind, name, namespace)
    owned: list[Group | PodInfo] = []
    if not made.roots and kind not in _GROUP_KINDS:
        if namespace not in known:
            known[namespace] = await _parents(client, core, namespace)
        owned = _owned(core, body["metadata"]["uid"], namespace, known[namespace])
        made.roots = _roots(core, owned)
        made.bare = sorted(_bare(owned))
    if not made.roots:
        made.note = _ended(body)
        if not made.note:  # else what once kept it waiting is of no interest
            idle = _idle(kind, body, grouped=bool(owned))
            made.note = await _no_pods(client, body, namespace, idle)
    made.preempted = await _preempted(client, _short_of_pods(made.roots), namespace)
    return made


def _bare(owned: Iterable[Group | PodInfo]) -> Iterator[str]:
    """Groups without pods. Not those of Jobs, which may come one after the other, and tell what keeps them waiting."""
    for one in owned:
        spec = one.spec if isinstance(one, Group) and not one.members else None
        if spec is not None and spec.kind == "PodGroup" and not any(up.kind in _IN_ORDER for up in spec.owners):
            yield spec.name


async def _no_pods(client: Client, body: Json, namespace: str, note: str) -> str:
    """Why it has no pods, as its controller tells: by a condition, or by its last complaint."""
    for one in await waiting_for_quota(client, namespace):
        if body["metadata"]["uid"] in one.uids:
            return f"it waits for a quota: {one.message}"
    return note + await _warning(client, body, namespace)


def _short_of_pods(roots: Iterable[Root]) -> set[str]:
    """Uids of the groups that lack members, or have some without a node."""
    groups = [leaf for root, _ in roots if isinstance(root, Group) for leaf in root.leaves()]
    return {leaf.spec.uid for leaf in groups if leaf.spec is not None and (leaf.pending or not leaf.ready)}


async def _preempted(client: Client, groups: set[str], namespace: str) -> list[str]:
    """Who took pods of these groups, as the scheduler told: the pods themselves are gone."""
    if not groups:
        return []
    try:
        found = (await client.kind("v1", "Event").list(namespace, fields="reason=Preempted")).items
    except ApiError:
        return []
    told = [one for one in found if (one.get("involvedObject") or {}).get("uid") in groups]
    return [f"{one.get('message')} ({_last(one)})" for one in sorted(told, key=_last)]


def _last(event: Json) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


async def _warning(client: Client, body: Json, namespace: str) -> str:
    """The last thing that its controller complained about."""
    fields = f"involvedObject.uid={body['metadata']['uid']},type=Warning"
    try:
        found = (await client.kind("v1", "Event").list(namespace, fields=fields)).items
    except ApiError:
        return ""
    last = max(found, key=_last, default=None)
    return f"\n{last.get('reason')}: {last.get('message')}" if last is not None else ""


async def _object(client: Client, kind: str, name: str, namespace: str) -> tuple[ResourceType, Json] | None:
    """The object that is meant: of the kind, or of the first kind that has one of this name."""
    if kind:
        types = [await client.discovery.find(kind)]
    else:
        served = await client.discovery.all()
        types = [one for kind in known_kinds() for one in served if one.kind == kind and one.namespaced][:]
    for type_ in dict.fromkeys(types):
        try:
            return type_, await client.resource(type_).get(name, namespace)
        except ApiError as error:
            if error.code not in {403, 404} or (kind and error.code == 403):
                raise
    return None


async def _parents(client: Client, core: SchedulerCore, namespace: str) -> Parents:
    """Owners of all that owns pods and groups, whoever stands between: one list call for each kind of owner."""
    parents: Parents = {}
    ahead = [owners for _, owners in _things(core, namespace)]
    listed: set[tuple[str, str]] = set()
    while ahead:
        kinds = {(one.api_version, one.kind) for owners in ahead for one in owners} - listed
        ahead = []
        for api_version, kind in sorted(kinds):
            listed.add((api_version, kind))
            for own, owners in await _owners(client, api_version, kind, namespace):
                parents.setdefault(own, set()).update(one.uid for one in owners)
                ahead.append(owners)
    return parents


def _owned(core: SchedulerCore, uid: str, namespace: str, parents: Parents) -> list[Group | PodInfo]:
    """Pods and groups below an object."""
    things = _things(core, namespace)
    return [thing for thing, owners in things if _reaches({one.uid for one in owners}, uid, parents)]


async def _owners(client: Client, api_version: str, kind: str, namespace: str) -> list[tuple[str, list[Owner]]]:
    try:
        items = (await client.kind(api_version, kind).list(namespace)).items
    except (ApiError, NotServedError):
        return []  # what cannot be listed cannot be climbed; its owner may be found another way
    found = []
    for one in items:
        references = one["metadata"].get("ownerReferences") or ()
        owners = [Owner(ref.get("apiVersion", ""), ref["kind"], ref["name"], ref["uid"]) for ref in references]
        found.append((str(one["metadata"]["uid"]), owners))
    return found


def _reaches(uids: set[str], wanted: str, parents: Parents) -> bool:
    seen: set[str] = set()
    while uids:
        if wanted in uids:
            return True
        seen |= uids
        uids = {up for uid in uids for up in parents.get(uid, ())} - seen
    return False


def _ended(body: Json) -> str:
    """How it has ended; empty if it has not."""
    for one in (body.get("status") or {}).get("conditions") or ():
        if one.get("status") == "True" and one.get("type") in {"Complete", "Completed", "Failed", "SuccessCriteriaMet"}:
            return f"it has ended: {one['type']}" + (f", {one['message']}" if one.get("message") else "")
    return ""


def _idle(kind: str, body: Json, *, grouped: bool = False) -> str:
    """Why something that has not ended has no pods."""
    if (body.get("spec") or {}).get("suspend"):
        return "it is suspended: nothing is created for it until spec.suspend is false"
    if kind in {"PodGroup", "CompositePodGroup", "Workload"}:
        return "no pod names it yet: the controller of its workload makes them"
    if grouped:
        return "its groups are there, its pods are not: its controller makes them"
    if kind not in known_kinds():
        return f"no pod and no group belongs to it; accepted are {', '.join(known_kinds())}, or what owns one of them"
    return "it has no pods and no groups yet: its controller makes them"


# ---- what the scheduler knows


def _things(core: SchedulerCore, namespace: str) -> Iterable[tuple[Group | PodInfo, list[Owner]]]:
    """Pods and groups of a namespace, with their owners."""
    for member in core.cache.members.values():
        if (member.pod.metadata.namespace or "default") == namespace:
            yield member, member.pod.metadata.owner_references or []
    for group in core.cache.trees:
        if group.spec is not None and group.spec.namespace == namespace:
            yield group, list(group.spec.owners)


def waiting_roots(core: SchedulerCore, namespace: str = "", uids: Collection[str] | None = None) -> list[Root]:
    """Every root with a pod that has no node, or with fewer members than it needs; `uids`: only those of these pods."""
    chosen = [
        one
        for one in core.cache.members.values()
        if (not namespace or (one.pod.metadata.namespace or "default") == namespace)
        and (uids is None or one.uid in uids)
    ]
    return [root for root in _roots(core, chosen) if _waits(root[0])]


def _waits(root: Group | PodInfo | BrokenChain) -> bool:
    if isinstance(root, BrokenChain):
        return True
    if isinstance(root, PodInfo):
        return not root.node
    leaves = list(root.leaves())
    return any(leaf.pending for leaf in leaves) or (not root.ready and any(leaf.placed for leaf in leaves))


def _named(core: SchedulerCore, kind: str, name: str, namespace: str) -> list[Root]:
    trees, cache = core.cache.trees, core.cache
    if kind == "Pod":
        member = cache.members.get(cache.names.get(f"{namespace}/{name}", ""))
        return _roots(core, [member] if member is not None else [])
    if kind in {"PodGroup", "CompositePodGroup"}:
        key = f"{namespace}/{name}" if kind == "PodGroup" else composite_key(namespace, name)
        group = trees.get(key)
        return _roots(core, [group] if group is not None and group.spec is not None else [])
    if kind == "Workload":
        made = (one for one in trees if one.spec is not None and one.spec.namespace == namespace)
        return _roots(core, [one for one in made if one.spec is not None and one.spec.workload == name])
    return []


def _roots(core: SchedulerCore, things: Iterable[Group | PodInfo]) -> list[Root]:
    """Each root once; of groups without one, each group once."""
    found: dict[str, Root] = {}
    for thing in things:
        member = thing if isinstance(thing, PodInfo) else next(iter(thing.pending.values()), None)
        if isinstance(thing, PodInfo):
            root: Group | PodInfo | BrokenChain | None = core.cache.root(thing) or thing
        else:
            root = core.cache.trees.root(thing)
        if isinstance(root, BrokenChain):
            if member is not None and not member.node:
                found.setdefault(f"broken {root.group} {member.group}", (root, member))
        elif isinstance(root, PodInfo):
            found.setdefault(f"pod {root.uid}", (root, root))
        elif root is not None and (root.pending or root.placed or list(_pods(root))):
            found.setdefault(root.key, (root, member))
    return sorted(found.values(), key=_order)


def _pods(group: Group) -> Iterable[str]:
    return (uid for leaf in group.leaves() for uid in (*leaf.pending, *leaf.placed, *leaf.finished))


def _order(root: Root) -> tuple[str, str]:
    thing = root[0]
    if isinstance(thing, Group) and thing.spec is not None:
        return thing.spec.created, thing.spec.name
    return "~", root[1].pod.metadata.name if root[1] is not None else ""
