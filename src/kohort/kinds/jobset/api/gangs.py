"""What gangs a JobSet asks for: three front ends, read into one form (spec jobset 3.2 to 3.4).

Rules and the compiler both start from here, so that what is refused and what is built cannot drift apart. A request
says which pods belong together and under which name; counts follow from the ReplicatedJobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kohort.api.kind import Context, Object
from kohort.kinds.jobset.api.reading import ReplicatedJob, entries, in_order, replicated_jobs, spec_of

OFF, GANG, REPLICATED_GANG = "Off", "Gang", "ReplicatedGang"
TOP_LEVEL: Final = ("schedulingPolicy", "schedulingConstraints", "disruptionMode")
LEAF_LEVEL: Final = (*TOP_LEVEL, "resourceClaims")


def option_on(ctx: Context, name: str) -> bool:
    """Whether an option of ours is on. Not `ctx.on`: until 1.36 Kubernetes has a gate GangScheduling of its own."""
    return name in ctx.options


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRequest:
    """One group, or one for each Job of a ReplicatedJob, or a branch over further requests.

    `name`: of the ReplicatedJob or policy from which object names are made; empty for the whole JobSet.
    `gang` False: basic. `explicit`: a minimum that the user wrote. `block`: topology, disruption and claims.
    """

    name: str
    path: str
    jobs: tuple[ReplicatedJob, ...]
    each_job: bool = False
    gang: bool = True
    explicit: int | None = None
    block: Mapping[str, Any] = field(default_factory=dict)
    children: tuple[GangRequest, ...] = ()

    @property
    def pods(self) -> int:
        """How many pods one group of this request has: what its minimum is unless the user says less."""
        if self.each_job:
            return self.jobs[0].pods_per_job if self.jobs[0].replicas else 0
        return sum(job.pods for job in self.jobs)

    @property
    def minimum(self) -> int | None:
        """Of a leaf."""
        if not self.gang:
            return None
        return self.pods if self.explicit is None else self.explicit

    def leaves(self) -> Iterator[GangRequest]:
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True, slots=True)
class Gangs:
    """All requests of a JobSet. `split`: paths of those that sequenced startup broke into one per ReplicatedJob."""

    requests: tuple[GangRequest, ...] = ()
    split: tuple[str, ...] = ()

    @property
    def leaves(self) -> tuple[GangRequest, ...]:
        return tuple(leaf for request in self.requests for leaf in request.leaves())

    @property
    def jobs(self) -> tuple[ReplicatedJob, ...]:
        """The ReplicatedJobs whose pods are grouped, in their order."""
        found = {job.index: job for leaf in self.leaves for job in leaf.jobs}
        return tuple(found[index] for index in sorted(found))


def mode(raw: Object) -> str:
    """gangMode of a spec or a ReplicatedJob; absent means Off."""
    return str((raw.get("gangConfig") or {}).get("gangMode") or OFF)


def present(obj: Object) -> list[str]:
    """The places where a front end is written at all, even one that says Off."""
    spec = spec_of(obj)
    found = [f"spec.{name}" for name in ("gangConfig", "scheduling") if spec.get(name) is not None]
    found += ["spec.podGroupPolicies"] if spec.get("podGroupPolicies") else []
    return found + [f"{job.path}.gangConfig" for job in replicated_jobs(obj) if job.raw.get("gangConfig") is not None]


def active(obj: Object) -> list[str]:
    """The front ends that ask for something."""
    spec, found = spec_of(obj), []
    if mode(spec) != OFF or any(mode(job.raw) != OFF for job in replicated_jobs(obj)):
        found.append("gangConfig")
    if spec.get("podGroupPolicies"):
        found.append("podGroupPolicies")
    if spec.get("scheduling") is not None:
        found.append("scheduling")
    return found


def gangs(obj: Object) -> Gangs:
    """What the (first) active front end asks for."""
    front_ends = active(obj)
    if not front_ends:
        return Gangs()
    return _READERS[front_ends[0]](obj)


def without_empty(requests: tuple[GangRequest, ...]) -> tuple[GangRequest, ...]:
    """Groups that have pods: a minimum is at least 1, so the others are not made (spec jobset 3.3)."""
    kept: list[GangRequest] = []
    for request in requests:
        children = without_empty(request.children)
        if children if request.children else request.pods:
            kept.append(replace(request, children=children) if request.children else request)
    return tuple(kept)


# ---- gangConfig


def _gang_config(obj: Object) -> Gangs:
    jobs = replicated_jobs(obj)
    if mode(spec_of(obj)) != OFF:
        return Gangs((GangRequest(name="", path="spec.gangConfig", jobs=jobs),) if jobs else ())
    return Gangs(
        tuple(
            GangRequest(
                name=job.name, path=f"{job.path}.gangConfig", jobs=(job,), each_job=mode(job.raw) == REPLICATED_GANG
            )
            for job in jobs
            if mode(job.raw) != OFF
        )
    )


# ---- podGroupPolicies


def _policies(obj: Object) -> Gangs:
    return Gangs(policy_requests(obj))


def policy_requests(obj: Object) -> tuple[GangRequest, ...]:
    jobs = replicated_jobs(obj)
    requests: list[GangRequest] = []
    for index, policy in enumerate(entries(spec_of(obj).get("podGroupPolicies"))):
        path, wanted = f"spec.podGroupPolicies[{index}]", policy.get("targetReplicatedJobs") or ()
        targets = tuple(job for job in jobs if not wanted or job.name in wanted)
        if policy.get("mode") == REPLICATED_GANG:
            requests += [GangRequest(name=job.name, path=path, jobs=(job,), each_job=True) for job in targets]
        elif targets:
            requests.append(GangRequest(name=str(policy.get("name") or ""), path=path, jobs=targets))
    return tuple(requests)


# ---- scheduling (KEP-969)


def _scheduling(obj: Object) -> Gangs:
    top, jobs = spec_of(obj)["scheduling"], replicated_jobs(obj)
    listed = entries(top.get("replicatedJobs"))
    if not jobs:
        return Gangs()
    root = _request("", "spec.scheduling", jobs, top, names=TOP_LEVEL)
    if not listed:
        return _unsequenced(obj, (root,))
    targeted: set[int] = set()
    children: list[GangRequest] = []
    for index, entry in enumerate(listed):
        found = tuple(job for job in jobs if job.name in (entry.get("targetReplicatedJobs") or ()))
        targeted |= {job.index for job in found}
        children += _entry(entry, found, f"spec.scheduling.replicatedJobs[{index}]")
    if not has_top_level(top):
        return _unsequenced(obj, tuple(children))
    # Whom no entry names is a group of its own beneath the JobSet, of the JobSet's sort (example G's driver).
    children += [
        GangRequest(name=job.name, path="spec.scheduling", jobs=(job,), gang=root.gang)
        for job in jobs
        if job.index not in targeted
    ]
    children.sort(key=lambda request: request.jobs[0].index)
    below = _unsequenced(obj, tuple(children))
    if root.gang and is_sequenced(obj, jobs):
        return Gangs(tuple(_inherit(request, root.block) for request in below.requests), (root.path, *below.split))
    branches = tuple(_under_root(request) for request in below.requests)
    return Gangs((replace(root, explicit=None, children=branches),), below.split)


def has_top_level(scheduling: Object) -> bool:
    return any(scheduling.get(name) is not None for name in TOP_LEVEL)


def _request(
    name: str, path: str, jobs: tuple[ReplicatedJob, ...], raw: Object, *, names: tuple[str, ...] = LEAF_LEVEL
) -> GangRequest:
    policy = raw.get("schedulingPolicy") or {}
    return GangRequest(
        name=name,
        path=path,
        jobs=jobs,
        gang=policy.get("basic") is None,
        explicit=(policy.get("gang") or {}).get("minCount"),
        block={member: raw[member] for member in names if raw.get(member) is not None},
    )


def _entry(entry: Object, jobs: tuple[ReplicatedJob, ...], path: str) -> list[GangRequest]:
    """An entry over several ReplicatedJobs is called like its first: each is in one entry only, so that is unique."""
    if not jobs:
        return []
    if entry.get("job") is not None:
        return [replace(_request(job.name, f"{path}.job", (job,), entry["job"]), each_job=True) for job in jobs]
    return [_request(jobs[0].name, path, jobs, entry)]


def _under_root(request: GangRequest) -> GangRequest:
    """Groups for each Job hang beneath a branch for their ReplicatedJob."""
    if not request.each_job:
        return request
    return GangRequest(name=request.name, path=request.path, jobs=request.jobs, children=(request,))


def _inherit(request: GangRequest, block: Mapping[str, Any]) -> GangRequest:
    """What the JobSet says holds where the ReplicatedJob says nothing of its own."""
    inherited = {name: value for name, value in block.items() if name != "schedulingPolicy"}
    return replace(request, block={**inherited, **request.block})


def _unsequenced(obj: Object, requests: tuple[GangRequest, ...]) -> Gangs:
    """One gang for each ReplicatedJob where those of a gang start one after the other (KEP-969's fallback)."""
    done: list[GangRequest] = []
    split: list[str] = []
    for request in requests:
        if request.gang and request.explicit is None and is_sequenced(obj, request.jobs):
            split.append(request.path)
            done += [replace(request, name=job.name, jobs=(job,)) for job in request.jobs]
        else:
            done.append(request)
    return Gangs(tuple(done), tuple(split))


_READERS: Final = {"gangConfig": _gang_config, "podGroupPolicies": _policies, "scheduling": _scheduling}

# ---- sequenced startup


def is_sequenced(obj: Object, members: tuple[ReplicatedJob, ...]) -> bool:
    """Whether some of these ReplicatedJobs start only after others of them (V5): pods of a gang would wait for ever."""
    if len(members) < 2:
        return False
    if in_order(obj):
        return True
    names = {job.name for job in members}
    waits = {job.name: job.depends_on for job in replicated_jobs(obj)}
    return any(names & _reached(job.name, waits) for job in members)


def _reached(name: str, waits: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Everything that must start before, over any number of steps."""
    seen: set[str] = set()
    ahead = list(waits.get(name, ()))
    while ahead:
        step = ahead.pop()
        if step not in seen:
            seen.add(step)
            ahead += waits.get(step, ())
    return seen - {name}
