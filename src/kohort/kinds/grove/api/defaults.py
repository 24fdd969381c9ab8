"""What Grove's defaulting webhook writes into a PodCliqueSet (spec grove 1.1 to 1.3).

Plain defaults stand in the schema; here is what depends on other fields. Doing it twice changes nothing.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.api import defaults
from kohort.api.kind import Context, Object
from kohort.apimachinery import duration
from kohort.kinds.grove.api import parts
from kohort.kinds.grove.api.schema import SET_SPEC

TERMINATION_DELAY: Final = "4h0m0s"
GRACE_PERIOD: Final = 30


def podcliqueset(obj: Object, ctx: Context) -> None:
    """Completes the object in place."""
    if not isinstance(obj.get("spec"), dict) or not isinstance(obj["spec"].get("template"), dict):
        return
    template = obj["spec"]["template"]
    _absent(template, "headlessServiceConfig", {})
    defaults.apply(SET_SPEC, obj["spec"], ctx)
    delay = template.get("terminationDelay")
    template["terminationDelay"] = duration.canonical(delay) if isinstance(delay, str) else TERMINATION_DELAY
    for _, clique in parts.cliques(obj):
        if isinstance(clique.get("spec"), dict):
            _clique(clique["spec"])
    for _, group in parts.scaling_groups(obj):
        if isinstance(group.get("scaleConfig"), dict):
            _absent(group["scaleConfig"], "minReplicas", group.get("replicas"))


def _clique(spec: dict[str, Any]) -> None:
    # Upstream takes the two minimums from the replicas as written, and only then turns 0 replicas into 1.
    written = spec.get("replicas") or 0
    _absent(spec, "roleName", "")
    _absent(spec, "minAvailable", written)
    if isinstance(spec.get("autoScalingConfig"), dict):
        _absent(spec["autoScalingConfig"], "minReplicas", written)
    spec["replicas"] = written or 1
    if isinstance(spec.get("podSpec"), dict):
        _pod(spec["podSpec"])


def _pod(spec: dict[str, Any]) -> None:
    _absent(spec, "restartPolicy", "Always")
    _absent(spec, "terminationGracePeriodSeconds", GRACE_PERIOD)
    for member in ("initContainers", "containers"):
        for container in spec.get(member) or []:
            _absent(container, "resources", {})


def _absent(value: dict[str, Any], name: str, default: Any) -> None:
    if value.get(name) is None:
        value[name] = default
