"""Rules between pods: how many pods of a selector are in each domain, counted as pods come and go.

Only terms that some shape uses are counted, each from the moment it is first used. A pod's labels are looked at through
the keys that some selector names, so that an index label per pod does not make each pod a class of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
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


@dataclass(slots=True, eq=False)
class Counter:
    """Pods per domain of one term: those that match it, and those that carry it as an anti-affinity rule."""

    term: Term
    selector: Mapping[str, Any] | None
    namespaces: Mapping[str, Any] | None
    matching: Counts = field(default_factory=lambda: np.zeros(8, np.int32))
    holding: Counts = field(default_factory=lambda: np.zeros(8, np.int32))
    total: int = 0  # matching pods on nodes that have the label
    held: int = 0

    def fits(self, size: int) -> None:
        """Room for all codes of the label."""
        missing = size - len(self.matching)
        if missing > 0:
            fresh = np.zeros(max(missing, len(self.matching)), np.int32)
            self.matching = np.concatenate([self.matching, fresh])
            self.holding = np.concatenate([self.holding, fresh])


@dataclass(frozen=True, slots=True, eq=False)
class PairClass:
    """Pods of one shape that match the same terms: what placing one of them changes for others."""

    shape: Shape
    matched: tuple[Counter, ...]
    apart: tuple[Counter, ...]  # of the shape itself
    together: tuple[Counter, ...]
    spreads: tuple[Counter, ...]
    liked: tuple[tuple[int, Counter], ...]

    @property
    def is_plain(self) -> bool:
        """No rule between pods touches it, neither its own nor another's."""
        return not (self.matched or self.shape.ports) and self.shape.is_plain


class PairTerms:
    """All counters of a cluster."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._counters: dict[Term, Counter] = {}
        self._keys: set[str] = set()  # label keys that selectors name
        self._classes: dict[tuple[Any, ...], PairClass] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}

    def __bool__(self) -> bool:
        return bool(self._counters)

    def class_of(self, shape: Shape, namespace: str, labels: Mapping[str, str]) -> PairClass:
        """The class of a pod. Registers the shape's own terms first, so that they are counted."""
        own = [*shape.together, *shape.apart, *(spread.term for spread in shape.spreads), *(t for _, t in shape.liked)]
        for term in own:
            if term not in self._counters:
                self._register(term)
        seen = tuple(item for item in labels.items() if item[0] in self._keys) if self._keys else ()
        key = (shape.number, namespace, seen)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = self._class(shape, namespace, labels)
        return found

    def _class(self, shape: Shape, namespace: str, labels: Mapping[str, str]) -> PairClass:
        return PairClass(
            shape,
            tuple(one for one in self._counters.values() if self._speaks_of(one, namespace, labels)),
            tuple(self._counters[term] for term in shape.apart),
            tuple(self._counters[term] for term in shape.together),
            tuple(self._counters[spread.term] for spread in shape.spreads),
            tuple((weight, self._counters[term]) for weight, term in shape.liked),
        )

    def _speaks_of(self, counter: Counter, namespace: str, labels: Mapping[str, str]) -> bool:
        if namespace not in counter.term.namespaces:
            known = {NAMESPACE_NAME: namespace, **self.namespaces.get(namespace, {})}
            if counter.namespaces is None or not matches(counter.namespaces, known):
                return False
        return matches(counter.selector, labels)

    def _register(self, term: Term) -> None:
        selector = msgspec.json.decode(term.text)
        spaces = None if term.namespace_selector is None else msgspec.json.decode(term.namespace_selector)
        counter = self._counters[term] = Counter(term, selector, spaces)
        self._classes.clear()
        self._keys |= _keys(selector)
        self._state.column(term.key)
        for row, facts in enumerate(self._state.facts):
            for pod in facts.pods.values() if facts else ():
                if self._speaks_of(counter, pod.namespace, pod.labels):
                    self._count(counter, row, 1)
                if term in pod.shape.apart:
                    self._hold(counter, row, 1)

    def add(self, pod: PodKey, row: int) -> None:
        if self._counters or not pod.shape.is_plain:
            self.place(self.class_of(pod.shape, pod.namespace, pod.labels), row, 1)

    def remove(self, pod: PodKey, row: int) -> None:
        if self._counters or not pod.shape.is_plain:
            self.place(self.class_of(pod.shape, pod.namespace, pod.labels), row, -1)

    def place(self, kind: PairClass, row: int, count: int) -> None:
        """Pods of a class come to a row (negative: leave it)."""
        for counter in kind.matched:
            self._count(counter, row, count)
        for counter in kind.apart:
            self._hold(counter, row, count)

    def _count(self, counter: Counter, row: int, count: int) -> None:
        code = self._code(counter, row)
        if code:
            counter.matching[code] += count
            counter.total += count

    def _hold(self, counter: Counter, row: int, count: int) -> None:
        code = self._code(counter, row)
        if code:
            counter.holding[code] += count
            counter.held += count

    def _code(self, counter: Counter, row: int) -> int:
        column = self._state.labels[counter.term.key]
        counter.fits(column.size)
        return int(column.codes[row])


def _keys(selector: Mapping[str, Any] | None) -> set[str]:
    if selector is None:
        return set()
    rules = selector.get("matchExpressions") or ()
    return set(selector.get("matchLabels") or {}) | {rule["key"] for rule in rules}
