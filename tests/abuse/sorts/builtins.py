"""Objects of other built-in kinds with numbers and sizes that nobody means, each of which somebody has to look at."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Final

from tests.abuse.attack import POD, Attack, Sort, Source

_MOST: Final = 2**31 - 1
_TIME: Final = "2026-01-01T00:00:00.000000Z"


def _services(source: Source) -> Iterator[Attack]:
    """Large ones: whoever gives addresses out looks at all of them."""
    large = {"a.b/c": "x" * source.pick(10, 200_000)}
    ports = [{"name": f"p{number}", "port": 1 + number} for number in range(source.pick(1, 100, 2000))]
    yield source.create("v1", "services", "Service", {"ports": ports, "selector": {}}, {"annotations": large})


def _secrets(source: Source) -> Iterator[Attack]:
    text = b64encode(b"x" * source.pick(10, 500_000, 1_000_000)).decode()
    body = {"metadata": {"name": source.name()}, "data": {"a": text}}
    yield source.send("POST", source.space("api/v1", "secrets"), body)


def _events(source: Source) -> Iterator[Attack]:
    """About objects that are not there, by the dozen."""
    for _ in range(12):
        about = {"kind": "Pod", "namespace": source.namespace, "name": "none"}
        body = {"metadata": {"name": source.name()}, "involvedObject": about, "message": "x" * 1000, "count": _MOST}
        yield source.send("POST", source.space("api/v1", "events"), body)


def _leases(source: Source) -> Iterator[Attack]:
    spec = {"holderIdentity": "x" * source.pick(1, 5000), "leaseDurationSeconds": _MOST, "renewTime": _TIME}
    yield source.create("coordination.k8s.io/v1", "leases", "Lease", spec)


def _autoscalers(source: Source) -> Iterator[Attack]:
    kind = source.pick("Deployment", "StatefulSet", "None")
    target = {"apiVersion": "apps/v1", "kind": kind, "name": "none"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": _MOST}
    yield source.create("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", spec)


def _budgets(source: Source) -> Iterator[Attack]:
    """All about the same pods."""
    number = source.pick(0, _MOST, "100%", "0%")
    yield source.create(
        "policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", {"minAvailable": number, "selector": {}}
    )


def _sets(source: Source) -> Iterator[Attack]:
    labels = {"set": source.name()}
    template = {"metadata": {"labels": labels}, "spec": POD}
    common = {"selector": {"matchLabels": labels}, "template": template}
    spec = {
        **common,
        "replicas": _MOST,
        "serviceName": "none",
        "podManagementPolicy": source.pick("Parallel", "OrderedReady"),
    }
    yield source.create("apps/v1", "statefulsets", "StatefulSet", spec)
    yield source.create("apps/v1", "deployments", "Deployment", {**common, "replicas": _MOST})
    yield source.create("apps/v1", "daemonsets", "DaemonSet", common)


def _resources(source: Source) -> Iterator[Attack]:
    """Amounts of resources that no node has, other names in every pod."""
    names = [f"x.example/r{source.number}-{number}" for number in range(source.pick(1, 50, 500))]
    wanted = dict.fromkeys(names, "1")
    resources = {"requests": wanted, "limits": wanted}
    yield source.pod({"containers": [{"name": "c", "image": "i", "resources": resources}]})


def _ports(source: Source) -> Iterator[Attack]:
    first, count = source.pick(1, 20_000), source.pick(10, 900, 2000)
    ports = [{"containerPort": first + number} for number in range(count)]
    yield source.pod({"hostNetwork": True, "containers": [{"name": "c", "image": "i", "ports": ports}]})


def _rules(source: Source) -> Iterator[Attack]:
    """Rules between pods about labels that nodes have, each pod with others: a scheduler counts all of them."""
    terms = [
        {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {f"k{source.number}": f"v{number}"}},
            "namespaceSelector": {},
        }
        for number in range(source.pick(5, 90, 300))
    ]
    wishes = [{"weight": 1 + number % 100, "podAffinityTerm": term} for number, term in enumerate(terms)]
    hard = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    soft = {"preferredDuringSchedulingIgnoredDuringExecution": wishes}
    yield source.pod({"affinity": {source.pick("podAntiAffinity", "podAffinity"): source.pick(hard, soft)}})


SORTS: Final = (
    Sort("services", _services),
    Sort("secrets", _secrets),
    Sort("events", _events),
    Sort("leases", _leases),
    Sort("autoscalers", _autoscalers),
    Sort("budgets", _budgets),
    Sort("resources", _resources),
    Sort("host-ports", _ports),
    Sort("rules-between-pods", _rules),
    Sort("sets", _sets),  # the last that makes pods: these take what the quota leaves
)
