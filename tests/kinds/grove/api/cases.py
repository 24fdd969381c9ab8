"""The recorded cases of Grove, and sets built in a line."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.api.registry import find

GROVE = "grove.io/v1alpha1"
KINDS = {
    "pcs": (GROVE, "PodCliqueSet"),
    "pclq": (GROVE, "PodClique"),
    "pcsg": (GROVE, "PodCliqueScalingGroup"),
    "ctb": (GROVE, "ClusterTopologyBinding"),
    "podgang": ("scheduler.grove.io/v1alpha1", "PodGang"),
}
# What the recorded operator was configured with, as options of ours.
SETS = {"default": (), "tas": ("GroveTopology",), "auth": ("GroveLpx",), "gang": ("GroveGangScheduling",)}


@cache
def recording() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((Path(__file__).parents[3] / "recorded" / "grove.json").read_text())
    return loaded


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = recording()["cases"][name]
    return found


def context(name: str, minor: str = "1.37") -> Context:
    return Context.of(minor, options=SETS[case(name)["set"]])


def on(minor: str = "1.37", *options: str, gates: Any = None, without: tuple[str, ...] = ()) -> Context:
    """Our defaults, with options more and less."""
    return Context.of(minor, gates, (DEFAULT_OPTIONS | set(options)) - set(without))


def whole(kind: str, obj: Any) -> Object:
    """A recorded object with its head, and the podSpecs that the recording abbreviates."""
    version, name = KINDS[kind]
    return {"apiVersion": version, "kind": name, **_filled(deepcopy(obj))}


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item) for item in value]
    if isinstance(value, str) and value in recording()["about"]["podSpecs"]:
        return deepcopy(recording()["about"]["podSpecs"][value])
    return value


def defaulted(obj: Object, ctx: Context | None = None) -> Object:
    kind = find(obj["apiVersion"], obj["kind"])
    assert kind is not None
    return admit.defaulted(obj, kind, ctx or on())


# ---- sets in a line


def clique(name: str, replicas: int = 1, minimum: int | None = None, **more: Any) -> Object:
    """`pack`: required domain; `pod`: members of the podSpec; the rest are members of the clique's spec."""
    pack, pod = more.pop("pack", None), more.pop("pod", {})
    spec = {"roleName": name, "replicas": replicas, "podSpec": {"containers": [{"name": "m", "image": "i"}], **pod}}
    if minimum is not None:
        spec["minAvailable"] = minimum
    found: Object = {"name": name, "spec": {**spec, **more}}
    if pack:
        found["topologyConstraint"] = {"pack": {"required": pack}}
    return found


def group(name: str, cliques: list[str], replicas: int = 1, minimum: int = 1, pack: str = "") -> Object:
    found: Object = {"name": name, "cliqueNames": cliques, "replicas": replicas, "minAvailable": minimum}
    if pack:
        found["topologyConstraint"] = {"topologyName": "fabric", "pack": {"required": pack}}
    return found


def pcs(name: str, *cliques: Object, replicas: int = 1, groups: list[Object] | None = None, **template: Any) -> Object:
    pack = template.pop("pack", None)
    body: Object = {"cliques": list(cliques), **template}
    if groups:
        body["podCliqueScalingGroups"] = groups
    if pack:
        body["topologyConstraint"] = {"topologyName": "fabric", "pack": {"required": pack}}
    return {
        "apiVersion": GROVE,
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "t"},
        "spec": {"replicas": replicas, "template": body},
    }


FABRIC: Object = {
    "apiVersion": GROVE,
    "kind": "ClusterTopologyBinding",
    "metadata": {"name": "fabric"},
    "spec": {
        "levels": [
            {"domain": "zone", "key": "topology.kubernetes.io/zone"},
            {"domain": "rack", "key": "example.net/rack"},
            {"domain": "host", "key": "kubernetes.io/hostname"},
        ]
    },
}


def without_indices(path: str) -> str:
    return re.sub(r"\[\d+\]", "", path).lstrip(".")
