"""A JobSet's gangs: Workload, then branches, then PodGroups, before any Job runs (spec jobset 4.4, 4.5)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kohort.api.jobset.reading import is_suspended
from kohort.api.kind import Object
from kohort.controllers.jobset.children import namespace_of
from kohort.controllers.script import Answer, Step, SyncError, Told, Write, one, tell
from kohort.gang.compile import CompileContext
from kohort.gang.compile.jobset import compile_object
from kohort.gang.render import pod_links, render
from kohort.gang.tree import Plan

KINDS = ("Workload", "CompositePodGroup", "PodGroup")
Part = Generator[Step, Sequence[Answer], Any]


@dataclass(frozen=True, slots=True)
class Gangs:
    """`links`: by name of a Job, the member of its pods' spec that names their group; `wait`: not yet."""

    links: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    wait: str = ""


def links_of(jobset: Object, ctx: CompileContext) -> tuple[Plan | None, dict[str, Mapping[str, Any]]]:
    done = compile_object(jobset, ctx)
    if done.errors:
        raise SyncError("; ".join(map(str, done.errors)))
    if not done.plans:
        return None, {}
    plan = done.plans[0]
    links = pod_links(plan, ctx.generation)
    named = {member.source.removeprefix("Job "): member.group for member in plan.members}
    return plan, {job: links[group] for job, group in named.items() if group is not None}


def ensure(jobset: Object, known: Sequence[Object], ctx: CompileContext) -> Part:
    """-> Gangs. While suspended no group is made, but Jobs name theirs already."""
    plan, links = links_of(jobset, ctx)
    if plan is None or is_suspended(jobset):
        return Gangs(links)
    for wanted in render(plan, ctx.generation).objects:
        stored = _find(known, wanted)
        if stored is None:
            yield from _make(jobset, wanted)
            continue
        problem = _unusable(jobset, stored)
        if problem:
            if "controlled" in problem:
                yield from tell(Told(jobset, "Warning", "GangNameConflict", problem))
            return Gangs(links, wait=problem)
        yield from _resize(jobset, wanted, stored, ctx)
    return Gangs(links)


def _find(known: Sequence[Object], wanted: Object) -> Object | None:
    name = (wanted["kind"], wanted["metadata"]["name"])
    return next((obj for obj in known if (obj.get("kind"), obj["metadata"]["name"]) == name), None)


def is_of(obj: Object, jobset: Object) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one.get("uid") == jobset["metadata"].get("uid") for one in owners)


def _unusable(jobset: Object, stored: Object) -> str:
    named = f"{stored['kind']} {stored['metadata']['name']}"
    if not is_of(stored, jobset):
        return f"{named} is not controlled by this JobSet"
    return f"{named} is being deleted" if stored["metadata"].get("deletionTimestamp") else ""


def _make(jobset: Object, wanted: Object) -> Part:
    kind, name = wanted["kind"], wanted["metadata"]["name"]
    write = Write(
        verb="create",
        api_version=wanted["apiVersion"],
        kind=kind,
        namespace=namespace_of(jobset),
        name=name,
        body=wanted,
    )
    answer = yield from one(write)
    if answer.refusal is not None:
        taken = answer.refusal.already_exists
        note = f"{kind} {name} creation failed with error: {answer.refusal.message}"
        yield from tell(Told(jobset, "Warning", "GangNameConflict" if taken else f"{kind}CreationFailed", note))
        raise SyncError(note)
    yield from tell(Told(jobset, "Normal", f"{kind}Created", f"created {kind} {name}"))


def _resize(jobset: Object, wanted: Object, stored: Object, ctx: CompileContext) -> Part:
    """Only minimums follow; the templates' list is one value, so it is said as a whole."""
    if not ctx.generation.min_count_mutable or stored["kind"] == "CompositePodGroup":
        return
    body = _difference(wanted, stored)
    if body is None:
        return
    write = Write(
        verb="patch",
        api_version=stored["apiVersion"],
        kind=stored["kind"],
        namespace=namespace_of(jobset),
        name=stored["metadata"]["name"],
        body={"spec": body},
    )
    answer = yield from one(write)
    if answer.refusal is not None:
        raise SyncError(f"{write}: {answer.refusal.message}")
    note = f"minCount of {stored['kind']} {stored['metadata']['name']} follows the JobSet"
    yield from tell(Told(jobset, "Normal", f"{stored['kind']}Updated", note))


def _difference(wanted: Object, stored: Object) -> dict[str, Any] | None:
    if stored["kind"] == "PodGroup":
        new, old = (_minimum(obj["spec"]) for obj in (wanted, stored))
        return {"schedulingPolicy": {"gang": {"minCount": new}}} if None not in (new, old) and new != old else None
    member = "podGroupTemplates"
    templates = stored["spec"].get(member) or []
    least = {one["name"]: _minimum(one) for one in wanted["spec"].get(member) or []}
    merged = [
        {**one, "schedulingPolicy": {"gang": {"minCount": least[one["name"]]}}}
        if least.get(one["name"]) not in (None, _minimum(one)) and _minimum(one) is not None
        else one
        for one in templates
    ]
    return {member: merged} if merged != templates else None


def _minimum(block: Mapping[str, Any]) -> int | None:
    gang = (block.get("schedulingPolicy") or {}).get("gang")
    return None if gang is None else gang.get("minCount")


def remove(jobset: Object, known: Sequence[Object]) -> Part:
    """When the JobSet has ended or is suspended: leaves first, the Workload last."""
    own = [obj for obj in known if is_of(obj, jobset) and not obj["metadata"].get("deletionTimestamp")]
    for kind in reversed(KINDS):
        gone = [obj for obj in own if obj["kind"] == kind]
        if not gone:
            continue
        answers = yield Step([_delete(obj) for obj in gone])
        events = []
        for obj, answer in zip(gone, answers, strict=True):
            if answer.refusal is None:
                events.append(Told(jobset, "Normal", f"{kind}Deleted", f"deleted {kind} {obj['metadata']['name']}"))
            elif not answer.refusal.not_found:
                raise SyncError(answer.refusal.message)
        yield from tell(*events)


def _delete(obj: Object) -> Write:
    return Write(
        verb="delete",
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=namespace_of(obj),
        name=obj["metadata"]["name"],
        uid=str(obj["metadata"].get("uid") or ""),
        propagation="Background",
    )
