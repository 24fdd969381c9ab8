"""The rows of workload-api section 4, one by one: what is renamed, what is lost, what is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kohort.api.convert import REPLICA_KEY, ConvertedObjects, Place, convert

Obj = dict[str, Any]
GANG = {"gang": {"minCount": 4}}
META = {"name": "w", "namespace": "ns"}


def obj(version: str, kind: str, spec: Obj, **meta: Any) -> Obj:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": kind,
        "metadata": {**META, **meta},
        "spec": spec,
    }


def workload(version: str, *templates: Obj, **meta: Any) -> Obj:
    member = "podGroups" if version == "v1alpha1" else "podGroupTemplates"
    return obj(version, "Workload", {member: [{"name": f"t{n}", **one} for n, one in enumerate(templates)]}, **meta)


def old_group(name: str = "g", template: str = "t0", **spec: Any) -> Obj:
    reference = {"workload": {"workloadName": "w", "podGroupTemplateName": template}}
    return obj("v1alpha2", "PodGroup", {"podGroupTemplateRef": reference, "schedulingPolicy": GANG} | spec, name=name)


def new_group(name: str = "g", template: str = "t0", **spec: Any) -> Obj:
    reference = {"workloadName": "w", "templateName": template}
    return obj("v1beta1", "PodGroup", {"workloadRef": reference, "schedulingPolicy": GANG} | spec, name=name)


def pod(link: Obj, **meta: Any) -> Obj:
    spec = {"containers": [{"name": "c"}], **link, "priority": 3}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns", **meta}, "spec": spec}


def texts(found: ConvertedObjects) -> tuple[list[str], list[str]]:
    return [str(one) for one in found.warnings], [str(one) for one in found.errors]


def plain(*objects: Obj) -> ConvertedObjects:
    return ConvertedObjects(objects)


# ---- 4.2 Workload

CONTROLLER = {"controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"}}
OLD_BODY = {
    "schedulingPolicy": GANG,
    "schedulingConstraints": {"topology": [{"key": "rack"}]},
    "resourceClaims": [{"name": "a", "resourceClaimName": "x"}, {"name": "b", "resourceClaimTemplateName": "y"}],
    "priorityClassName": "gold",
    "priority": 7,
}


@pytest.mark.parametrize("policy", [{"basic": {}}, GANG])
def test_4_2_workload_of_1_35_and_1_36_differs_in_names(policy: Obj) -> None:
    old = workload("v1alpha1", {"policy": policy})
    new = workload("v1alpha2", {"schedulingPolicy": policy})
    old["spec"] = CONTROLLER | old["spec"]
    new["spec"] = CONTROLLER | new["spec"]
    assert convert([old], "1.36").objects == (new,)
    assert convert([new], "1.35") == plain(old)


@pytest.mark.parametrize(("word", "mode"), [("Pod", {"single": {}}), ("PodGroup", {"all": {}})])
def test_4_2_workload_of_1_36_and_1_37_differs_in_the_mode(word: str, mode: Obj) -> None:
    old = workload("v1alpha2", OLD_BODY | {"disruptionMode": word})
    new = workload("v1beta1", OLD_BODY | {"disruptionMode": mode})
    assert convert([old], "1.37") == plain(new)
    assert convert([new], "1.36") == plain(old)


def test_4_2_to_1_35_every_member_lost_is_named() -> None:
    found = convert([workload("v1alpha2", OLD_BODY | {"disruptionMode": "PodGroup"})], "1.35")
    assert found.objects == (workload("v1alpha1", {"policy": GANG}),)
    at = "Workload ns/w: spec.podGroupTemplates[0]"
    assert texts(found)[0] == [
        f'{at}.schedulingConstraints: {{"topology":[{{"key":"rack"}}]}} is lost: Kubernetes 1.35 has none',
        (
            f'{at}.resourceClaims: [{{"name":"a","resourceClaimName":"x"}},'
            '{"name":"b","resourceClaimTemplateName":"y"}] is lost: Kubernetes 1.35 has none'
        ),
        f'{at}.disruptionMode: "PodGroup" is lost: Kubernetes 1.35 has none',
        f'{at}.priorityClassName: "gold" is lost: Kubernetes 1.35 has none',
        f"{at}.priority: 7 is lost: Kubernetes 1.35 has none",
    ]


def test_4_2_mixed_priorities_are_refused_upward() -> None:
    mixed = workload("v1alpha2", OLD_BODY, OLD_BODY | {"priority": 8}, {"schedulingPolicy": GANG})
    found = convert([mixed], "1.37")
    assert found.objects == ()
    (error,) = texts(found)[1]
    assert error.startswith("Workload ns/w: spec.podGroupTemplates: Kubernetes 1.37 would refuse it")
    assert "t0: gold, 7, t1: gold, 8, t2: no class, no value" in error
    assert convert([mixed], "1.36") == plain(mixed)


def test_4_2_preemption_policy_is_lost_below_1_37() -> None:
    found = convert([workload("v1beta1", {"schedulingPolicy": GANG, "preemptionPolicy": "Never"})], "1.36")
    assert found.objects == (workload("v1alpha2", {"schedulingPolicy": GANG}),)
    assert texts(found)[0] == [
        (
            'Workload ns/w: spec.podGroupTemplates[0].preemptionPolicy: "Never" is lost: '
            "Kubernetes 1.36 has none for groups; use the pods' class"
        )
    ]


TREE = obj(
    "v1beta1",
    "Workload",
    {
        "podGroupTemplates": None,
        "compositePodGroupTemplates": [
            {
                "name": "root",
                "schedulingPolicy": {"gang": {"minGroupCount": 2}},
                "podGroupTemplates": [{"name": "a", "schedulingPolicy": GANG, "disruptionMode": {"all": {}}}],
                "compositePodGroupTemplates": [
                    {
                        "name": "mid",
                        "schedulingPolicy": {"basic": {}},
                        "podGroupTemplates": [{"name": "b", "schedulingPolicy": {"basic": {}}}],
                    }
                ],
            }
        ],
    },
)
BRANCH = obj("v1alpha3", "CompositePodGroup", {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}, name="r")
LEAF = new_group(template="a", parentCompositePodGroupName="r")


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
def test_4_2_trees_are_refused_below_1_37(minor: str) -> None:
    found = convert([TREE, BRANCH, LEAF], minor)
    assert found.objects == ()
    lacks = f"Kubernetes {minor} has no CompositePodGroup"
    hint = "flatten makes each leaf a gang of its own"
    at = "Workload ns/w: spec.compositePodGroupTemplates[0]"
    assert texts(found)[1][:4] == [
        f'{at}: {lacks} for "root"; {hint}',
        f'{at}.compositePodGroupTemplates[0]: {lacks} for "mid"; {hint}',
        f"CompositePodGroup ns/r: {lacks}; {hint}",
        f"PodGroup ns/g: spec.parentCompositePodGroupName: {lacks}; {hint}",
    ]


def test_4_2_flatten_keeps_the_leaves_and_reports_the_rest() -> None:
    found = convert([TREE, BRANCH, LEAF], "1.36", flatten=True)
    leaves = [
        {"name": "a", "schedulingPolicy": GANG, "disruptionMode": "PodGroup"},
        {"name": "b", "schedulingPolicy": {"basic": {}}},
    ]
    assert found.objects == (obj("v1alpha2", "Workload", {"podGroupTemplates": leaves}), old_group(template="a"))
    lacks = "Kubernetes 1.36 has no CompositePodGroup"
    at = "Workload ns/w: spec.compositePodGroupTemplates[0]"
    assert texts(found) == (
        [
            (
                f'{at}: {{"name":"root","schedulingPolicy":{{"gang":{{"minGroupCount":2}}}}}} is lost: '
                f"{lacks}; its leaves start independently"
            ),
            (
                f'{at}.compositePodGroupTemplates[0]: {{"name":"mid","schedulingPolicy":{{"basic":{{}}}}}} is lost: '
                f"{lacks}; its leaves start independently"
            ),
            f"CompositePodGroup ns/r: left out: {lacks}; what is beneath starts independently",
            f'PodGroup ns/g: spec.parentCompositePodGroupName: "r" is lost: {lacks}; the group starts on its own',
        ],
        [],
    )


def test_flatten_refuses_more_leaves_than_one_list_holds() -> None:
    leaves = [{"name": f"l{n}", "schedulingPolicy": GANG} for n in range(5)]
    branches = [{"name": name, "schedulingPolicy": GANG, "podGroupTemplates": leaves} for name in ("x", "y")]
    found = convert([obj("v1beta1", "Workload", {"compositePodGroupTemplates": branches})], "1.36", flatten=True)
    assert texts(found)[1] == [
        "Workload ns/w: spec.compositePodGroupTemplates: 10 leaves cannot be flattened into one list of at most 8"
    ]


# ---- 4.3 PodGroup

WORKLOAD36 = workload("v1alpha2", {"schedulingPolicy": GANG})
WORKLOAD37 = workload("v1beta1", {"schedulingPolicy": GANG})


@pytest.mark.parametrize(("word", "mode"), [("Pod", {"single": {}}), ("PodGroup", {"all": {}})])
def test_4_3_pod_group_of_1_36_and_1_37(word: str, mode: Obj) -> None:
    body: dict[str, Any] = {"priorityClassName": "gold", "priority": 7, "schedulingConstraints": {}}
    old, new = old_group(disruptionMode=word, **body), new_group(disruptionMode=mode, **body)
    assert convert([WORKLOAD36, old], "1.37") == plain(WORKLOAD37, new)
    assert convert([WORKLOAD37, new], "1.36") == plain(WORKLOAD36, old)


@pytest.mark.parametrize("reference", [{}, {"podGroupTemplateRef": None}])
def test_4_3_standalone_stays_standalone(reference: Obj) -> None:
    old = obj("v1alpha2", "PodGroup", {**reference, "schedulingPolicy": GANG})
    assert convert([old], "1.37") == plain(obj("v1beta1", "PodGroup", {"schedulingPolicy": GANG}))


def test_4_3_preemption_policy_of_a_group_is_lost() -> None:
    found = convert([WORKLOAD37, new_group(preemptionPolicy="Never")], "1.36")
    assert found.objects == (WORKLOAD36, old_group())
    assert texts(found)[0] == [
        (
            'PodGroup ns/g: spec.preemptionPolicy: "Never" is lost: '
            "Kubernetes 1.36 has none for groups; use the pods' class"
        )
    ]


STATUS36 = {
    "conditions": [
        {
            "type": "PodGroupScheduled",
            "status": "True",
            "reason": "Scheduled",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
    "resourceClaimStatuses": [{"name": "a", "resourceClaimName": "a-1"}],
}


def test_4_3_condition_is_renamed_and_status_carried_over() -> None:
    status = deepcopy(STATUS36)
    status["conditions"][0]["type"] = "PodGroupInitiallyScheduled"
    old, new = old_group() | {"status": STATUS36}, new_group() | {"status": status}
    assert convert([WORKLOAD36, old], "1.37", recreate=False) == plain(WORKLOAD37, new)
    assert convert([WORKLOAD37, new], "1.36", recreate=False) == plain(WORKLOAD36, old)


def test_4_3_standalone_to_1_35_gets_a_workload() -> None:
    old = obj(
        "v1alpha2", "PodGroup", {"schedulingPolicy": GANG, "disruptionMode": "Pod"}, name="ring", labels={"a": "b"}
    )
    found = convert([old, pod({"schedulingGroup": {"podGroupName": "ring"}})], "1.35")
    made = obj(
        "v1alpha1", "Workload", {"podGroups": [{"name": "ring", "policy": GANG}]}, name="ring", labels={"a": "b"}
    )
    assert found.objects == (made, pod({"workloadRef": {"name": "ring", "podGroup": "ring"}}))
    assert texts(found) == (
        ['PodGroup ns/ring: has no Workload, which Kubernetes 1.35 needs: "ring" was made for it'],
        [],
    )


def test_4_3_a_new_workload_does_not_take_the_name_of_another() -> None:
    solo = obj("v1alpha2", "PodGroup", {"schedulingPolicy": GANG})
    first, second = convert([WORKLOAD36, solo, pod({"schedulingGroup": {"podGroupName": "w"}})], "1.35").objects[:2]
    assert first["metadata"]["name"] == "w"
    assert second["metadata"]["name"].startswith("w-")


@pytest.mark.parametrize("name", ["ring.a", "x" * 64])
def test_4_5_no_name_of_1_35_from_a_name_that_is_no_label(name: str) -> None:
    solo = obj("v1alpha2", "PodGroup", {"schedulingPolicy": GANG}, name=name)
    made, linked = convert([solo, pod({"schedulingGroup": {"podGroupName": name}})], "1.35").objects
    (group,) = made["spec"]["podGroups"]
    assert made["metadata"]["name"] == name
    assert group["name"].isalnum()
    assert len(group["name"]) == 10
    assert linked["spec"]["workloadRef"] == {"name": name, "podGroup": group["name"]}


def test_1_36_wants_the_workload_first() -> None:
    assert texts(convert([new_group()], "1.36"))[0] == [
        (
            'PodGroup ns/g: spec.podGroupTemplateRef: Workload "w" is not among the objects; '
            "Kubernetes 1.36 takes the group only where it exists"
        )
    ]
    assert texts(convert([WORKLOAD37, new_group(template="zz")], "1.36"))[0] == [
        (
            'PodGroup ns/g: spec.podGroupTemplateRef: Workload "w" has no template "zz"; '
            "Kubernetes 1.36 refuses such a group"
        )
    ]


# ---- 4.4 Pod membership

WORKLOAD35 = workload("v1alpha1", {"policy": GANG})


@pytest.mark.parametrize(
    ("key", "name", "annotations"),
    [(None, "w-t0", {}), ("k1", "w-t0-k1", {"annotations": {REPLICA_KEY: "k1"}})],
)
@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_4_4_one_group_for_each_tuple_and_back(minor: str, key: str | None, name: str, annotations: Obj) -> None:
    link = {"name": "w", "podGroup": "t0"} | ({"podGroupReplicaKey": key} if key else {})
    before = [WORKLOAD35, pod({"workloadRef": link}), pod({"workloadRef": link}, name="q")]
    group = old_group(name) if minor == "1.36" else new_group(name)
    group["metadata"] |= annotations
    target = WORKLOAD36 if minor == "1.36" else WORKLOAD37
    linked = {"schedulingGroup": {"podGroupName": name}}
    after = convert(before, minor)
    assert after == plain(target, group, pod(linked), pod(linked, name="q"))
    assert convert(after.objects, "1.35") == plain(*before)


def test_4_4_expected_groups_need_no_pods() -> None:
    found = convert([WORKLOAD35], "1.36", expected=[Place("ns", "w", "t0", "0"), Place("ns", "w", "t0", "1")])
    assert [one["metadata"]["name"] for one in found.objects] == ["w", "w-t0-0", "w-t0-1"]
    assert texts(found) == ([], [])


def test_4_4_a_group_that_no_pod_names_is_reported() -> None:
    assert texts(convert([WORKLOAD35], "1.36"))[0] == [
        'Workload ns/w: spec.podGroups[0]: no pod among the objects names "t0": no PodGroup was made for it'
    ]


def test_4_4_pod_templates_of_any_kind_are_relinked() -> None:
    def job(link: Obj) -> Obj:
        template = {"template": {"spec": {"containers": [], **link}}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ns"}, "spec": template}

    old, new = job({"workloadRef": {"name": "w", "podGroup": "t0"}}), job({"schedulingGroup": {"podGroupName": "w-t0"}})
    assert convert([WORKLOAD35, old], "1.36").objects == (WORKLOAD36, old_group("w-t0"), new)
    assert convert([WORKLOAD36, old_group("w-t0"), new], "1.35").objects == (WORKLOAD35, old)


def test_4_4_namespaces_are_kept_apart() -> None:
    link = {"workloadRef": {"name": "w", "podGroup": "t0"}}
    here, there = workload("v1alpha1", {"policy": GANG}), workload("v1alpha1", {"policy": {"basic": {}}}, namespace="b")
    found = convert([here, there, pod(link), pod(link, namespace="b")], "1.36").objects
    groups = {
        one["metadata"]["namespace"]: one["spec"]["schedulingPolicy"] for one in found if one["kind"] == "PodGroup"
    }
    assert groups == {"ns": GANG, "b": {"basic": {}}}


@pytest.mark.parametrize(
    ("objects", "error"),
    [
        (
            [pod({"workloadRef": {"name": "w", "podGroup": "t0"}})],
            'Pod ns/p: spec.workloadRef: Workload "w" is not among the objects; the policy of its groups is needed',
        ),
        (
            [WORKLOAD35, pod({"workloadRef": {"name": "w", "podGroup": "zz"}})],
            'Pod ns/p: spec.workloadRef: Workload "w" has no podGroup "zz"',
        ),
    ],
)
def test_4_4_upward_the_workload_is_needed(objects: list[Obj], error: str) -> None:
    assert texts(convert(objects, "1.36"))[1] == [error]


def test_4_4_downward_the_group_is_needed() -> None:
    assert texts(convert([pod({"schedulingGroup": {"podGroupName": "g"}})], "1.35"))[1] == [
        (
            'Pod ns/p: spec.schedulingGroup.podGroupName: PodGroup "g" is not among the objects; '
            "its Workload and template are needed"
        )
    ]


def test_4_4_two_tuples_of_one_name_are_refused() -> None:
    first = workload("v1alpha1", {"name": "b-c", "policy": GANG}, name="a")
    second = workload("v1alpha1", {"name": "c", "policy": GANG}, name="a-b")
    pods = [pod({"workloadRef": {"name": name, "podGroup": group}}) for name, group in (("a", "b-c"), ("a-b", "c"))]
    (error,) = texts(convert([first, second, *pods], "1.36"))[1]
    assert error.startswith('PodGroup ns/a-b-c: metadata.name: the name "a-b-c"')


def test_4_4_keys_come_from_the_name_or_a_hash() -> None:
    groups = [old_group(name) for name in ("ring", "ring.1")]
    pods = [pod({"schedulingGroup": {"podGroupName": name}}) for name in ("ring", "ring.1")]
    found = convert([WORKLOAD36, *groups, *pods], "1.35").objects
    keys = [one["spec"]["workloadRef"]["podGroupReplicaKey"] for one in found if one["kind"] == "Pod"]
    assert keys[0] == "ring"
    assert len(keys[1]) == 10


def test_4_4_the_same_key_twice_is_refused() -> None:
    first, second = old_group("a"), old_group("b")
    second["metadata"]["annotations"] = {REPLICA_KEY: "a"}
    errors = texts(convert([WORKLOAD36, first, second], "1.35"))[1]
    assert errors == [
        f'PodGroup ns/b: metadata.annotations[{REPLICA_KEY}]: "a" is also the key of PodGroup a of the same template'
    ]


def test_groups_without_pods_say_what_pods_need() -> None:
    found = convert([WORKLOAD36, old_group("a")], "1.35")
    assert found.objects == (WORKLOAD35,)
    assert texts(found)[0] == [
        (
            "PodGroup ns/a: is no object on Kubernetes 1.35: its pods, none of which is among the objects, need "
            'spec.workloadRef {"name":"w","podGroup":"t0","podGroupReplicaKey":"a"}'
        )
    ]


def test_groups_that_differ_from_their_template_on_the_way_to_1_35() -> None:
    linked = pod({"schedulingGroup": {"podGroupName": "w-t0"}})
    fewer = old_group("w-t0", schedulingPolicy={"gang": {"minCount": 3}}, disruptionMode="PodGroup", priority=0)
    assert texts(convert([WORKLOAD36, fewer, linked], "1.35"))[0] == [
        (
            "PodGroup ns/w-t0: spec.schedulingPolicy.gang.minCount: 3 is lost: "
            "all groups of a template have its minimum there: 4"
        ),
        'PodGroup ns/w-t0: spec.disruptionMode: "PodGroup" is lost: Kubernetes 1.35 has none',
    ]
    basic = old_group("w-t0", schedulingPolicy={"basic": {}})
    assert texts(convert([WORKLOAD36, basic, linked], "1.35"))[1] == [
        (
            'PodGroup ns/w-t0: spec.schedulingPolicy: {"basic":{}} differs from its template\'s '
            '{"gang":{"minCount":4}}, which alone counts on Kubernetes 1.35'
        )
    ]
    orphan = old_group("w-t0", template="zz")
    assert texts(convert([WORKLOAD36, orphan, linked], "1.35"))[1] == [
        (
            'PodGroup ns/w-t0: spec.podGroupTemplateRef: Workload "w" has no template "zz"; '
            "its pods would wait for ever on Kubernetes 1.35"
        )
    ]


# ---- 4.5 hazards


@pytest.mark.parametrize("empty", [None, {}])
def test_4_5_missing_null_and_empty_are_preserved(empty: Obj | None) -> None:
    old = workload("v1alpha2", {"schedulingPolicy": GANG, "schedulingConstraints": empty})
    found = convert([old], "1.37").objects[0]["spec"]["podGroupTemplates"][0]
    assert found["schedulingConstraints"] == empty
    assert "disruptionMode" not in found
    assert texts(convert([old], "1.35")) == ([], [])


def test_4_5_order_is_preserved() -> None:
    claims = [{"name": name, "resourceClaimName": name} for name in "zay"]
    old = workload("v1alpha2", *({"schedulingPolicy": GANG, "resourceClaims": claims} for _ in range(3)))
    new = convert([old], "1.37").objects[0]["spec"]["podGroupTemplates"]
    assert [one["name"] for one in new] == ["t0", "t1", "t2"]
    assert [one["name"] for one in new[0]["resourceClaims"]] == ["z", "a", "y"]
    assert list(new[0]) == ["name", "schedulingPolicy", "resourceClaims"]


SERVED = {
    "uid": "u",
    "resourceVersion": "7",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "finalizers": ["scheduling.k8s.io/podgroup-protection"],
    "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j1", "controller": True},
        {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "Workload", "name": "w", "uid": "w1"},
    ],
}


def test_4_5_what_a_server_gave_is_left_out_with_a_note() -> None:
    old = old_group(priorityClassName="gold", priority=7) | {"status": STATUS36}
    old["metadata"] |= SERVED
    found = convert([WORKLOAD36, old], "1.37")
    assert found.objects[1] == new_group(priorityClassName="gold")
    assert texts(found)[0] == [
        (
            "PodGroup ns/g: metadata: uid, resourceVersion, creationTimestamp left out: "
            "the server gives each object its own"
        ),
        (
            "PodGroup ns/g: metadata.ownerReferences: Job j, Workload w left out: "
            "their uids mean nothing to another server"
        ),
        (
            "PodGroup ns/g: metadata.finalizers: scheduling.k8s.io/podgroup-protection left out: "
            "admission adds what is needed"
        ),
        "PodGroup ns/g: status: left out: it is written by the scheduler of the new object",
        'PodGroup ns/g: spec.priority: 7 left out: admission fills in the value of class "gold" there',
    ]


def test_4_5_the_same_object_in_another_shape_keeps_all_of_it() -> None:
    old = old_group(priority=7)
    old["metadata"] |= deepcopy(SERVED)
    (new,) = convert([old], "1.37", recreate=False).objects
    owners = new["metadata"]["ownerReferences"]
    assert [owner["apiVersion"] for owner in owners] == ["batch/v1", "scheduling.k8s.io/v1beta1"]
    owners[1]["apiVersion"] = "scheduling.k8s.io/v1alpha2"
    assert new["metadata"] == old["metadata"]
    assert new["spec"]["priority"] == 7


def test_a_running_pod_is_scheduled_anew() -> None:
    old = pod({"workloadRef": {"name": "w", "podGroup": "t0"}, "nodeName": "n1"}, uid="u")
    found = convert([WORKLOAD35, old | {"status": {"phase": "Running"}}], "1.36")
    assert found.objects[2] == pod({"schedulingGroup": {"podGroupName": "w-t0"}})
    assert 'Pod ns/p: spec.nodeName: "n1" left out: a new pod is scheduled anew' in texts(found)[0]


# ---- what is right already


@pytest.mark.parametrize(
    ("found", "minor"),
    [
        (WORKLOAD35, "1.35"),
        (WORKLOAD36, "1.36"),
        (old_group(disruptionMode="nonsense"), "1.36"),
        (WORKLOAD37, "1.37"),
        (TREE, "1.37"),
        (BRANCH, "1.37"),
        (new_group() | {"metadata": {**META, **SERVED}, "status": {"conditions": []}}, "1.37"),
        (pod({"schedulingGroup": {"podGroupName": "g"}}), "1.36"),
        (pod({"schedulingGroup": {"podGroupName": "g"}}), "1.37"),
        (pod({"workloadRef": {"name": "w", "podGroup": "t0"}}), "1.35"),
        (pod({}, uid="u"), "1.35"),
        ({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "x"}}, "1.35"),
        ({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "x"}}, "1.35"),
    ],
)
def test_objects_of_the_target_and_of_other_kinds_pass_unchanged(found: Obj, minor: str) -> None:
    (same,) = convert([found], minor).objects
    assert same is found


def test_versions_can_be_named_as_targets() -> None:
    assert convert([WORKLOAD37], "v1alpha3").objects[0]["apiVersion"] == "scheduling.k8s.io/v1alpha3"
    assert convert([WORKLOAD36], "scheduling.k8s.io/v1beta1").objects == (WORKLOAD37,)
    with pytest.raises(ValueError, match=r'Kubernetes "1\.99": not known; accepted are 1\.35, 1\.36, 1\.37'):
        convert([], "1.99")


# ---- what cannot be read


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (
            obj("v1alpha1", "PodGroup", {}),
            (
                "PodGroup ns/w: apiVersion: scheduling.k8s.io/v1alpha1 has no PodGroup; scheduling.k8s.io/v1alpha2, "
                "scheduling.k8s.io/v1alpha3, scheduling.k8s.io/v1beta1 has"
            ),
        ),
        (
            obj("v1beta1", "CompositePodGroup", {}),
            (
                "CompositePodGroup ns/w: apiVersion: scheduling.k8s.io/v1beta1 has no CompositePodGroup; "
                "scheduling.k8s.io/v1alpha3 has"
            ),
        ),
        (
            obj("v1alpha2", "Workload", {"podGroupTemplates": "many"}),
            'Workload ns/w: spec.podGroupTemplates: Cannot decode: expected list, found string "many"',
        ),
        (
            old_group(disruptionMode="All"),
            'PodGroup ns/g: spec.disruptionMode: "All" is no mode of 1.36: Pod and PodGroup are',
        ),
    ],
)
def test_unreadable_objects_are_refused_by_field(found: Obj, error: str) -> None:
    assert texts(convert([found], "1.37"))[1] == [error]


@pytest.mark.parametrize("mode", [{}, {"single": {}, "all": {}}])
def test_a_mode_that_is_none_is_refused_downward(mode: Obj) -> None:
    (error,) = texts(convert([WORKLOAD37, new_group(disruptionMode=mode)], "1.36"))[1]
    assert error.endswith("is no mode of 1.37: one of single and all is")


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2", "v1beta1"])
@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
@pytest.mark.parametrize("kind", ["Workload", "PodGroup"])
def test_half_written_objects_do_not_break_it(version: str, minor: str, kind: str) -> None:
    odd: tuple[dict[str, Any], ...] = ({}, {"metadata": {"name": "x"}}, {"spec": {}}, {"spec": None, "metadata": None})
    for found in odd:
        convert([{"apiVersion": f"scheduling.k8s.io/{version}", "kind": kind, **found}], minor, flatten=True)
