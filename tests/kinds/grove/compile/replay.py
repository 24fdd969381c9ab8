"""Recorded cases played again: what users did to sets, children and bindings, and the PodGangs seen at each point."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.kinds.grove.api.cases import case, context, defaulted, whole

from kohort.api import patch
from kohort.api.kind import Object
from kohort.gang.compile import Compilation, CompileContext, Lookup
from kohort.gang.stand_in import uid_of
from kohort.kinds.grove.compile import names
from kohort.kinds.grove.compile.podcliqueset import compile_object


class Player:
    """The objects that users wrote, and the scaling groups and cliques whose size has a life of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.objects: dict[str, Object] = {}
        self.sizes: dict[str, int] = {}  # "pcsg/a-0-g" -> live replicas

    def play(self) -> Iterator[str]:
        """Acts until the next look; yields its name."""
        for entry in case(self.name)["timeline"]:
            if isinstance(entry, dict) and entry.get("code", 200) < 300 and "as" not in entry:
                self._act(entry)
                if "seen" in entry:
                    yield entry["seen"]

    def _act(self, entry: dict[str, Any]) -> None:
        if "create" in entry and entry["create"].startswith(("pcs/", "ctb/")):
            self.objects[entry["create"]] = defaulted(whole(entry["create"].partition("/")[0], entry["object"]))
        elif "patch" in entry and entry["patch"] in self.objects:
            obj, change = self.objects[entry["patch"]], entry["with"]
            made = patch.json_patch(obj, change) if isinstance(change, list) else patch.merge(obj, change)
            self.objects[entry["patch"]] = defaulted(made)
        elif "scale" in entry and entry["scale"] in self.objects:
            self.objects[entry["scale"]]["spec"]["replicas"] = entry["replicas"]
        elif "scale" in entry:
            self.sizes[entry["scale"]] = entry["replicas"]
        elif "delete" in entry:
            self.objects.pop(entry["delete"], None)
            self.sizes.pop(entry["delete"], None)
        self._children()

    def _children(self) -> None:
        """A child keeps the size it was made with or scaled to, whatever its template says later."""
        expected: dict[str, int] = {}
        for obj in self._sets():
            for index in range(obj["spec"]["replicas"]):
                for group in obj["spec"]["template"].get("podCliqueScalingGroups", []):
                    name = names.scaling_group(obj["metadata"]["name"], index, group["name"])
                    expected[f"pcsg/{name}"] = group["replicas"]
        cliques = {key: size for key, size in self.sizes.items() if key.startswith("pclq/")}
        self.sizes = {key: self.sizes.get(key, size) for key, size in expected.items()} | cliques

    def _sets(self) -> list[Object]:
        return [obj for key, obj in self.objects.items() if key.startswith("pcs/")]

    def compile(self) -> list[Compilation]:
        kinds = {"pcsg": "PodCliqueScalingGroup", "pclq": "PodClique"}
        children = [
            {"kind": kinds[kind], "metadata": {"name": name}, "spec": {"replicas": size}}
            for key, size in self.sizes.items()
            for kind, _, name in [key.partition("/")]
        ]
        ctx = context(self.name)
        bindings = [obj for key, obj in self.objects.items() if key.startswith("ctb/")]
        given = CompileContext(ctx.release, ctx.gates, ctx.options, Lookup([*children, *bindings]))
        return [compile_object(stored(obj), given) for obj in self._sets()]


def stored(obj: Object) -> Object:
    """With the uid that a server gives."""
    return {**obj, "metadata": {"uid": uid_of(obj), **obj["metadata"]}}


# ---- what was seen


def seen(name: str, point: str, kind: str) -> dict[str, Any] | None:
    """The rows of a kind at a point, written out."""
    found = case(name)["seen"][point].get(kind)
    if isinstance(found, str):
        return seen(name, found.removeprefix("as in "), kind)
    if found is None:
        return None
    rows: dict[str, Any] = {}
    for row, value in found.items():
        rows[row] = _row(name, kind, rows, row, value)
    return rows


def _row(name: str, kind: str, rows: dict[str, Any], row: str, value: dict[str, Any]) -> Any:
    if "like" in value:
        whole_row = deepcopy(rows[value["like"]])
    elif "asIn" in value:
        whole_row = deepcopy((seen(name, value["asIn"], kind) or {})[row])
    else:
        return deepcopy(value)
    for path, item in value.get("differs", {}).items():
        _put(whole_row, _steps(path), item)
    return whole_row


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for key, index, plain in re.findall(r"\.?\[([^\]\d][^\]]*)\]|\[(\d+)\]|([^.\[\]]+)", path):
        steps.append(int(index) if index else key or plain)
    return steps


def _put(value: Any, steps: list[str | int], item: Any) -> None:
    *way, last = steps
    for step in way:
        value = value.setdefault(step, {}) if isinstance(value, dict) else value[step]
    if item is None and isinstance(value, dict):
        value.pop(last, None)
    else:
        value[last] = item
