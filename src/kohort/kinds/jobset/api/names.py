"""Names of what a JobSet makes: computed by validation, the compiler and the controllers alike."""

from __future__ import annotations


def job_name(jobset: str, replicated_job: str, index: int) -> str:
    return f"{jobset}-{replicated_job}-{index}"


def pod_name(jobset: str, replicated_job: str, index: int, pod: int) -> str:
    """A pod of an Indexed Job, without its random end: also its hostname."""
    return f"{job_name(jobset, replicated_job, index)}-{pod}"


def coordinator_endpoint(jobset: str, coordinator: dict[str, object], subdomain: str) -> str:
    job, pod = coordinator.get("jobIndex") or 0, coordinator.get("podIndex") or 0
    return f"{jobset}-{coordinator.get('replicatedJob') or ''}-{job}-{pod}.{subdomain}"
