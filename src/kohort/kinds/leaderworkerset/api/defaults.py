"""What upstream's defaulting webhook writes back.

It decodes into typed structures, fills in values and encodes again; so beside real defaults an object gains empty
members that those structures always write. They count: revision keys are hashes of the stored text (`revision.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api import defaults
from kohort.api.kind import Context, Object
from kohort.kinds.leaderworkerset.api.schema import SCHEMA

_TEMPLATES: Final = ("workerTemplate", "leaderTemplate")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def default(obj: Object, ctx: Context) -> None:
    """Complete an object in place."""
    if obj.get("spec") is None:
        # The schema's default of startupPolicy needs a spec to stand in; the webhook then writes an empty one, which
        # is refused (recorded: v-enums, "no spec").
        obj["spec"] = {"startupPolicy": ""}
    spec = obj["spec"]
    if not isinstance(spec, dict):
        return
    for name in ("leaderWorkerTemplate", "rolloutStrategy", "networkConfig"):
        if spec.get(name) is None:
            spec[name] = {}
    _rollout(spec["rolloutStrategy"])
    _network(spec["networkConfig"])
    template = spec["leaderWorkerTemplate"]
    if isinstance(template, dict):
        _leader_worker_template(template)
    defaults.apply(SCHEMA, obj, ctx)


def _rollout(strategy: Any) -> None:
    if not isinstance(strategy, dict):
        return
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdateConfiguration") is None:
        strategy["rollingUpdateConfiguration"] = {}


def _network(config: Any) -> None:
    if isinstance(config, dict) and config.get("subdomainPolicy") is None:
        config["subdomainPolicy"] = "Shared"


def _leader_worker_template(template: dict[str, Any]) -> None:
    policy = template.get("restartPolicy")
    if policy == "":
        template["restartPolicy"] = None
    elif policy == "Default":
        template["restartPolicy"] = "None"
    subgroups = template.get("subGroupPolicy")
    if isinstance(subgroups, dict) and not subgroups.get("subGroupPolicyType"):
        subgroups["subGroupPolicyType"] = "LeaderWorker"
    for name in _TEMPLATES:
        if isinstance(template.get(name), dict):
            _pod_template(template[name])
    for claim in _items(template, "volumeClaimTemplates"):
        _present(claim, "metadata", "spec", "status")
        _present(claim["spec"], "resources")


# ---- members that the typed structures of a pod always write


def _pod_template(template: dict[str, Any]) -> None:
    _present(template, "metadata", "spec")
    spec = template["spec"]
    if not isinstance(spec, dict):
        return
    for member in _CONTAINERS:
        for container in _items(spec, member):
            _container(container)
    for volume in _items(spec, "volumes"):
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if isinstance(claim, dict):
            _present(claim, "metadata", "spec")
            _present(claim["spec"], "resources")


def _container(container: dict[str, Any]) -> None:
    _present(container, "resources")
    for port in _items(container, "ports"):
        port["protocol"] = port.get("protocol") or "TCP"
    for variable in _items(container, "env"):
        reference = (variable.get("valueFrom") or {}).get("resourceFieldRef")
        if isinstance(reference, dict) and reference.get("divisor") is None:
            reference["divisor"] = "0"
    for name in _PROBES:
        grpc = (container.get(name) or {}).get("grpc")
        if isinstance(grpc, dict) and grpc.get("service") is None:
            grpc["service"] = ""


def _items(holder: dict[str, Any], member: str) -> Iterator[dict[str, Any]]:
    found = holder.get(member)
    return (item for item in found if isinstance(item, dict)) if isinstance(found, list) else iter(())


def _present(holder: Any, *members: str) -> None:
    if not isinstance(holder, dict):
        return
    for member in members:
        if holder.get(member) is None:
            holder[member] = {}
