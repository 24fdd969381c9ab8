"""Is a PodCliqueSet one that Grove accepts? Rules of the validating webhook (spec grove 1.1 to 1.3, 1.7).

What depends on the scheduler's side (groups, templates, priorities) is in backend.py, topology in topology.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api import formats, meta
from kohort.api.errors import FieldError, duplicate, invalid, required
from kohort.api.kind import Context, Object
from kohort.apimachinery import duration
from kohort.kinds.grove.api import backend, mnnvl, options, parts, podspec, sharing, startup, topology

MAX_NAME: Final = 45  # of set, scaling group and clique together, so that pod names stay below 63


def validate(obj: Object, ctx: Context) -> list[FieldError]:
    """A new object: what always holds, and what an update may break."""
    found = check(obj, ctx)
    for path, clique in parts.cliques(obj):
        found += podspec.check_new(parts.pod_spec(clique), f"{path}.spec.podSpec")
    return [*found, *mnnvl.check_new(obj), *topology.check_new(obj, ctx)]


def check(obj: Object, ctx: Context) -> list[FieldError]:
    """What holds for every PodCliqueSet, new or changed."""
    return [*check_form(obj, ctx), *backend.check(obj, ctx)]


def check_form(obj: Object, ctx: Context) -> list[FieldError]:
    """What a set must be like, whoever schedules its pods."""
    return [
        *_set(obj),
        *_cliques(obj, ctx),
        *_scaling_groups(obj),
        *_schedulers(obj, ctx),
        *startup.check(obj),
        *sharing.check(obj),
        *topology.check_shape(obj),
    ]


def _set(obj: Object) -> Iterator[FieldError]:
    delay = parts.template(obj).get("terminationDelay")
    if isinstance(delay, str) and duration.nanoseconds(delay) <= 0:
        yield invalid(f"{parts.TEMPLATE}.terminationDelay", delay, "terminationDelay must be greater than 0")


# ---- cliques


def _cliques(obj: Object, ctx: Context) -> Iterator[FieldError]:
    roles: set[str] = set()
    belongs = parts.members(obj)
    for path, clique in parts.cliques(obj):
        yield from _name(clique.get("name"), f"{path}.name", "clique")
        if clique.get("name") not in belongs:
            yield from _length(obj, "", clique.get("name"), f"{path}.name")
        yield from meta.check_labels(clique.get("labels") or {}, f"{path}.labels")
        yield from meta.check_annotations(clique.get("annotations") or {}, f"{path}.annotations")
        spec = parts.spec_of(clique)
        role = spec.get("roleName")
        if role in roles:
            yield duplicate(f"{path}.spec.roleName", role)
        roles.add(str(role or ""))
        if clique.get("spec") is not None:
            yield from _counts(spec, f"{path}.spec")
            yield from podspec.check(spec.get("podSpec"), f"{path}.spec.podSpec", ctx.release.minor)
        if spec.get("autoScalingConfig") is not None:
            yield from _autoscaling(spec, f"{path}.spec", clique.get("name") in belongs)


def _name(name: Any, path: str, what: str) -> Iterator[FieldError]:
    if name == "":
        yield required(path, f"a {what} needs a name")
    elif isinstance(name, str) and formats.subdomain(name):
        yield invalid(path, name, f"invalid {what} name: {formats.subdomain(name)}")


def _length(obj: Object, group: str, clique: Any, path: str) -> Iterator[FieldError]:
    names = [name for name in ((obj.get("metadata") or {}).get("name"), group, clique) if name]
    total = sum(len(str(name)) for name in names)
    if total > MAX_NAME:
        shorten = " + ".join(f"{name} ({len(name)})" for name in names)
        yield invalid(
            path, clique, f"combined resource name length {total} exceeds {MAX_NAME}, pods need the rest: {shorten}"
        )


def _counts(spec: dict[str, Any], path: str) -> Iterator[FieldError]:
    replicas, minimum = spec.get("replicas"), spec.get("minAvailable")
    if replicas is not None and replicas <= 0:
        yield invalid(f"{path}.replicas", replicas, "must be greater than 0")
    if minimum is None:
        return
    if minimum <= 0:
        yield invalid(f"{path}.minAvailable", minimum, "must be greater than 0")
    elif replicas is not None and minimum > replicas:
        yield invalid(f"{path}.minAvailable", minimum, f"minAvailable must not be greater than replicas ({replicas})")


def _autoscaling(spec: dict[str, Any], path: str, member: bool) -> Iterator[FieldError]:
    path = f"{path}.autoScalingConfig"
    if member:
        yield invalid(path, spec["autoScalingConfig"], "not allowed: the clique is scaled as part of its scaling group")
        return
    least, most = spec["autoScalingConfig"].get("minReplicas"), spec["autoScalingConfig"].get("maxReplicas")
    minimum, replicas = spec.get("minAvailable"), spec.get("replicas")
    if least is not None and minimum is not None and least < minimum:
        yield invalid(f"{path}.minReplicas", least, f"must be greater than or equal to minAvailable ({minimum})")
    for what, bound in (("minReplicas", least), ("replicas", replicas)):
        if most is not None and bound is not None and most < bound:
            yield invalid(f"{path}.maxReplicas", most, f"must be greater than or equal to {what} ({bound})")


# ---- scaling groups


def _scaling_groups(obj: Object) -> Iterator[FieldError]:
    known = {clique.get("name") for _, clique in parts.cliques(obj)}
    names: set[str] = set()
    taken: set[str] = set()
    for path, group in parts.scaling_groups(obj):
        name = str(group.get("name") or "")
        yield from _name(group.get("name"), f"{path}.name", "scaling group")
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        for index, clique in enumerate(group.get("cliqueNames") or []):
            at = f"{path}.cliqueNames[{index}]"
            if clique not in known:
                yield invalid(at, clique, f"not a clique of this set; cliques are {', '.join(sorted(map(str, known)))}")
            elif clique in taken:
                yield duplicate(at, clique)
            else:
                yield from _length(obj, name, clique, at)
            taken.add(clique)
        yield from _group_counts(group, path)


def _group_counts(group: dict[str, Any], path: str) -> Iterator[FieldError]:
    yield from _counts(group, path)
    minimum, least = group.get("minAvailable"), (group.get("scaleConfig") or {}).get("minReplicas")
    if least is not None and minimum is not None and least < minimum:
        yield invalid(
            f"{path}.scaleConfig.minReplicas", least, f"must be greater than or equal to minAvailable ({minimum})"
        )


# ---- schedulers


def _schedulers(obj: Object, ctx: Context) -> Iterator[FieldError]:
    first = ""
    for path, clique in parts.cliques(obj):
        name, at = options.scheduler_name(parts.pod_spec(clique)), f"{path}.spec.podSpec.schedulerName"
        if not options.enabled(name, ctx):
            accepted = ", ".join(options.enabled_names(ctx))
            yield invalid(at, name, f"not an enabled scheduler; enabled are {accepted}")
        elif first and name != first:
            yield invalid(at, name, f"the schedulerName for all pods has to be the same, the first clique has {first}")
        first = first or name
