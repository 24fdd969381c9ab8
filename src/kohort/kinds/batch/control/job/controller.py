"""The Job controller as the runtime sees it: what it watches, and the view of one Job."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import controller_of
from kohort.api.releases import Gate
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, enqueue_nothing, key_of
from kohort.controllers.gangquota import GangQuota, told, uncounted
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.reverse_index import Adopters, ReverseIndex
from kohort.gang.compile import CompileContext
from kohort.gang.render import v1alpha2, v1beta1
from kohort.kinds.batch.compile.existing import MAX_CHAIN
from kohort.kinds.batch.compile.parts import GROUP_TEMPLATE
from kohort.kinds.batch.control.job.pod import is_tracked
from kohort.kinds.batch.control.job.reconcile import BackoffMemory, JobView, reconcile
from kohort.kinds.batch.settings import JobSettings
from kohort.place.requests import pod_requests

BATCH: Final = 1.0  # seconds in which changes of pods are gathered
_NOBODY: Final = ""  # stands for the Job of pods that have none: nobody counts them, so nothing may hold them
_PARENTS: Final = (("jobset.x-k8s.io/v1alpha2", "JobSet"),)


def job_controller(ctx: CompileContext, *, grouping: bool = True) -> Controller:
    """`grouping`: whether the server has Workloads and PodGroups. Without, Jobs run as they always did."""
    if not grouping:
        ctx = replace(ctx, gates=ctx.gates - {Gate.JOB})
    waiting, parents = ReverseIndex(_delegated), ReverseIndex(_above)

    adopters = Adopters()

    def of_job(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        waiting.update(old, new)
        adopters.see(old, new)
        return _of_job(old, new)

    def of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        yield from _of_pod(old, new)
        if new is not None and controller_of(new) is None:
            yield from (Enqueue(key, BATCH) for key in adopters.of(new))

    def of_parent(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        parents.update(old, new)
        return ()

    def of_workload(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        """Jobs whose group is to be of a Workload further up may have waited for it."""
        if old is not None or new is None:
            return _of_owned(old, new)
        owners = [ref for top in _reference(new) for ref in (top, *_between(top, parents))]
        return [item for ref in owners for item in waiting.enqueue(ref)]

    gated, quota = grouping and ctx.release.has_pod_groups and not ctx.settings.of(JobSettings).parity, GangQuota()
    watches = [
        Watch("batch/v1", "Job", of_job),
        Watch("v1", "Pod", of_pod, {"job": _jobs_of_pod, "loose": _loose}, controllers=("Job", "")),
    ]
    if gated:
        watches.append(Watch("v1", "Pod", enqueue_nothing, {"group": _group_of_pod}))
        watches.append(Watch("v1", "ResourceQuota", enqueue_nothing, {"namespace": _namespace}, optional=True))
    if grouping and ctx.release.has_pod_groups:
        version = ctx.release.api_version
        parity = ctx.settings.of(JobSettings).parity
        # Upstream does not look at a Job when its groups change; an edit stays until something else happens.
        watches += [
            Watch(version, "Workload", enqueue_nothing if parity else of_workload, {"ref": _reference}),
            Watch(version, "PodGroup", enqueue_nothing if parity else _of_owned, {"workload": _workload}),
            *(Watch(api_version, kind, of_parent, optional=True) for api_version, kind in _PARENTS),
        ]
    memories: dict[Key, BackoffMemory] = {}

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        view = view_of(key, reader, now, grouping=grouping)
        if gated:
            view = replace(view, quota=_QuotaOf(quota, key.namespace, reader, now))
        if view.job is None:
            memories.pop(key, None)
        return reconcile(
            view, memories.setdefault(key, BackoffMemory()) if view.job is not None else BackoffMemory(), ctx
        )

    return Controller(name="job", watches=tuple(watches), reconcile=reconcile_key)


@dataclass(frozen=True, slots=True)
class _QuotaOf:
    """The gangs of a namespace before its quotas."""

    quota: GangQuota
    namespace: str
    reader: Reader
    now: datetime

    def uncounted(self, pod: Object) -> bool:
        return bool(_group_name(pod)) and uncounted(self._quotas(), self.now)

    def _quotas(self) -> Sequence[Object]:
        return self.reader.indexed("ResourceQuota", "namespace", self.namespace)

    def shortage(self, pod: Object, least: int | None) -> str:
        quotas = self._quotas()
        group = _group_name(pod)
        if not quotas or not group:
            return ""
        if least is None:
            made = self.reader.get("PodGroup", Key(self.namespace, group)) or {}
            policy = (made.get("spec") or {}).get("schedulingPolicy") or {}
            least = (policy.get("gang") or {}).get("minCount")
        if not least:
            return ""
        short = self.quota.shortage(
            quotas, (self.namespace, group), pod_requests(pod["spec"]), int(least), there=self._there, now=self.now
        )
        return told(group, int(least), short) if short is not None else ""

    def concerned(self, pod: Object) -> Sequence[Object]:
        group = self.reader.get("PodGroup", Key(self.namespace, _group_name(pod)))
        if group is None:
            return []
        owners = group["metadata"].get("ownerReferences") or ()
        above = [one for one in owners if one.get("controller") and one["kind"] != "Job"]
        return [group, *(_owner(one, self.namespace) for one in above)]

    def _there(self, gang: tuple[str, str]) -> int:
        return len(self.reader.indexed("Pod", "group", gang))

    def refused(self, pod: Object) -> None:
        self.quota.refused((self.namespace, _group_name(pod)))


def _group_name(pod: Object) -> str:
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def _owner(owner: Object, namespace: str) -> Object:
    """As much of an owner as an event about it needs."""
    meta = {"name": owner["name"], "namespace": namespace, "uid": owner["uid"]}
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "metadata": meta}


def _group_of_pod(pod: Object) -> Iterable[Hashable]:
    name = _group_name(pod)
    return [(key_of(pod).namespace, name)] if name else []


def _namespace(obj: Object) -> Iterable[Hashable]:
    return [key_of(obj).namespace]


def view_of(key: Key, reader: Reader, now: datetime, *, grouping: bool = True) -> JobView:
    job = reader.get("Job", key)
    pods = reader.indexed("Pod", "job", key)
    if job is not None:
        pods = pods + reader.indexed("Pod", "loose", key.namespace)
    elif key.name == _NOBODY:
        pods = [pod for pod in reader.indexed("Pod", "loose", key.namespace) if is_tracked(pod)]
    others = _others(job, key, reader) if job is not None and grouping else []
    return JobView(job, pods, others, now)


def _others(job: Object, key: Key, reader: Reader) -> list[Object]:
    """Workloads that name the Job or an owner of it, their PodGroups, and those owners."""
    found: list[Object] = []
    above: Object | None = job
    named = (key.namespace, "Job", key.name)
    for _ in range(MAX_CHAIN + 1):
        found += _named(named, reader)
        owner = controller_of(above) if above is not None else None
        if owner is None:
            break  # on top, or of a kind that is not watched: its Workloads name it all the same
        named = (key.namespace, str(owner.get("kind")), str(owner.get("name")))
        above = reader.get(named[1], Key(key.namespace, named[2]))
        if above is not None:
            found.append(above)
    return _once(found)


def _named(owner: tuple[str, str, str], reader: Reader) -> list[Object]:
    """Workloads of an owner, and their PodGroups."""
    found = list(reader.indexed("Workload", "ref", owner))
    names = [str(workload["metadata"]["name"]) for workload in found]
    return [*found, *(group for name in names for group in reader.indexed("PodGroup", "workload", (owner[0], name)))]


def _once(objects: list[Object]) -> list[Object]:
    return list({str(obj["metadata"].get("uid") or id(obj)): obj for obj in objects}.values())


# ---- event handlers: which keys a change enqueues


def _of_job(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """What a user changed is looked at now; what the controller itself wrote, in a moment."""
    job = new or old
    if job is None:
        return
    same = old is not None and new is not None and _generation(old) == _generation(new)
    yield Enqueue(key_of(job), BATCH if same else 0.0)


def _generation(job: Object) -> Any:
    return job["metadata"].get("generation")


def _of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    keys = [*(_jobs_of_pod(old) if old is not None else ()), *(_jobs_of_pod(new) if new is not None else ())]
    yield from (Enqueue(key, BATCH) for key in dict.fromkeys(keys))
    if new is not None and is_tracked(new) and controller_of(new) is None:
        yield Enqueue(Key(str(new["metadata"].get("namespace") or ""), _NOBODY), 0.0)


def _above(obj: Object) -> Iterable[tuple[str, str, str]]:
    owner = controller_of(obj)
    if owner is not None:
        yield (str(obj["metadata"].get("namespace") or ""), str(owner.get("kind")), str(owner.get("name")))


def _delegated(job: Object) -> Iterable[tuple[str, str, str]]:
    return _above(job) if GROUP_TEMPLATE in (job["metadata"].get("annotations") or {}) else ()


def _between(top: tuple[str, str, str], parents: ReverseIndex) -> Iterable[tuple[str, str, str]]:
    """Owners of Jobs that belong to the one on top themselves."""
    return [(key.namespace, kind, key.name) for _, kind in _PARENTS for key, _ in parents.enqueue(top)]


def _of_owned(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    if old is None:
        return  # made by us, or by somebody who tells the Job in another way
    for key in _owner_job(new or old):
        yield Enqueue(key, BATCH)


def _owner_job(obj: Object) -> Iterable[Key]:
    owner = controller_of(obj)
    if owner is not None and owner.get("kind") == "Job" and str(owner.get("apiVersion") or "").startswith("batch/"):
        yield Key(str(obj["metadata"].get("namespace") or ""), str(owner.get("name")))


_jobs_of_pod = _owner_job


def _loose(pod: Object) -> Iterable[Hashable]:
    """Pods without a controller, which a Job may adopt."""
    if controller_of(pod) is None:
        yield str(pod["metadata"].get("namespace") or "")


def _reference(workload: Object) -> Iterable[tuple[str, str, str]]:
    found = (workload.get("spec") or {}).get("controllerRef") or {}
    if found:
        yield (str(workload["metadata"].get("namespace") or ""), str(found.get("kind")), str(found.get("name")))


def _workload(group: Object) -> Iterable[Hashable]:
    spec = group.get("spec") or {}
    named = v1beta1.reference(spec) or v1alpha2.reference(spec)
    if named:
        yield (str(group["metadata"].get("namespace") or ""), named[0])
