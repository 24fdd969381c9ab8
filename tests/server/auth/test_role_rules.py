"""What roles and bindings may say, as recorded from Kubernetes 1.37."""

from typing import Any

import pytest
from tests.server.admission.world import World

from kohort.api import formats

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
SUBDOMAIN = formats.subdomain("A_b")  # in our shorter words
REFUSED: list[tuple[str, str, dict[str, Any], list[str]]] = [
    (
        "clusterroles",
        "ClusterRole",
        {
            "rules": [
                {"apiGroups": [""], "resources": ["pods"]},
                {"verbs": ["get"], "resources": ["x"]},
                {"verbs": ["get"], "apiGroups": [""]},
                {"verbs": ["get"], "nonResourceURLs": ["/a"], "resources": ["b"], "apiGroups": [""]},
                {"verbs": [], "nonResourceURLs": ["/a"], "resourceNames": ["r"]},
            ]
        },
        [
            "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[2].resources: Required value: resource rules must supply at least one resource",
            (
                'rules[3].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and '
                "non-resource URLs"
            ),
            (
                'rules[4].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and '
                "non-resource URLs"
            ),
            "rules[0].verbs: Required value",
            "rules[4].verbs: Required value",
        ],
    ),
    (
        "namespaces/default/roles",
        "Role",
        {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/a"]}]},
        ['rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs'],
    ),
    (
        "namespaces/default/rolebindings",
        "RoleBinding",
        {
            "subjects": [
                {"kind": "User"},
                {"kind": "Foo", "name": "x"},
                {"kind": "ServiceAccount", "name": "A_b"},
                {"kind": "User", "apiGroup": "x", "name": "q"},
                {"kind": "ServiceAccount", "name": "ok", "apiGroup": GROUP},
            ],
            "roleRef": {"apiGroup": "foo", "kind": "Xx", "name": ""},
        },
        [
            f'roleRef.apiGroup: Unsupported value: "foo": supported values: "{GROUP}"',
            'roleRef.kind: Unsupported value: "Xx": supported values: "Role", "ClusterRole"',
            'subjects[1].kind: Unsupported value: "Foo": supported values: "ServiceAccount", "User", "Group"',
            f'subjects[2].name: Invalid value: "A_b": {SUBDOMAIN}',
            f'subjects[3].apiGroup: Unsupported value: "x": supported values: "{GROUP}"',
            f'subjects[4].apiGroup: Unsupported value: "{GROUP}": supported values: ""',
            "subjects[0].name: Required value",
            "roleRef.name: Required value",
        ],
    ),
    (
        "clusterrolebindings",
        "ClusterRoleBinding",
        {
            "subjects": [{"kind": "ServiceAccount", "name": "b"}],
            "roleRef": {"apiGroup": "", "kind": "Role", "name": "x/y"},
        },
        [
            'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
            "roleRef.name: Invalid value: \"x/y\": may not contain '/'",
            "subjects[0].namespace: Required value",
        ],
    ),
    (
        "clusterroles",
        "ClusterRole",
        {"rules": None, "aggregationRule": {"clusterRoleSelectors": []}},
        [
            (
                "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if "
                "aggregationRule is non-nil"
            )
        ],
    ),
]


@pytest.mark.parametrize(("path", "kind", "body", "problems"), REFUSED)
async def test_refused(path: str, kind: str, body: dict[str, Any], problems: list[str]) -> None:
    answer = await (await World.make()).ask("POST", f"{RBAC}/{path}", {"metadata": {"name": "v"}, **body})
    listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    assert (answer.code, answer.message) == (422, f'{kind}.{GROUP} "v" is invalid: {listed}')


async def test_a_binding_gets_its_defaults_and_keeps_its_role() -> None:
    world = await World.make()
    body = {
        "metadata": {"name": "v5"},
        "subjects": [
            {"kind": "User", "name": "u"},
            {"kind": "Group", "name": "u"},
            {"kind": "ServiceAccount", "name": "s"},
        ],
        "roleRef": {"kind": "ClusterRole", "name": "view"},
    }
    made = await world.made(f"{RBAC}/namespaces/default/rolebindings", body)
    assert made["subjects"] == [
        {"kind": "User", "apiGroup": GROUP, "name": "u"},
        {"kind": "Group", "apiGroup": GROUP, "name": "u"},
        {"kind": "ServiceAccount", "name": "s"},
    ]
    assert made["roleRef"] == {"apiGroup": GROUP, "kind": "ClusterRole", "name": "view"}
    made["roleRef"]["name"] = "edit"
    answer = await world.ask("PUT", f"{RBAC}/namespaces/default/rolebindings/v5", made)
    assert answer.message == (
        f'RoleBinding.{GROUP} "v5" is invalid: roleRef: Invalid value: '
        f'{{"APIGroup":"{GROUP}","Kind":"ClusterRole","Name":"edit"}}: field is immutable'
    )
