"""Random objects for three managers to quarrel about: the whole of what one of them wants, as it would be applied."""

from random import Random
from typing import Any

Object = dict[str, Any]

MANAGERS = ("alice", "bob", "carol")
KINDS = ("ConfigMap", "Pod", "Deployment", "PodGroup", "Workload", "Widget")
_VERSIONS = {
    "ConfigMap": "v1",
    "Pod": "v1",
    "Deployment": "apps/v1",
    "PodGroup": "scheduling.k8s.io/v1beta1",
    "Workload": "scheduling.k8s.io/v1beta1",
    "Widget": "kohort.test/v1",
}

# Every sort of list and map that a CRD can declare, and places where nothing is declared.
WIDGET: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "port": {"x-kubernetes-int-or-string": True},
                "granular": {"type": "object", "additionalProperties": {"type": "string"}},
                "atomic": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
                "plain": {"type": "array", "items": {"type": "string"}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "sort"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "sort": {"type": "string", "default": "round"},
                            "weight": {"type": "integer", "nullable": True},
                            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                        },
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"seen": {"type": "integer"}}},
    },
}


def api_version(kind: str) -> str:
    return _VERSIONS[kind]


def wanted(random: Random, kind: str, name: str, *, first: bool) -> Object:
    """`first`: an object that can be created; else only what may change, some of it."""
    body: Object = {"apiVersion": _VERSIONS[kind], "kind": kind, "metadata": {"name": name, **_meta(random)}}
    match kind:
        case "ConfigMap":
            body |= _config_map(random)
        case "Pod":
            body["spec"] = _pod(random, first=first)
        case "Deployment":
            body["spec"] = _deployment(random, first=first)
        case "PodGroup":
            body |= _pod_group(random, first=first)
        case "Workload":
            body |= _workload(random, first=first)
        case "Widget":
            body["spec"] = _widget(random)
    if random.random() < 0.03:
        body["metadata"]["labels"] = random.choice([{"a": 1}, ["a"], "a"])
    return body


def _some(random: Random, chance: float, **members: Any) -> Object:
    return {name: value for name, value in members.items() if random.random() < chance}


def _strings(random: Random) -> dict[str, str]:
    return {key: random.choice("123") for key in "abcd" if random.random() < 0.4}


def _meta(random: Random) -> Object:
    finalizers = random.sample(["a.io/x", "b.io/y", "c.io/z"], random.randint(0, 2))
    return _some(random, 0.4, labels=_strings(random), annotations=_strings(random)) | _some(
        random, 0.2, finalizers=finalizers
    )


def _config_map(random: Random) -> Object:
    return _some(random, 0.8, data=_strings(random)) | _some(
        random, 0.2, binaryData={"x": random.choice(["QQ==", "Qg=="])}
    )


def _ports(random: Random) -> list[Object]:
    ports: list[Object] = []
    numbers = [80, 80] if random.random() < 0.05 else random.sample([80, 81, 82], random.randint(0, 3))
    for number in numbers:
        port: Object = {"containerPort": number} | _some(random, 0.5, name=f"p{number}", protocol="TCP")
        ports.append(port)
    return ports


def _env(random: Random) -> list[Object]:
    return [
        {"name": name, "value": random.choice("12")} for name in random.sample(["A", "B", "C"], random.randint(0, 3))
    ]


def _container(random: Random, name: str) -> Object:
    return {"name": name, "image": random.choice(["x:1", "x:2"])} | _some(
        random,
        0.3,
        ports=_ports(random),
        env=_env(random),
        command=random.choice([["a"], ["a", "b"], []]),
        args=None,
        resources={"requests": {"cpu": random.choice(["1", "1000m", "2"])}},
        securityContext=random.choice([{}, {"privileged": True}, {"capabilities": {"add": ["X"]}}]),
        volumeMounts=[{"name": "v", "mountPath": path} for path in random.sample(["/a", "/b"], random.randint(0, 2))],
        livenessProbe={"httpGet": {"port": random.choice([80, "http"])}},
    )


def _containers(random: Random, *, at_least: int) -> list[Object]:
    return [_container(random, name) for name in random.sample(["m", "n", "o"], random.randint(at_least, 3))]


def _pod_spec(random: Random, *, at_least: int) -> Object:
    return {"containers": _containers(random, at_least=at_least), "volumes": [{"name": "v", "emptyDir": {}}]} | _some(
        random,
        0.25,
        nodeSelector=_strings(random),
        tolerations=[{"key": key, "operator": "Exists"} for key in random.sample("ab", random.randint(0, 2))],
        imagePullSecrets=[{"name": name} for name in random.sample("st", random.randint(0, 2))],
        hostAliases=[{"ip": "10.0.0.1", "hostnames": ["h"]}],
        topologySpreadConstraints=[
            {"topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": random.randint(1, 2)}
            for key in random.sample(["zone", "rack"], random.randint(1, 2))
        ],
        affinity={"nodeAffinity": {}},
        securityContext=random.choice([{}, {"runAsUser": random.randint(1, 2), "sysctls": []}]),
        terminationGracePeriodSeconds=random.choice([5, 30]),
    )


def _pod(random: Random, *, first: bool) -> Object:
    if first:
        return _pod_spec(random, at_least=1)
    spec: Object = _some(random, 0.3, activeDeadlineSeconds=random.randint(10, 12))
    names = random.sample(["m", "n", "o"], random.randint(0, 2))
    return spec | {"containers": [{"name": name, "image": random.choice(["x:1", "x:2", "x:3"])} for name in names]}


def _deployment(random: Random, *, first: bool) -> Object:
    spec: Object = _some(
        random,
        0.4,
        replicas=random.randint(0, 2),
        paused=random.choice([True, False]),
        minReadySeconds=random.randint(0, 2),
        strategy=random.choice(
            [{"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": random.choice([1, "10%"])}}]
        ),
    )
    if first or random.random() < 0.7:
        labels = {"app": "x"} if first else {"app": "x", **_strings(random)}
        spec["template"] = {"metadata": {"labels": labels}, "spec": _pod_spec(random, at_least=1 if first else 0)}
    if first or random.random() < 0.3:
        spec["selector"] = {"matchLabels": {"app": "x"}}
    return spec


def _policy(random: Random) -> Object:
    return {"gang": {"minCount": random.randint(1, 3)}}


def _pod_group(random: Random, *, first: bool) -> Object:
    spec: Object = {"schedulingPolicy": _policy(random)} if first or random.random() < 0.6 else {}
    if first:
        spec |= _some(random, 0.3, disruptionMode={"single": {}}, priority=random.randint(0, 2))
    return {"spec": spec} if spec or random.random() < 0.5 else {}


def _workload(random: Random, *, first: bool) -> Object:
    names = ["a", "b"] if first else random.sample(["a", "b"], random.randint(0, 2))
    templates = [
        {"name": name, "schedulingPolicy": _policy(random)} | _some(random, 0.2, priority=random.randint(0, 2))
        for name in names
    ]
    return {"spec": {"podGroupTemplates": templates}}


def _free(random: Random, depth: int = 0) -> Any:
    choices: list[Any] = [1, "a", True, [1, {"a": 1}], [], {}]
    if depth < 3:
        choices += [{key: _free(random, depth + 1) for key in random.sample("abc", random.randint(1, 3))}] * 4
    return random.choice(choices)


def _widget(random: Random) -> Object:
    parts = [
        {"name": name} | _some(random, 0.5, sort=random.choice(["round", "square"]), weight=random.randint(1, 2))
        for name in random.sample("pqr", random.randint(0, 3))
    ]
    for part in parts:
        part.update(_some(random, 0.3, tags=random.sample(["x", "y", "z"], random.randint(0, 3))))
    return _some(
        random,
        0.4,
        size=random.randint(1, 2),
        port=random.choice([1, "http"]),
        granular=_strings(random),
        atomic=_strings(random),
        plain=random.sample(["x", "y", "z"], random.randint(0, 3)),
        set=random.sample(["x", "y", "z"], random.randint(0, 3)),
        parts=parts,
        free={key: _free(random) for key in random.sample("abc", random.randint(0, 3))},
        any=_free(random),
    )
