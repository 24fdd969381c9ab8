"""The Jobs that a ReplicatedJob becomes, as far as an API server would validate them.

JobSet admits templates that no server takes as Jobs, and then fails for ever to create them (spec jobset 1.2).
"""

from __future__ import annotations

from kohort.api import admit
from kohort.api.copying import copied
from kohort.api.errors import FieldError
from kohort.api.kind import Context, Object
from kohort.api.objects import meta_of
from kohort.kinds.jobset.api import constants
from kohort.kinds.jobset.api.reading import ReplicatedJob, entries, future_name, job_name, spec_of, subdomain_of
from kohort.kinds.jobset.api.volumes import claim_name, mounts


def last_job(obj: Object, job: ReplicatedJob) -> Object:
    """The Job with the highest index: its names are the longest."""
    meta, spec = copied(job.job_meta), copied(job.job)
    name = job_name(future_name(obj), job.name, job.replicas - 1)
    meta |= {"name": name, "namespace": meta_of(obj).get("namespace") or "default"}
    meta["labels"] = {**(meta.get("labels") or {}), constants.REPLICATED_JOB_NAME: job.name}
    pod = (spec.get("template") or {}).get("spec") or {}
    if (spec_of(obj).get("network") or {}).get("enableDNSHostnames", True):
        pod["subdomain"] = subdomain_of(obj)
    volumes = [_volume(obj, claim) for claim in _claims(obj) if mounts(job, claim)]
    if volumes:
        pod["volumes"] = [*entries(pod.get("volumes")), *volumes]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def _claims(obj: Object) -> list[str]:
    policies = entries(spec_of(obj).get("volumeClaimPolicies"))
    return [str(meta_of(found).get("name")) for policy in policies for found in entries(policy.get("templates"))]


def _volume(obj: Object, claim: str) -> Object:
    return {"name": claim, "persistentVolumeClaim": {"claimName": claim_name(obj, claim)}}


def refusals(obj: Object, job: ReplicatedJob, ctx: Context) -> list[FieldError]:
    """Why a server would refuse its Jobs; paths are those in the JobSet."""
    if not job.replicas:
        return []
    wrong = [error for error in admit.check(last_job(obj, job), ctx) if error.field.startswith("spec.")]
    return [_rerooted(error, f"{job.path}.template.{error.field}") for error in wrong]


def _rerooted(error: FieldError, field: str) -> FieldError:
    return FieldError(error.kind, field, error.detail, error.value)
