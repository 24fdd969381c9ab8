"""A pod is compared with terms that name one of its labels, and with no fewer than speak of it."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kohort.apimachinery.labels import matches
from kohort.place.interpod import TermCounter
from kohort.place.signatures import Term
from kohort.place.termindex import TermIndex

KEYS, VALUES = ("app", "tier", "zone"), ("a", "b", "c")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from((*VALUES, "")))
RULES = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.lists(st.sampled_from((*VALUES, *map(str, range(9)))), min_size=1, max_size=10),
        }
    ),
    st.fixed_dictionaries({"key": st.sampled_from(KEYS), "operator": st.sampled_from(("Exists", "DoesNotExist"))}),
)
SELECTORS = st.none() | st.fixed_dictionaries(
    {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(RULES, max_size=3)}
)


def counter(selector: dict[str, Any] | None, number: int = 0) -> TermCounter:
    return TermCounter(Term(f"key-{number}", msgspec.json.encode(selector).decode(), ("ns",)), selector, None)


def speaking(index: TermIndex, labels: dict[str, str]) -> list[TermCounter]:
    return [one for one in index.candidates(labels) if matches(one.selector, labels)]


@given(st.lists(SELECTORS, max_size=12), LABELS, st.data())
def test_none_that_speaks_of_a_pod_is_missed_and_each_is_found_once(
    selectors: list[dict[str, Any] | None], labels: dict[str, str], data: st.DataObject
) -> None:
    index, counters = TermIndex(), [counter(one, number) for number, one in enumerate(selectors)]
    for one in counters:
        index.add(one)
    gone = data.draw(st.sets(st.sampled_from(counters))) if counters else set()
    for one in gone:
        index.discard(one.term)
    left = [one for one in counters if one not in gone]
    found = speaking(index, labels)
    assert len(found) == len(set(map(id, found)))
    assert {id(one) for one in found} == {id(one) for one in left if matches(one.selector, labels)}
    assert len(index) == len(left)


def test_terms_about_other_labels_are_not_looked_at() -> None:
    index = TermIndex()
    for number in range(1000):
        index.add(counter({"matchLabels": {"app": f"a{number}"}}, number))
        rule = {"key": "tier", "operator": "In", "values": [f"t{number}", f"u{number}"]}
        index.add(counter({"matchExpressions": [rule]}, 1000 + number))
        index.add(counter({"matchExpressions": [{"key": f"k{number}", "operator": "Exists"}]}, 2000 + number))
    assert len(list(index.candidates({"app": "a7", "tier": "u9", "k3": ""}))) == 3
    assert not list(index.candidates({}))


def test_what_is_empty_is_forgotten() -> None:
    index, one = TermIndex(), counter({"matchLabels": {"app": "a"}})
    index.add(one)
    index.discard(one.term)
    index.discard(one.term)  # a term that is not there
    assert not index
    assert not index._by_label
