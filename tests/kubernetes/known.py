"""What is not the same on our server and on a real one, on purpose or because nobody can tell the two apart.

Each line says what and why, takes exactly that out of two answers, and is shown by a few requests: one that shows
nothing any more has to go. What no line explains fails. `UNASKED` is about requests that are not made at random,
because afterwards the two servers have different objects.
"""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.kubernetes.protocol import APPLY, KINDS, MERGE, PARTIAL_LIST, Object, Step

_NO_PATH = ("404 page not found\n", "the server could not find the requested resource")
_TIMES = {"lastProbeTime", "lastTransitionTime", "lastUpdateTime"}
_UNSAID = re.compile(r"^spec\.template\.spec\.|duplicate port")
_ETCD = re.compile(r"StorageError: .* AdditionalErrorMsg: ")
_GENERATED = re.compile(r"\b(made\d+-)[a-z0-9]{5}\b")

Settle = Callable[[Step, Any, Any], None]


@dataclass(frozen=True)
class Known:
    """`settle` changes a real answer and ours, in place. `ends`: what comes later cannot be compared."""

    what: str
    why: str
    settle: Settle
    shown: list[Step] = field(default_factory=list)
    ends: bool = False


def settle(step: Step, real: Any, ours: Any) -> tuple[Any, Any, list[Known]]:
    """Both answers without what is known, and what that was."""
    real, ours, found = copy.deepcopy(real), copy.deepcopy(ours), []
    for one in KNOWN:
        before = copy.deepcopy((real, ours))
        for theirs, own in zip(real, ours, strict=False):
            if theirs != own:
                one.settle(step, theirs, own)
        if before != (real, ours):
            found.append(one)
    return real, ours, found


def without_ending(said: Any) -> Any:
    """Of a refusal by admission: it names what a name begins with there, and the name here, where it is made first."""
    if isinstance(said, dict) and said.get("kind") == "Status" and said.get("code") == 403:
        return _texts(said, lambda text: _GENERATED.sub(r"\1", text))
    return said


def _texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: _texts(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_texts(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


# ---- what is taken out


def _status(answer: Any) -> Object:
    said = answer.get("said")
    return said if isinstance(said, dict) and said.get("kind") == "Status" else {}


def _mistake(step: Step, real: Any, ours: Any) -> None:
    if real.get("code") == 500 and ours.get("code") == 400:
        real["code"] = 400
        real["said"] |= {"code": 400, "reason": "BadRequest"}
        if not ours["said"].get("details"):
            real["said"].pop("details", None)


def _unsaid(step: Step, real: Any, ours: Any) -> None:
    if "warnings" in real:
        said = [one for one in real["warnings"] if one in ours["warnings"] or not _UNSAID.search(one)]
        real["warnings"] = said


def _times(step: Step, real: Any, ours: Any) -> None:
    if not isinstance(real, dict):
        for one, other in zip(real, ours, strict=False) if isinstance(real, list) and isinstance(ours, list) else ():
            _times(step, one, other)
        return
    for name in _TIMES:
        if name in real and real[name] is None and not (isinstance(ours, dict) and name in ours):
            del real[name]
        if isinstance(ours, dict) and f"f:{name}" in real and f"f:{name}" not in ours:
            del real[f"f:{name}"]
    for name, value in real.items():
        if isinstance(value, dict | list) and isinstance(ours, dict) and name in ours:
            _times(step, value, ours[name])


def _no_items(step: Step, real: Any, ours: Any) -> None:
    said, own = real.get("said"), ours.get("said")
    if isinstance(said, dict) and said.get("kind") == "PartialObjectMetadataList" and said.get("items") is None:
        said["items"] = (own.get("items") and said["items"]) or []


def _last_page(step: Step, real: Any, ours: Any) -> None:
    if isinstance(real.get("said"), dict) and real["said"].get("metadata", {}).get("continue") == "":
        del real["said"]["metadata"]["continue"]


def _details(step: Step, real: Any, ours: Any) -> None:
    if _status(real).get("details") == {} and "details" not in _status(ours):
        del real["said"]["details"]


def _plain_text(step: Step, real: Any, ours: Any) -> None:
    if real.get("said") == _NO_PATH[0] and _status(ours).get("message") == _NO_PATH[1]:
        real["said"] = ours["said"]


def _etcd(step: Step, real: Any, ours: Any) -> None:
    if "message" in _status(real):
        real["said"]["message"] = _ETCD.sub("", real["said"]["message"])


def _emptied(step: Step, real: Any, ours: Any) -> None:
    causes = (_status(real).get("details") or {}).get("causes") or []
    custom = step.content_type == APPLY and "/widgets/" in step.path
    of_type = bool(causes) and all(reason == "FieldValueTypeInvalid" for _, reason in causes)
    if custom and of_type and (real.get("code"), ours.get("code")) == (422, 200):
        real |= copy.deepcopy(ours)


def _rewritten(step: Step, real: Any, ours: Any) -> None:
    if step.method not in ("PATCH", "PUT") or "/widgets/" not in step.path or real.get("code") != 200:
        return
    one, other = copy.deepcopy(real), copy.deepcopy(ours)
    versions = [answer["said"].get("metadata", {}).pop("resourceVersion", "") for answer in (one, other)]
    if one == other and versions[0] != versions[1]:
        real["said"]["metadata"]["resourceVersion"] = versions[1]


# ---- requests that show it


def _map(**more: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **more}}


def _widget(spec: Object, name: str = "x", **meta: Any) -> Object:
    head = {"apiVersion": "kohort.test/v1", "kind": "Widget"}
    return {**head, "metadata": {"name": name, **meta}, "spec": spec}


def _pod(**container: Any) -> Object:
    spec = {"containers": [{"name": "c", "image": "x", **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


def _deployment(**spec: Any) -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    whole = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": whole}


MAPS, PODS, WIDGETS, DEPLOYMENTS = (KINDS[kind] for kind in ("ConfigMap", "Pod", "Widget", "Deployment"))
_READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
_BY = {"fieldManager": "alice"}

KNOWN = [
    Known(
        "a client's mistake that is answered with 500 there is 400 here",
        "docs/differences.md",
        _mistake,
        [Step("POST", MAPS, _BY, _map(resourceVersion="1"))],
    ),
    Known(
        "warnings about ports that two containers share, and about pod templates, are not given",
        "docs/differences.md",
        _unsaid,
        [Step("POST", PODS, _BY, _pod(ports=[{"containerPort": 80}, {"containerPort": 80}]))],
    ),
    Known(
        "times of a pod's condition that nobody gave have no owner here",
        "there they are null, and owned",
        _times,
        [Step("POST", PODS, _BY, _pod()), Step("PATCH", f"{PODS}/x/status", _BY, _READY, MERGE)],
    ),
    Known(
        "an empty list of partial objects is [] here, null there",
        "clients read both as empty",
        _no_items,
        [Step("GET", MAPS, {"labelSelector": "none=1"}, accept=PARTIAL_LIST)],
    ),
    Known(
        "the last page of custom resources says continue: '' there, nothing here",
        "they mean the same",
        _last_page,
        [
            Step("POST", WIDGETS, _BY, _widget({}, "x")),
            Step("POST", WIDGETS, _BY, _widget({}, "y")),
            Step("GET", WIDGETS, {"limit": "1"}, follow=True),
        ],
    ),
    Known(
        "details of a refusal are {} there where nothing is to be said, and left out here",
        "they mean the same",
        _details,
        [Step("POST", f"{MAPS}/x", _BY, _map())],
    ),
    Known(
        "an unknown path in a group of custom resources is answered with plain text there",
        "a Status says more; same code",
        _plain_text,
        [Step("GET", f"{WIDGETS}s")],
    ),
    Known(
        "texts of refused preconditions name keys in etcd there",
        "there is no etcd here",
        _etcd,
        [Step("POST", MAPS, _BY, _map()), Step("PUT", f"{MAPS}/x", _BY, _map(uid="0"))],
    ),
    Known(
        "apply that empties a map of a custom resource is refused there, for a null that the server made",
        "docs/differences.md",
        _emptied,
        [
            Step("PATCH", f"{WIDGETS}/x", _BY, _widget({"free": {"a": 1}}), APPLY),
            Step("PATCH", f"{WIDGETS}/x", _BY, _widget({"free": {}}), APPLY),
        ],
        ends=True,
    ),
    Known(
        "a custom resource that was applied with empty labels or annotations is written once more there by the next "
        "request, though that changes nothing",
        "what is stored loses the empty map",
        _rewritten,
        [
            Step("PATCH", f"{WIDGETS}/x", _BY, _widget({}, labels={}), APPLY),
            Step("PATCH", f"{WIDGETS}/x", _BY, {"metadata": {"finalizers": None}}, MERGE),
        ],
        ends=True,
    ),
]

_PROPAGATED = {"propagationPolicy": "Background"}
UNASKED: dict[str, tuple[str, list[Step]]] = {
    "false and 0 in a Deployment, where that is the default, are kept as they were written": (
        "docs/differences.md",
        [Step("POST", DEPLOYMENTS, _BY, _deployment(paused=False, minReadySeconds=0))],
    ),
    "options in the query of a DELETE that has a body are not looked at there": (
        "docs/differences.md: dryRun=All would delete",
        [
            Step("POST", MAPS, _BY, _map()),
            Step("DELETE", f"{MAPS}/x", {"dryRun": "All"}, _PROPAGATED),
            Step("GET", f"{MAPS}/x"),
        ],
    ),
    "a DELETE that names a resourceVersion and changes the policy is 409 there": (
        "docs/differences.md: it is the version that was meant",
        [
            Step("POST", MAPS, _BY, _map()),
            Step("DELETE", f"{MAPS}/x", {}, {"propagationPolicy": "Foreground"}),
            Step("DELETE", f"{MAPS}/x", {}, {**_PROPAGATED, "preconditions": {"resourceVersion": "<rv x>"}}),
        ],
    ),
    "the status of a Deployment is not judged here": (
        "nobody but controllers writes it",
        [
            Step("POST", DEPLOYMENTS, _BY, _deployment()),
            Step("PATCH", f"{DEPLOYMENTS}/x/status", _BY, {"status": {"replicas": -1}}, MERGE),
        ],
    ),
}
