"""Terms by a label that whoever they speak of must have: a pod is compared with those that name one of its labels, not
with all terms of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kohort.place.interpod import TermCounter
    from kohort.place.signatures import Term

_VALUES: Final = 8  # of one requirement; one with more is found by its key
_Label = tuple[str, str | None]  # None: any value
_ANY: Final[_Label] = ("", None)  # nothing that a pod must have: a label's key is never empty


class TermIndex:
    """Some counters, each found by one label, by the values of one, or (where its selector demands none) always."""

    def __init__(self) -> None:
        self._counters: dict[Term, TermCounter] = {}
        self._by_label: dict[_Label, dict[Term, TermCounter]] = {}

    def __len__(self) -> int:
        return len(self._counters)

    def items(self) -> Iterator[tuple[Term, TermCounter]]:
        yield from self._counters.items()

    def add(self, counter: TermCounter) -> None:
        self._counters[counter.term] = counter
        for label in _demanded(counter.selector):
            self._by_label.setdefault(label, {})[counter.term] = counter

    def discard(self, term: Term) -> None:
        counter = self._counters.pop(term, None)
        if counter is None:
            return
        for label in _demanded(counter.selector):
            del self._by_label[label][term]
            if not self._by_label[label]:
                del self._by_label[label]

    def candidates(self, labels: Mapping[str, str]) -> Iterator[TermCounter]:
        """Each of those that may speak of a pod with these labels, once."""
        by_label = self._by_label
        if not by_label:
            return
        yield from by_label.get(_ANY, {}).values()
        for item in labels.items():
            yield from by_label.get(item, {}).values()
            yield from by_label.get((item[0], None), {}).values()


def _demanded(selector: Mapping[str, Any] | None) -> list[_Label]:
    """Labels of which a pod must have one (they share a key, so it has only one of them)."""
    if selector is None:
        return []
    for item in (selector.get("matchLabels") or {}).items():
        return [item]
    rules = selector.get("matchExpressions") or ()
    for rule in rules:
        if rule.get("operator") == "In" and len(rule.get("values") or ()) <= _VALUES:
            return [(rule["key"], value) for value in dict.fromkeys(rule.get("values") or ())]
    return next(([(rule["key"], None)] for rule in rules if rule.get("operator") in ("In", "Exists")), [_ANY])
