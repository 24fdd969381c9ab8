"""A case of `kohort plan` on a cluster: what is there before, what is submitted, and what comes of it.

Whether something has started is read from the objects of the API, not from what a plan reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tests.support.plancases import Case, File, classes

from kohort.api.kind import Object
from kohort.api.objects import name_of
from kohort.cli.plan import Planned, look_at, workloads
from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.plan.clustercopy import ClusterCopy, read_cluster
from kohort.plan.plan import Outcome, plan
from kohort.testing.cluster import Cluster, condition

_INDEX: Final = ("batch.kubernetes.io/job-completion-index", "grove.io/podclique-pod-index")
_LEADER: Final = "leaderworkerset.sigs.k8s.io/"
_REPLICA: Final = re.compile(r"^((?:PodClique|LeaderWorkerSet) \w+)-(\d+)(-\w+#\d+|#\d+)$")
_ENDED: Final = ("Succeeded", "Failed")
_QUIET: Final = 3.0
Places = dict[str, list[str]]  # whose pod, by its owner and its index -> nodes


@dataclass
class Happened:
    """`gone`: whose pod, from which node, had to go; which of several equal ones is left open.

    `files`: those that were submitted: all, or up to the first for which somebody had to go. What the controllers of
    those do then, and so what becomes of later files, no plan can know.
    """

    before: ClusterCopy
    files: tuple[File, ...] = ()
    places: Places = field(default_factory=dict)
    starts: dict[str, bool] = field(default_factory=dict)
    gone: list[tuple[str, str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def judged(self) -> tuple[File, ...]:
        """Who lost pods for the last file may have them back elsewhere by now: again their controllers' business."""
        return self.files[-1:] if self.gone else self.files


def owner(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((f"{one['kind']} {one['name']}" for one in owners if one.get("controller")), "")


def places(pods: Iterable[Object]) -> Places:
    found: Places = {}
    for pod in (one for one in pods if one["spec"].get("nodeName")):
        labels = pod["metadata"].get("labels") or {}
        index = next((labels[key] for key in _INDEX if key in labels), "")
        whose = f"{owner(pod)}#{index}" if index else pod["metadata"]["name"]
        if f"{_LEADER}name" in labels:
            replica, worker = labels[f"{_LEADER}group-index"], labels[f"{_LEADER}worker-index"]
            whose = f"LeaderWorkerSet {labels[f'{_LEADER}name']}-{replica}#{worker}"
        found.setdefault(whose, []).append(pod["spec"]["nodeName"])
    return {whose: sorted(nodes) for whose, nodes in sorted(found.items())}


def of(name: str, objects: Iterable[Object]) -> list[Object]:
    """The name of a workload is a part of the names of what its controllers make."""
    return [one for one in objects if re.search(rf"(^|[-.]){name}([-.]|$)", name_of(one))]


def has_started(pods: list[Object], groups: list[Object], composites: list[Object]) -> bool:
    """Pods of no group have a node; every tree has its minimum, from its leaves up."""
    bound: dict[str, int] = {}
    for pod in pods:
        group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
        if not group and not pod["spec"].get("nodeName"):
            return False
        bound[group] = bound.get(group, 0) + bool(pod["spec"].get("nodeName"))
    enough: dict[str, list[bool]] = {}
    for group in groups:
        had = bound.get(name_of(group), 0)
        enough.setdefault(_parent(group), []).append(had >= _least(group, "minCount"))
    left = {name_of(one): one for one in composites}
    while left:
        above = {_parent(one) for one in left.values()}
        for name, one in [(name, one) for name, one in left.items() if name not in above]:
            del left[name]
            done = sum(enough.pop(name, []))
            enough.setdefault(_parent(one), []).append(done >= _least(one, "minGroupCount"))
    return bool(pods) and all(enough.get("", []))


def _parent(group: Object) -> str:
    return str((group["spec"].get("parentCompositePodGroupName")) or "")


def _least(group: Object, count: str) -> int:
    gang = (group["spec"].get("schedulingPolicy") or {}).get("gang")
    return 1 if gang is None else int(gang.get(count) or 1)


async def pods_of(cluster: Cluster, files: Iterable[File]) -> list[Object]:
    every = await cluster.pods()
    alive = [pod for pod in every if (pod.get("status") or {}).get("phase") not in _ENDED]
    return [pod for file in files for pod in of(file.name, alive)]


async def settled(cluster: Cluster, files: Iterable[File], quiet: float, step: float) -> None:
    """Nothing has changed for so long, and whoever waits has been told why."""
    files, seen, same = tuple(files), object(), 0.0
    while same < quiet:
        await cluster.sleep(step)
        pods = await pods_of(cluster, files)
        now = sorted(
            (pod["metadata"]["uid"], pod["spec"].get("nodeName", ""), "deletionTimestamp" in pod["metadata"])
            for pod in pods
        )
        told = all(pod["spec"].get("nodeName") or _is_decided(pod) for pod in pods)
        same = same + step if now == seen and told else 0.0
        seen = now


def _is_decided(pod: Object) -> bool:
    return condition(pod, "PodScheduled") is not None and "nominatedNodeName" not in pod["status"]


async def submit(cluster: Cluster, file: File) -> list[str]:
    refused = []
    for obj in file.objects:
        try:
            await cluster.create(obj)
        except ApiError as error:
            refused.append(f"{obj['kind']}/{name_of(obj)}: {error.message}")
    return refused


async def happens(
    cluster: Cluster, case: Case, quiet: float = 25.0, step: float = 1.0, between: float = _QUIET
) -> Happened:
    """`quiet`: seconds without a change after the last file, `between`: after each of the others."""
    for one in classes():
        await cluster.client.of(one).apply(one, force=True)
    await cluster.create(*case.ground)
    await cluster.until(lambda: _counted(cluster), what="quotas having counted")
    there: tuple[File, ...] = ()
    for file in case.running:
        there = (*there, file)
        await submit(cluster, file)
        await settled(cluster, there, between, step)
    made, told = Happened(await read_cluster(cluster.client)), await _preempted(cluster)
    bound = {one["metadata"]["uid"]: one for one in made.before.pods() if one["spec"].get("nodeName")}
    for file in case.submitted:
        there = (*there, file)
        made.files = (*made.files, file)
        made.refused += await submit(cluster, file)
        await settled(cluster, there, quiet if file is case.submitted[-1] else between, step)
        if gone := await _preempted(cluster) - told:
            # Others may go with them: that is their controllers' business.
            made.gone = sorted((owner(bound[uid]), bound[uid]["spec"]["nodeName"]) for uid in gone & bound.keys())
            break
        bound |= {one["metadata"]["uid"]: one for one in await cluster.pods() if one["spec"].get("nodeName")}
    made.places = places(await pods_of(cluster, made.judged))
    every, groups, composites = await cluster.pods(), await cluster.pod_groups(), await cluster.composites()
    for file in made.judged:
        made.starts[file.name] = has_started(*(of(file.name, some) for some in (every, groups, composites)))
    return made


async def _preempted(cluster: Cluster) -> set[str]:
    found = await cluster.events("Preempted")
    return {one["involvedObject"]["uid"] for one in found if one["involvedObject"].get("kind") == "Pod"}


async def _counted(cluster: Cluster) -> bool:
    return all((one.get("status") or {}).get("hard") for one in await cluster.every("v1", "ResourceQuota"))


def planned(happened: Happened, namespace: str) -> Outcome[tuple[list[Planned], Places]]:
    """What a plan says of the same files, and where the pods of the copy went."""
    objects = [obj for file in happened.files for obj in file.objects]

    async def look(client: Client) -> tuple[list[Planned], Places]:
        there = (await client.kind("v1", "Pod").list(namespace)).items
        alive = [pod for pod in there if (pod.get("status") or {}).get("phase") not in _ENDED]
        where = places(pod for file in happened.judged for pod in of(file.name, alive))
        return await look_at(client, workloads(objects), namespace), where

    return plan(happened.before, [file.objects for file in happened.files], look, namespace=namespace)


def by_replica(found: Places) -> dict[str, list[Places]]:
    """Replicas of a LeaderWorkerSet or of a PodCliqueSet are made from one template, no rank goes from one to the next,
    and their controllers do not make them in one moment: which of them is where is left open, not where each of its
    pods is beside the others. Of everything else nothing is left open."""
    replicas: dict[tuple[str, str], Places] = {}
    for whose, nodes in found.items():
        named = _REPLICA.match(whose)
        workload, number, member = named.groups() if named else (whose, "", "")
        replicas.setdefault((workload, number), {})[member] = nodes
    sets: dict[str, list[Places]] = {}
    for (workload, _), one in replicas.items():
        sets.setdefault(workload, []).append(one)
    return {workload: sorted(ones, key=repr) for workload, ones in sets.items()}


def differences(happened: Happened, namespace: str) -> list[str]:
    """What the plan had wrong."""
    outcome = planned(happened, namespace)
    found, where = outcome.found
    told: list[str] = []
    for file in happened.judged:
        said = bool(mine := [one for one in found if of(file.name, [_named(one)])]) and all(one.starts for one in mine)
        if said != happened.starts[file.name]:
            told.append(f"{file.kind} {file.name}: the plan says {said}, it is {happened.starts[file.name]}")
    if by_replica(where) != by_replica(happened.places):
        told.append(f"places: planned {_only(where, happened.places)}, happened {_only(happened.places, where)}")
    if _names(outcome.refused) != _names(happened.refused):
        told.append(f"refused: planned {outcome.refused}, happened {happened.refused}")
    victims = sorted((one.owner, one.node) for one in outcome.victims)
    if victims != happened.gone:
        told.append(f"victims: planned {victims}, happened {happened.gone}")
    return told


def _named(one: Planned) -> Object:
    return {"metadata": {"name": one.found.name}}


def _names(refused: Iterable[str]) -> list[str]:
    return sorted(one.partition(":")[0] for one in refused)


def _only(one: Places, other: Places) -> Places:
    return {whose: nodes for whose, nodes in one.items() if other.get(whose) != nodes}
