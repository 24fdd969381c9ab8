"""Writes: names, generations, finalizers, grace, preconditions, subresources, dry runs, races, pods from the cache."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.server.talk import Talk

from kohort.api.kind import Context
from kohort.kube.wire import Request
from kohort.server.api import Api
from kohort.server.pod_admission_cache import PodAdmissionCache
from kohort.server.store import Store

PODS = "/api/v1/namespaces/d/pods"
MAPS = "/api/v1/namespaces/d/configmaps"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


def pod(name: str = "", **more: Any) -> dict[str, Any]:
    meta = {"name": name} if name else {"generateName": "p-"}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, **more}, "spec": {"containers": [container]}}


def deployment(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    body = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"metadata": {"name": "w"}, "spec": body}


DEPLOYMENTS = "/apis/apps/v1/namespaces/d/deployments"


def test_pods_from_the_cache_are_like_the_first(talk: Talk) -> None:
    made = [talk.create(PODS, pod(f"p{number}", labels={"n": str(number)})) for number in range(3)]
    for one in made:
        meta = one["metadata"]
        assert meta["generation"] == 1
        assert one["spec"] == made[0]["spec"]
        assert one["status"] == made[0]["status"] == {"phase": "Pending", "qosClass": "Burstable"}
        assert meta["managedFields"][0]["fieldsV1"] == made[0]["metadata"]["managedFields"][0]["fieldsV1"]
    assert len({one["metadata"]["uid"] for one in made}) == 3
    assert [one["metadata"]["labels"]["n"] for one in made] == ["0", "1", "2"]
    long_way = Talk()
    long_way.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
    long_way.api.core.admission_caches["pods"].allowed = False
    slow = [long_way.create(PODS, pod(f"p{number}", labels={"n": str(number)})) for number in range(3)]
    long_way.close()
    for quick, wanted in zip(made, slow, strict=True):
        for one in (quick, wanted):
            for name in ("uid", "creationTimestamp", "resourceVersion"):
                one["metadata"].pop(name)
            one["metadata"]["managedFields"][0].pop("time")
        assert quick == wanted


def job_pod(number: int, owner: str) -> dict[str, Any]:
    """As a Job controller makes them: each with a hostname, an owner and a group of its own."""
    reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": f"job-{owner}",
        "uid": UIDS[owner],
        "controller": True,
    }
    made = pod(f"{owner}-{number}", ownerReferences=[reference], finalizers=["batch.kubernetes.io/job-tracking"])
    made["spec"] |= {"hostname": f"h-{number}", "schedulingGroup": {"podGroupName": f"group-{owner}"}}
    return made


UIDS = {"a": "11111111-2222-3333-4444-555555555555", "b": "66666666-7777-8888-9999-aaaaaaaaaaaa"}


def test_pods_of_a_job_come_from_the_cache(talk: Talk) -> None:
    """Hostname, group and owner are each pod's own, and stand in it and in its managers as on the long way."""
    quick = [talk.create(PODS, job_pod(number, owner)) for owner in "ab" for number in range(2)]
    cache = talk.api.core.admission_caches["pods"]
    assert isinstance(cache, PodAdmissionCache)
    assert len(cache._pods) == 1
    talk.api.core.admission_caches["pods"].allowed = False
    slow = []
    for owner in "ab":
        for number in range(2):
            assert talk.request("DELETE", f"{PODS}/{owner}-{number}", {"gracePeriodSeconds": 0}).code == 200
            talk.request("PATCH", f"{PODS}/{owner}-{number}", {"metadata": {"finalizers": None}}, content_type=MERGE)
            slow.append(talk.create(PODS, job_pod(number, owner)))
    for one in (*quick, *slow):
        for name in ("uid", "creationTimestamp", "resourceVersion"):
            one["metadata"].pop(name)
        one["metadata"]["managedFields"][0].pop("time")
    assert quick == slow


@pytest.mark.parametrize(
    "change",
    [
        {"hostname": "No Host"},
        {"hostname": 7},
        {"schedulingGroup": {"podGroupName": "No Group"}},
        {"schedulingGroup": {}},
        {"schedulingGroup": {"podGroupName": "a", "other": 1}},
    ],
)
def test_a_cached_pod_lets_no_bad_spec_through(talk: Talk, change: dict[str, Any]) -> None:
    talk.create(PODS, job_pod(0, "a"))
    wrong = job_pod(1, "a")
    wrong["spec"] |= change
    first = talk.request("POST", f"{PODS}?fieldValidation=Strict", wrong)
    talk.api.core.admission_caches["pods"].allowed = False
    second = talk.request("POST", f"{PODS}?fieldValidation=Strict", wrong)
    assert first.code == second.code in {400, 422}
    assert first.json()["message"] == second.json()["message"]


def test_a_cached_pod_lets_no_bad_owner_through(talk: Talk) -> None:
    talk.create(PODS, job_pod(0, "a"))
    for change in ({"uid": ""}, {"name": ""}, {"uid": 3}, {"name": None}):
        wrong = job_pod(1, "a")
        wrong["metadata"]["ownerReferences"][0] |= change
        assert talk.request("POST", PODS, wrong).code in {400, 422}, change


def test_a_cached_pod_does_not_let_bad_names_through(talk: Talk) -> None:
    talk.create(PODS, pod("good", labels={"a": "b"}))
    for wrong in (pod("Bad", labels={"a": "b"}), pod("bad", labels={"a": "-"}), pod("bad", labels={"a": 1})):
        assert talk.request("POST", PODS, wrong).code in {400, 422}
    assert talk.request("POST", PODS, pod("good", labels={"a": "b"})).code == 409
    other = pod("elsewhere", labels={"a": "b"}, namespace="other")
    assert talk.request("POST", PODS, other).code == 400


def test_a_new_priority_class_is_not_missed_by_the_cache(talk: Talk) -> None:
    assert talk.create(PODS, pod("a"))["spec"]["priority"] == 0
    talk.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "x"}, "value": 7, "globalDefault": True}
    )
    assert talk.create(PODS, pod("b"))["spec"]["priority"] == 7


def test_generated_names_are_all_different(talk: Talk) -> None:
    names = {talk.create(PODS, pod())["metadata"]["name"] for _ in range(50)}
    assert len(names) == 50
    assert all(name.startswith("p-") and len(name) == 7 for name in names)


def test_generation_counts_changes_of_the_spec(talk: Talk) -> None:
    talk.create(DEPLOYMENTS, deployment())
    at = f"{DEPLOYMENTS}/w"

    def patched(change: Any, path: str = at) -> Any:
        return talk.request("PATCH", path, change, content_type=MERGE).json()["metadata"]["generation"]

    assert patched({"metadata": {"labels": {"x": "y"}}}) == 1
    assert patched({"spec": {"replicas": 3}}) == 2
    assert patched({"status": {"replicas": 3}}, f"{at}/status") == 2
    assert talk.get(at)["status"] == {"replicas": 3}
    assert patched({"spec": {"paused": True}, "status": {"replicas": 9}}) == 3
    assert talk.get(at)["status"] == {"replicas": 3}


def test_a_write_without_change_is_none(talk: Talk) -> None:
    first = talk.create(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    second = talk.request("PUT", f"{MAPS}/a", first).json()
    third = talk.request("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, content_type=MERGE).json()
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert first["metadata"]["resourceVersion"] == third["metadata"]["resourceVersion"]


def test_an_old_version_conflicts(talk: Talk) -> None:
    first = talk.create(MAPS, {"metadata": {"name": "a"}})
    talk.request("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, content_type=MERGE)
    answer = talk.request("PUT", f"{MAPS}/a", {**first, "data": {"k": "w"}})
    assert (answer.code, answer.json()["reason"]) == (409, "Conflict")


def test_finalizers_hold_an_object(talk: Talk) -> None:
    talk.create(MAPS, {"metadata": {"name": "a", "finalizers": ["x.example/y"]}})
    marked = talk.request("DELETE", f"{MAPS}/a").json()
    assert marked["metadata"]["deletionTimestamp"]
    assert talk.request("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}}, content_type=MERGE).code == 200
    assert talk.request("GET", f"{MAPS}/a").code == 404


def test_a_pod_on_a_node_has_time_to_go(talk: Talk) -> None:
    for name in ("free", "bound"):
        talk.create(PODS, pod(name))
    talk.request("POST", f"{PODS}/bound/binding", {"target": {"name": "n"}})
    assert talk.request("DELETE", f"{PODS}/free").code == 200
    assert talk.request("GET", f"{PODS}/free").code == 404
    marked = talk.request("DELETE", f"{PODS}/bound").json()["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 30
    shorter = talk.request("DELETE", f"{PODS}/bound?gracePeriodSeconds=5").json()["metadata"]
    assert shorter["deletionGracePeriodSeconds"] == 5
    longer = talk.request("DELETE", f"{PODS}/bound?gracePeriodSeconds=50").json()["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 5
    assert talk.request("DELETE", f"{PODS}/bound", {"gracePeriodSeconds": 0}).code == 200
    assert talk.request("GET", f"{PODS}/bound").code == 404


@pytest.mark.parametrize(
    ("conditions", "code"),
    [({"uid": "<uid>"}, 200), ({"uid": "other"}, 409), ({"resourceVersion": "1"}, 409), ({}, 200)],
)
def test_preconditions(talk: Talk, conditions: dict[str, str], code: int) -> None:
    uid = talk.create(MAPS, {"metadata": {"name": "a"}})["metadata"]["uid"]
    given = {key: uid if value == "<uid>" else value for key, value in conditions.items()}
    assert talk.request("DELETE", f"{MAPS}/a", {"preconditions": given}).code == code


def test_binding(talk: Talk) -> None:
    uid = talk.create(PODS, pod("a"))["metadata"]["uid"]
    at = f"{PODS}/a/binding"
    assert talk.request("POST", at, {"target": {}}).code == 422
    assert talk.request("POST", at, {"metadata": {"uid": "other"}, "target": {"name": "n"}}).code == 409
    assert talk.request("POST", at, {"metadata": {"uid": uid}, "target": {"name": "n", "kind": "Node"}}).code == 201
    bound = talk.get(f"{PODS}/a")
    assert bound["spec"]["nodeName"] == "n"
    assert [(one["type"], one["status"]) for one in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    assert talk.request("POST", at, {"target": {"name": "m"}}).code == 409
    assert talk.request("POST", f"{PODS}/none/binding", {"target": {"name": "m"}}).code == 404


def test_an_evicted_pod_says_so(talk: Talk) -> None:
    made = talk.create(PODS, {**pod("p", finalizers=["lab.example/keep"])})
    wrong = {"deleteOptions": {"preconditions": {"uid": "another"}}}
    assert talk.request("POST", f"{PODS}/p/eviction", wrong).code == 409
    assert talk.get(f"{PODS}/p") == made, "it was not meant"
    version = {"deleteOptions": {"preconditions": {"resourceVersion": made["metadata"]["resourceVersion"]}}}
    assert talk.request("POST", f"{PODS}/p/eviction", version).code == 201
    found = talk.get(f"{PODS}/p")
    assert found["metadata"]["deletionTimestamp"]
    (said,) = [one for one in found["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    assert (said["status"], said["reason"]) == ("True", "EvictionByEvictionAPI")


def test_eviction_asks_the_budget(talk: Talk) -> None:
    budgets = "/apis/policy/v1/namespaces/d/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    talk.create(budgets, {"metadata": {"name": "b"}, "spec": spec})
    for name in ("p", "q"):
        talk.create(PODS, pod(name, labels={"a": "b"}))
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        talk.request("PATCH", f"{PODS}/{name}/status", {"status": ready}, content_type=MERGE)
    answer = talk.request("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
    assert (answer.code, answer.json()["reason"]) == (429, "TooManyRequests")
    change = {"status": {"disruptionsAllowed": 1, "observedGeneration": 1}}
    talk.request("PATCH", f"{budgets}/b/status", change, content_type=MERGE)
    assert talk.request("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}).code == 201
    assert talk.request("GET", f"{PODS}/p").code == 404
    assert talk.request("POST", f"{PODS}/q/eviction", {"metadata": {"name": "q"}}).code == 429


def test_scale(talk: Talk) -> None:
    talk.create(DEPLOYMENTS, deployment(replicas=2))
    at = f"{DEPLOYMENTS}/w/scale"
    scale = talk.get(at)
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 2}, "a=b")
    scale["spec"]["replicas"] = 5
    assert talk.request("PUT", at, scale).json()["spec"] == {"replicas": 5}
    assert talk.request("PUT", at, scale).code == 409
    assert talk.request("PATCH", at, {"spec": {"replicas": -1}}, content_type=MERGE).code == 422
    assert talk.get(f"{DEPLOYMENTS}/w")["spec"]["replicas"] == 5


def owners(talk: Talk) -> dict[str, str]:
    """Who owns the replicas, and through which endpoint."""
    entries = talk.get(f"{DEPLOYMENTS}/w")["metadata"]["managedFields"]
    return {
        one["manager"]: one.get("subresource", "")
        for one in entries
        if "f:replicas" in one["fieldsV1"].get("f:spec", {})
    }


def test_whoever_scales_owns_the_replicas(talk: Talk) -> None:
    talk.create(f"{DEPLOYMENTS}?fieldManager=maker", deployment(replicas=2))
    at = f"{DEPLOYMENTS}/w/scale"
    assert owners(talk) == {"maker": ""}
    talk.request("PATCH", f"{at}?fieldManager=hpa", {"spec": {"replicas": 3}}, content_type=MERGE)
    assert owners(talk) == {"hpa": "scale"}
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": {"replicas": 4}}
    refused = talk.request("PATCH", f"{at}?fieldManager=me", body, content_type=APPLY)
    assert (refused.code, refused.json()["details"]["causes"][0]["field"]) == (409, ".spec.replicas")
    taken = talk.request("PATCH", f"{at}?fieldManager=me&force=true", body, content_type=APPLY)
    assert (taken.code, taken.json()["spec"]) == (200, {"replicas": 4})
    assert "managedFields" not in taken.json()["metadata"]
    assert owners(talk) == {"me": "scale"}
    whole = {**deployment(replicas=9), "apiVersion": "apps/v1", "kind": "Deployment"}
    refused = talk.request("PATCH", f"{DEPLOYMENTS}/w?fieldManager=other", whole, content_type=APPLY)
    assert refused.code == 409
    assert 'conflict with "me" with subresource "scale"' in refused.json()["message"]


def test_a_dry_run_leaves_nothing(talk: Talk) -> None:
    assert talk.request("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "a"}}).code == 201
    assert talk.request("GET", f"{MAPS}/a").code == 404
    talk.create(MAPS, {"metadata": {"name": "a"}})
    change = {"data": {"k": "v"}}
    dry = talk.request("PATCH", f"{MAPS}/a?dryRun=All", change, content_type=MERGE).json()
    assert dry["data"] == {"k": "v"}
    assert "data" not in talk.get(f"{MAPS}/a")
    assert talk.request("DELETE", f"{MAPS}/a?dryRun=All").code == 200
    assert talk.request("GET", f"{MAPS}/a").code == 200


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("/api/v1/namespaces/d/services", {"spec": {}}, ["spec.ports"]),
        (DEPLOYMENTS, {"spec": {"selector": {"matchLabels": {"a": "x"}}, "template": {}}}, None),
        ("/api/v1/namespaces/d/persistentvolumeclaims", {"spec": {}}, ["spec.accessModes", "spec.resources[storage]"]),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"rules": [{"verbs": []}]}, None),
        ("/apis/storage.k8s.io/v1/storageclasses", {}, ["provisioner"]),
        ("/apis/policy/v1/namespaces/d/poddisruptionbudgets", {"spec": {"minAvailable": "x"}}, ["spec.minAvailable"]),
        ("/apis/coordination.k8s.io/v1/namespaces/d/leases", {"spec": {"leaseDurationSeconds": 0}}, None),
        ("/api/v1/namespaces/d/secrets", {"type": "kubernetes.io/tls"}, ["data[tls.crt]", "data[tls.key]"]),
    ],
)
def test_rules_of_other_kinds(talk: Talk, path: str, body: dict[str, Any], fields: list[str] | None) -> None:
    answer = talk.request("POST", path, {"metadata": {"name": "x"}, **body})
    assert answer.code == 422, answer.body
    found = [cause["field"] for cause in answer.json()["details"]["causes"]]
    assert fields is None or found == fields


def test_immutable_fields(talk: Talk) -> None:
    talk.create(DEPLOYMENTS, deployment())
    change = {"spec": {"selector": {"matchLabels": {"other": "x"}}}}
    answer = talk.request("PATCH", f"{DEPLOYMENTS}/w", change, content_type=MERGE)
    assert answer.code == 422
    assert "spec.selector" in [cause["field"] for cause in answer.json()["details"]["causes"]]
    talk.create(MAPS, {"metadata": {"name": "a"}, "immutable": True, "data": {"k": "v"}})
    assert talk.request("PATCH", f"{MAPS}/a", {"data": {"k": "w"}}, content_type=MERGE).code == 422


def test_services_get_addresses_of_their_own(talk: Talk) -> None:
    at = "/api/v1/namespaces/d/services"
    body = {"spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    made = [talk.create(at, {"metadata": {"name": f"s{number}"}, **body}) for number in range(5)]
    assert len({one["spec"]["clusterIP"] for one in made}) == 5
    assert len({one["spec"]["ports"][0]["nodePort"] for one in made}) == 5
    headless = {"metadata": {"name": "h"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}
    assert talk.create(at, headless)["spec"]["clusterIPs"] == ["None"]


def test_put_creates_where_upstream_lets_it(talk: Talk) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    assert talk.request("PUT", "/apis/coordination.k8s.io/v1/namespaces/d/leases/l", lease).code == 201
    assert talk.request("PUT", f"{MAPS}/none", {"metadata": {"name": "none"}}).code == 404


async def test_many_writers_of_one_object_lose_nothing() -> None:
    store = Store()
    await store.open()
    api = Api(store, Context.of("1.37"))
    headers = {"content-type": "application/json"}

    async def send(method: str, path: str, body: Any, kind: str = "application/json") -> int:
        request = Request(method, path, {}, {**headers, "content-type": kind}, json.dumps(body).encode())
        return (await api.handle(request)).status

    await send("POST", "/api/v1/namespaces", {"metadata": {"name": "d"}})
    await send("POST", MAPS, {"metadata": {"name": "a"}})
    changes = [send("PATCH", f"{MAPS}/a", {"data": {f"k{n}": "v"}}, MERGE) for n in range(40)]
    assert set(await asyncio.gather(*changes)) == {200}
    item = store.table("configmaps").get("d", "a")
    assert item is not None
    assert len(json.loads(item.value)["data"]) == 40
    await store.close()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-11-16T01:41:19Z", "2026-11-16T01:41:19Z"),
        ("2026-11-16T01:41:19+00:00", "2026-11-16T01:41:19Z"),
        ("2026-11-16T02:41:19.75+01:00", "2026-11-16T01:41:19Z"),
    ],
)
def test_times_are_kept_in_utc_however_a_client_writes_them(talk: Talk, given: str, kept: str) -> None:
    talk.create("/api/v1/namespaces", {"metadata": {"name": "t"}})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = talk.create("/api/v1/namespaces/t/pods", pod)
    meta = {**made["metadata"], "creationTimestamp": made["metadata"]["creationTimestamp"].replace("Z", "+00:00")}
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": given}
    body = {**made, "metadata": meta, "status": {"conditions": [condition]}}
    assert talk.request("PUT", "/api/v1/namespaces/t/pods/p", {**made, "metadata": meta}).ok
    found = talk.request("PUT", "/api/v1/namespaces/t/pods/p/status", body | {"metadata": {"name": "p"}}).json()
    assert found["status"]["conditions"][0]["lastTransitionTime"] == kept


def test_times_of_leases_have_six_digits(talk: Talk) -> None:
    talk.create("/api/v1/namespaces", {"metadata": {"name": "t"}})
    lease = {"metadata": {"name": "l"}, "spec": {"renewTime": "2026-11-16T02:41:19.123456+01:00"}}
    made = talk.create("/apis/coordination.k8s.io/v1/namespaces/t/leases", lease)
    assert made["spec"]["renewTime"] == "2026-11-16T01:41:19.123456Z"
