"""Groups of pods that name none: what `kohort.grouping` says of them, kept up to date and put into the trees.

Pods that say the same (same owner, same keys) share one answer, so a pod costs a look-up. An answer remembers which
objects it rests on; when one of them comes, changes or goes, the answer is made anew, and its pods move if it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct, field

from kohort.api.scheduling.ranks import RANK
from kohort.grouping.keys import OWN
from kohort.grouping.model import NOTHING, Absent, Answer, Kind, Place, Reference, Rule, Subject, Thing, UnseenError
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
_MOST_SHAPES: Final = 4096


class _Shape(NamedTuple):
    """Keys of labels or annotations, and what grouping reads of those that have them."""

    keys: tuple[str, ...]
    read: Callable[[Mapping[str, str]], Any]  # the values of `keys`
    zeros: tuple[tuple[str, str], ...]  # `Rule.zero_keys`
    rules: frozenset[int]  # that look by one of them


def _nothing(_said: Mapping[str, str]) -> None:
    return None


class Entry(Struct, eq=False, gc=False):
    """Pods that say the same."""

    signature: Signature
    sample: Subject
    rules: tuple[Rule, ...]  # that look at such pods
    answer: Answer = None
    key: str | None = None
    rests_on: frozenset[Dependency] = frozenset()
    uids: set[str] = field(default_factory=set[str])
    since: float | None = None  # when it was first seen to wait for an object
    rank: str = ""  # label of the pods that says their rank


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
        self.objects = Objects()
        self._era = 0
        self._index(settings)
        self._entries: dict[Signature, Entry] = {}
        self._of_pod: dict[str, Entry] = {}
        self._resting: dict[Dependency, set[Signature]] = {}
        self._waiting: dict[Signature, Entry] = {}  # for objects that they can do without
        self._made = MadeTrees(trees, changed)
        self._moved = moved

    def use(self, settings: Grouping) -> None:
        """Other rules from now on. Whoever keeps the pods assigns each of them again."""
        self._era += 1
        self._index(settings)

    def _index(self, settings: Grouping) -> None:
        """By what rules look at pods."""
        self.settings = settings
        self._rules = settings.rules
        self._keys = {key for rule in self._rules for key in (*rule.keys, *rule.also)} | set(OWN)
        self._zero_keys = sorted({item for rule in self._rules for item in rule.zero_keys.items()})
        self._by_key = _by(self._rules, lambda rule: rule.keys)
        self._by_owner = _by(self._rules, lambda rule: rule.owners)
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._owning: dict[tuple[str, str], frozenset[int]] = {}
        self._chosen: dict[tuple[frozenset[int], ...], tuple[Rule, ...]] = {}

    # ---- pods

    def assign(self, pod: Pod) -> str | None:
        """The group of a pod that names none; None: it has none."""
        signature = self._signature(pod)
        uid = pod.metadata.uid
        known = self._of_pod.get(uid)
        if known is not None:
            if known.signature == signature:
                if known.rank:
                    _tell_rank(pod, known.rank)
                return known.key
            self.release(uid)
        if signature is None:
            return None
        entry = self._entries.get(signature)
        if entry is None:
            entry = self._new(signature, pod)
        entry.uids.add(uid)
        self._of_pod[uid] = entry
        if entry.rank:
            _tell_rank(pod, entry.rank)
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
        labels, annotations = meta.labels or NOTHING, meta.annotations or NOTHING
        owner = controller_of(meta)
        one, other = self._shape(labels), self._shape(annotations)
        looks = one.rules or other.rules or (owner is not None and self._owned(owner))
        if not looks or not self.settings.covers(pod.spec.scheduler_name, meta.namespace):
            return None
        zeros = () if not one.zeros else tuple(
            key for key, needed in one.zeros if labels[key] == "0" and (not needed or needed in annotations)
        )  # fmt: skip
        owned_by = owner.uid if owner is not None else ""
        said = (one.keys, one.read(labels), other.keys, other.read(annotations), zeros)
        return (self._era, meta.namespace, owned_by, *said)

    def _shape(self, said: Mapping[str, str]) -> _Shape:
        """Pods of one template have the same keys, whatever their values: which of them are read is found once."""
        keys = tuple(said)
        known = self._shapes.get(keys)
        if known is None:
            if len(self._shapes) >= _MOST_SHAPES:  # anybody can make up labels
                self._shapes.clear()
            read = tuple(key for key in keys if key in self._keys)
            zeros = tuple(item for item in self._zero_keys if item[0] in said)
            rules = frozenset(number for key in keys for number in self._by_key.get(key, ()))
            known = self._shapes[keys] = _Shape(read, itemgetter(*read) if read else _nothing, zeros, rules)
        return known

    def _owned(self, owner: Owner) -> frozenset[int]:
        """The rules that look at pods of this controller."""
        known = self._owning.get((owner.api_version, owner.kind))
        if known is None:
            if len(self._owning) >= _MOST_SHAPES:
                self._owning.clear()
            numbers = frozenset(self._by_owner.get(_reference(owner).of, ()))
            known = self._owning[owner.api_version, owner.kind] = numbers
        return known

    def _new(self, signature: Signature, pod: Pod) -> Entry:
        entry = self._entries[signature] = Entry(signature, _subject(pod), self._rules_for(pod))
        entry.rank = next((rule.rank for rule in entry.rules if rule.rank), "") if self.settings.custom else ""
        self._define(entry)
        self._answer(entry)
        return entry

    def _rules_for(self, pod: Pod) -> tuple[Rule, ...]:
        """Those that look at such a pod, by a key or by its owner: of all rules mostly one or two."""
        meta = pod.metadata
        owner = controller_of(meta)
        which = (
            self._shape(meta.labels or NOTHING).rules,
            self._shape(meta.annotations or NOTHING).rules,
            self._owned(owner) if owner is not None else frozenset[int](),
        )
        known = self._chosen.get(which)
        if known is None:
            numbers = sorted(frozenset[int]().union(*which))
            known = self._chosen[which] = tuple(self._rules[number] for number in numbers)
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


def _tell_rank(pod: Pod, label: str) -> None:
    """A rule says which label is the rank: whoever reads ranks finds it as our own annotation."""
    meta = pod.metadata
    found = (meta.labels or NOTHING).get(label)
    if found is not None and RANK not in (meta.labels or ()) and RANK not in (meta.annotations or ()):
        meta.annotations = {**(meta.annotations or {}), RANK: found}


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
