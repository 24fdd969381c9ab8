"""Stored objects as a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Object = dict[str, Any]
_PLURALS = {"ResourceQuota": "resourcequotas", "PriorityClass": "priorityclasses", "Endpoints": "endpoints"}


class Memory:
    """An `Objects`: what a test puts into it."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._known: dict[tuple[str, str], dict[tuple[str, str], Object]] = {}
        self._versions: dict[tuple[str, str], int] = {}
        for one in objects:
            self.put(one)

    def put(self, obj: Object) -> Object:
        key, meta = _resource(obj), obj["metadata"]
        meta.setdefault("uid", f"uid-{meta['name']}")
        self._known.setdefault(key, {})[(meta.get("namespace", ""), meta["name"])] = obj
        self._versions[key] = self._versions.get(key, 0) + 1
        return obj

    def drop(self, obj: Object) -> None:
        key, meta = _resource(obj), obj["metadata"]
        del self._known[key][(meta.get("namespace", ""), meta["name"])]
        self._versions[key] += 1

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None:
        return self._known.get((group, resource), {}).get((namespace, name))

    def list(self, group: str, resource: str, namespace: str | None = None) -> Sequence[Object]:
        found = self._known.get((group, resource), {})
        return [one for key, one in sorted(found.items()) if namespace in (None, key[0])]

    def version(self, group: str, resource: str) -> int:
        return self._versions.get((group, resource), 0)


def _resource(obj: Object) -> tuple[str, str]:
    kind = obj["kind"]
    plural = _PLURALS.get(kind) or kind.lower() + "s"
    return obj["apiVersion"].rpartition("/")[0], plural


def named(kind: str, name: str, namespace: str = "", api_version: str = "v1", **rest: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}
