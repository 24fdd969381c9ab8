"""The smaller plugins, through the API."""

from typing import Any

import pytest
from tests.server.admission.world import World, pod

from kohort.kube.wire import User

RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_namespaces_that_stay(name: str) -> None:
    answer = await (await World.make()).ask("DELETE", f"/api/v1/namespaces/{name}")
    assert (answer.code, answer.message) == (
        403,
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
    )


async def test_other_namespaces_can_go() -> None:
    world = await World.make()
    assert (await world.ask("DELETE", "/api/v1/namespaces/kube-node-lease")).code == 200


async def test_nothing_new_in_a_namespace_that_is_not_there_or_going() -> None:
    world = await World.make()
    answer = await world.ask("POST", "/api/v1/namespaces/nonsuch/configmaps", {"metadata": {"name": "c"}})
    assert (answer.code, answer.message) == (404, 'namespaces "nonsuch" not found')
    await world.namespace("term")
    await world.ask("DELETE", "/api/v1/namespaces/term")
    answer = await world.ask("POST", "/api/v1/namespaces/term/configmaps", {"metadata": {"name": "c"}})
    assert (answer.code, answer.message) == (
        403,
        'configmaps "c" is forbidden: unable to create new content in namespace term because it is being terminated',
    )


async def test_priority_and_tolerations_of_pods() -> None:
    world = await World.make()
    root = await world.namespace("d")
    made = await world.made(f"{root}/pods", pod("p", priorityClassName="system-node-critical"))
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (2_000_001_000, "PreemptLowerPriority")
    assert {one["key"] for one in made["spec"]["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    answer = await world.ask("POST", f"{root}/pods", pod("q", priorityClassName="no"))
    assert (answer.code, answer.message) == (403, 'pods "q" is forbidden: no PriorityClass with name no was found')
    default = {"metadata": {"name": "std"}, "value": 7, "globalDefault": True, "preemptionPolicy": "Never"}
    await world.made("/apis/scheduling.k8s.io/v1/priorityclasses", default)
    made = await world.made(f"{root}/pods", pod("r"))
    spec = made["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == ("std", 7, "Never")


# ---- service accounts (off unless asked for)


async def test_pods_have_no_account_by_default() -> None:
    world = await World.make()
    made = await world.made(f"{await world.namespace('d')}/pods", pod("p"))
    assert "serviceAccountName" not in made["spec"]


async def test_a_pod_runs_as_an_account_with_its_token() -> None:
    world = await World.make(accounts=True)
    root = await world.namespace("d")
    answer = await world.ask("POST", f"{root}/pods", pod("p"))
    assert (answer.code, answer.message) == (
        403,
        'pods "p" is forbidden: error looking up service account d/default: serviceaccount "default" not found',
    )
    secrets = [{"name": "registry"}]
    await world.made(f"{root}/serviceaccounts", {"metadata": {"name": "default"}, "imagePullSecrets": secrets})
    spec = (await world.made(f"{root}/pods", pod("p")))["spec"]
    assert (spec["serviceAccountName"], spec["imagePullSecrets"]) == ("default", secrets)
    volume = spec["volumes"][0]
    assert volume["name"].startswith("kube-api-access-")
    assert volume["projected"]["sources"][0] == {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    assert spec["containers"][0]["volumeMounts"] == [
        {
            "name": volume["name"],
            "readOnly": True,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        }
    ]
    plain = (await world.made(f"{root}/pods", pod("q", automountServiceAccountToken=False)))["spec"]
    assert "volumes" not in plain


# ---- escalation


async def test_a_writer_of_roles_cannot_give_more_than_they_have() -> None:
    world = await World.make()
    rules = [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "update", "patch", "get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]
    await world.made(f"{RBAC}/clusterroles", {"metadata": {"name": "w"}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "w"}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"}
    await world.made(
        f"{RBAC}/clusterrolebindings", {"metadata": {"name": "w"}, "subjects": [subject], "roleRef": reference}
    )
    bob = User("bob", groups=("system:authenticated",))

    async def write(name: str, verb: str) -> Any:
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}
        body = {"metadata": {"name": name}, "rules": [rule]}
        return await world.ask("POST", f"{RBAC}/clusterroles", body, user=bob)

    assert (await write("mine", "get")).code == 201
    refused = await write("theirs", "delete")
    assert refused.code == 403
    assert "is attempting to grant RBAC permissions not currently held" in refused.message
    grown = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]
    patched = await world.ask(
        "PATCH",
        f"{RBAC}/clusterroles/mine",
        {"rules": grown},
        user=bob,
        media="application/merge-patch+json",
    )
    assert patched.code == 403
    assert (await world.ask("GET", "/api/v1/secrets", user=bob)).code == 403
