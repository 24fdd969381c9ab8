"""What the defaulting webhook fills in when a JobSet is created (spec jobset 1.1, 1.2, 1.4).

Members with a plain default have it in the schema; here stand those that depend on their surroundings. Nothing of the
gang configuration is ever written back (4.3).
"""

from __future__ import annotations

from typing import Any

from kohort.api.kind import Context, Object


def default(obj: Object, _: Context) -> None:
    """Complete a JobSet in place. Parts of a wrong shape are left alone."""
    spec = _member(obj, "spec")
    if spec is None:
        return
    # An absent policy is filled, one without its operator or order is not: it is refused.
    for policy, content in (
        ("successPolicy", {"operator": "All"}),
        ("startupPolicy", {"startupPolicyOrder": "AnyOrder"}),
    ):
        if spec.get(policy) is None:
            spec[policy] = content
    network = _member(spec, "network")
    if network is not None:
        for switch in ("enableDNSHostnames", "publishNotReadyAddresses"):
            if network.get(switch) is None:
                network[switch] = True
    for job in _items(spec.get("replicatedJobs")):
        _replicated_job(job)
    for index, rule in enumerate(_items((spec.get("failurePolicy") or {}).get("rules"))):
        if not rule.get("name"):
            rule["name"] = f"failurePolicyRule{index}"


def _replicated_job(job: Object) -> None:
    template = job.get("template")
    if not isinstance(template, dict):
        return
    job_spec = _member(template, "spec")
    pod_template = _member(job_spec, "template") if job_spec is not None else None
    if job_spec is None or pod_template is None:
        return
    if job_spec.get("completionMode") is None:
        job_spec["completionMode"] = "Indexed"
    pod = _member(pod_template, "spec")
    if pod is not None and not pod.get("restartPolicy"):
        pod["restartPolicy"] = "OnFailure"


def _member(parent: Object, name: str) -> Object | None:
    """The object under a name, made where it is absent; None where something else stands there."""
    if parent.get(name) is None:
        parent[name] = {}
    found = parent[name]
    return found if isinstance(found, dict) else None


def _items(value: Any) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
