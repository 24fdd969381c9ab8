"""Dry-run creates and patches that the real operator answered: same verdict, same fields.

Upstream's webhook answers 403 with all faults in one text; ours says them as causes of a 422. Paths are compared
without indices, since upstream leaves them out where it blames one of several cliques.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.kinds.grove.api.cases import FABRIC, case, context, defaulted, recording, whole, without_indices

from kohort.api import admit, patch
from kohort.api.errors import FieldError
from kohort.api.kind import Object
from kohort.api.result import WriteResult
from kohort.kinds.grove.api import topology

TRIES = [(name, index) for name, found in recording()["cases"].items() for index in range(len(found.get("tries", [])))]
_FAULT = re.compile(
    r"((?:spec|metadata)[A-Za-z.\[\]0-9]*): (?:Invalid value|Required value|Forbidden|Duplicate value|Unsupported)"
)

# Where the verdict is another one, and why.
OTHER_VERDICT = {
    ("v-sched", "schedulingGroup set"): "ours: a template names its group only with GroveGangScheduling on (3.7)",
    ("v-children", "PodClique replicas 0"): "ours: nothing is smaller than its minimum (D22)",
    ("v-children", "PodClique minAvailable 7"): "same",
    ("v-children", "PodCliqueScalingGroup minAvailable 5"): "same",
}
# Paths of upstream's texts that do not exist in the object, or name a list for one of its items.
CORRECTED = {
    r"podSpec\.spec\.": "podSpec.",
    r"cliques\.(roleName|startsAfter)$": r"cliques.spec.\1",
    r"cliqueNames\.name$": "cliqueNames",
    r"schedulerTopologyReferences": "schedulerTopologyBindings",
}
# Faults that upstream says at several places at once; ours says each at the first.
ALSO_SAID_AT = {
    "46 characters standalone": {"metadata.name"},
    "46 characters member": {"metadata.name", "spec.template.podCliqueScalingGroups.name"},
    "member too long, standalone beside it fits": {"metadata.name", "spec.template.podCliqueScalingGroups.name"},
    '"other" and "other"': {"spec"},
    '"lpx-scheduler" and "lpx-scheduler"': {"spec"},
    "schedulerName unknown": {"spec"},
}
# Faults that ours says at another place: at the item, not at the list it is in.
SAID_ELSEWHERE = {
    "on a member": {"spec.template.cliques.spec.autoScalingConfig"},
    "clique added": {"spec.template.cliques.name"},
    "clique renamed": {"spec.template.cliques", "spec.template.cliques.name"},
    "group added": {"spec.template.podCliqueScalingGroups.name"},
    "group renamed": {"spec.template.podCliqueScalingGroups", "spec.template.podCliqueScalingGroups.name"},
    "InOrder: clique added at the end": {"spec.template.cliques.name"},
    "InOrder: clique added in front": {"spec.template.cliques.name"},
}


def _kind(name: str, tried: dict[str, Any]) -> str:
    if "patch" in tried:
        return str(tried["patch"].partition("/")[0])
    if name == "p-ctb":
        return "ctb"
    return {"a PodClique by hand, without owner": "pclq"}.get(
        tried["try"], "podgang" if "PodGang" in tried["try"] and name == "v-children" else "pcs"
    )


def _stored(name: str, target: str) -> Object:
    """The object that a patch is for: created by the case, or made by the operator from what it created."""
    kind, _, called = target.partition("/")
    for entry in case(name)["timeline"]:
        if isinstance(entry, dict) and entry.get("create") == target:
            return _versioned(whole(kind, entry["object"]))
    made = {
        "pclq": {"roleName": "x", "replicas": 2, "minAvailable": 1, "podSpec": "FILLED"},
        "pcsg": {"replicas": 2, "minAvailable": 1, "cliqueNames": ["y"]},
        "podgang": {"podgroups": [{"name": "a-0-x", "podReferences": [], "minReplicas": 1}]},
    }
    return _versioned(whole(kind, {"metadata": {"name": called}, "spec": made[kind]}))


def _versioned(obj: Object) -> Object:
    obj["metadata"] |= (
        {"namespace": "t", "resourceVersion": "7"}
        if obj["kind"] != "ClusterTopologyBinding"
        else {"resourceVersion": "7"}
    )
    return defaulted(obj)


def _bindings(name: str) -> dict[str, Object]:
    return {
        entry["object"]["metadata"]["name"]: whole("ctb", entry["object"])
        for entry in case(name).get("timeline", [])
        if isinstance(entry, dict) and str(entry.get("create", "")).startswith("ctb/")
    }


def _ask(name: str, tried: dict[str, Any]) -> tuple[WriteResult, list[FieldError]]:
    """The answer, and the faults: those of admission, or else those that show with the topology binding at hand."""
    kind, ctx = _kind(name, tried), context(name)
    if "patch" in tried:
        style = patch.JSON if isinstance(tried["with"], list) else patch.MERGE
        answer = admit.patch(tried["with"], _stored(name, tried["patch"]), ctx, content_type=style)
        return answer, list(answer.causes)
    answer = admit.create(whole(kind, tried["object"]), ctx)
    faults = list(answer.causes)
    if answer.object is not None and kind == "pcs":
        faults = topology.check_binding(answer.object, _bindings(name).get(topology.topology_name(answer.object)))
    return answer, faults


def _expected(tried: dict[str, Any]) -> set[str]:
    causes = [cause["field"] for cause in tried.get("causes", []) if cause["field"] != "<nil>"]
    paths = {without_indices(path) for path in causes or _FAULT.findall(tried.get("message", ""))}
    for wrong, right in CORRECTED.items():
        paths = {re.sub(wrong, right, path) for path in paths}
    return SAID_ELSEWHERE.get(tried["try"], paths - ALSO_SAID_AT.get(tried["try"], set()))


@pytest.mark.parametrize(("name", "index"), TRIES, ids=str)
def test_recorded_try(name: str, index: int) -> None:
    tried = case(name)["tries"][index]
    answer, faults = _ask(name, tried)
    accepted = answer.accepted and not faults
    if (name, tried["try"]) in OTHER_VERDICT:
        assert accepted != (tried["code"] < 300)
        return
    assert accepted == (tried["code"] < 300), (answer.message, faults)
    if not accepted and tried["code"] in (403, 422):
        assert {without_indices(fault.field) for fault in faults} == _expected(tried)
    if tried["code"] == 400:
        assert answer.code == 400


DEFAULTED = [index for index, tried in enumerate(case("v-defaults")["tries"]) if "stored" in tried]


@pytest.mark.parametrize("index", DEFAULTED)
def test_stored_as_recorded(index: int) -> None:
    tried = case("v-defaults")["tries"][index]
    answer = admit.create(whole("pcs", tried["object"]), context("v-defaults"))
    assert answer.object is not None
    assert answer.object["spec"] == whole("pcs", {"spec": tried["stored"]})["spec"]


def test_redundant_preference_is_warned_about() -> None:
    tried = next(found for found in case("p-valid")["tries"] if "warnings" in found)
    answer, _ = _ask("p-valid", tried)
    assert answer.object is not None
    assert topology.redundant(answer.object, _bindings("p-valid")["fabric-v"]) == tried["warnings"]


def test_the_unknown_field_is_warned_about() -> None:
    tried = next(found for found in case("v-misc")["tries"] if found["try"] == "unknown field")
    assert _ask("v-misc", tried)[0].warnings == ('unknown field "spec.colour"',)


def test_fabric_is_accepted() -> None:
    assert admit.create(FABRIC, context("p-valid")).accepted
