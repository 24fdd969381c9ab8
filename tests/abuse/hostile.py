"""Requests that a hostile tenant sends: those that once stopped the server, and generated ones of the same sorts.

Everything is bounded: a body is smaller than the server accepts, and a tenant's quota bounds what it can make.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
LARGEST = 2_500_000  # bytes of a body
_POD = {"containers": [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}]}
_MEDIA = {
    "json": "application/json",
    "yaml": "application/yaml",
    "patch": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True, slots=True)
class Attack:
    """One request; `path` is below the tenant's namespace, of a group and version."""

    sort: str
    method: str
    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def _space(group: str, namespace: str, plural: str) -> str:
    return f"/{group}/namespaces/{namespace}/{plural}"


class Maker:
    """Attacks of one tenant, one after the other, from a seed."""

    def __init__(self, namespace: str, seed: int) -> None:
        self._namespace = namespace
        self._random = random.Random(seed)
        self._number = 0
        self.sorts: tuple[Callable[[], Attack], ...] = (
            self.pattern,
            self.chain,
            self.parents,
            self.quantity,
            self.patch,
            self.replicas,
            self.indexes,
            self.owners,
            self.cycle,
            self.yaml,
            self.names,
            self.deep,
            self.wide,
            self.compressed,
            self.selector,
            self.environment,
        )

    def attacks(self, count: int) -> Iterator[Attack]:
        """Every sort once, then any."""
        for number in range(count):
            make = self.sorts[number] if number < len(self.sorts) else self._random.choice(self.sorts)
            yield make()

    # ---- what all of them need

    def _name(self) -> str:
        self._number += 1
        return f"x{self._number}"

    def _size(self, *sizes: int) -> int:
        return self._random.choice(sizes)

    def _create(self, sort: str, group: str, plural: str, body: Object, media: str = "json") -> Attack:
        raw = json.dumps(body).encode()[:LARGEST]
        return Attack(sort, "POST", _space(group, self._namespace, plural), raw, {"Content-Type": _MEDIA[media]})

    def _jobset(self, sort: str, spec: Object, job: Object | None = None, replicas: int = 1) -> Attack:
        template = {"spec": {"template": {"spec": _POD}, **(job or {})}}
        jobs = [{"name": "w", "replicas": replicas, "template": template}]
        body = {"kind": "JobSet", "apiVersion": "jobset.x-k8s.io/v1alpha2", "metadata": {"name": self._name()}}
        return self._create(
            sort, "apis/jobset.x-k8s.io/v1alpha2", "jobsets", {**body, "spec": {"replicatedJobs": jobs, **spec}}
        )

    def _map(self, sort: str, meta: Object, data: Object | None = None) -> Attack:
        body = {"metadata": {"name": self._name(), **meta}, "data": data or {}}
        return self._create(sort, "api/v1", "configmaps", body)

    # ---- the list

    def pattern(self) -> Attack:
        bad = self._random.choice([r"^(\w+\s?)+!$", r"(a+)+$", r"(a|aa)+$", "(" * 400 + ")" * 400, "a{1,999}{1,999}"])
        rule = {"name": "r", "action": "FailJobSet", "onJobFailureMessagePatterns": [bad]}
        return self._jobset("pattern", {"failurePolicy": {"rules": [rule]}})

    def chain(self) -> Attack:
        """One link of a long chain of composite groups: each names the one before as its parent."""
        name = self._name()
        before = f"x{max(1, self._number - 1)}"
        spec = {"parentCompositePodGroupName": before, "schedulingPolicy": {"gang": {"minGroupCount": 1}}}
        body = {"metadata": {"name": name}, "spec": spec}
        return self._create("chain", "apis/scheduling.k8s.io/v1alpha3", "compositepodgroups", body)

    def parents(self) -> Attack:
        name = self._name()
        body = {
            "metadata": {"name": name},
            "spec": {"parentCompositePodGroupName": name, "schedulingPolicy": {"gang": {"minCount": 2**31 - 1}}},
        }
        return self._create("cycle of parents", "apis/scheduling.k8s.io/v1alpha3", "podgroups", body)

    def quantity(self) -> Attack:
        amount = self._random.choice(
            ["1e-99999999", "1e99999999", "9" * 5000, "1" + "0" * 3000 + "m", "0." + "1" * 4000]
        )
        pod = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": amount}}}]}
        return self._create("quantity", "api/v1", "pods", {"metadata": {"name": self._name()}, "spec": pod})

    def patch(self) -> Attack:
        """Copies of a tree into itself."""
        steps = [{"op": "add", "path": "/data", "value": {"a": "b"}}]
        steps += [{"op": "copy", "from": "/metadata", "path": f"/metadata/{n}"} for n in range(self._size(26, 400))]
        path = _space("api/v1", self._namespace, "configmaps/kube-root-ca.crt")
        return Attack("patch", "PATCH", path, json.dumps(steps).encode(), {"Content-Type": _MEDIA["patch"]})

    def replicas(self) -> Attack:
        most = self._size(2**31 - 1, 2_000_000, 100_000)
        if self._random.random() < 0.5:
            return self._jobset("counts", {}, {"parallelism": most, "completions": most})
        template = {"workerTemplate": {"spec": _POD}, "size": most}
        body = {"metadata": {"name": self._name()}, "spec": {"replicas": most, "leaderWorkerTemplate": template}}
        body |= {"kind": "LeaderWorkerSet", "apiVersion": "leaderworkerset.x-k8s.io/v1"}
        return self._create("counts", "apis/leaderworkerset.x-k8s.io/v1", "leaderworkersets", body)

    def indexes(self) -> Attack:
        rule = {"succeededIndexes": f"0-{self._size(2**31 - 3, 10_000_000)}"}
        job = {
            "completionMode": "Indexed",
            "completions": 2**31 - 1,
            "parallelism": 1,
            "successPolicy": {"rules": [rule]},
            "template": {"spec": {**_POD, "restartPolicy": "Never"}},
        }
        return self._create("indexes", "apis/batch/v1", "jobs", {"metadata": {"name": self._name()}, "spec": job})

    def owners(self) -> Attack:
        count = self._size(100, 3000, 20_000)
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": f"u{n}"} for n in range(count)]
        return self._map("owners", {"ownerReferences": owners})

    def cycle(self) -> Attack:
        """Owners that are each other, and none that exist."""
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"x{self._number + 2}", "uid": "none"}
        return self._map("cycle of owners", {"ownerReferences": [owner], "finalizers": []})

    def yaml(self) -> Attack:
        lines = ["metadata:", f"  name: {self._name()}", "data:"]
        count = self._size(1000, 20_000)
        lines += (
            [f"  k{n}: 'v'" for n in range(count)] if self._random.random() < 0.8 else ["  k: " + "1:" * 2000 + "1"]
        )
        path = _space("api/v1", self._namespace, "configmaps")
        return Attack("yaml", "POST", path, "\n".join(lines).encode()[:LARGEST], {"Content-Type": _MEDIA["yaml"]})

    # ---- sizes, depths, names

    def names(self) -> Attack:
        odd = self._random.choice(["a" * 100_000, "../../etc", "\x00", "a\nb", "é" * 300, "", "-", "%0a", "ａ"])
        return self._map("names", {"name": odd, "labels": {odd: odd}, "annotations": {odd: odd}})

    def deep(self) -> Attack:
        depth = self._size(199, 1000, 100_000)
        body = b'{"metadata":{"name":"x"},"data":' + b"[" * depth + b"]" * depth + b"}"
        kind = self._random.choice(["json", "yaml", "apply"])
        path = _space("api/v1", self._namespace, "configmaps")
        return Attack("depth", "POST", path, body, {"Content-Type": _MEDIA[kind]})

    def wide(self) -> Attack:
        """A dry run: finalizers that nobody removes would keep the namespace for ever, as on any cluster."""
        count = self._size(1000, 50_000)
        body = {
            "metadata": {"name": self._name(), "finalizers": [f"a.b/{n}" for n in range(count // 10)]},
            "data": {f"k{n}": "v" for n in range(count)},
        }
        return self._create("width", "api/v1", "configmaps?dryRun=All", body)

    def compressed(self) -> Attack:
        body = gzip.compress(b" " * self._size(1 << 20, 64 << 20), 9)
        headers = {"Content-Type": _MEDIA["json"], "Content-Encoding": "gzip"}
        return Attack("gzip", "POST", _space("api/v1", self._namespace, "configmaps"), body, headers)

    def selector(self) -> Attack:
        terms = ",".join(f"a{n} in (b,c)" for n in range(self._size(10, 500)))
        path = _space("api/v1", self._namespace, "pods") + f"?labelSelector={terms.replace(' ', '%20')}"
        return Attack("selector", "GET", path, b"")

    def environment(self) -> Attack:
        count = self._size(100, 5000)
        env = [{"name": f"E{n}", "value": "$(E0)" * 3} for n in range(count)]
        pod = {"containers": [{"name": "c", "image": "i", "env": env}], "schedulingGates": [{"name": "a.b/c"}]}
        return self._create("environment", "api/v1", "pods", {"metadata": {"name": self._name()}, "spec": pod})
