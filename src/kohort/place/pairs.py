"""Rules between pods: how many pods of a selector are in each domain, counted as pods come and go.

Only terms that some shape uses are counted, each from the moment it is first used. A pod's labels are looked at through
the keys that some selector names, so that an index label per pod does not make each pod a class of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from kohort.place.selectors import matches
from kohort.place.shapes import Shape, Term

if TYPE_CHECKING:
    from kohort.place.state import ClusterState, PodKey

Counts = npt.NDArray[np.int32]
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_SWEEP: Final = 256  # counters before unused ones are looked for


@dataclass(slots=True, eq=False)
class Counter:
    """Pods per domain of one term: those that match it, those that carry it as an anti-affinity rule, and how much
    those that carry it as a wish like (or dislike) company. `staying`: per row, matching pods that are not on their
    way out, which is what spreading counts."""

    term: Term
    selector: Mapping[str, Any] | None
    namespaces: Mapping[str, Any] | None
    also: tuple[Counter, ...] = ()
    matching: Counts = field(default_factory=lambda: np.zeros(8, np.int32))
    holding: Counts = field(default_factory=lambda: np.zeros(8, np.int32))
    wishing: Counts = field(default_factory=lambda: np.zeros(8, np.int32))
    staying: Counts = field(default_factory=lambda: np.zeros(0, np.int32))
    total: int = 0  # matching pods on nodes that have the label
    held: int = 0
    wished: int = 0  # pods that carry it as a wish

    def fits(self, codes: int, rows: int) -> None:
        """Room for all codes of the label and all rows."""
        missing = codes - len(self.matching)
        if missing > 0:
            fresh = np.zeros(max(missing, len(self.matching)), np.int32)
            self.matching = np.concatenate([self.matching, fresh])
            self.holding = np.concatenate([self.holding, fresh])
            self.wishing = np.concatenate([self.wishing, fresh])
        if rows > len(self.staying):
            self.staying = np.concatenate([self.staying, np.zeros(rows - len(self.staying), np.int32)])


@dataclass(slots=True, eq=False)
class PairClass:
    """Pods of one shape that match the same terms: what placing one of them changes for others."""

    shape: Shape
    matched: tuple[Counter, ...]
    apart: tuple[Counter, ...]  # of the shape itself
    together: tuple[Counter, ...]
    spreads: tuple[Counter, ...]
    liked: tuple[tuple[int, Counter], ...]
    stale: bool = False  # a term was registered since: the class of the pod must be asked for again

    @property
    def is_plain(self) -> bool:
        """No rule between pods touches where it may go or wants to go, neither its own nor another's."""
        return self.shape.is_plain and not any(counter.held or counter.wished for counter in self.matched)

    @property
    def counts(self) -> bool:
        """Whether placing it changes a counter."""
        return bool(self.matched or self.apart or self.together or self.liked)


class PairTerms:
    """All counters of a cluster."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._counters: dict[Term, Counter] = {}
        self._keys: set[str] = set()  # label keys that selectors name
        self._classes: dict[tuple[Any, ...], PairClass] = {}
        self._spaces: dict[str, Mapping[str, str]] = {}
        self._sweep_at = _SWEEP

    def __bool__(self) -> bool:
        return bool(self._counters)

    def counters(self) -> Iterable[Counter]:
        return self._counters.values()

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """Namespaces whose labels are known."""
        return self._spaces

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Labels of a namespace (None: it is gone). Terms that select namespaces are counted anew."""
        known = self._spaces.get(name)
        if known == labels:
            return
        if labels is None:
            del self._spaces[name]
        else:
            self._spaces[name] = dict(labels)
        moved = [term for term, counter in self._counters.items() if counter.namespaces is not None]
        for term in moved:
            del self._counters[term]
        self._renew()
        for term in moved:
            if term not in self._counters:
                self._register(term)

    def class_of(self, shape: Shape, namespace: str, labels: Mapping[str, str], *, seated: bool = False) -> PairClass:
        """The class of a pod. Registers the shape's own terms first, so that they are counted.

        A pod that has a node (`seated`) no longer spreads: its spread constraints need not be counted.
        """
        if not shape.is_plain:
            for term in shape.between() if seated else shape.terms():
                if term not in self._counters:
                    self._register(term)
        seen = tuple(item for item in labels.items() if item[0] in self._keys) if self._keys else ()
        key = (shape.number, seated, namespace, seen)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = self._class(shape, namespace, labels, seated)
        return found

    def _class(self, shape: Shape, namespace: str, labels: Mapping[str, str], seated: bool) -> PairClass:
        return PairClass(
            shape,
            tuple(one for one in self._counters.values() if self._speaks_of(one, namespace, labels)),
            tuple(self._counters[term] for term in shape.apart),
            tuple(self._counters[term] for term in shape.together),
            () if seated else tuple(self._counters[spread.term] for spread in shape.spreads),
            tuple((weight, self._counters[term]) for weight, term in shape.liked),
        )

    def _speaks_of(self, counter: Counter, namespace: str, labels: Mapping[str, str]) -> bool:
        if namespace not in counter.term.namespaces:
            known = {NAMESPACE_NAME: namespace, **self._spaces.get(namespace, {})}
            if counter.namespaces is None or not matches(counter.namespaces, known):
                return False
        return matches(counter.selector, labels) and all(
            self._speaks_of(other, namespace, labels) for other in counter.also
        )

    # ---- terms come and go

    def _register(self, term: Term) -> None:
        if len(self._counters) >= self._sweep_at:
            self._sweep()
        counter = self._counters[term] = _counter(term)
        self._renew()
        self._keys |= _keys(counter)
        self._state.column(term.key)
        for pod, row in self._state.pods_of(None if counter.namespaces is not None else term.namespaces):
            if self._speaks_of(counter, pod.namespace, pod.labels):
                self._count(counter, row, 1, 0 if pod.terminating else 1)
            if not pod.shape.is_plain:
                self._carry(counter, pod, row)

    def _carry(self, counter: Counter, pod: PodKey, row: int) -> None:
        """A pod found on its node that carries the term itself. Others are met when they are seated."""
        for term in pod.shape.apart:
            if term == counter.term:
                self._hold(counter, row, 1)
        for weight, term in _wishes(pod.shape):
            if term == counter.term:
                self._wish(counter, row, weight, 1)

    def _renew(self) -> None:
        for kind in self._classes.values():
            kind.stale = True
        self._classes.clear()

    def _sweep(self) -> None:
        """Forget counters whose terms no shape has any more."""
        self._renew()
        alive = {term for shape in self._state.shapes for term in shape.terms()}
        self._counters = {term: counter for term, counter in self._counters.items() if term in alive}
        self._keys = set().union(*(_keys(counter) for counter in self._counters.values()))
        self._sweep_at = max(_SWEEP, 2 * len(self._counters))

    # ---- pods come and go

    def add(self, pod: PodKey, row: int) -> None:
        if self._counters or not pod.shape.is_plain:
            self.place(self._seated(pod), row, 1, staying=not pod.terminating)

    def remove(self, pod: PodKey, row: int) -> None:
        if self._counters or not pod.shape.is_plain:
            self.place(self._seated(pod), row, -1, staying=not pod.terminating)

    def _seated(self, pod: PodKey) -> PairClass:
        return self.class_of(pod.shape, pod.namespace, pod.labels, seated=True)

    def place(self, kind: PairClass, row: int, count: int, *, staying: bool = True) -> None:
        """Pods of a class come to a row (negative: leave it)."""
        for counter in kind.matched:
            self._count(counter, row, count, count if staying else 0)
        for counter in kind.apart:
            self._hold(counter, row, count)
        for counter in kind.together:
            self._wish(counter, row, 1, count)
        for weight, counter in kind.liked:
            self._wish(counter, row, weight, count)

    def _count(self, counter: Counter, row: int, count: int, staying: int) -> None:
        code = self._code(counter, row)
        counter.staying[row] += staying
        if code:
            counter.matching[code] += count
            counter.total += count

    def _hold(self, counter: Counter, row: int, count: int) -> None:
        code = self._code(counter, row)
        if code:
            counter.holding[code] += count
            counter.held += count

    def _wish(self, counter: Counter, row: int, weight: int, count: int) -> None:
        code = self._code(counter, row)
        if code:
            counter.wishing[code] += weight * count
            counter.wished += count

    def _code(self, counter: Counter, row: int) -> int:
        column = self._state.labels[counter.term.key]
        counter.fits(column.size, self._state.rows)
        return int(column.codes[row])


def _wishes(shape: Shape) -> Iterable[tuple[int, Term]]:
    """What a pod on a node wishes of others: its preferences, and with weight 1 what it required for itself."""
    yield from ((1, term) for term in shape.together)
    yield from shape.liked


def _counter(term: Term) -> Counter:
    spaces = None if term.namespace_selector is None else msgspec.json.decode(term.namespace_selector)
    return Counter(term, msgspec.json.decode(term.text), spaces, tuple(_counter(one) for one in term.also))


def _keys(counter: Counter) -> set[str]:
    selector = counter.selector or {}
    rules = selector.get("matchExpressions") or ()
    own = set(selector.get("matchLabels") or {}) | {rule["key"] for rule in rules}
    return own.union(*(_keys(other) for other in counter.also))
