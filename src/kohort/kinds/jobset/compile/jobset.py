"""JobSet to plan: one Workload, however many gangs (spec jobset 3 and 4).

What is asked for comes from `api.gangs`, in the same form for all three front ends. Here it gets counts,
names and objects. Names hold neither uid nor restart attempt: the pod templates of child Jobs are frozen when the Jobs
are made, so a group must be called the same before, during and after any restart (3.4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kohort.api.errors import FieldError, forbidden, invalid, required
from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.api.releases import Gate
from kohort.gang.compile import Compilation, CompileContext
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import MAX_WIDTH, Controller, Member, Owner, Plan
from kohort.kinds.jobset.api import constants
from kohort.kinds.jobset.api.gang_validation import is_external
from kohort.kinds.jobset.api.gangs import GangRequest, active, gangs, option_on, without_empty
from kohort.kinds.jobset.api.reading import is_managed_elsewhere, is_suspended, job_name, replicated_jobs
from kohort.kinds.jobset.compile.groups import Namer, Tree
from kohort.kinds.jobset.settings import JobSetSettings

# Of a JobSet with gangs: replicas may be 2^31-1, and a plan lists every Job at every reconcile.
MAX_JOBS: Final = 20_000


def compile_object(obj: Object, ctx: CompileContext) -> Compilation:
    nothing = _nothing(obj, ctx)
    if nothing:
        return Compilation(reason=nothing)
    asked = without_empty(gangs(obj).requests)
    if not asked:
        return Compilation(reason="no group has pods: every gang is over ReplicatedJobs without pods")
    errors = _impossible(obj, asked, ctx)
    if errors:
        return Compilation(errors=tuple(errors))
    requests, warnings = _rendering(asked, ctx)
    if is_suspended(obj):
        warnings.append("spec.suspend: the objects are made when the JobSet is resumed")
    return Compilation(plans=(_plan(obj, requests),), warnings=tuple(warnings))


def _nothing(obj: Object, ctx: CompileContext) -> str:
    """Why there is nothing to make, if so."""
    if not active(obj):
        return "no gang is asked for (gangConfig, podGroupPolicies, scheduling)"
    if not option_on(ctx, "GangScheduling"):
        return "the option GangScheduling is off"
    if is_managed_elsewhere(obj):
        return f"another controller manages it: {obj['spec']['managedBy']}"
    if is_external(obj):
        return "every pod template names a group of its own: the user provides Workload and groups"
    return ""


def _impossible(obj: Object, requests: tuple[GangRequest, ...], ctx: CompileContext) -> list[FieldError]:
    errors: list[FieldError] = []
    if not (obj.get("metadata") or {}).get("name"):
        errors.append(
            required("metadata.name", "names of groups are made of it; generateName is known to a server only")
        )
    total = 0
    for job in replicated_jobs(obj):
        total += job.replicas
        if total > MAX_JOBS:
            errors.append(invalid(f"{job.path}.replicas", job.replicas, f"a plan has at most {MAX_JOBS} Jobs"))
            break
    if any(request.children for request in requests) and ctx.release.has_composites and not ctx.on(Gate.COMPOSITE):
        errors.append(
            forbidden("spec.scheduling", f"a gang of gangs needs the feature gate {Gate.COMPOSITE}, which is off")
        )
    return errors


def _rendering(requests: tuple[GangRequest, ...], ctx: CompileContext) -> tuple[tuple[GangRequest, ...], list[str]]:
    """Flat, unless the operator wants a JobSet gang as a tree. Both let the same pods start (3.5)."""
    request = requests[0]
    if (
        ctx.settings.of(JobSetSettings).gang_rendering != "Composite"
        or request.name
        or request.children
        or not request.gang
    ):
        return requests, []
    leaves = without_empty(tuple(replace(request, name=job.name, jobs=(job,), block={}) for job in request.jobs))
    obstacle = _obstacle(request, leaves, ctx)
    if obstacle:
        return requests, [f"{request.path}: one flat group instead of a tree: {obstacle}"]
    return (replace(request, children=leaves),), []


def _obstacle(request: GangRequest, leaves: tuple[GangRequest, ...], ctx: CompileContext) -> str:
    if not ctx.release.has_composites:
        return f"Kubernetes {ctx.release.minor} has no CompositePodGroup"
    if not ctx.on(Gate.COMPOSITE):
        return f"the feature gate {Gate.COMPOSITE} is off"
    if request.explicit is not None:
        return "minCount counts pods of the whole JobSet"
    if len(leaves) > MAX_WIDTH:
        return f"a branch has at most {MAX_WIDTH} leaves, not {len(leaves)}"
    return ""


def _plan(obj: Object, requests: tuple[GangRequest, ...]) -> Plan:
    name, uid = obj["metadata"]["name"], uid_of(obj)
    labels = {constants.JOBSET_NAME: name, constants.JOBSET_UID: uid}
    owner = Owner(
        api_version=constants.API_VERSION, kind=constants.KIND, name=name, uid=uid, controller=True, block_deletion=True
    )
    tree = Tree(Namer(name), labels, (owner,))
    templates = tuple(tree.build(request) for request in requests)
    return Plan(
        workload=f"w-{name}",
        namespace=namespace_or_default(obj),
        controller=Controller(api_group=constants.GROUP, kind=constants.KIND, name=name),
        templates=templates,
        groups=tree.groups,
        members=_members(obj, tree),
        owners=(owner,),
        labels=labels,
    )


def _members(obj: Object, tree: Tree) -> tuple[Member, ...]:
    """The pods of every child Job, grouped or not."""
    jobset = obj["metadata"]["name"]
    found: list[Member] = []
    for job in replicated_jobs(obj):
        path = ("spec", "replicatedJobs", job.index, "template", "spec", "template")
        pods = job.pods_per_job
        for index in range(job.replicas):
            name = job_name(jobset, job.name, index)
            group = tree.group_of(job.index, index)
            found.append(Member(source=f"Job {name}", count=pods, group=group, path=path, job=name))
    return tuple(found)
