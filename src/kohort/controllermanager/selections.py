"""Which pods the selectors of Services or budgets choose, kept up to date change by change.

A reconcile then reads the pods of its object, and not all pods of its namespace to find them.
"""

from __future__ import annotations

from collections.abc import Callable

from kohort.api.kind import Object
from kohort.api.objects import meta_of, namespace_of
from kohort.apimachinery.labels import matches
from kohort.controllers.controller import Key, Reader, key_of


def _selector(obj: Object) -> Object | None:
    found: Object | None = (obj.get("spec") or {}).get("selector")
    return found


class Selections:
    """`selector`: of an owner; None: it selects nothing."""

    def __init__(self, selector: Callable[[Object], Object | None] = _selector) -> None:
        self._selector = selector
        self._owners: dict[str, dict[Key, Object]] = {}  # namespace -> owner -> selector
        self._labels: dict[str, dict[Key, Object]] = {}  # namespace -> pod -> labels
        self._chosen: dict[Key, set[Key]] = {}  # owner -> pods

    def see_owner(self, old: Object | None, new: Object | None) -> None:
        """All pods of its namespace are looked at where its selector is another."""
        owner = new or old
        if owner is None:
            return
        key = key_of(owner)
        owners = self._owners.setdefault(key.namespace, {})
        selector = self._selector(new) if new is not None else None
        if selector == owners.get(key):
            return
        self._chosen.pop(key, None)
        owners.pop(key, None)
        if selector is not None:
            owners[key] = selector
            pods = self._labels.get(key.namespace, {})
            self._chosen[key] = {pod for pod, labels in pods.items() if matches(selector, labels)}

    def see_pod(self, old: Object | None, new: Object | None) -> set[Key]:
        """The owners that select it now, and those that did."""
        pod = new or old
        if pod is None:
            return set()
        key, labels = key_of(pod), meta_of(pod).get("labels") or {}
        pods = self._labels.setdefault(key.namespace, {})
        had = pods.pop(key, None)
        if new is not None:
            pods[key] = labels
        if had is not None and new is not None and had == labels:
            return {owner for owner in self._owners.get(key.namespace, ()) if key in self._chosen[owner]}
        found = set()
        for owner, selector in self._owners.get(key.namespace, {}).items():
            chosen, now = self._chosen[owner], new is not None and matches(selector, labels)
            if now or key in chosen:
                found.add(owner)
            if now:
                chosen.add(key)
            else:
                chosen.discard(key)
        return found

    def pods(self, owner: Key, reader: Reader) -> list[Object]:
        """In no order."""
        found = (reader.get("Pod", key) for key in self._chosen.get(owner, ()))
        return [pod for pod in found if pod is not None and namespace_of(pod) == owner.namespace]
