"""Which pods a selector chooses, after any history of changes: as a look at all of them would find."""

from __future__ import annotations

import random

import pytest
from tests.controllermanager.build import pod

from kohort.api.kind import Object
from kohort.apimachinery.labels import matches
from kohort.controllermanager.selections import Selections
from kohort.controllers.controller import Key, key_of


class Pods(dict[Key, Object]):
    def get(self, kind: str, key: Key) -> Object | None:  # type: ignore[override]
        return super().get(key) if kind == "Pod" else None

    def indexed(self, *_: object) -> list[Object]:
        return []


def owner(name: str, app: str | None) -> Object:
    spec = {"selector": {"matchLabels": {"app": app}}} if app else {}
    return {"metadata": {"name": name, "namespace": "lab"}, "spec": spec}


def test_any_history() -> None:
    chance = random.Random(7)
    chosen, pods, owners = Selections(), Pods(), dict[Key, Object]()
    for _ in range(600):
        name, app = f"x{chance.randrange(8)}", chance.choice(["a", "b", "c", None])
        key = Key("lab", name)
        if chance.random() < 0.6:
            new = pod(name, labels={"app": app or "none"}) if chance.random() < 0.7 else None
            old = dict.get(pods, key)
            told = chosen.see_pod(old, new)
            expected = {
                key_of(one)
                for one in owners.values()
                for seen in (old, new)
                if seen is not None and matches(one["spec"].get("selector"), seen["metadata"]["labels"])
            }
            assert told == expected
            store: dict[Key, Object] = pods
            state = new
        else:
            state = owner(name, app) if chance.random() < 0.7 else None
            chosen.see_owner(owners.get(key), state)
            store = owners
        if state is None:
            store.pop(key, None)
        else:
            store[key] = state
        for one in owners.values():
            right = {k for k, p in pods.items() if matches(one["spec"].get("selector"), p["metadata"]["labels"])}
            assert {key_of(found) for found in chosen.pods(key_of(one), pods)} == right


def test_a_pod_is_compared_with_those_that_may_choose_it_only(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def seen(selector: Object, labels: Object) -> bool:
        compared.append(selector["matchLabels"]["app"])
        return matches(selector, labels)

    chosen = Selections()
    for number in range(1000):
        chosen.see_owner(None, owner(f"o{number}", f"app-{number}"))
    monkeypatch.setattr("kohort.controllermanager.selections.matches", seen)
    new = pod("p", labels={"app": "app-7", "tier": "back"})
    assert chosen.see_pod(None, new) == {Key("lab", "o7")}
    assert chosen.see_pod(new, pod("p", labels={"app": "app-7", "tier": "back"})) == {Key("lab", "o7")}
    assert chosen.see_pod(new, None) == {Key("lab", "o7")}
    assert compared == ["app-7"]
