"""Which pods the selectors of Services or budgets choose, kept up to date change by change.

A reconcile then reads the pods of its object, and not all pods of its namespace to find them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kohort.api.kind import Object
from kohort.api.objects import meta_of, namespace_of
from kohort.apimachinery.labels import matches
from kohort.controllers.controller import Key, Reader, key_of

_Mark = tuple[str, str, str]  # namespace, name and value of a label; without a name: nothing that must be equal


def _selector(obj: Object) -> Object | None:
    found: Object | None = (obj.get("spec") or {}).get("selector")
    return found


class Selections:
    """`selector`: of an owner; None: it selects nothing.

    Thousands of owners may be in one namespace (each JobSet has a Service): a pod is compared only with those that ask
    for one of its labels, and with those that ask for none by its value.
    """

    def __init__(self, selector: Callable[[Object], Object | None] = _selector) -> None:
        self._selector = selector
        self._owners: dict[Key, Object] = {}  # owner -> selector
        self._asking: dict[_Mark, dict[Key, None]] = {}  # what a selector asks for -> owners
        self._labels: dict[str, dict[Key, Object]] = {}  # namespace -> pod -> labels
        self._chosen: dict[Key, set[Key]] = {}  # owner -> pods
        self._choosers: dict[Key, set[Key]] = {}  # pod -> owners

    def see_owner(self, old: Object | None, new: Object | None) -> None:
        """All pods of its namespace are looked at where its selector is another."""
        owner = new or old
        if owner is None:
            return
        key = key_of(owner)
        selector = self._selector(new) if new is not None else None
        if selector == self._owners.get(key):
            return
        self._forget(key)
        if selector is not None:
            self._owners[key] = selector
            self._asking.setdefault(_mark(key.namespace, selector), {})[key] = None
            pods = self._labels.get(key.namespace, {})
            self._chosen[key] = {pod for pod, labels in pods.items() if matches(selector, labels)}
            for pod in self._chosen[key]:
                self._choosers.setdefault(pod, set()).add(key)

    def _forget(self, owner: Key) -> None:
        selector = self._owners.pop(owner, None)
        if selector is None:
            return
        mark = _mark(owner.namespace, selector)
        del self._asking[mark][owner]
        if not self._asking[mark]:
            del self._asking[mark]
        for pod in self._chosen.pop(owner):
            self._choosers[pod].discard(owner)

    def see_pod(self, old: Object | None, new: Object | None) -> set[Key]:
        """The owners that select it now, and those that did."""
        pod = new or old
        if pod is None:
            return set()
        key, labels = key_of(pod), meta_of(pod).get("labels") or {}
        pods = self._labels.setdefault(key.namespace, {})
        before = self._choosers.get(key, set())
        if new is not None:
            had = pods.get(key)
            pods[key] = labels
            if had is not None and had == labels:
                return set(before)
        else:
            pods.pop(key, None)
        now = set(self._selecting(key.namespace, labels)) if new is not None else set()
        for owner in before - now:
            self._chosen[owner].discard(key)
        for owner in now - before:
            self._chosen[owner].add(key)
        if now:
            self._choosers[key] = now
        else:
            self._choosers.pop(key, None)
        return before | now

    def _selecting(self, namespace: str, labels: Object) -> Iterator[Key]:
        if not self._asking:
            return
        for mark in ((namespace, "", ""), *((namespace, name, value) for name, value in labels.items())):
            for owner in self._asking.get(mark, ()):
                if matches(self._owners[owner], labels):
                    yield owner

    def pods(self, owner: Key, reader: Reader) -> list[Object]:
        """In no order."""
        found = (reader.get("Pod", key) for key in self._chosen.get(owner, ()))
        return [pod for pod in found if pod is not None and namespace_of(pod) == owner.namespace]


def _mark(namespace: str, selector: Object) -> _Mark:
    """A label that every pod of the selector has; of several the longest: `app: web` is common, a whole name is not."""
    wanted = selector.get("matchLabels") or {}
    name, value = max(wanted.items(), key=lambda one: len(str(one[1])), default=("", ""))
    return (namespace, name, value)
