"""Groups of pods that name none: what `kohort.grouping` says of them, kept up to date and put into the trees.

Pods that say the same (same owner, same keys) share one answer, so a pod costs a look-up. An answer remembers which
objects it rests on; when one of them comes, changes or goes, the answer is made anew, and its pods move if it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kohort.grouping.keys import OWN
from kohort.grouping.model import Absent, Answer, Kind, Place, Reference, Rule, Subject, Thing, UnseenError
from kohort.grouping.owners.sizes import JOB
from kohort.grouping.registry import group
from kohort.grouping.settings import Grouping
from kohort.scheduler.madetrees import MadeTrees
from kohort.scheduler.model import Job, ObjectMeta, Owner, Owning, Pod
from kohort.scheduler.trees import GroupTrees

Dependency = tuple[str, str, str]  # kind (or rule, of a definition), namespace, name
Signature = tuple[Any, ...]
T = TypeVar("T")
_GONE_AFTER: Final = 10.0  # seconds until an object that a pod can do without is taken for gone


@dataclass(slots=True, eq=False)
class Entry:
    """Pods that say the same."""

    signature: Signature
    sample: Subject
    rules: tuple[Rule, ...]  # that look at such pods
    answer: Answer = None
    key: str | None = None
    rests_on: frozenset[Dependency] = frozenset()
    uids: set[str] = field(default_factory=set)
    since: float | None = None  # when it was first seen to wait for an object


class Objects:
    """What rules look up. `looked`: what the present rule has asked for."""

    def __init__(self) -> None:
        self.things: dict[Dependency, Thing] = {}
        self.definitions: dict[Dependency, str] = {}
        self.looked: set[Dependency] = set()
        self.readable: set[Kind] = set()
        self.refused: set[Kind] | None = None  # None: all that is not readable
        self.wanted: set[Kind] = set()  # asked for, and not known whether they can be read
        self.missed: set[Kind] = set()  # asked for, and not readable when somebody looked
        self.gone: set[Dependency] = set()

    def find(self, kind: Kind, namespace: str, name: str, *, wait: bool = True) -> Thing | None:
        dependency = (f"{kind.name}.{kind.group}", namespace, name)
        self.looked.add(dependency)
        found = self.things.get(dependency)
        if found is not None:
            return found
        if kind not in self.readable:
            if self.refused is None or kind in self.refused:
                self.missed.add(kind)
                return None
            self.wanted.add(kind)
            wait = False
        if not wait and dependency in self.gone:
            return None
        raise UnseenError(kind.name, namespace, name, wait=wait)

    def definition(self, rule: str, namespace: str, name: str) -> str | None:
        dependency = (rule, namespace, name)
        self.looked.add(dependency)
        return self.definitions.get(dependency)


class Companion:
    """`moved` is told of pods whose group is another one now; `changed` of roots whose tree is."""

    def __init__(
        self,
        settings: Grouping,
        trees: GroupTrees,
        moved: Callable[[str, str | None], None],
        changed: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.objects = Objects()
        self._rules = settings.rules
        self._keys = {key for rule in self._rules for key in (*rule.keys, *rule.also)} | set(OWN)
        self._zero_keys = sorted({item for rule in self._rules for item in rule.zero_keys.items()})
        self._looks = {key for rule in self._rules for key in rule.keys}
        self._by_key = _by(self._rules, lambda rule: rule.keys)
        self._by_owner = _by(self._rules, lambda rule: rule.owners)
        self._chosen: dict[frozenset[int], tuple[Rule, ...]] = {}
        self._owner_kinds = {(kind.group, kind.name) for rule in self._rules for kind in rule.owners}
        self._owning: dict[tuple[str, str], bool] = {}
        self._entries: dict[Signature, Entry] = {}
        self._of_pod: dict[str, Entry] = {}
        self._resting: dict[Dependency, set[Signature]] = {}
        self._waiting: dict[Signature, Entry] = {}  # for objects that they can do without
        self._made = MadeTrees(trees, changed)
        self._moved = moved

    # ---- pods

    def assign(self, pod: Pod) -> str | None:
        """The group of a pod that names none; None: it has none."""
        signature = self._signature(pod)
        uid = pod.metadata.uid
        known = self._of_pod.get(uid)
        if known is not None:
            if known.signature == signature:
                return known.key
            self.release(uid)
        if signature is None:
            return None
        entry = self._entries.get(signature)
        if entry is None:
            entry = self._new(signature, _subject(pod))
        entry.uids.add(uid)
        self._of_pod[uid] = entry
        return entry.key

    def release(self, uid: str) -> None:
        """A pod is gone."""
        entry = self._of_pod.pop(uid, None)
        if entry is None:
            return
        entry.uids.discard(uid)
        if not entry.uids:
            self._forget(entry)

    def _signature(self, pod: Pod) -> Signature | None:
        """What grouping may read of a pod; None if no rule looks at it."""
        meta = pod.metadata
        labels, annotations = meta.labels, meta.annotations
        owner = controller_of(meta)
        looked, keys = self._looks, self._keys
        looks = (
            (owner is not None and self._owns(owner.api_version, owner.kind))
            or (labels is not None and not looked.isdisjoint(labels))
            or (annotations is not None and not looked.isdisjoint(annotations))
        )
        if not looks or not self.settings.covers(pod.spec.scheduler_name, meta.namespace):
            return None
        said: list[Any] = [meta.namespace, owner.uid if owner is not None else ""]
        if labels is not None:
            for key, value in labels.items():
                if key in keys:
                    said += (key, value)
            for key, needed in self._zero_keys:
                if labels.get(key) == "0" and (not needed or needed in (annotations or ())):
                    said.append(key)
        if annotations is not None:
            said.append(None)
            for key, value in annotations.items():
                if key in keys:
                    said += (key, value)
        return tuple(said)

    def _owns(self, api_version: str, kind: str) -> bool:
        """Whether a rule looks at pods of this controller."""
        known = self._owning.get((api_version, kind))
        if known is None:
            known = self._owning[api_version, kind] = (api_version.rpartition("/")[0], kind) in self._owner_kinds
        return known

    def _new(self, signature: Signature, sample: Subject) -> Entry:
        entry = self._entries[signature] = Entry(signature, sample, self._rules_for(sample))
        self._define(entry)
        self._answer(entry)
        return entry

    def _rules_for(self, sample: Subject) -> tuple[Rule, ...]:
        """Those that look at such a pod, by a key or by its owner: of all rules mostly one or two."""
        found: set[int] = set()
        for said in (sample.labels, sample.annotations):
            for key in self._looks.intersection(said):
                found.update(self._by_key[key])
        if sample.owner is not None:
            found.update(self._by_owner.get(sample.owner.of, ()))
        which = frozenset(found)
        known = self._chosen.get(which)
        if known is None:
            known = self._chosen[which] = tuple(self._rules[number] for number in sorted(which))
        return known

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.signature]
        self._waiting.pop(entry.signature, None)
        self._rest(entry, frozenset())
        self._undo(entry, entry.answer)

    def _undo(self, entry: Entry, answer: Answer) -> None:
        if isinstance(answer, Place):
            self._made.drop(entry, answer)
        elif isinstance(answer, Absent):
            self._made.wait_no_more(entry, answer)

    # ---- answers

    def _answer(self, entry: Entry) -> None:
        """Ask the rules, and put what they say into the trees."""
        self.objects.looked = set()
        answer = group(entry.sample, self.objects, entry.rules)
        self._rest(entry, frozenset(self.objects.looked))
        before, entry.answer = entry.answer, answer
        if isinstance(answer, Place):
            entry.key = self._made.put(entry, answer)
        elif isinstance(answer, Absent):
            entry.key = self._made.wait(entry, answer)
        else:
            entry.key = None
        if before != answer:
            self._undo(entry, before)
        if isinstance(answer, Absent) and not answer.wait:
            self._waiting[entry.signature] = entry
        else:
            self._waiting.pop(entry.signature, None)
            entry.since = None

    def _rest(self, entry: Entry, on: frozenset[Dependency]) -> None:
        before, entry.rests_on = entry.rests_on, on
        if before == on:
            return
        for gone in before - on if before else ():
            left = self._resting.get(gone)
            if left is not None:
                left.discard(entry.signature)
                if not left:
                    del self._resting[gone]
        for new in on - before if before else on:
            resting = self._resting.get(new)
            if resting is None:
                self._resting[new] = {entry.signature}
            else:
                resting.add(entry.signature)

    def _again(self, dependency: Dependency) -> None:
        for signature in list(self._resting.get(dependency, ())):
            entry = self._entries.get(signature)
            if entry is None:
                continue
            before = entry.key
            self._answer(entry)
            if entry.key != before:
                for uid in list(entry.uids):
                    self._moved(uid, entry.key)

    def _define(self, entry: Entry) -> None:
        for rule in entry.rules:
            found = rule.defines(entry.sample) if rule.defines is not None else None
            if found is not None:
                dependency = (rule.name, entry.sample.namespace, found[0])
                if dependency not in self.objects.definitions:
                    self.objects.definitions[dependency] = found[1]
                    self._again(dependency)

    # ---- objects that pods rest on

    def put(self, kind: Kind, obj: Owning, api_version: str) -> None:
        thing = _thing(kind, obj, api_version)
        dependency = (f"{kind.name}.{kind.group}", thing.namespace, thing.name)
        before = self.objects.things.get(dependency)
        self.objects.things[dependency] = thing
        self.objects.gone.discard(dependency)
        if before != thing:
            self._again(dependency)

    def set_job(self, job: Job) -> None:
        """Jobs are read in a form of their own."""
        sizes = {"parallelism": job.spec.parallelism, "completions": job.spec.completions}
        self.put(JOB, Owning(job.metadata, spec=sizes), "batch/v1")

    def drop(self, kind: Kind, namespace: str, name: str) -> None:
        """Its pods keep their group: they go with it, or somebody keeps them, and then they run on."""
        self.objects.things.pop((f"{kind.name}.{kind.group}", namespace or "default", name), None)

    def readable(self, kinds: set[Kind], refused: set[Kind] | None = None) -> None:
        """What can be read is known; of what is neither readable nor refused, somebody will find out."""
        self.objects.readable |= kinds
        self.objects.refused = refused
        self.objects.wanted -= kinds | (refused or set())
        for dependency in list(self._resting):
            self._again(dependency)

    def refuse(self, kind: Kind) -> None:
        """It cannot be read: rules do without it, for now."""
        refused = self.objects.refused
        if refused is not None:
            self.readable(set[Kind](), {*refused, kind})

    def overdue(self, now: float) -> bool:
        """Objects that did not come, and that pods can do without, are taken for gone. -> whether any were"""
        late = []
        for entry in self._waiting.values():
            if entry.since is None:
                entry.since = now
            elif now - entry.since >= _GONE_AFTER:
                late += [one for one in entry.rests_on if one not in self.objects.things]
        for dependency in late:
            self.objects.gone.add(dependency)
            self._again(dependency)
        return bool(late)

    # ---- for people

    def grouped(self) -> Iterator[tuple[Entry, Place]]:
        """Every answer that made a group."""
        for entry in self._entries.values():
            if isinstance(entry.answer, Place):
                yield entry, entry.answer

    def queue(self, uid: str) -> str:
        entry = self._of_pod.get(uid)
        return entry.answer.queue if entry is not None and isinstance(entry.answer, Place) else ""


def _by(rules: Sequence[Rule], looks: Callable[[Rule], Iterable[T]]) -> dict[T, list[int]]:
    """What rules look by -> their numbers."""
    found: dict[T, list[int]] = {}
    for number, rule in enumerate(rules):
        for key in looks(rule):
            found.setdefault(key, []).append(number)
    return found


def _subject(pod: Pod) -> Subject:
    meta = pod.metadata
    owner = controller_of(meta)
    return Subject(
        meta.namespace or "default", meta.name, meta.labels or {}, meta.annotations or {},
        _reference(owner) if owner is not None else None,
    )  # fmt: skip


def controller_of(meta: ObjectMeta) -> Owner | None:
    for owner in meta.owner_references or ():
        if owner.controller:
            return owner
    return None


def _reference(owner: Owner) -> Reference:
    return Reference(owner.api_version, owner.kind, owner.name, owner.uid)


def _thing(kind: Kind, obj: Owning, api_version: str) -> Thing:
    meta = obj.metadata
    owner = controller_of(meta)
    return Thing(
        obj.api_version or api_version, kind.name, meta.namespace or "default", meta.name, meta.uid, meta.labels or {},
        meta.annotations or {}, _reference(owner) if owner is not None else None, obj.spec,
    )  # fmt: skip
