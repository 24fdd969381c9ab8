"""Generated objects: valid before they are broken, the same for the same seed, and broken in many ways."""

from collections import Counter
from random import Random

import pytest
from tests.support.generate import KINDS, make, priority_classes
from tests.support.mutate import mutate

from kohort.api import admit
from kohort.api.kind import Context


@pytest.mark.parametrize("kind", KINDS)
def test_made_objects_are_accepted(kind: str) -> None:
    for seed in range(150):
        made = make(Random(seed), kind)
        answer = admit.create(made.object, Context(), priority_classes=priority_classes(), namespace="n")
        assert answer.code == 201, (seed, answer.message)


def test_the_same_seed_makes_and_breaks_the_same() -> None:
    def once(seed: int) -> object:
        random = Random(seed)
        return mutate(random, make(random).object, 3)

    assert [once(seed) for seed in range(50)] == [once(seed) for seed in range(50)]
    assert once(1) != once(2)


def test_every_kind_is_made() -> None:
    random = Random(0)
    found = Counter(make(random).object["kind"] for _ in range(500))
    assert set(found) == set(KINDS)
    assert min(found.values()) > 20


def test_a_mutation_changes_a_copy_and_says_where() -> None:
    for seed in range(300):
        random = Random(seed)
        body = make(random).object
        before = repr(body)
        changed, notes = mutate(random, body, 1)
        assert repr(body) == before
        assert len(notes) == 1
        assert notes[0].split(":")[0].startswith(("spec", "metadata."))
        assert (changed["apiVersion"], changed["kind"]) == (body["apiVersion"], body["kind"])
        assert changed["metadata"]["name"] == body["metadata"]["name"]


def test_what_the_server_wrote_is_left_alone() -> None:
    server = {"uid": "u", "resourceVersion": "7", "creationTimestamp": "t", "managedFields": [{"manager": "m"}]}
    for seed in range(100):
        random = Random(seed)
        body = make(random).object
        body["metadata"] |= server
        changed, _ = mutate(random, body, 3)
        assert {key: changed["metadata"][key] for key in server} == server


def test_nothing_left_to_break_is_an_end() -> None:
    changed, notes = mutate(Random(1), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, 3)
    assert (changed["metadata"], notes) == ({"name": "p"}, [])
