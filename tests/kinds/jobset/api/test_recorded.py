"""310 dry-run writes that upstream JobSet answered, asked again here: same verdict, same fields.

Upstream reports some rules without a field; ours name one, so such causes only count as "something is wrong".
"""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.kinds.jobset.api.patching import patched

from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.api.result import WriteResult, invalid
from kohort.kinds.jobset.api import JOBSET
from kohort.kinds.jobset.api.constants import API_VERSION
from kohort.kinds.jobset.api.volumes import against_existing

FILE = Path(__file__).parents[3] / "recorded" / "jobset.json"
GATED = ("InPlaceRestart", "RestartJob", "ElasticJobSet")
PODS = "e-exclusive-direct"  # pods posted to JobSet's pod webhooks: a controller's business, not this kind's

# Where we answer otherwise on purpose: (case, try) -> our code. Each group says why.
ONLY_CREATION_SETS = "an optional field that is added or removed is changed (spec jobset 1.1)"
SERVED_HERE = "gang fields are served here (spec jobset 3.2)"
OURS: dict[tuple[str, str], tuple[int, str]] = {
    ("v-dependson", "itself"): (422, "V17: it would never start"),
    **{
        (case, "failurePolicy added or changed"): (422, ONLY_CREATION_SETS)
        for case in ("u-running", "u-suspended", "u-finished")
    },
    **{
        (case, "volumeClaimPolicies added"): (422, ONLY_CREATION_SETS)
        for case in ("u-running", "u-suspended", "u-finished")
    },
    ("u-running-policy", "failurePolicy removed"): (422, ONLY_CREATION_SETS),
    ("u-running-policy", "volumeClaimPolicies removed"): (422, ONLY_CREATION_SETS),
    ("v-unknown", "gangConfig, strict"): (201, SERVED_HERE),
    ("v-unknown", "scheduling, strict"): (201, SERVED_HERE),
    ("v-unknown", "template.spec.scheduling, strict"): (201, "Kubernetes 1.37 has the field in its Job API"),
    ("v-unknown", "scheduleAtOnce, server's default field validation"): (422, "refused with a hint (spec jobset 3.2)"),
}


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())["cases"]
    return found


TRIES = [
    pytest.param(name, index, id=f"{name}: {attempt['try']}")
    for name, case in recorded().items()
    if name != PODS
    for index, attempt in enumerate(case.get("tries") or ())
]


def context(case: Object) -> Context:
    return Context.of("1.37", options=DEFAULT_OPTIONS | set(GATED if case["set"] == "gated" else ()))


def play(name: str, attempt: Object) -> WriteResult:
    case = recorded()[name]
    if "patch" in attempt:
        return update(case, attempt)
    if attempt["try"].startswith("version "):
        version = attempt["try"].split()[1]
        return admit.create(made({"metadata": {"name": "unk"}, "spec": {}}, version), context(case))
    mode: admit.FieldValidation = "Strict" if attempt["try"].endswith(", strict") else "Warn"
    answer = admit.create(made(attempt["object"]), context(case), namespace=name, field_validation=mode)
    claims = existing_claims(case) if attempt["try"].startswith("PVC exists") else []
    if answer.object is not None and (clash := list(against_existing(answer.object, claims))):
        return invalid(JOBSET, "vol", clash)
    return answer


def made(body: Object, version: str = "v1alpha2") -> Object:
    return {"apiVersion": f"jobset.x-k8s.io/{version}", "kind": "JobSet", **deepcopy(body)}


def existing_claims(case: Object) -> list[Object]:
    claims = [deepcopy(step["object"]) for step in case["timeline"] if step.get("create") == "pvc"]
    for claim in claims:
        claim["spec"]["volumeMode"] = "Filesystem"  # filled in by the server
    return claims


def update(case: Object, attempt: Object) -> WriteResult:
    body = next(step["object"] for step in case["timeline"] if step.get("create") == "jobset")
    answer = admit.create(made(body), context(case), namespace=case["namespace"])
    assert answer.object is not None
    old = answer.object
    old["metadata"]["resourceVersion"] = "7"
    if case["namespace"] == "u-finished" or attempt["try"] == "after completion":
        old["status"] = {"terminalState": "Completed", "conditions": [{"type": "Completed", "status": "True"}]}
    return admit.update(patched(old, attempt["patch"]), old, context(case))


@pytest.mark.parametrize(("name", "index"), TRIES)
def test_same_answer(name: str, index: int) -> None:
    attempt = recorded()[name]["tries"][index]
    answer = play(name, attempt)
    code, why = OURS.get((name, attempt["try"]), (attempt["code"], ""))
    assert answer.code == code, answer.message or why
    if attempt["code"] == 422 and not why:
        said = {cause["field"] for cause in attempt["causes"]} - {"<nil>"}
        assert said <= {cause.field for cause in answer.causes}
        if not hides_more(attempt):
            assert len({cause.field for cause in answer.causes} - said) == unplaced(attempt)
    if attempt["code"] in {200, 201} and code == attempt["code"] and "stored" in attempt:
        assert_stored(attempt, answer)


def hides_more(attempt: Object) -> bool:
    """The schema's refusals hide what the webhook would have said; ours come together."""
    return not attempt["message"].startswith("admission webhook")


def unplaced(attempt: Object) -> int:
    """Causes without a field upstream: each is one field here, except that of a gate, which ours names per rule."""
    return len([cause for cause in attempt["causes"] if cause["field"] == "<nil>"])


def assert_stored(attempt: Object, answer: WriteResult) -> None:
    assert answer.object is not None
    spec, stored = plain(answer.object["spec"]), plain(attempt["stored"])
    if isinstance(stored, list):  # a digest of the ReplicatedJobs
        assert [digest(job) for job in spec["replicatedJobs"]] == stored
        return
    for member, value in stored.items():
        if attempt["try"].startswith("template.spec.scheduling") and member == "replicatedJobs":
            continue  # kept here: Kubernetes 1.37 knows the field
        assert spec.get(member) == value, member
    if attempt.get("warnings") and attempt["try"].startswith("scheduleAtOnce"):
        assert [text for text in answer.warnings if "unknown field" in text]


def digest(job: Object) -> Object:
    pod = job["template"]["spec"]
    return {
        **{member: job[member] for member in ("name", "groupName", "replicas")},
        "completionMode": pod["completionMode"],
        "restartPolicy": pod["template"]["spec"]["restartPolicy"],
    }


def plain(value: Any) -> Any:
    """Without the empty objects that Go writes for structs, and without nulls."""
    if isinstance(value, dict):
        kept = {name: plain(item) for name, item in value.items() if item is not None}
        return {
            name: item for name, item in kept.items() if item != {} or name not in {"metadata", "resources", "status"}
        }
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_every_difference_is_a_recorded_try_with_another_answer() -> None:
    """No stale excuse: each stands for a try, and upstream did answer otherwise."""
    for (name, title), (code, _) in OURS.items():
        codes = [attempt["code"] for attempt in recorded()[name]["tries"] if attempt["try"] == title]
        assert codes, (name, title)
        assert code not in codes, (name, title)


def test_api_version_is_the_only_one_served() -> None:
    assert API_VERSION == JOBSET.api_version == "jobset.x-k8s.io/v1alpha2"


CREATED = [
    pytest.param(name, index, id=f"{name}-{index}")
    for name, case in recorded().items()
    for index in range(len([step for step in case.get("timeline") or () if step.get("create") == "jobset"]))
]


@pytest.mark.parametrize(("name", "index"), CREATED)
def test_jobsets_of_the_life_cases(name: str, index: int) -> None:
    """What upstream took in its running cases is taken here, and refused what was refused."""
    case = recorded()[name]
    step = [step for step in case["timeline"] if step.get("create") == "jobset"][index]
    body = made(step["object"])
    for owner in body["metadata"].get("ownerReferences") or ():
        owner["uid"] = "left-out"  # uids are left out of recordings
    answer = admit.create(body, context(case), namespace=name)
    if name == "l-volumes" and index:  # the first JobSet is gone, the claim it was to keep is not
        kept = next(claim for claim in case["pvcs"] if claim["name"] == "keep-vole")
        clash = list(
            against_existing(answer.object or {}, [{"metadata": {"name": kept["name"]}, "spec": kept["spec"]}])
        )
        assert bool(clash) == (step["code"] == 422)
        return
    ours = {"t-depends-self": 422}  # V17
    assert answer.code == ours.get(name, step["code"]), answer.message
