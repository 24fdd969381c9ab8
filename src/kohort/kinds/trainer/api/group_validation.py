"""What the groups of a runtime must keep (spec trainjob 3.3, 3.4, 3.7, 3.8, 3.9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, at, forbidden, invalid, too_many
from kohort.api.kind import Context, Object
from kohort.kinds.trainer.api.constants import GATE, pod_spec, replicated_jobs, spec_of
from kohort.kinds.trainer.api.groups import Branch, Grouping, Leaf, leaves_of, policy_path, resolve
from kohort.kinds.trainer.api.sequence import are_linked, waits_for_completion

MAX_WIDTH: Final = 8  # entries of one template list
_JOBS: Final = "spec.template.spec.replicatedJobs"
_POD: Final = "template.spec.template.spec"
_JOBSET_FRONT_ENDS: Final = ("scheduling", "gangConfig", "podGroupPolicies")


def check_gates(runtime: Object, ctx: Context) -> list[FieldError]:
    """A runtime with groups is only taken where somebody will make them (scenarios 9 and 79)."""
    return [
        forbidden(policy_path(runtime), f"needs gate {gate}, which is off")
        for gate in (GATE, "GenericWorkload")
        if not ctx.on(gate)
    ]


def check_groups(runtime: Object, ctx: Context) -> tuple[Grouping, list[FieldError]]:
    """The groups of a runtime, and everything that stands against them."""
    grouping = resolve(runtime, ctx)
    errors = [*grouping.errors, *_alone(runtime), *_wired(runtime)]
    errors += _width(grouping.roots, policy_path(runtime))
    for leaf in grouping.leaves:
        errors += _leaf(runtime, leaf, ctx)
    for root in grouping.roots:
        if isinstance(root, Branch):
            errors += _tree(runtime, root, ctx)
    return grouping, errors


def _alone(runtime: Object) -> Iterator[FieldError]:
    spec = spec_of(runtime)
    if spec.get("scheduling") is not None and spec.get("podGroupPolicy"):
        found = ", ".join(spec["podGroupPolicy"])
        yield forbidden("spec.scheduling", f"not together with podGroupPolicy ({found})")


def _wired(runtime: Object) -> Iterator[FieldError]:
    """Nobody else may have decided about groups (3.7)."""
    template = (spec_of(runtime).get("template") or {}).get("spec") or {}
    detail = f"not together with {policy_path(runtime)}: the TrainJob makes the groups"
    for name in _JOBSET_FRONT_ENDS:
        if template.get(name) is not None:
            yield forbidden(f"spec.template.spec.{name}", detail)
    for index, job in enumerate(replicated_jobs(runtime)):
        if job.get("gangConfig") is not None:
            yield forbidden(f"{_JOBS}[{index}].gangConfig", detail)
        if ((job.get("template") or {}).get("spec") or {}).get("scheduling") is not None:
            yield forbidden(f"{_JOBS}[{index}].template.spec.scheduling", detail)
        for name in ("schedulingGroup", "workloadRef"):
            if pod_spec(job).get(name) is not None:
                yield forbidden(f"{_JOBS}[{index}].{_POD}.{name}", detail)


def _width(nodes: tuple[Leaf | Branch, ...], path: str) -> Iterator[FieldError]:
    for sort in (Leaf, Branch):
        count = sum(isinstance(node, sort) for node in nodes)
        if count > MAX_WIDTH:
            yield too_many(path, count, MAX_WIDTH)
    for node in nodes:
        if isinstance(node, Branch):
            yield from _width(node.children, node.path)


# ---- one group


def is_gang(block: Any) -> bool:
    return block["schedulingPolicy"].get("gang") is not None


def _leaf(runtime: Object, leaf: Leaf, ctx: Context) -> Iterator[FieldError]:
    jobs = replicated_jobs(runtime)
    if is_gang(leaf.block):
        for index, other in waits_for_completion(runtime, leaf.members):
            yield forbidden(
                f"{_JOBS}[{index}].dependsOn",
                f'waits for "{other}" to complete, which is in the same gang; put them into different groups',
            )
    yield from _agree(runtime, leaf.members, "priorityClassName", "of one group share one priority class")
    yield from _agree(runtime, leaf.members, "schedulerName", "of one group share one scheduler", "default-scheduler")
    yield from _gated(leaf, ctx)
    for number, claim in enumerate(leaf.block.get("resourceClaims") or []):
        if not any(_has_claim(pod_spec(jobs[index]), claim) for index in leaf.members):
            where = f"{leaf.path}.resourceClaims[{number}]"
            yield invalid(where, claim.get("name"), "no pod of the group lists the same claim in its resourceClaims")


def _agree(
    runtime: Object, members: tuple[int, ...], member: str, words: str, default: str = ""
) -> Iterator[FieldError]:
    """All pods of the members have the same value; the first that differs is reported."""
    jobs = replicated_jobs(runtime)
    value: Callable[[int], str] = lambda index: pod_spec(jobs[index]).get(member) or default  # noqa: E731
    for index in members[1:]:
        if value(index) != value(members[0]):
            first = jobs[members[0]].get("name")
            there = f'"{value(members[0])}"' if value(members[0]) else "none"
            yield invalid(f"{_JOBS}[{index}].{_POD}.{member}", value(index), f'pods {words}; "{first}" has {there}')
            return


def _gated(node: Leaf | Branch, ctx: Context) -> Iterator[FieldError]:
    """Fields that the server would drop or refuse. What a whole release lacks is the renderer's to say."""
    if not ctx.release.has_pod_groups:
        return
    for name, gate in (
        ("schedulingConstraints", "TopologyAwareWorkloadScheduling"),
        ("resourceClaims", "DRAWorkloadResourceClaims"),
    ):
        if node.block.get(name) and not ctx.on(gate):
            yield forbidden(at(node.path, name), f"needs feature gate {gate}, which is off")


def _has_claim(pod: dict[str, Any], claim: dict[str, Any]) -> bool:
    wanted = _pair(claim)
    return any(_pair(found) == wanted for found in pod.get("resourceClaims") or [])


def _pair(claim: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(claim.get(name) for name in ("name", "resourceClaimName", "resourceClaimTemplateName"))


# ---- groups of groups


def _tree(runtime: Object, root: Branch, ctx: Context) -> Iterator[FieldError]:
    members = tuple(index for leaf in leaves_of((root,)) for index in leaf.members)
    yield from _agree(runtime, members, "priorityClassName", "of one tree share one priority class")
    yield from _agree(runtime, members, "schedulerName", "of one tree share one scheduler", "default-scheduler")
    yield from _branch(runtime, root, ctx)


def _branch(runtime: Object, branch: Branch, ctx: Context) -> Iterator[FieldError]:
    yield from _gated(branch, ctx)
    if is_gang(branch.block) and _has_order(runtime, branch):
        yield forbidden(
            at(branch.path, "schedulingPolicy"),
            "a gang over stages that wait for each other never starts; use basic: {}",
        )
    if (branch.block.get("disruptionMode") or {}).get("all") is not None:
        for child in branch.children:
            if (child.block.get("disruptionMode") or {}).get("single") is not None:
                yield forbidden(at(child.path, "disruptionMode"), "must be all, as the level above says so")
    for child in branch.children:
        if isinstance(child, Branch):
            yield from _branch(runtime, child, ctx)


def _has_order(runtime: Object, branch: Branch) -> bool:
    sets = [[index for leaf in leaves_of((child,)) for index in leaf.members] for child in branch.children]
    return any(are_linked(runtime, one, other) for place, one in enumerate(sets) for other in sets[place + 1 :])
