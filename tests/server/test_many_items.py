"""Every long list and map of the kinds that tenants write: four times the items, four times the steps.

Each is created, updated, patched and applied; who decodes, defaults, validates, compares or merges with the square of a
list's length is found here.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.e2e.grove_short import clique, cliqueset, group
from tests.server.crd.server import Running
from tests.server.test_linear import APPLY, MERGE, STRATEGIC, Step, has_linear_steps

CORE, APPS = "/api/v1", "/apis/apps/v1"
RBAC, NETWORK, DEVICES = "/apis/rbac.authorization.k8s.io/v1", "/apis/networking.k8s.io/v1", "/apis/resource.k8s.io/v1"
CUSTOM = {"jobset.x-k8s.io", "grove.io"}
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2"
CONTAINER = {"name": "c", "image": "i"}
CLASS = {"scopeName": "PriorityClass", "operator": "In"}
LABELS = {"a": "b"}
SELECTOR = {"matchLabels": LABELS}
VOLUME = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
Made = tuple[str, str, dict[str, Any]]  # path of the list, kind, everything but the name


def many(count: int, make: Callable[[int], Any]) -> list[Any]:
    return [make(number) for number in range(count)]


def keys(count: int, value: Any = "1", prefix: str = "x.test/k") -> dict[str, Any]:
    return {f"{prefix}{number}": value for number in range(count)}


def ip(number: int) -> str:
    return f"9.1.{number // 250}.{number % 250 + 1}"


def pod(**spec: Any) -> Made:
    return f"{CORE}/namespaces/default/pods", "Pod", {"spec": {"containers": [CONTAINER], **spec}}


def container(**more: Any) -> Made:
    return pod(containers=[{**CONTAINER, **more}])


def required(kind: str, **terms: Any) -> Made:
    return pod(affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms.get("one", terms.get("many"))}})


def spec(path: str, kind: str, **members: Any) -> Made:
    return path, kind, {"spec": members}


def core(plural: str, kind: str, **members: Any) -> Made:
    return f"{CORE}/namespaces/default/{plural}", kind, members


def template(**more: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER], **more}}


def jobset(count: int, *, chained: bool = False, **more: Any) -> Made:
    def one(number: int) -> dict[str, Any]:
        above = [{"name": f"r{number - 1}", "status": "Ready"}] if chained and number else []
        inner = {"spec": {"template": template(restartPolicy="Never")}}
        return {"name": f"r{number}", "replicas": 1, "template": inner, **({"dependsOn": above} if above else {})}

    return spec(f"{JOBSETS}/namespaces/default/jobsets", "JobSet", replicatedJobs=many(count, one), **more)


def cliques(count: int, *, grouped: bool = False) -> Made:
    groups = many(count, lambda i: group(f"g{i}", [f"a{i}"])) if grouped else []
    body = cliqueset("x", *many(count, lambda i: clique(f"a{i}", 1)), groups=groups)
    return "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets", "PodCliqueSet", {"spec": body["spec"]}


def managers(count: int, operation: str) -> Made:
    def one(number: int) -> dict[str, Any]:
        fields: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:l{number}": {}}}}
        who = {"manager": f"m{number}", "operation": operation, "apiVersion": "v1", "time": "2026-01-01T00:00:00Z"}
        return {**who, "fieldsType": "FieldsV1", "fieldsV1": fields}

    path, kind, body = pod()
    labels = {f"l{number}": "v" for number in range(count)}
    return path, kind, {**body, "metadata": {"labels": labels, "managedFields": many(count, one)}}


CASES: dict[str, Callable[[int], Made]] = {
    "containers": lambda n: pod(containers=many(n, lambda i: {"name": f"c{i}", "image": "i"})),
    "init containers": lambda n: pod(initContainers=many(n, lambda i: {"name": f"d{i}", "image": "i"})),
    "mounts": lambda n: pod(
        volumes=many(n, lambda i: {"name": f"v{i}", "emptyDir": {}}),
        containers=[{**CONTAINER, "volumeMounts": many(n, lambda i: {"name": f"v{i}", "mountPath": f"/m{i}"})}],
    ),
    "block devices": lambda n: pod(
        volumes=many(n, lambda i: {"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}}),
        containers=[{**CONTAINER, "volumeDevices": many(n, lambda i: {"name": f"v{i}", "devicePath": f"/m{i}"})}],
    ),
    "ports": lambda n: container(ports=many(n, lambda i: {"name": f"p{i}", "containerPort": i + 1, "hostPort": i + 1})),
    "variables": lambda n: container(env=many(n, lambda i: {"name": f"V{i}", "value": f"$(V{i - 1})"})),
    "sources of variables": lambda n: container(envFrom=many(n, lambda i: {"configMapRef": {"name": f"p{i}"}})),
    "resources": lambda n: container(resources={"limits": keys(n)}),
    "tolerations": lambda n: pod(tolerations=many(n, lambda i: {"key": f"k{i}", "operator": "Exists"})),
    "equal tolerations": lambda n: pod(tolerations=many(n, lambda _: {"key": "k", "operator": "Exists"})),
    "spread constraints": lambda n: pod(
        topologySpreadConstraints=many(
            n,
            lambda i: {"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}},
        )
    ),
    "terms of affinity": lambda n: required(
        "nodeAffinity",
        one={"nodeSelectorTerms": many(n, lambda i: {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]})},
    ),
    "values of affinity": lambda n: required(
        "nodeAffinity",
        one={
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "k", "operator": "In", "values": many(n, lambda i: f"v{i}")}]}
            ]
        },
    ),
    "terms of anti-affinity": lambda n: required(
        "podAntiAffinity",
        many=many(n, lambda i: {"topologyKey": "k", "labelSelector": {"matchLabels": {f"a{i}": "b"}}}),
    ),
    "gates": lambda n: pod(schedulingGates=many(n, lambda i: {"name": f"g{i}"})),
    "claims": lambda n: pod(
        resourceClaims=many(n, lambda i: {"name": f"g{i}", "resourceClaimName": "x"}),
        containers=[{**CONTAINER, "resources": {"claims": many(n, lambda i: {"name": f"g{i}"})}}],
    ),
    "host aliases": lambda n: pod(hostAliases=many(n, lambda i: {"ip": ip(i), "hostnames": [f"h{i}"]})),
    "projected sources": lambda n: pod(
        volumes=[
            {
                "name": "v",
                "projected": {
                    "sources": many(
                        n, lambda i: {"configMap": {"name": f"a{i}", "items": [{"key": "k", "path": f"p{i}"}]}}
                    )
                },
            }
        ]
    ),
    "sysctls and groups": lambda n: pod(
        securityContext={
            "sysctls": many(n, lambda i: {"name": f"a.s{i}", "value": "1"}),
            "supplementalGroups": many(n, lambda i: i),
        }
    ),
    "pull secrets": lambda n: pod(imagePullSecrets=many(n, lambda i: {"name": f"a{i}"})),
    "managers that update": lambda n: managers(n, "Update"),
    "managers that apply": lambda n: managers(n, "Apply"),
    "ports of a service": lambda n: core(
        "services", "Service", spec={"ports": many(n, lambda i: {"name": f"p{i}", "port": i + 1})}
    ),
    "addresses of a service": lambda n: core(
        "services",
        "Service",
        spec={
            "ports": [{"port": 1}],
            "externalIPs": many(n, ip),
            "loadBalancerSourceRanges": many(n, lambda i: f"{ip(i)}/32"),
        },
    ),
    "endpoints": lambda n: core(
        "endpoints",
        "Endpoints",
        subsets=[
            {
                "addresses": many(n, lambda i: {"ip": ip(i)}),
                "ports": many(n, lambda i: {"name": f"p{i}", "port": i + 1}),
            }
        ],
    ),
    "subsets": lambda n: core(
        "endpoints",
        "Endpoints",
        subsets=many(n, lambda i: {"addresses": [{"ip": ip(i)}], "ports": [{"port": i + 1}]}),
    ),
    "secrets": lambda n: core("secrets", "Secret", data=keys(n, "aGk=", "k"), stringData=keys(n, "v", "s")),
    "scopes of a quota": lambda n: core(
        "resourcequotas",
        "ResourceQuota",
        spec={
            "hard": keys(n, prefix="count/k"),
            "scopeSelector": {"matchExpressions": many(n, lambda i: {**CLASS, "values": [f"a{i}"]})},
        },
    ),
    "limits of a range": lambda n: core(
        "limitranges",
        "LimitRange",
        spec={"limits": [{"type": "Container", "max": keys(n), "min": keys(n), "default": keys(n)}]},
    ),
    "rules of a role": lambda n: (
        f"{RBAC}/namespaces/default/roles",
        "Role",
        {"rules": many(n, lambda i: {"apiGroups": [""], "resources": [f"r{i}"], "verbs": ["get"]})},
    ),
    "subjects": lambda n: (
        f"{RBAC}/namespaces/default/rolebindings",
        "RoleBinding",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"},
            "subjects": many(n, lambda i: {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"u{i}"}),
        },
    ),
    "network policy": lambda n: spec(
        f"{NETWORK}/namespaces/default/networkpolicies",
        "NetworkPolicy",
        podSelector={},
        ingress=many(n, lambda i: {"from": [{"ipBlock": {"cidr": "9.0.0.0/8", "except": [f"{ip(i)}/32"]}}]}),
    ),
    "hosts of an ingress": lambda n: spec(
        f"{NETWORK}/namespaces/default/ingresses",
        "Ingress",
        defaultBackend={"service": {"name": "a", "port": {"number": 1}}},
        rules=many(n, lambda i: {"host": f"h{i}.x"}),
        tls=many(n, lambda i: {"hosts": [f"h{i}.x"]}),
    ),
    "claim templates": lambda n: spec(
        f"{APPS}/namespaces/default/statefulsets",
        "StatefulSet",
        serviceName="a",
        selector=SELECTOR,
        template=template(),
        volumeClaimTemplates=many(n, lambda i: {"metadata": {"name": f"v{i}"}, "spec": VOLUME}),
    ),
    "expressions of a selector": lambda n: spec(
        f"{APPS}/namespaces/default/deployments",
        "Deployment",
        selector={**SELECTOR, "matchExpressions": many(n, lambda i: {"key": f"a{i}", "operator": "DoesNotExist"})},
        template=template(),
    ),
    "requests for devices": lambda n: spec(
        f"{DEVICES}/namespaces/default/resourceclaims",
        "ResourceClaim",
        devices={
            "requests": many(n, lambda i: {"name": f"r{i}", "exactly": {"deviceClassName": "a"}}),
            "constraints": many(n, lambda i: {"matchAttribute": "a.b/c", "requests": [f"r{i}"]}),
        },
    ),
    "jobs of a jobset": jobset,
    "a chain of jobs": lambda n: jobset(n, chained=True),
    "targets of a jobset": lambda n: jobset(
        n, successPolicy={"operator": "All", "targetReplicatedJobs": many(n, lambda i: f"r{i}")}
    ),
    "rules of a jobset": lambda n: jobset(
        1,
        failurePolicy={
            "rules": many(n, lambda i: {"name": f"rule{i}", "action": "FailJobSet", "targetReplicatedJobs": ["r0"]})
        },
    ),
    "cliques": cliques,
    "scaling groups": lambda n: cliques(n, grouped=True),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running(shipped=True) as running:
        yield running


def _steps(name: str, made: Made) -> list[Step]:
    """Created, written again, patched, and applied by another."""
    path, kind, body = made
    group_version = path.split("/namespaces/")[0].removeprefix("/apis/").removeprefix("/api/")
    whole = {"apiVersion": group_version, "kind": kind, **body, "metadata": {"name": name, **body.get("metadata", {})}}
    applied = {**whole, "metadata": {key: value for key, value in whole["metadata"].items() if key != "managedFields"}}
    return [
        ("POST", path, whole, ""),
        ("PUT", f"{path}/{name}", whole, ""),
        ("PATCH", f"{path}/{name}", whole, MERGE if group_version.split("/")[0] in CUSTOM else STRATEGIC),
        ("PATCH", f"{path}/{name}?fieldManager=other&force=true", applied, APPLY),
    ]


@pytest.mark.parametrize("case", CASES)
def test_many_items(server: Running, case: str) -> None:
    name = case.replace(" ", "-")
    has_linear_steps(server, lambda at, count: _steps(at, CASES[case](count)), name, small=60)
