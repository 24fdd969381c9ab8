"""Rules between pods: how many pods of a selector are in each domain, counted as pods come and go.

Only terms that some signature uses are counted, each from the moment it is first used. A pod's labels are looked at
through the keys that some selector names, so that an index label per pod does not make each pod a class of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from kohort.apimachinery.labels import matches
from kohort.place.rulelimits import MOST_TERMS_OF_NAMESPACE
from kohort.place.signatures import PodSignature, Term
from kohort.place.termindex import TermIndex

if TYPE_CHECKING:
    from kohort.place.state import AssignedPod, ClusterState

Counts = npt.NDArray[np.int32]
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_SWEEP: Final = 256  # counters before unused ones are looked for
_FEW: Final = 64  # counters and classes that are not worth a look
_OF_NAMESPACE: Final = "pods of namespace {} have too many different rules between pods; at most {} are counted"


@dataclass(slots=True, eq=False)
class TermCounter:
    """Pods per domain of one term: those that match it, those that carry it as an anti-affinity rule, and how much
    those that carry it as a wish like (or dislike) company. `staying`: per row, matching pods that are not on their
    way out, which is what spreading counts."""

    term: Term
    selector: Mapping[str, Any] | None
    namespaces: Mapping[str, Any] | None
    also: tuple[TermCounter, ...] = ()
    carrier: str = ""  # namespace of the pod that brought it
    matching: Counts = field(default_factory=lambda: np.zeros(8, np.int32))
    anti_affinity: Counts = field(default_factory=lambda: np.zeros(8, np.int32))
    preference: Counts = field(default_factory=lambda: np.zeros(8, np.int32))
    staying: Counts = field(default_factory=lambda: np.zeros(0, np.int32))
    total: int = 0  # matching pods on nodes that have the label
    anti_affinity_total: int = 0
    preferring: int = 0  # pods that carry it as a wish

    def fits(self, codes: int, rows: int) -> None:
        """Room for all codes of the label and all rows."""
        missing = codes - len(self.matching)
        if missing > 0:
            fresh = np.zeros(max(missing, len(self.matching)), np.int32)
            self.matching = np.concatenate([self.matching, fresh])
            self.anti_affinity = np.concatenate([self.anti_affinity, fresh])
            self.preference = np.concatenate([self.preference, fresh])
        if rows > len(self.staying):
            self.staying = np.concatenate([self.staying, np.zeros(rows - len(self.staying), np.int32)])


@dataclass(slots=True, eq=False)
class EquivalenceClass:
    """Pods of one signature that match the same terms: what placing one of them changes for others."""

    signature: PodSignature
    matched: tuple[TermCounter, ...]
    pod_anti_affinity: tuple[TermCounter, ...] = ()  # of the signature itself
    pod_affinity: tuple[TermCounter, ...] = ()
    spread_constraints: tuple[TermCounter, ...] = ()
    preferred_pod_affinity: tuple[tuple[int, TermCounter], ...] = ()
    stale: bool = False  # a term was registered since: the class of the pod must be asked for again
    excess: str = ""  # why it must not be placed: more rules than are accepted

    @property
    def is_plain(self) -> bool:
        """No rule between pods touches where it may go or wants to go, neither its own nor another's."""
        if not self.matched:
            return self.signature.is_plain
        return self.signature.is_plain and not any(
            counter.anti_affinity_total or counter.preferring for counter in self.matched
        )

    @property
    def counts(self) -> bool:
        """Whether placing it changes a counter."""
        return bool(self.matched or self.pod_anti_affinity or self.pod_affinity or self.preferred_pod_affinity)


class InterPodTerms:
    """All counters of a cluster."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._counters: dict[Term, TermCounter] = {}
        self._speaking: dict[str, TermIndex] = {}  # namespace -> those that name it
        self._selecting = TermIndex()  # those that select namespaces
        self._carried: Counter[str] = Counter()  # by the namespace that brought them
        self._ruleless: set[str] = set()  # uids on nodes whose own rules are not looked at
        self._keys: set[str] = set()  # label keys that selectors name
        self._classes: dict[tuple[Any, ...], EquivalenceClass] = {}
        self._spaces: dict[str, Mapping[str, str]] = {}
        self._sweep_at = _SWEEP
        self.renewals = 0  # how often classes became stale

    def __bool__(self) -> bool:
        return bool(self._counters)

    def counters(self) -> Iterable[TermCounter]:
        return self._counters.values()

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """Namespaces whose labels are known."""
        return self._spaces

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Labels of a namespace (None: it is gone). Terms that select it and did not, or the other way round, are
        counted anew."""
        known = self._spaces.get(name)
        if known == labels:
            return
        if labels is None:
            del self._spaces[name]
        else:
            self._spaces[name] = dict(labels)
        before, after = ({NAMESPACE_NAME: name, **(one or {})} for one in (known, labels))
        moved = {
            term: counter.carrier
            for term, counter in self._selecting.items()
            if any(_selects(one, before) != _selects(one, after) for one in (counter, *counter.also))
        }
        if not moved:
            return
        for term in moved:
            self._forget(term)
        self._renew()
        for term, carrier in moved.items():
            self._register(term, carrier)

    def class_of(
        self, signature: PodSignature, namespace: str, labels: Mapping[str, str], *, on_node: bool = False
    ) -> EquivalenceClass:
        """The class of a pod. Registers the signature's own terms first, so that they are counted.

        A pod that has a node (`on_node`) no longer spreads: its spread constraints need not be counted.
        """
        if signature.excess or not self._count_terms(signature, on_node=on_node):
            said = signature.excess or _OF_NAMESPACE.format(namespace, MOST_TERMS_OF_NAMESPACE)
            return EquivalenceClass(signature, self._matched(namespace, labels), excess=said)
        seen = tuple(item for item in labels.items() if item[0] in self._keys) if self._keys else ()
        key = (signature.number, on_node, namespace, seen)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = self._class(signature, namespace, labels, on_node)
        return found

    def _class(
        self, signature: PodSignature, namespace: str, labels: Mapping[str, str], on_node: bool
    ) -> EquivalenceClass:
        return EquivalenceClass(
            signature,
            self._matched(namespace, labels),
            tuple(self._counters[term] for term in signature.pod_anti_affinity),
            tuple(self._counters[term] for term in signature.pod_affinity),
            () if on_node else tuple(self._counters[spread.term] for spread in signature.spread_constraints),
            tuple((weight, self._counters[term]) for weight, term in signature.preferred_pod_affinity),
        )

    def _matched(self, namespace: str, labels: Mapping[str, str]) -> tuple[TermCounter, ...]:
        naming = self._speaking.get(namespace)
        asked = chain(naming.candidates(labels) if naming else (), self._selecting.candidates(labels))
        return tuple(one for one in asked if self._speaks_of(one, namespace, labels))

    def _speaks_of(self, counter: TermCounter, namespace: str, labels: Mapping[str, str]) -> bool:
        if namespace not in counter.term.namespaces:
            known = {NAMESPACE_NAME: namespace, **self._spaces.get(namespace, {})}
            if counter.namespaces is None or not matches(counter.namespaces, known):
                return False
        return matches(counter.selector, labels) and all(
            self._speaks_of(other, namespace, labels) for other in counter.also
        )

    # ---- terms come and go

    def _count_terms(self, signature: PodSignature, *, on_node: bool) -> bool:
        """Its terms are counted from now on; False: its namespace has too many."""
        if signature.is_plain:
            return True
        carrier = signature.namespace
        terms = list(signature.between() if on_node else signature.terms())
        missing = self._missing(terms)
        if missing and self._carried[carrier] + len(missing) > MOST_TERMS_OF_NAMESPACE:
            self._sweep()
            missing = self._missing(terms)
            if self._carried[carrier] + len(missing) > MOST_TERMS_OF_NAMESPACE:
                return False
        for term in missing:
            self._register(term, carrier)
        return True

    def _missing(self, terms: Iterable[Term]) -> list[Term]:
        return [term for term in dict.fromkeys(terms) if term not in self._counters]

    def _register(self, term: Term, carrier: str) -> None:
        if len(self._counters) >= self._sweep_at:
            self._sweep()
        counter = self._remember(_counter(term, carrier))
        self._renew()
        self._keys |= _keys(counter)
        for pod, row, spoken_of in self._counted(counter):
            if spoken_of:
                self._count(counter, row, 1, 0 if pod.terminating else 1)
            if not pod.signature.is_plain and pod.uid not in self._ruleless:
                self._carry(counter, pod, row)

    def _remember(self, counter: TermCounter) -> TermCounter:
        term = counter.term
        self._counters[term] = counter
        self._carried[counter.carrier] += 1
        if counter.namespaces is not None:
            self._selecting.add(counter)
        else:
            for namespace in term.namespaces:
                self._speaking.setdefault(namespace, TermIndex()).add(counter)
        return counter

    def _forget(self, term: Term) -> None:
        counter = self._counters.pop(term)
        self._carried[counter.carrier] -= 1
        self._selecting.discard(term)
        for namespace in term.namespaces:
            if (spoken := self._speaking.get(namespace)) is not None:
                spoken.discard(term)
                if not spoken:
                    del self._speaking[namespace]

    def _counted(self, counter: TermCounter) -> Iterator[tuple[AssignedPod, int, bool]]:
        """Pods that a new term may concern, and whether it speaks of them: asked once for those with equal labels."""
        keys = sorted(_keys(counter))
        known: dict[tuple[str | None, ...], bool] = {}
        for pod, row in self._state.pods_of(None if counter.namespaces is not None else counter.term.namespaces):
            alike = (pod.namespace, *map(pod.labels.get, keys))
            if (spoken_of := known.get(alike)) is None:
                spoken_of = known[alike] = self._speaks_of(counter, pod.namespace, pod.labels)
            yield pod, row, spoken_of

    def _carry(self, counter: TermCounter, pod: AssignedPod, row: int) -> None:
        """A pod found on its node that carries the term itself. Others are met when they are seated."""
        for term in pod.signature.pod_anti_affinity:
            if term == counter.term:
                self._count_anti_affinity(counter, row, 1)
        for weight, term in _preferences(pod.signature):
            if term == counter.term:
                self._count_preference(counter, row, weight, 1)

    def _renew(self) -> None:
        self.renewals += 1
        for eq_class in self._classes.values():
            eq_class.stale = True
        self._classes.clear()

    def tidy(self) -> int:
        """Forget the rules of pods that have gone, and say how many those are. Classes of pods that are there are asked
        for again."""
        before = len(self._counters)
        if before + len(self._classes) > _FEW:
            self._renew()
            self._sweep()
        return before - len(self._counters)

    def _sweep(self) -> None:
        """Forget counters whose terms no signature has any more."""
        alive = {term for signature in self._state.signatures for term in signature.terms()}
        gone = [term for term in self._counters if term not in alive]
        for term in gone:
            self._forget(term)
        if gone:
            self._renew()
            self._keys = set().union(*(_keys(counter) for counter in self._counters.values()))
        self._sweep_at = max(_SWEEP, 2 * len(self._counters))

    # ---- pods come and go

    def add(self, pod: AssignedPod, row: int) -> None:
        if self._counters or not pod.signature.is_plain:
            eq_class = self._on_node(pod)
            if eq_class.excess:
                self._ruleless.add(pod.uid)
            self.place(eq_class, row, 1, staying=not pod.terminating)

    def remove(self, pod: AssignedPod, row: int) -> None:
        if pod.uid in self._ruleless:
            self._ruleless.discard(pod.uid)
            matched = self._matched(pod.namespace, pod.labels)
            self.place(EquivalenceClass(pod.signature, matched), row, -1, staying=not pod.terminating)
        elif self._counters or not pod.signature.is_plain:
            self.place(self._on_node(pod), row, -1, staying=not pod.terminating)

    def _on_node(self, pod: AssignedPod) -> EquivalenceClass:
        return self.class_of(pod.signature, pod.namespace, pod.labels, on_node=True)

    def place(self, eq_class: EquivalenceClass, row: int, count: int, *, staying: bool = True) -> None:
        """Pods of a class come to a row (negative: leave it)."""
        for counter in eq_class.matched:
            self._count(counter, row, count, count if staying else 0)
        for counter in eq_class.pod_anti_affinity:
            self._count_anti_affinity(counter, row, count)
        for counter in eq_class.pod_affinity:
            self._count_preference(counter, row, 1, count)
        for weight, counter in eq_class.preferred_pod_affinity:
            self._count_preference(counter, row, weight, count)

    def _count(self, counter: TermCounter, row: int, count: int, staying: int) -> None:
        code = self._code(counter, row)
        counter.staying[row] += staying
        if code:
            counter.matching[code] += count
            counter.total += count

    def _count_anti_affinity(self, counter: TermCounter, row: int, count: int) -> None:
        code = self._code(counter, row)
        if code:
            counter.anti_affinity[code] += count
            counter.anti_affinity_total += count

    def _count_preference(self, counter: TermCounter, row: int, weight: int, count: int) -> None:
        code = self._code(counter, row)
        if code:
            counter.preference[code] += weight * count
            counter.preferring += count

    def _code(self, counter: TermCounter, row: int) -> int:
        column = self._state.column(counter.term.key)
        counter.fits(column.size, self._state.rows)
        return int(column.codes[row])


def _preferences(signature: PodSignature) -> Iterable[tuple[int, Term]]:
    """What a pod on a node wishes of others: its preferences, and with weight 1 what it required for itself."""
    yield from ((1, term) for term in signature.pod_affinity)
    yield from signature.preferred_pod_affinity


def _counter(term: Term, carrier: str) -> TermCounter:
    spaces = None if term.namespace_selector is None else msgspec.json.decode(term.namespace_selector)
    also = tuple(_counter(one, carrier) for one in term.also)
    return TermCounter(term, msgspec.json.decode(term.text), spaces, also, carrier)


def _selects(counter: TermCounter, labels: Mapping[str, str]) -> bool:
    return counter.namespaces is not None and matches(counter.namespaces, labels)


def _keys(counter: TermCounter) -> set[str]:
    selector = counter.selector or {}
    rules = selector.get("matchExpressions") or ()
    own = set(selector.get("matchLabels") or {}) | {rule["key"] for rule in rules}
    return own.union(*(_keys(other) for other in counter.also))
