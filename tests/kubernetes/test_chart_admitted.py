"""Real Kubernetes takes every object that the chart renders, and its PodSecurity admission finds nothing to refuse."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kubernetes.test_chart import VALUES, of, rendered

from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.testing.environment.environment import Environment

ABSENT = ("ServiceMonitor", "PrometheusRule", "Certificate", "Issuer")  # kinds of operators that are not here
SETS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "split": {"split": True, "namespaces": ["default"], "webhook.grouping": True},
    "everything": {
        name: value
        for name, value in VALUES.items()
        if name.partition(".")[0] not in {"crds", "controllers", "scheduler", "split", "image", "extraVolumes"}
        and name != "webhook.enabled"
    },
}


@pytest.mark.parametrize("name", SETS)
async def test_every_object_is_accepted(kubernetes_environment: Environment, name: str) -> None:
    space = f"restricted-{name}"
    async with Client.connect(kubernetes_environment.kubeconfig, manager="test") as client:
        labels = {
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/enforce-version": "latest",
        }
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": labels}}
        await client.of(body).create(body)
        objects = rendered(SETS[name])
        for obj in (one for one in objects if one["kind"] not in ABSENT):
            there = obj["metadata"].get("namespace", "")
            there = space if there in ("kohort-system", "team-a", "team-b") else there
            meta = {**obj["metadata"], **({"namespace": there} if there else {})}
            await client.of(obj).create({**obj, "metadata": meta}, there, dry_run=True)
        for deployment in of(objects, "Deployment"):
            spec = {**deployment["spec"]["template"]["spec"], "priorityClassName": ""}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
            await client.of(pod).create(pod, space, dry_run=True)
        spec["securityContext"] = {}
        with pytest.raises(ApiError, match="violates PodSecurity"):  # the check is on
            await client.of(pod).create(pod, space, dry_run=True)
