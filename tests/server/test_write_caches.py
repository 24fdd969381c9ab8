"""Events and statuses of pods like ones before: what comes from a cache is, to the byte, what the long way makes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.server.talk import Talk

from kohort.api.kind import Context
from kohort.server import storage_codec, timestamps
from kohort.server.resources import native_resources
from kohort.server.store.records import Item

EVENTS = "/apis/events.k8s.io/v1/namespaces/d/events"
OLDER_EVENTS = "/api/v1/namespaces/d/events"
PODS = "/api/v1/namespaces/d/pods"
MERGE = "application/merge-patch+json"
TIMES = ("2026-11-17T10:00:00Z", "2026-11-17T10:00:01Z", "2026-02-28T23:59:59Z")
UID = "11111111-2222-3333-4444-55555555555"


@pytest.fixture
def both() -> Iterator[tuple[Talk, Talk]]:
    """A server with the caches, and one without."""
    quick, slow = Talk(), Talk()
    for one in (quick, slow):
        one.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
    slow.api.core.admission_caches["events"].allowed = slow.api.core.pod_statuses.allowed = False
    yield quick, slow
    quick.close()
    slow.close()


def stored(talk: Talk, table: str) -> list[bytes]:
    """As it is kept, without what no two servers share."""
    return [_comparable(item) for item in talk.api.store.table(table).items("d")]


def _comparable(item: Item) -> bytes:
    obj = msgspec.json.decode(item.value)
    meta = obj["metadata"]
    meta["uid"] = meta["creationTimestamp"] = "-"
    for one in meta.get("managedFields") or ():
        one["time"] = "-"
    return msgspec.json.encode(obj)


def send(both: tuple[Talk, Talk], method: str, path: str, body: Any, content_type: str = "application/json") -> int:
    answers = [one.request(method, path, body, content_type=content_type) for one in both]
    assert answers[0].code == answers[1].code, (body, answers[0].json(), answers[1].json())
    if answers[0].code >= 400:
        assert answers[0].json() == answers[1].json()
    assert answers[0].headers == answers[1].headers
    return int(answers[0].code)


# ---- events


def event(number: int, **more: Any) -> dict[str, Any]:
    name = f"pod-{number}"
    regarding = {"apiVersion": "v1", "kind": "Pod", "namespace": "d", "name": name, "uid": f"{UID}{number % 10}"}
    return {
        "kind": "Event",
        "metadata": {"name": f"{name}.{number:x}", "namespace": "d"},
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "reportingInstance": "one",
        "apiVersion": "events.k8s.io/v1",
        "eventTime": f"2026-11-17T22:01:59.{number:06}Z",
        "reportingController": "kohort-scheduler",
        "regarding": regarding,
        "note": f'assigned "d/{name}" to node-{number}',
        **more,
    }


ODD_EVENTS: tuple[dict[str, Any], ...] = (
    {"note": ""},
    {"note": "x" * 1025},
    {"note": 3},
    {"eventTime": "yesterday"},
    {"eventTime": "2026-02-30T22:01:59.000001Z"},
    {"eventTime": "2026-11-17T22:01:59Z"},
    {"eventTime": None},
    {"metadata": {"name": "No Name", "namespace": "d"}},
    {"metadata": {"name": "elsewhere", "namespace": "other"}},
    {"metadata": {"name": "with-labels", "labels": {"a": "b"}}},
    {"metadata": {"name": "alone"}},
    {"regarding": {"kind": "Pod", "namespace": "other", "name": "p", "uid": f"{UID}1"}},
    {"regarding": {"kind": "Pod", "namespace": "d", "name": "", "uid": "no uid"}},
    {"regarding": {"kind": "Pod", "namespace": "d", "name": 7, "uid": f"{UID}1"}},
    {"unknown": 1},
    {"kind": "Pod"},
    {"series": {"count": 2, "lastObservedTime": "2026-11-17T22:01:59.000001Z"}},
)


def test_events_from_the_cache_are_like_those_of_the_long_way(both: tuple[Talk, Talk]) -> None:
    for number in range(8):
        assert send(both, "POST", f"{EVENTS}?fieldManager=kohort", event(number)) == 201
        assert send(both, "POST", EVENTS, event(100 + number, related={"kind": "Node", "name": "n"})) == 201
    assert stored(both[0], "events") == stored(both[1], "events")
    assert len(both[0].api.core.admission_caches["events"]._events) == 2  # type: ignore[union-attr]
    assert send(both, "POST", EVENTS, event(3)) == 409


@pytest.mark.parametrize("change", ODD_EVENTS, ids=lambda change: str(change)[:40])
def test_a_cached_event_lets_nothing_odd_through(both: tuple[Talk, Talk], change: dict[str, Any]) -> None:
    send(both, "POST", EVENTS, event(0))
    send(both, "POST", EVENTS, event(1, **change))
    send(both, "POST", EVENTS, event(2))
    assert stored(both[0], "events") == stored(both[1], "events")


def test_events_of_the_older_form_take_the_long_way(both: tuple[Talk, Talk]) -> None:
    regarding = {"kind": "Pod", "namespace": "d", "name": "p", "uid": f"{UID}0"}
    for number in range(2):
        body = {"metadata": {"name": f"e{number}"}, "involvedObject": regarding, "message": "m", "reason": "r"}
        assert send(both, "POST", OLDER_EVENTS, body) == 201
    assert stored(both[0], "events") == stored(both[1], "events")


# ---- statuses of pods


def pod(number: int, dice: random.Random) -> dict[str, Any]:
    containers = [{"name": f"c{at}", "image": "x", "resources": {"requests": {"cpu": "1"}}} for at in range(2)]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": f"{UID}{number % 3}", "controller": True}
    meta = {"name": f"p-{number}", **({"ownerReferences": [owner]} if dice.random() < 0.8 else {})}
    spec = {"containers": containers[: dice.choice((1, 1, 2))], "hostname": f"h-{number}", "subdomain": "s"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def running(number: int, dice: random.Random) -> dict[str, Any]:
    """As a kubelet says it, with the moments and addresses of this pod, some of them the same."""
    address, host = f"10.0.{number // 250}.{number % 250 + 1}", f"172.16.0.{dice.randrange(1, 4)}"
    if dice.random() < 0.1:
        host = address
    moment = dice.choice(TIMES)
    ready = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": dice.choice(TIMES)}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}
    container = {"name": "c0", "image": "x", "imageID": "", "ready": True, "started": True, "restartCount": 0}
    return {
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "phase": "Running",
        "startTime": moment,
        "conditions": [scheduled, ready],
        "containerStatuses": [{**container, "state": {"running": {"startedAt": dice.choice(TIMES)}}}],
    }


ODD_STATUSES: tuple[dict[str, Any], ...] = (
    {"podIP": "10.0.0.300"},
    {"podIPs": [{"ip": "10.0.0.300"}]},
    {"podIPs": [{"ip": "10.0.0.01"}]},
    {"podIPs": [{"ip": "10.9.9.9"}]},
    {"podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::1"}]},
    {"podIPs": []},
    {"podIPs": [3]},
    {"hostIPs": [{"ip": "10.9.9.9"}]},
    {"startTime": "2026-02-30T10:00:00Z"},
    {"startTime": "soon"},
    {"startTime": None},
    {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}]},
    {"conditions": [{"type": "Ready"}, {"type": "Ready"}]},
    {"conditions": None},
    {"conditions": {"type": "Ready"}},
    {"containerStatuses": [{"name": "c0", "ready": True, "state": {"running": {"startedAt": 7}}}]},
    {"containerStatuses": [{"name": "c0", "state": {"waiting": {"reason": "Why"}}}]},
    {"qosClass": "Guaranteed"},
    {"nominatedNodeName": "n"},
    {"unknown": 1},
    {"phase": 7},
)


def bind(both: tuple[Talk, Talk], name: str) -> None:
    target = {"target": {"kind": "Node", "name": "n"}, "metadata": {"name": name}}
    assert send(both, "POST", f"{PODS}/{name}/binding", target) == 201


@pytest.fixture
def one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bindings write the present into the pod: the same one on both servers."""
    monkeypatch.setattr(timestamps, "stamp", lambda _moment=None: TIMES[1])


@pytest.mark.usefixtures("one_moment")
def test_statuses_from_the_cache_are_like_those_of_the_long_way(both: tuple[Talk, Talk]) -> None:
    dice = random.Random(17)
    for number in range(120):
        assert send(both, "POST", f"{PODS}?fieldManager=job", pod(number, dice)) == 201
        if dice.random() < 0.7:
            bind(both, f"p-{number}")
        path, manager = f"{PODS}/p-{number}/status", dice.choice(("kubelet", "kubelet", "aaa"))
        assert send(both, "PATCH", f"{path}?fieldManager={manager}", {"status": running(number, dice)}, MERGE) == 200
        if dice.random() < 0.2:  # the same again, and something else
            send(both, "PATCH", f"{path}?fieldManager={manager}", {"status": {"phase": "Succeeded"}}, MERGE)
    assert stored(both[0], "pods") == stored(both[1], "pods")
    known = both[0].api.core.pod_statuses
    assert 0 < len(known._managers) < 100, "some must have been like one before"


@pytest.mark.usefixtures("one_moment")
@pytest.mark.parametrize("change", ODD_STATUSES, ids=lambda change: str(change)[:40])
def test_a_cached_status_lets_nothing_odd_through(both: tuple[Talk, Talk], change: dict[str, Any]) -> None:
    for number in range(3):
        assert send(both, "POST", PODS, pod(number, random.Random(1))) == 201
        status = running(number, random.Random(1)) | (change if number else {})
        send(both, "PATCH", f"{PODS}/p-{number}/status", {"status": status}, MERGE)
    assert stored(both[0], "pods") == stored(both[1], "pods")


@pytest.mark.usefixtures("one_moment")
def test_a_cached_status_is_of_this_pod_only(both: tuple[Talk, Talk]) -> None:
    """A uid says which pod is meant; a patch may change labels on its way; a pod that goes is not like others."""
    for number in range(5):
        assert send(both, "POST", PODS, pod(number, random.Random(1))) == 201
    first = running(0, random.Random(1))
    assert send(both, "PATCH", f"{PODS}/p-0/status", {"status": first}, MERGE) == 200
    assert send(both, "PATCH", f"{PODS}/p-1/status", {"metadata": {"uid": "other"}, "status": first}, MERGE) in (
        409,
        422,
    )
    labelled = {"metadata": {"labels": {"a": "b"}}, "status": first}
    assert send(both, "PATCH", f"{PODS}/p-2/status", labelled, MERGE) == 200
    assert send(both, "PATCH", f"{PODS}/p-3/status?dryRun=All", {"status": first}, MERGE) == 200
    assert (
        send(both, "PATCH", f"{PODS}/p-4/status?fieldValidation=Strict", {"status": {**first, "no": 1}}, MERGE) >= 400
    )
    assert stored(both[0], "pods") == stored(both[1], "pods")


def test_with_mutating_webhooks_nothing_comes_from_a_cache(talk: Talk) -> None:
    dice = random.Random(1)
    for number in range(2):
        talk.create(PODS, pod(number, dice))
    talk.request("PATCH", f"{PODS}/p-0/status", {"status": running(0, random.Random(1))}, content_type=MERGE)
    known = talk.api.core.pod_statuses
    assert len(known._managers) == 1
    talk.create(
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        {"metadata": {"name": "w"}, "webhooks": []},
    )
    known._managers.update({key: one._replace(entry=b"nonsense") for key, one in known._managers.items()})
    answer = talk.request("PATCH", f"{PODS}/p-1/status", {"status": running(1, random.Random(1))}, content_type=MERGE)
    assert answer.code == 200


# ---- objects without their managers

MANAGERS = [{"manager": "m", "operation": "Update", "fieldsV1": {'k:{"a":"b"}': {".": {}}}}]


@pytest.mark.parametrize(
    "meta",
    [
        {"name": "p", "managedFields": MANAGERS, "uid": "u"},
        {"managedFields": MANAGERS},
        {"managedFields": []},
        {"managedFields": None},
        {"name": "p"},
        {"labels": {"managedFields": "x"}, "managedFields": MANAGERS},
        {"annotations": {"last": '{"metadata":{"managedFields":[]}}'}, "managedFields": []},
        {"annotations": {"last": msgspec.json.encode({"managedFields": MANAGERS}).decode()}, "managedFields": MANAGERS},
    ],
    ids=str,
)
def test_an_object_without_its_managers_is_else_the_same(meta: dict[str, Any]) -> None:
    obj = {"metadata": meta, "spec": {"template": {"metadata": {"managedFields": MANAGERS}}}, "status": {}}
    item = Item("d", "p", 1, msgspec.json.encode(obj))
    found = storage_codec.unmanaged(item)
    wanted = {**obj, "metadata": {**meta, "managedFields": None} if meta.get("managedFields") is not None else meta}
    assert msgspec.json.decode(found.value) == wanted
    assert msgspec.json.decode(found.managers or b"null") == meta.get("managedFields")
    pods = Context.of("1.37", None)
    resource = native_resources(pods).of_plural("", "pods")
    assert resource is not None
    assert storage_codec.dump(resource, storage_codec.load_quickly(resource, item), 2) == storage_codec.dump(
        resource, storage_codec.load(resource, item), 2
    )


def test_validating_admission_sees_managers_of_a_status_from_the_cache(talk: Talk) -> None:
    """A policy about managers refuses the second pod as it would on the long way."""
    for number in range(2):
        talk.create(f"{PODS}?fieldManager=job", pod(number, random.Random(1)))
    assert talk.request("PATCH", f"{PODS}/p-0/status", {"status": running(0, random.Random(1))}, content_type=MERGE)
    seen: list[Any] = []

    class Sees:
        async def validate(self, attrs: Any) -> None:
            seen.append([len(one["metadata"]["managedFields"]) for one in (attrs.old, attrs.object)])

    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["secrets"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    talk.create(policies, {"metadata": {"name": "any"}, "spec": spec})
    known = dict(talk.api.core.pod_statuses._managers)
    talk.api.core.use([Sees()])
    talk.api.core.pod_statuses._managers.update(known)
    answer = talk.request("PATCH", f"{PODS}/p-1/status", {"status": running(1, random.Random(1))}, content_type=MERGE)
    assert answer.code == 200
    assert seen == [[1, 2]]
