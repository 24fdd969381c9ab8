"""A tiny API server in memory and in virtual time: what a controller needs of one, with our own admission in front.

Writes are judged by kohort.api.admit. Finalizers, grace periods, owners and their collector, the protection of
PodGroups and the pod collector behave as the recordings show. Faults are injected by `refuse`.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from kohort.api import admit, registry
from kohort.api import apply as structures
from kohort.api import patch as patches
from kohort.api import result as results
from kohort.api.copying import copied
from kohort.api.crd import crd
from kohort.api.kind import Context, Kind, Object
from kohort.api.result import WriteResult
from kohort.api.scheduling.constants import PROTECTION_FINALIZER
from kohort.controllers.reconcile import Answer, Refusal, Write
from kohort.kinds.batch.admission import check_parallelism
from kohort.kinds.batch.api.selector import generate

PRIORITY_CLASSES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "batch-high"}, "value": 7000}
]
CONTENT = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
GRACE = 30
FAULT = (
    'Internal error occurred: failed calling webhook "probe.lab.example": failed to call webhook: '
    'an error on the server ("") has prevented the request from succeeding'
)
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
Key = tuple[str, str, str]  # kind, namespace, name


class Clock:
    """Virtual time: what is due happens in order, nothing happens by itself."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.begin = datetime(2026, 11, 15, 12, tzinfo=UTC)
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()

    @property
    def now(self) -> datetime:
        return self.begin + timedelta(seconds=self.seconds)

    def later(self, seconds: float, call: Callable[[], object]) -> None:
        heapq.heappush(self._due, (self.seconds + max(0.0, seconds), next(self._order), call))

    def step(self, limit: float) -> bool:
        """The next thing that is due, if it is due by `limit`."""
        if not self._due or self._due[0][0] > limit:
            return False
        self.seconds, _, call = heapq.heappop(self._due)
        call()
        return True

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; True as soon as `until` holds."""
        limit = self.seconds + seconds
        while not (until and until()):
            if not self.step(limit):
                self.seconds = limit
                return bool(until and until())
        return True


@dataclass
class Change:
    """`old` None: made; `new` None: gone."""

    kind: str
    old: Object | None
    new: Object | None

    @property
    def object(self) -> Object:
        return self.new or self.old or {}


@dataclass
class SimApi:
    ctx: Context
    clock: Clock = field(default_factory=Clock)
    objects: dict[Key, Object] = field(default_factory=dict)
    job_uids: Callable[[int], str] = lambda number: f"00000000-0000-4000-8000-{number:012}"
    watchers: list[Callable[[Change], object]] = field(default_factory=list)
    calls: list[tuple[str, str, int]] = field(default_factory=list)  # verb, kind, code
    refusals: list[tuple[str, str, int]] = field(default_factory=list)  # verb, kind, times left
    order: list[Key] = field(default_factory=list)  # pods in the order of creation
    unserved: set[str] = field(default_factory=set)
    priority_classes: list[Object] = field(default_factory=lambda: list(PRIORITY_CLASSES))
    next_answer: Answer | None = None  # instead of doing the next write
    plugins: list[Callable[[Object], WriteResult | None]] = field(default_factory=list)  # of admission, for new objects
    collects: bool = True  # garbage and terminating pods
    groups: set[str] = field(default_factory=lambda: {"", "batch", "scheduling.k8s.io"})  # of kinds that are judged
    _keys: dict[str, Key] = field(default_factory=dict)  # of uids
    _collecting: bool = False
    _version: int = 0
    _born: int = 0
    _jobs: int = 0

    # ---- reading

    def every(self, kind: str) -> list[Object]:
        return [copied(obj) for key, obj in self.objects.items() if key[0] == kind]

    def find(self, kind: str, name: str, namespace: str = "lab") -> Object | None:
        return copied(self.objects.get((kind, namespace, name)))

    def by_uid(self, uid: str) -> Object | None:
        key = self._keys.get(uid)
        found = self.objects.get(key) if key is not None else None
        return found if found is not None and found["metadata"].get("uid") == uid else None

    # ---- writing, as a reconcile asks for it

    def do(self, write: Write) -> Answer:
        if self.next_answer is not None:
            found, self.next_answer = self.next_answer, None
            return found
        verdict = self._do(write)
        self.calls.append((write.verb, f"{write.kind}/{write.subresource}".rstrip("/"), verdict.code))
        if verdict.code >= 400:
            return Answer(refusal=Refusal(verdict.code, verdict.reason, said(verdict, write.kind, write.name)))
        return Answer(copied(verdict.object))

    def _do(self, write: Write) -> WriteResult:  # noqa: PLR0911 - one for each verb
        for number, (verb, kind, left) in enumerate(self.refusals):
            if (verb, kind) == (write.verb, write.kind) and left:
                self.refusals[number] = (verb, kind, left - 1)
                return WriteResult(500, "InternalError", message=FAULT)
        if write.verb == "create":
            return self.create(write.body, write.namespace)
        key = (sort_of(write.api_version, write.kind), write.namespace, write.name)
        if write.verb == "apply":
            return self.apply(key, write.body)
        if key not in self.objects:
            return results.WriteResult(404, "NotFound", message=f'{write.kind.lower()}s "{write.name}" not found')
        if write.verb == "delete":
            if write.version and write.version != self.objects[key]["metadata"]["resourceVersion"]:
                return WriteResult(409, "Conflict", message="the version in the precondition is another")
            return self.delete(key, uid=write.uid, propagation=write.propagation)
        if write.verb == "patch":
            return self.patch(key, write.body, CONTENT[write.patch], write.subresource)
        return self.update(key, write.body, write.subresource)

    # ---- the verbs

    def create(self, body: Object, namespace: str = "lab", *, strict: bool = False) -> WriteResult:
        kind = self._kind(body)
        if body["kind"] in self.unserved:
            return results.not_served()
        if body["kind"] == "Pod" and (over := self._over_quota(body)):
            return over
        if kind is None:
            verdict = WriteResult(201, object=copied(body))
            verdict.object["metadata"].setdefault("namespace", namespace)  # type: ignore[index]
        else:
            named = self.objects.get((body["kind"], namespace, str(body["metadata"].get("name"))))
            others = [obj for key, obj in self.objects.items() if key[0] == "Workload" and body["kind"] == "PodGroup"]
            existing = [*others, *([named] if named is not None else [])]
            verdict = admit.create(
                copied(body),
                self.ctx,
                priority_classes=self.priority_classes,
                existing=existing,
                namespace=namespace,
                suffix=lambda: f"x{self._born + 1:04}",
                field_validation="Strict" if strict else "Warn",
            )
        if verdict.object is None:
            return verdict
        new = copied(verdict.object)
        for plugin in self.plugins:
            refused = plugin(new)
            if refused is not None:
                return refused
        self._born += 1
        new["metadata"] |= {"uid": self._uid(new["kind"]), "creationTimestamp": self._time()}
        if new["kind"] == "Job":
            generate(new, new["metadata"]["uid"])
        if new["kind"] == "Pod":
            new.setdefault("status", {}).setdefault("phase", "Pending")
            self.order.append(("Pod", namespace, new["metadata"]["name"]))
        self._store(new)
        return WriteResult(201, object=new, warnings=verdict.warnings)

    def update(self, key: Key, body: Object, subresource: str = "") -> WriteResult:
        old = self.objects[key]
        if self._kind(old) is None:
            return self._changed(key, WriteResult(200, object=copied(body)))
        verdict = admit.update(copied(body), old, self.ctx, subresource=subresource)
        return self._changed(key, verdict)

    def patch(self, key: Key, body: Any, content: str, subresource: str = "") -> WriteResult:
        old = self.objects[key]
        if self._kind(old) is None:
            merged = patches.merge(copied(old), body)
            return self._changed(key, WriteResult(200, object=merged))
        verdict = admit.patch(body, copied(old), self.ctx, content_type=content, subresource=subresource)
        if key[0] == "Job" and verdict.object is not None and not subresource:
            groups = [obj for obj in self.objects.values() if obj["kind"] == "PodGroup"]
            denied = check_parallelism(verdict.object, old, groups, self.ctx)
            if denied:
                return WriteResult(403, "Forbidden", tuple(denied))
        return self._changed(key, verdict)

    def apply(self, key: Key, body: Object) -> WriteResult:
        """Server-side apply by one manager, forced."""
        old, kind = self.objects.get(key), self._kind(body)
        if body["kind"] in self.unserved:
            return results.not_served()
        native = kind is None or kind.native
        known = structures.native(self.ctx.release.minor, body["apiVersion"], body["kind"]) if native else None
        if kind is not None and not kind.native:
            known = _structure(kind.api_version, kind.kind)
        target = structures.Target(body["apiVersion"], body["kind"], known or structures.DEDUCED, dynamic=not native)
        merged = structures.apply(copied(old), body, of=target, manager="kohort", now=self._time(), force=True).object
        books = merged["metadata"].pop("managedFields", None)
        if old is None:
            verdict = self.create(merged, key[1])
        elif kind is None:
            verdict = self._changed(key, WriteResult(200, object=merged))
        else:
            verdict = self._changed(key, admit.update(merged, old, self.ctx))
        if key in self.objects and verdict.object is not None:
            self.objects[key]["metadata"]["managedFields"] = books
        return verdict

    def delete(
        self, key: Key, *, uid: str = "", propagation: str | None = None, grace: int | None = None
    ) -> WriteResult:
        old = self.objects[key]
        if uid and old["metadata"].get("uid") != uid:
            return WriteResult(409, "Conflict", message="the uid in the precondition is another")
        new = copied(old)
        meta = new["metadata"]
        if key[0] == "Job" and propagation is None:
            propagation = "Orphan"  # historical, of this kind only
        for policy, finalizer in (("Foreground", FOREGROUND), ("Orphan", ORPHAN)):
            if propagation == policy and self._dependents(meta["uid"]):
                meta["finalizers"] = sorted({*(meta.get("finalizers") or ()), finalizer})
        seconds = self._grace(new, grace)
        if "deletionTimestamp" in meta:
            seconds = min(seconds, meta.get("deletionGracePeriodSeconds") or 0)
        else:
            meta["generation"] = int(meta.get("generation") or 0) + 1
        meta["deletionTimestamp"] = self._time(seconds)
        meta["deletionGracePeriodSeconds"] = seconds
        self._store(new, even_if_same=False)
        return WriteResult(200, object=new)

    # ---- what others do to the cluster

    def set_status(self, key: Key, change: Callable[[Object], None]) -> None:
        """As a kubelet or a scheduler writes: nobody asks why."""
        new = copied(self.objects[key])
        change(new)
        self._store(new)

    # ---- inside

    def _kind(self, body: Object) -> Kind | None:
        found = registry.find(body["apiVersion"], body["kind"])
        return found if found is not None and found.group in self.groups else None

    def _changed(self, key: Key, verdict: WriteResult) -> WriteResult:
        if verdict.object is not None:
            new = copied(verdict.object)
            self._store(new)
            return WriteResult(verdict.code, object=copied(new), warnings=verdict.warnings)
        return verdict

    def _uid(self, kind: str) -> str:
        if kind == "Job":
            self._jobs += 1
            return self.job_uids(self._jobs)
        return f"{kind.lower()}-0000-4000-8000-{self._born:012}"

    def _time(self, seconds: float = 0) -> str:
        return (self.clock.now + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _grace(self, obj: Object, asked: int | None) -> int:
        if obj["kind"] != "Pod":
            return 0
        settled = (obj.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
        if settled or not obj["spec"].get("nodeName"):
            return 0
        return GRACE if asked is None else asked

    def _store(self, new: Object, *, even_if_same: bool = False) -> None:
        meta = new["metadata"]
        kind = self._kind(new)
        space = "" if kind is not None and not kind.namespaced else meta.get("namespace") or "lab"
        key = (sort_of(new["apiVersion"], new["kind"]), space, meta["name"])
        old = self.objects.get(key)
        if old is not None and not even_if_same and _same(old, new):
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            return
        self._version += 1
        meta["resourceVersion"] = str(self._version)
        gone = (
            meta.get("deletionTimestamp") and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds")
        )
        if gone:
            self.objects.pop(key, None)
        else:
            self.objects[key] = copied(new)
            self._keys[meta["uid"]] = key
        if gone and old is not None and not old["metadata"].get("deletionTimestamp"):
            self._tell(Change(key[0], old, copied(new)))
        self._tell(Change(key[0], old, None if gone else copied(new)))
        if self.collects and (meta.get("deletionTimestamp") or new["kind"] == "Pod" or meta.get("ownerReferences")):
            self._collect_soon()

    def _collect_soon(self) -> None:
        if not self._collecting:
            self._collecting = True
            self.clock.later(0.05, self.collect)

    def _tell(self, change: Change) -> None:
        for watcher in self.watchers:
            watcher(change)

    def _over_quota(self, pod: Object) -> WriteResult | None:
        for quota in self.every("ResourceQuota"):
            most, used = int(quota["spec"]["hard"]["pods"]), len(self.every("Pod"))
            if used >= most:
                text = (
                    f'pods "{pod["metadata"].get("generateName")}{{?}}" is forbidden: exceeded quota: '
                    f"{quota['metadata']['name']}, requested: pods=1, used: pods={used}, limited: pods={most}"
                )
                return WriteResult(403, "Forbidden", message=text)
        return None

    # ---- collectors

    def _dependents(self, uid: str) -> list[Object]:
        return [obj for obj in self.objects.values() if any(one["uid"] == uid for one in _owners(obj))]

    def collect(self) -> None:
        """One round of all collectors; what it changes asks for the next one."""
        self._collecting = False
        for key in reversed(list(self.objects)):
            obj = self.objects.get(key)
            if obj is None:
                continue
            self._collect_by_owner(key, obj)
            obj = self.objects.get(key)
            if obj is None or not obj["metadata"].get("deletionTimestamp"):
                continue
            self._finish_deletion(key, obj)

    def _collect_by_owner(self, key: Key, obj: Object) -> None:
        owners = _owners(obj)
        found = [(one, self.by_uid(one["uid"])) for one in owners]
        waiting = [one for one, owner in found if owner and FOREGROUND in (owner["metadata"].get("finalizers") or ())]
        orphaned = [one for one, owner in found if owner and ORPHAN in (owner["metadata"].get("finalizers") or ())]
        dangling = [one for one, owner in found if owner is None]
        drop = [*waiting, *dangling]
        if orphaned or (drop and len(drop) < len(owners)):
            left = [one for one in owners if one not in (orphaned or drop)]
            new = copied(obj)
            new["metadata"]["ownerReferences"] = left
            if not left:
                del new["metadata"]["ownerReferences"]
            self._store(new)
        elif drop and not obj["metadata"].get("deletionTimestamp"):
            again = waiting and self._dependents(obj["metadata"]["uid"])
            self.delete(key, propagation="Foreground" if again else "Background")

    def _finish_deletion(self, key: Key, obj: Object) -> None:
        finalizers = list(obj["metadata"].get("finalizers") or ())
        below = self._dependents(obj["metadata"]["uid"])
        if FOREGROUND in finalizers and not any(_blocks(one, obj) for one in below):
            finalizers.remove(FOREGROUND)
        if ORPHAN in finalizers and not below:
            finalizers.remove(ORPHAN)
        if PROTECTION_FINALIZER in finalizers and not self._is_used(obj):
            finalizers.remove(PROTECTION_FINALIZER)
        if finalizers != list(obj["metadata"].get("finalizers") or ()):
            new = copied(obj)
            new["metadata"]["finalizers"] = finalizers
            self._store(new)
        elif key[0] == "Pod" and not obj["spec"].get("nodeName") and obj["status"].get("phase") == "Pending":
            self.set_status(key, lambda pod: pod["status"].update(phase="Failed"))

    def _is_used(self, group: Object) -> bool:
        return any(
            (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") == group["metadata"]["name"]
            and (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}
            for pod in self.objects.values()
            if pod["kind"] == "Pod"
        )


@cache
def _structure(api_version: str, kind: str) -> structures.Structure:
    found = registry.find(api_version, kind)
    assert found is not None
    return structures.custom(crd([found])["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def sort_of(api_version: str, kind: str) -> str:
    """What a kind is called here: other projects have kinds called PodGroup, too."""
    group = api_version.rpartition("/")[0]
    return f"{kind}.{group}" if kind == "PodGroup" and group != "scheduling.k8s.io" else kind


def _owners(obj: Object) -> list[dict[str, Any]]:
    return list(obj["metadata"].get("ownerReferences") or ())


def _blocks(obj: Object, owner: Object) -> bool:
    return any(one["uid"] == owner["metadata"]["uid"] and one.get("blockOwnerDeletion") for one in _owners(obj))


def _same(old: Object, new: Object) -> bool:
    def body(obj: Object) -> str:
        meta = {
            name: value for name, value in obj["metadata"].items() if name not in {"resourceVersion", "managedFields"}
        }
        return json.dumps({**obj, "metadata": meta}, sort_keys=True)

    return body(old) == body(new)


def said(verdict: WriteResult, kind: str, name: str) -> str:
    """The message of a refusal."""
    if verdict.message:
        return verdict.message
    return "; ".join(str(cause) for cause in verdict.causes) or f"{kind} {name}: {verdict.reason}"


def pods_in_order(api: SimApi) -> Iterator[Object]:
    for key in api.order:
        if key in api.objects:
            yield api.objects[key]
