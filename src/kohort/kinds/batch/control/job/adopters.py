"""Which Jobs might adopt a pod that belongs to nobody.

Nothing in such a pod names a Job, so the selectors of all Jobs are kept at hand. Jobs that are seen later than the pod
look for such pods themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

from kohort.api.kind import Object
from kohort.apimachinery.labels import matches
from kohort.controllers.controller import Key, key_of


class Adopters:
    """Selectors by namespace and Job."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Key, Object]] = {}

    def see(self, old: Object | None, new: Object | None) -> None:
        """A change of a Job."""
        job = new or old
        if job is None:
            return
        key = key_of(job)
        selector = (new or {}).get("spec", {}).get("selector")
        if selector is not None:
            self._known.setdefault(key.namespace, {})[key] = selector
        else:
            self._known.get(key.namespace, {}).pop(key, None)

    def of(self, pod: Object) -> Iterable[Key]:
        meta = pod["metadata"]
        for key, selector in self._known.get(str(meta.get("namespace") or ""), {}).items():
            if matches(selector, meta.get("labels")):
                yield key
