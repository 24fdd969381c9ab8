"""What the scheduler hands to the engine of the objects that it reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kohort.scheduler.model import Pod, asked

TERM = {"topologyKey": "k", "labelSelector": {"matchLabels": {"a": "b"}}}
RULES: dict[str, Any] = {
    "nodeSelector": {"zone": "a"},
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}],
}
REST: dict[str, Any] = {
    "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}],
    "initContainers": [{"name": "i", "restartPolicy": "Always"}],
    "overhead": {"cpu": "100m"},
    "hostNetwork": True,
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    "nodeName": "n",
}


def pod(spec: dict[str, Any]) -> Pod:
    meta = {"name": "p", "namespace": "d", "uid": "u", "labels": {"a": "b"}, "annotations": {"x": "y"}}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


@pytest.mark.parametrize(
    "spec", [{}, REST, RULES, {**REST, **RULES}, {name: type(rule)() for name, rule in RULES.items()}]
)
def test_a_pod_is_asked_for_as_the_api_has_it(spec: dict[str, Any]) -> None:
    one = pod(spec)
    whole = msgspec.to_builtins(one)
    assert asked(one)["spec"] == whole["spec"]
    assert asked(one)["metadata"].items() <= whole["metadata"].items()


def test_rules_are_not_copied() -> None:
    one = pod(RULES)
    spec = asked(one)["spec"]
    assert spec["affinity"] is one.spec.affinity
    assert spec["tolerations"] is one.spec.tolerations
    assert spec["topologySpreadConstraints"] is one.spec.topology_spread_constraints
