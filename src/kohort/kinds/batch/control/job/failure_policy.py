"""podFailurePolicy: what the failure of a pod means (spec job 6). The first rule that matches decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import name_of


@dataclass(frozen=True, slots=True)
class Meaning:
    """`message`: the whole Job fails, and why; `counts`: against the limits; `action`: of the rule, if one matched."""

    message: str = ""
    counts: bool = True
    action: str = ""


_COUNTED = Meaning()


def meaning(job: Object, pod: Object) -> Meaning:
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for number, rule in enumerate(rules):
        why = _match(rule, pod)
        if why:
            action = str(rule.get("action"))
            message = f"{why} matching FailJob rule at index {number}" if action == "FailJob" else ""
            return Meaning(message, counts=action != "Ignore", action=action)
    return _COUNTED


def _match(rule: Mapping[str, Any], pod: Object) -> str:
    """How the pod matches, in words; empty if it does not."""
    name = f"{pod['metadata'].get('namespace') or 'default'}/{name_of(pod)}"
    if rule.get("onExitCodes") is not None:
        found = _by_exit_code(rule["onExitCodes"], pod.get("status") or {})
        return f"Container {found[0]} for pod {name} failed with exit code {found[1]}" if found else ""
    for pattern in rule.get("onPodConditions") or ():
        wanted = (pattern.get("type"), pattern.get("status") or "True")
        if any((one.get("type"), one.get("status")) == wanted for one in _conditions(pod)):
            return f"Pod {name} has condition {wanted[0]}"
    return ""


def _conditions(pod: Object) -> Iterable[Mapping[str, Any]]:
    return (pod.get("status") or {}).get("conditions") or ()


def _by_exit_code(wanted: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[str, int] | None:
    """Only containers that ended, and not well; containers before init containers."""
    for member in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(member) or ():
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
            if code and wanted.get("containerName") in (None, container.get("name")) and _in(wanted, code):
                return str(container.get("name")), int(code)
    return None


def _in(wanted: Mapping[str, Any], code: int) -> bool:
    listed = code in (wanted.get("values") or ())
    return listed if wanted.get("operator") == "In" else not listed
