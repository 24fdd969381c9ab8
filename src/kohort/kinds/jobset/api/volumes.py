"""Rules of spec.volumeClaimPolicies (spec jobset 1.1). Field paths say `template[i]`, as upstream's do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kohort.api import formats
from kohort.api.errors import FieldError, forbidden, invalid, required
from kohort.api.kind import Object
from kohort.api.objects import meta_of
from kohort.kinds.jobset.api.reading import ReplicatedJob, entries, future_name, replicated_jobs, spec_of


def check(obj: Object) -> Iterator[FieldError]:
    jobs = replicated_jobs(obj)
    seen: set[str] = set()
    for number, policy in enumerate(entries(spec_of(obj).get("volumeClaimPolicies"))):
        path = f"spec.volumeClaimPolicies[{number}]"
        if policy.get("templates") is None:
            yield required(path, "templates (the list may be empty)")
        if any(meta_of(template).get("namespace") for template in entries(policy.get("templates"))):
            yield forbidden(path, "claim templates have no namespace: claims are made beside the JobSet")
        for index, template in enumerate(entries(policy.get("templates"))):
            claim = meta_of(template).get("name") or ""
            yield from _claim(obj, jobs, claim, seen, f"{path}.template[{index}].name")
            seen.add(claim)


def claim_name(obj: Object, claim: str) -> str:
    return f"{claim}-{future_name(obj)}"


def claim_names(obj: Object) -> list[str]:
    """Of all claims that a JobSet has."""
    policies = entries(spec_of(obj).get("volumeClaimPolicies"))
    templates = [template for policy in policies for template in entries(policy.get("templates"))]
    return [claim_name(obj, str(meta_of(template).get("name") or "")) for template in templates]


def against_existing(obj: Object, claims: Iterable[Object]) -> Iterator[FieldError]:
    """What PersistentVolumeClaims that are already in the namespace forbid: a server's question, not a manifest's.

    The template is compared with the stored spec, what the server filled in included.
    """
    stored = {meta_of(claim).get("name"): claim for claim in claims}
    for number, policy in enumerate(entries(spec_of(obj).get("volumeClaimPolicies"))):
        path = f"spec.volumeClaimPolicies[{number}]"
        for index, template in enumerate(entries(policy.get("templates"))):
            name = claim_name(obj, meta_of(template).get("name") or "")
            if name not in stored:
                continue
            if template.get("spec") != stored[name].get("spec"):
                detail = f"is not the spec of the claim {name}, which exists"
                yield invalid(f"{path}.template[{index}].spec", template.get("spec"), detail)
            kept = (policy.get("retentionPolicy") or {}).get("whenDeleted")
            if kept != "Retain":
                detail = f"must be Retain: the claim {name} exists, deleting it is not for this JobSet"
                yield invalid(f"{path}.retentionPolicy.whenDeleted", kept, detail)


def _claim(obj: Object, jobs: tuple[ReplicatedJob, ...], claim: str, seen: set[str], path: str) -> Iterator[FieldError]:
    problem = formats.subdomain(claim)
    if problem:
        yield invalid(path, claim, problem)
    elif claim in seen:
        yield invalid(path, claim, "claim names must be unique over all policies")
    elif len(claim_name(obj, claim)) > 63:
        yield invalid(path, claim, f"the claim's name {claim_name(obj, claim)} is longer than 63 characters")
    if not any(mounts(job, claim) for job in jobs):
        yield invalid("spec.replicatedJobs", claim, "no container mounts the volume of this claim")
    for job in jobs:
        for index, volume in enumerate(entries(job.pod.get("volumes"))):
            if claim and volume.get("name") == claim:
                yield invalid(f"{job.pod_path}.volumes[{index}].name", claim, "is the name of a volume claim template")


def mounts(job: ReplicatedJob, claim: str) -> bool:
    containers = [*entries(job.pod.get("containers")), *entries(job.pod.get("initContainers"))]
    return any(mount.get("name") == claim for found in containers for mount in entries(found.get("volumeMounts")))
