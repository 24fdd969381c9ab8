"""Valid objects of the Workload API, made at random but the same for the same seed.

They are only the start: `tests.support.mutate` breaks them. A valid object uses every field often enough that a
mutation has something to break, and stays inside the limits so that each refusal is the mutation's doing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

Object = dict[str, Any]

#: Priority classes that must exist where generated groups are sent: name -> (value, preemption policy).
PRIORITY_CLASSES = {"generated-low": (-5, "PreemptLowerPriority"), "generated-high": (900, "Never")}
KINDS = ("Workload", "PodGroup", "CompositePodGroup", "Job", "Pod")
_WEIGHTS = (34, 26, 14, 16, 10)

_TOPOLOGY = ("rack", "example.org/Block", "topology.kubernetes.io/zone")


@dataclass(frozen=True)
class Made:
    """An object and the path of its collection (with `{ns}`)."""

    object: Object
    collection: str


def make(random: Random, kind: str | None = None) -> Made:
    """One valid object, of this kind or of a random one."""
    kind = kind or random.choices(KINDS, _WEIGHTS)[0]
    maker = {
        "Workload": _workload,
        "PodGroup": _pod_group,
        "CompositePodGroup": _composite,
        "Job": _job,
        "Pod": _pod,
    }[kind]
    return maker(random)


def priority_classes() -> list[Object]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": policy,
        }
        for name, (value, policy) in PRIORITY_CLASSES.items()
    ]


def _maybe(random: Random, chance: float) -> bool:
    return random.random() < chance


def _metadata(random: Random, name: str) -> Object:
    metadata: Object = {"name": name}
    if _maybe(random, 0.3):
        metadata["labels"] = {"team": "ml", "example.org/run": "r-7"}
    if _maybe(random, 0.2):
        metadata["annotations"] = {"example.org/Note": "any text: ü, \u2713"}
    if _maybe(random, 0.1):
        metadata["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "00000000-0000-0000-0000-000000000001"}
        ]
    return metadata


def _whole(random: Random, made_of: Object, name: str, collection: str) -> Made:
    version, kind = made_of["apiVersion"], made_of["kind"]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    body = {"apiVersion": version, "kind": kind, "metadata": _metadata(random, name), "spec": made_of["spec"]}
    return Made(body, f"{root}/namespaces/{{ns}}/{collection}")


# ---- parts


def _policy(random: Random, count: str, *, required: bool = True) -> Object:
    if _maybe(random, 0.3):
        return {"basic": {}}
    if not required and _maybe(random, 0.3):
        return {"gang": {}}
    return {"gang": {count: random.choice((1, 2, 3, 8, 2147483647))}}


def _constraints(random: Random) -> Object:
    return {} if _maybe(random, 0.2) else {"topology": [{"key": random.choice(_TOPOLOGY)}]}


def _claims(random: Random) -> list[Object]:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    return [{"name": f"claim-{i}", random.choice(sources): f"gpu.{i}"} for i in range(random.randint(1, 4))]


def _mode(random: Random) -> Object:
    return random.choice(({"single": {}}, {"all": {}}))


def _extras(random: Random, body: Object, *, claims: bool = True) -> Object:
    """The optional members that templates and groups share."""
    if _maybe(random, 0.4):
        body["schedulingConstraints"] = _constraints(random)
    if claims and _maybe(random, 0.3):
        body["resourceClaims"] = _claims(random)
    if _maybe(random, 0.4):
        body["disruptionMode"] = _mode(random)
    return body


# ---- Workload


def _workload(random: Random) -> Made:
    priority = _template_priority(random)
    controller = {"apiGroup": "batch", "kind": "Job", "name": "train"}
    spec: Object = {}
    if _maybe(random, 0.3):
        spec["controllerRef"] = controller if _maybe(random, 0.7) else {"kind": "Pod", "name": "boss"}
    if _maybe(random, 0.5):
        count = random.choice((1, 2, 2, 3, 8))
        spec["podGroupTemplates"] = [_leaf(random, f"t-{i}", priority) for i in range(count)]
    else:
        count = random.choice((1, 1, 2, 3))
        depth = random.choice((1, 2, 3))
        spec["compositePodGroupTemplates"] = [_branch(random, f"c-{i}", depth, priority) for i in range(count)]
    version = random.choice(("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"))
    return _whole(random, {"apiVersion": version, "kind": "Workload", "spec": spec}, "nightly", "workloads")


def _template_priority(random: Random) -> Object:
    """The same in every template of a Workload; whether the class exists does not matter there."""
    choices: tuple[Object, ...] = (
        {},
        {"priorityClassName": "gold"},
        {"priorityClassName": "gold", "priority": 7},
        {"priority": -1, "preemptionPolicy": "Never"},
    )
    return random.choice(choices)


def _leaf(random: Random, name: str, priority: Object) -> Object:
    return _extras(random, {"name": name, "schedulingPolicy": _policy(random, "minCount"), **priority})


def _branch(random: Random, name: str, depth: int, priority: Object) -> Object:
    body: Object = {"name": name, "schedulingPolicy": _policy(random, "minGroupCount"), **priority}
    _extras(random, body, claims=False)
    deeper = depth > 1
    if not deeper or _maybe(random, 0.4):
        body["podGroupTemplates"] = [_leaf(random, f"{name}-l{i}", priority) for i in range(random.choice((1, 2, 3)))]
    if deeper:
        children = range(random.choice((1, 1, 2)))
        body["compositePodGroupTemplates"] = [_branch(random, f"{name}-{i}", depth - 1, priority) for i in children]
    return body


# ---- groups


def _group_priority(random: Random) -> Object:
    if _maybe(random, 0.6):
        return {}
    name = random.choice(tuple(PRIORITY_CLASSES))
    value, policy = PRIORITY_CLASSES[name]
    body: Object = {"priorityClassName": name, "preemptionPolicy": policy}  # with its gate on, it must agree
    return body | ({"priority": value} if _maybe(random, 0.5) else {})


def _pod_group(random: Random) -> Made:
    spec: Object = {"schedulingPolicy": _policy(random, "minCount"), **_group_priority(random)}
    _extras(random, spec)
    if _maybe(random, 0.5):
        spec["workloadRef"] = {"workloadName": "nightly.run", "templateName": "t-0"}
        if _maybe(random, 0.5):
            spec["parentCompositePodGroupName"] = "slice.0"
    version = random.choice(("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"))
    return _whole(random, {"apiVersion": version, "kind": "PodGroup", "spec": spec}, "ring", "podgroups")


def _composite(random: Random) -> Made:
    spec: Object = {
        "schedulingPolicy": _policy(random, "minGroupCount"),
        "workloadRef": {"workloadName": "nightly.run", "templateName": "c-0"},
        **_group_priority(random),
    }
    _extras(random, spec, claims=False)
    if _maybe(random, 0.4):
        spec["parentCompositePodGroupName"] = "root"
    made_of = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup", "spec": spec}
    return _whole(random, made_of, "slice", "compositepodgroups")


# ---- what uses groups


def _pod_spec(random: Random, restart: str) -> Object:
    requests = {"cpu": random.choice(("1", "500m")), "memory": "1Gi"}
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"requests": requests}}
    spec: Object = {"containers": [container], "restartPolicy": restart}
    if _maybe(random, 0.2):
        spec["nodeSelector"] = {"disk": "ssd"}
    if _maybe(random, 0.2):
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    if _maybe(random, 0.2):
        spec["priorityClassName"] = random.choice(tuple(PRIORITY_CLASSES))
    return spec


def _job(random: Random) -> Made:
    parallelism = random.choice((1, 2, 4))
    spec: Object = {"parallelism": parallelism, "template": {"spec": _pod_spec(random, "Never")}}
    if _maybe(random, 0.7):
        spec["completions"] = parallelism
        spec["completionMode"] = "Indexed"
    if _maybe(random, 0.3):
        spec["suspend"] = True
    if _maybe(random, 0.3):
        spec["backoffLimit"] = 3
    if _maybe(random, 0.85):
        spec["scheduling"] = _job_scheduling(random, parallelism)
    return _whole(random, {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}, "train", "jobs")


def _job_scheduling(random: Random, parallelism: int) -> Object:
    scheduling: Object = {}
    if _maybe(random, 0.8):
        gang: Object = {"minCount": random.randint(1, parallelism)} if _maybe(random, 0.7) else {}
        scheduling["schedulingPolicy"] = {"gang": gang} if _maybe(random, 0.75) else {"basic": {}}
    _extras(random, scheduling)
    if "gang" not in scheduling.get("schedulingPolicy", {}) and "all" in scheduling.get("disruptionMode", {}):
        scheduling["disruptionMode"] = {"single": {}}  # Job refuses `all` without a gang
    return scheduling


def _pod(random: Random) -> Made:
    spec = _pod_spec(random, random.choice(("Always", "Never")))
    if _maybe(random, 0.8):
        spec["schedulingGroup"] = {"podGroupName": random.choice(("ring", "ring.a-1"))}
    return _whole(random, {"apiVersion": "v1", "kind": "Pod", "spec": spec}, "rank-0", "pods")
