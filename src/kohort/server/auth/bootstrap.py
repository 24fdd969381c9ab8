"""The roles and bindings that every server starts with: those of the Kubernetes minor (data), and our own.

The data were listed from the API of a real server of each minor, with the Workload API switched on.
"""

from __future__ import annotations

import gzip
from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.api.bundle import bundles
from kohort.server.auth import aggregation, rules, users
from kohort.server.auth.rbac import GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kohort.api.kind import Object

_AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
_LABEL: Final = "rbac.authorization.k8s.io/aggregate-to-"
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "delete", "deletecollection", "patch", "update"]
# What the read-only token sees beside `view`: the cluster, but no secrets, and no tokens by way of them.
_CLUSTER: Final = [
    {"verbs": _READ, "apiGroups": [""], "resources": ["nodes", "nodes/status", "persistentvolumes", "podtemplates"]},
    {
        "verbs": _READ,
        "apiGroups": [
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "coordination.k8s.io",
            "events.k8s.io",
            "node.k8s.io",
            GROUP,
            "resource.k8s.io",
            "storage.k8s.io",
        ],
        "resources": ["*"],
    },
    {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
]


def _object(kind: str, name: str, labels: dict[str, str] | None = None, **body: Any) -> Object:
    meta: dict[str, Any] = {"name": name, "annotations": {_AUTOUPDATE: "true"}}
    meta["labels"] = {"app.kubernetes.io/part-of": "kohort"} | (labels or {})
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, **body}


def _binding(name: str, group: str, role: str) -> Object:
    subjects = [{"kind": "Group", "apiGroup": GROUP, "name": group}]
    return _object(
        "ClusterRoleBinding", name, subjects=subjects, roleRef={"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    )


def _workloads() -> list[str]:
    """Groups of kinds that Kohort understands beside Kubernetes' own; upstream's roles say nothing about them."""
    return sorted(group for one in bundles() if not one.native for group in one.groups)


def _ours() -> Iterator[Object]:
    workloads = _workloads()
    view = {"verbs": _READ, "apiGroups": sorted({*workloads, "scheduling.k8s.io"}), "resources": ["*"]}
    edit = {"verbs": _WRITE, "apiGroups": workloads, "resources": ["*"]}
    family = {
        "verbs": _WRITE,
        "apiGroups": ["scheduling.k8s.io"],
        "resources": ["compositepodgroups", "podgroups", "workloads"],
    }
    yield _object("ClusterRole", "kohort:aggregate-to-view", {f"{_LABEL}view": "true"}, rules=[view])
    yield _object("ClusterRole", "kohort:aggregate-to-edit", {f"{_LABEL}edit": "true"}, rules=[edit, family])
    yield _object("ClusterRole", "kohort:cluster-viewer", {"kohort.dev/aggregate-to-viewer": "true"}, rules=_CLUSTER)
    selectors = [{"matchLabels": {name: "true"}} for name in (f"{_LABEL}view", "kohort.dev/aggregate-to-viewer")]
    yield _object("ClusterRole", "kohort:viewer", aggregationRule={"clusterRoleSelectors": selectors})
    yield _binding("kohort:viewer", users.VIEWERS, "kohort:viewer")
    # Instead of upstream's Node authorizer, which narrows every node down to what its own pods need.
    yield _binding("kohort:nodes", users.NODES, "system:node")


@cache
def _of_upstream(minor: str) -> bytes:
    return gzip.decompress(files("kohort.server.auth").joinpath(f"data/rbac-{minor}.json.gz").read_bytes())


def objects(minor: str) -> list[Object]:
    """Everything, roles before bindings; aggregated roles with the rules that they come to."""
    found: list[Object] = [*msgspec.json.decode(_of_upstream(minor)), *deepcopy(list(_ours()))]
    effective = aggregation.effective([one for one in found if one["kind"] == "ClusterRole"])
    for one in found:
        if one["kind"] == "ClusterRole":
            one["rules"] = effective[one["metadata"]["name"]]
    return sorted(found, key=lambda one: one["kind"].endswith("Binding"))


def repaired(stored: Object | None, wanted: Object) -> Object | None:
    """What to write at start: a missing object, or a stored one that lost some of its rules or subjects.

    What somebody added stays; an object whose annotation says autoupdate: false is left alone. None: nothing to do.
    """
    if stored is None:
        return wanted
    if ((stored["metadata"].get("annotations") or {}).get(_AUTOUPDATE)) != "true":
        return None
    if wanted["kind"].endswith("Binding"):
        return _completed(stored, wanted, "subjects", lambda have, want: [one for one in want if one not in have])
    if wanted.get("aggregationRule"):
        return None  # its rules follow from others
    return _completed(stored, wanted, "rules", _missing_rules)


def _missing_rules(have: list[dict[str, Any]], want: list[dict[str, Any]]) -> list[dict[str, Any]]:
    missing = rules.uncovered(map(rules.read, have), map(rules.read, want))
    return [rules.write(rule) for rule in missing]


def _completed(
    stored: Object,
    wanted: Object,
    member: str,
    missing: Callable[[list[dict[str, Any]], list[dict[str, Any]]], list[dict[str, Any]]],
) -> Object | None:
    have = stored.get(member) or []
    lost = missing(have, wanted.get(member) or [])
    return {**deepcopy(stored), member: [*deepcopy(have), *lost]} if lost else None
