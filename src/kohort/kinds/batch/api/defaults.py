"""What an API server fills into a Job."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.core.pod_defaults import default_pod_template
from kohort.api.kind import Context, Object

_UNLIMITED: Final = 2**31 - 1


def default(job: Object, _ctx: Context) -> None:
    """Complete a Job in place. What follows from its uid, `selector.generate` adds once a server has given one."""
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(spec, "parallelism", 1)
    fill(spec, "completionMode", "NonIndexed")
    fill(spec, "suspend", False)
    fill(spec, "manualSelector", False)
    fill(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _UNLIMITED)
    fill(spec, "podReplacementPolicy", "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed")
    default_template(spec)
    _labels(job)


def default_template(spec: dict[str, Any]) -> None:
    """The parts that a CronJob's template gets, too."""
    default_pod_template(spec.get("template"))
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or []:
        for pattern in rule.get("onPodConditions") or []:
            fill(pattern, "status", "True")


def fill(block: dict[str, Any], name: str, value: Any) -> None:
    if block.get(name) is None:
        block[name] = value


def _labels(job: Object) -> None:
    """A Job without labels takes those of its pods."""
    template = (job["spec"].get("template") or {}).get("metadata") or {}
    meta = job.setdefault("metadata", {})
    if template.get("labels") and not meta.get("labels"):
        meta["labels"] = dict(template["labels"])
