"""What a new LeaderWorkerSet must satisfy beside its schema: upstream's validating webhook, and our stricter rules.

Ours are marked; upstream lets such objects in and then fails on them later, often without a word (spec lws 1.3, 3.7).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api import formats
from kohort.api.core.pod_template import check_pod_template
from kohort.api.errors import ErrorKind, FieldError, at, duplicate, forbidden, invalid, required
from kohort.api.kind import Context, Object
from kohort.api.objects import annotation
from kohort.apimachinery.intstr import PERCENT, percent, scaled
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import replicas, size
from kohort.kinds.leaderworkerset.api.scheduling import check_scheduling, scheduling_warnings

MOST_PODS: Final = 2**31 - 1
TEMPLATE: Final = "spec.leaderWorkerTemplate"
_ROLLING: Final = "spec.rolloutStrategy.rollingUpdateConfiguration"
_SUBGROUP_SIZE: Final = f"{TEMPLATE}.subGroupPolicy.subGroupSize"
_LONGEST_SET: Final = 53  # of a StatefulSet's name whose pods also get a label "<name>-<hash>" (recorded: c-longname)


def validate(obj: Object, ctx: Context) -> list[FieldError]:
    return [
        *_name(obj),
        *_counts(obj),
        *_rollout(obj),
        *_subgroups(obj),
        *_templates(obj, ctx),
        *_claim_templates(obj),
        *check_scheduling(obj, ctx),
    ]


def warn(obj: Object, _ctx: Context) -> list[str]:
    return [*_name_warnings(obj), *scheduling_warnings(obj)]


def annotation_path(key: str) -> str:
    return f"metadata.annotations.{key}"


def _part(obj: Object, *names: str) -> dict[str, Any]:
    """A nested object, empty where there is none."""
    found: Any = obj
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


# ---- name and numbers


def _name(obj: Object) -> Iterator[FieldError]:
    name = _part(obj, "metadata").get("name")
    if not name or formats.subdomain(name):  # the latter is said of every kind
        return
    for problem in formats.problems(formats.label_1035, name):
        yield invalid("metadata.name", name, problem)


def _name_warnings(obj: Object) -> Iterator[str]:
    name = _part(obj, "metadata").get("name") or ""
    last = max(replicas(obj) - 1, 0)
    if len(name) > _LONGEST_SET:
        yield f"metadata.name: {len(name)} characters are too many for the pods of upstream's StatefulSets"
    elif size(obj) > 1 and len(f"{name}-{last}") > _LONGEST_SET:
        yield (
            f"metadata.name: with {len(name)} characters, upstream's StatefulSets cannot make workers of group {last};"
            f" at most {_LONGEST_SET - 1 - len(str(last))} leave room"
        )


def _counts(obj: Object) -> Iterator[FieldError]:
    pods, groups = size(obj), replicas(obj)
    if pods < 1:
        yield invalid(f"{TEMPLATE}.size", pods, "size must be equal or greater than 1")
    elif groups > 0 and groups * pods > MOST_PODS:
        yield invalid(
            "spec.replicas", groups, f"the product of replicas and worker replicas must not exceed {MOST_PODS}"
        )


# ---- rollout


def _rollout(obj: Object) -> Iterator[FieldError]:
    config = _part(obj, "spec", "rolloutStrategy", "rollingUpdateConfiguration")
    for member in ("maxUnavailable", "maxSurge"):
        yield from _share(config.get(member), at(_ROLLING, member))
    unavailable, groups = config.get("maxUnavailable", 1), replicas(obj)
    nothing_may_move = not scaled(unavailable, groups) and not scaled(config.get("maxSurge", 0), groups, up=True)
    if groups > 0 and nothing_may_move:
        yield invalid(at(_ROLLING, "maxUnavailable"), unavailable, "must not be 0 when `maxSurge` is 0")
    partition = config.get("partition")
    if partition is not None and partition < 0:
        yield invalid(at(_ROLLING, "partition"), partition, "must be greater than or equal to 0")


def _share(value: int | str | None, path: str) -> Iterator[FieldError]:
    """A number of groups, or a percentage of them."""
    if isinstance(value, int):
        if value < 0:
            yield invalid(path, value, "must be greater than or equal to 0")
    elif isinstance(value, str):
        if not PERCENT.fullmatch(value):
            yield invalid(path, value, "a valid percent string must be a numeric string followed by an ending '%'")
        elif percent(value) > 100:
            yield invalid(path, value, "must not be greater than 100%")


# ---- subgroups


def _subgroups(obj: Object) -> Iterator[FieldError]:
    topology = annotation(obj, constants.SUBGROUP_EXCLUSIVE_TOPOLOGY)
    policy = _part(obj, "spec", "leaderWorkerTemplate").get("subGroupPolicy")
    if policy is not None:
        yield from _subgroup_size(policy, size(obj))
    elif topology is not None:
        yield invalid(
            annotation_path(constants.SUBGROUP_EXCLUSIVE_TOPOLOGY),
            topology,
            "cannot have subgroup-exclusive-topology without subGroupSize set",
        )


def _subgroup_size(policy: dict[str, Any], pods: int) -> Iterator[FieldError]:
    chosen = policy.get("subGroupSize")
    if chosen is None:  # upstream crashes here and at 0
        yield required(_SUBGROUP_SIZE, "the number of pods in a subgroup")
        return
    if chosen < 1:
        yield invalid(_SUBGROUP_SIZE, chosen, "subGroupSize must be equal or greater than 1")
        return
    if pods % chosen and (pods - 1) % chosen:
        yield invalid(_SUBGROUP_SIZE, chosen, "size or size - 1 must be divisible by subGroupSize")
    elif policy.get("subGroupPolicyType") == "LeaderExcluded" and (pods - 1) % chosen:
        yield invalid(_SUBGROUP_SIZE, chosen, "size-1 must be divisible by subGroupSize when using LeaderExcluded")
    if chosen > pods >= 1:  # a size below 1 is wrong by itself
        yield invalid(_SUBGROUP_SIZE, chosen, "subGroupSize cannot be larger than size")


# ---- templates (ours: upstream leaves them to the StatefulSets)


def _templates(obj: Object, ctx: Context) -> Iterator[FieldError]:
    holder = _part(obj, "spec", "leaderWorkerTemplate")
    claims = [_part(item, "metadata").get("name") for item in holder.get("volumeClaimTemplates") or []]
    for member in ("leaderTemplate", "workerTemplate"):
        if holder.get(member) is None and member == "leaderTemplate":
            continue
        template, path = _part(holder, member), f"{TEMPLATE}.{member}"
        if _part(template, "spec").get("containers") is None:
            yield FieldError(
                ErrorKind.TYPE_INVALID, f"{path}.spec.containers", 'must be a list of containers, found "null"', "null"
            )
            continue
        yield from check_pod_template(_with_claims(template, claims), path, ctx, restart_policies=("Always",))
        yield from _own_keys(template, path)


def _with_claims(template: Object, claims: list[Any]) -> Object:
    """The template as its pods will be: a claim of the set is a volume of each of its pods."""
    spec = template["spec"]
    volumes = spec.get("volumes") or []
    taken = {volume.get("name") for volume in volumes}
    named = [name for name in dict.fromkeys(claims) if name and name not in taken and not formats.label(name)]
    more = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in named]
    return {**template, "spec": {**spec, "volumes": [*volumes, *more]}} if more else template


def _own_keys(template: Object, path: str) -> Iterator[FieldError]:
    """Keys that tell pods of a set apart: a template with them could make leaders of its workers (spec lws 2.3)."""
    for member in ("labels", "annotations"):
        for key in _part(template, "metadata", member):
            if key.startswith(constants.PREFIX):
                yield forbidden(
                    f"{path}.metadata.{member}[{key}]", f"keys under {constants.PREFIX} are set by the controller"
                )


def _claim_templates(obj: Object) -> Iterator[FieldError]:
    path, seen = f"{TEMPLATE}.volumeClaimTemplates", set[str]()
    for index, claim in enumerate(_part(obj, "spec", "leaderWorkerTemplate").get("volumeClaimTemplates") or []):
        place, name = f"{path}[{index}].metadata.name", _part(claim or {}, "metadata").get("name") or ""
        if not name:
            yield required(place, "pods mount a claim by its template's name")
        elif name in seen:
            yield duplicate(place, name)
        elif problem := formats.label(name):
            yield invalid(place, name, problem)
        seen.add(name)
