"""Random requests: any method, path, type and body, also such as make no sense."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.abuse.attack import Attack

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")
_KINDS = (
    "api/v1|pods", "api/v1|configmaps", "api/v1|services", "apis/batch/v1|jobs", "apis/batch/v1|cronjobs",
    "apis/jobset.x-k8s.io/v1alpha2|jobsets", "apis/scheduling.k8s.io/v1alpha3|podgroups",
    "apis/scheduling.k8s.io/v1alpha3|workloads", "apis/leaderworkerset.x-k8s.io/v1|leaderworkersets",
    "apis/trainer.kubeflow.org/v1alpha1|trainjobs", "apis/grove.io/v1alpha1|podcliquesets",
    "apis/rbac.authorization.k8s.io/v1|roles", "apis/none/v1|things",
)  # fmt: skip
_TYPES = (
    "application/json", "application/yaml", "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf", "",
)  # fmt: skip
_QUERIES = (
    "", "", "?limit=1", "?continue=AAAA", "?dryRun=All", "?fieldManager=f&force=true", "?fieldValidation=Strict",
    "?labelSelector=a%20in%20(", "?fieldSelector=spec.x=1", "?resourceVersion=x", "?gracePeriodSeconds=-1",
    "?watch=1&timeoutSeconds=1", "?propagationPolicy=Orphan", "?resourceVersion=99999999999", "?%0a=%0a",
)  # fmt: skip
_WORDS = (
    "metadata",
    "spec",
    "status",
    "name",
    "labels",
    "replicas",
    "template",
    "containers",
    "op",
    "path",
    "value",
    "$patch",
)
_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**31, 2**63, 2**70, 1.5, "", "x", "a" * 300, "1e-99999999", "\x00", [], {}, [[]],
)  # fmt: skip


def requests(namespace: str, count: int, seed: int) -> Iterator[Attack]:
    chance = random.Random(seed)
    for _ in range(count):
        group, _, plural = chance.choice(_KINDS).partition("|")
        name = chance.choice(["", "", "/x1", "/x2/status", "/x3/scale", "/%2e%2e", "/x4/binding"])
        path = f"/{group}/namespaces/{namespace}/{plural}{name}{chance.choice(_QUERIES)}"
        body = json.dumps(_value(chance, 0)).encode()
        if chance.random() < 0.1:
            body = body[: chance.randrange(len(body) + 1)]
        kind = chance.choice(_TYPES)
        yield Attack("fuzz", chance.choice(_METHODS), path, body, {"Content-Type": kind} if kind else {})


def _value(chance: random.Random, depth: int) -> Any:
    if depth > 4 or chance.random() < 0.3:
        return chance.choice(_VALUES)
    if chance.random() < 0.2:
        return [_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(_WORDS): _value(chance, depth + 1) for _ in range(chance.randrange(5))}
