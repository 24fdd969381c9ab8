"""LimitRanger: what a namespace's LimitRanges give to containers that ask for nothing, and what they do not allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.apimachinery import podresources, quantity
from kohort.server import status
from kohort.server.admission.attributes import CREATE, DELETE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kohort.api.kind import Object
    from kohort.apimachinery.quantity import Quantities, Quantity
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.auth.lister import Lister

ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CLAIM: Final = "PersistentVolumeClaim"


class LimitRanger:
    repeatable = True

    def __init__(self, lister: Lister) -> None:
        self._lister = lister

    async def admit(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is not None and attrs.resource.kind == "Pod" and _supported(attrs):
            for one in self._ranges(attrs):
                give_defaults(attrs.object, _limits(one))

    def concerns(self, attrs: AdmissionAttributes) -> bool:
        return _supported(attrs) or _resizes(attrs)

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is None or not (_supported(attrs) or _resizes(attrs)):
            return
        limits = [_limits(one) for one in self._ranges(attrs)]
        every = (problem for one in limits for problem in check(attrs.object, attrs.resource.kind, one))
        found = list(dict.fromkeys(every))
        if found:
            why = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
            raise status.forbidden(attrs.resource.group, attrs.resource.plural, attrs.name, why)

    def _ranges(self, attrs: AdmissionAttributes) -> Sequence[Object]:
        return self._lister.list("", "limitranges", attrs.namespace)


def _supported(attrs: AdmissionAttributes) -> bool:
    """A pod's containers change by `resize` only, so its creation counts, not its updates."""
    if attrs.resource.group or attrs.subresource or attrs.operation == DELETE:
        return False
    return attrs.resource.kind == _CLAIM or (attrs.resource.kind == "Pod" and attrs.operation == CREATE)


def _resizes(attrs: AdmissionAttributes) -> bool:
    return (attrs.resource.group, attrs.resource.kind, attrs.subresource) == ("", "Pod", "resize")


def _limits(limit_range: Object) -> list[dict[str, Any]]:
    return (limit_range.get("spec") or {}).get("limits") or []


# ---- defaults


def give_defaults(pod: Object, limits: Sequence[Mapping[str, Any]]) -> None:
    """Fill in the requests and limits of every container; an annotation says which."""
    given: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
    for limit in limits:
        if limit.get("type") == "Container":
            given["requests"] |= limit.get("defaultRequest") or {}
            given["limits"] |= limit.get("default") or {}
    said: list[str] = []
    for member, word in (("containers", "container"), ("initContainers", "init container")):
        for container in (pod.get("spec") or {}).get(member) or ():
            said += _fill(container, given, word)
    if said:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[ANNOTATION] = "LimitRanger plugin set: " + "; ".join(said)


def _fill(container: dict[str, Any], given: Mapping[str, Mapping[str, Any]], word: str) -> Iterator[str]:
    resources = container.setdefault("resources", {})
    for member, singular in (("requests", "request"), ("limits", "limit")):
        missing = sorted(name for name in given[member] if name not in (resources.get(member) or {}))
        if missing:
            resources[member] = {**(resources.get(member) or {}), **{name: given[member][name] for name in missing}}
            yield f"{', '.join(missing)} {singular} for {word} {container.get('name')}"


# ---- limits


def check(obj: Object, kind: str, limits: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for limit in limits:
        sort = limit.get("type")
        if kind == "Pod" and sort == "Container":
            for container in podresources.containers(obj):
                requests, most = podresources.of_container(container)
                yield from _constraints(limit, "Container", requests, most)
        elif kind == "Pod" and sort == "Pod":
            yield from _constraints(limit, "Pod", *podresources.of_pod(obj))
        elif kind == _CLAIM and sort == _CLAIM:
            yield from _claim(limit, obj)


def _constraints(limit: Mapping[str, Any], sort: str, requests: Quantities, limits: Quantities) -> Iterator[str]:
    for name, least in _each(limit, "min"):
        yield from _least(name, least, sort, requests.get(name), limits.get(name))
    for name, most in _each(limit, "max"):
        yield from _most(name, most, sort, requests.get(name), limits.get(name))
    for name, ratio in _each(limit, "maxLimitRequestRatio"):
        yield from _ratio(name, ratio, sort, requests.get(name), limits.get(name))


def _each(limit: Mapping[str, Any], member: str) -> Iterator[tuple[str, Quantity]]:
    for name, given in sorted((limit.get(member) or {}).items()):
        yield name, quantity.parse(given)


def _least(name: str, least: Quantity, sort: str, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    lead = f"minimum {name} usage per {sort} is {least}"
    if request is None:
        yield f"{lead}.  No request is specified"
    elif request.value < least.value:
        yield f"{lead}, but request is {request}"
    elif limit is not None and limit.value < least.value:
        yield f"{lead}, but limit is {limit}"


def _most(name: str, most: Quantity, sort: str, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    lead = f"maximum {name} usage per {sort} is {most}"
    if limit is None:
        yield f"{lead}.  No limit is specified"
    elif limit.value > most.value:
        yield f"{lead}, but limit is {limit}"
    elif request is not None and request.value > most.value:
        yield f"{lead}, but request is {request}"


def _ratio(name: str, most: Quantity, sort: str, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    lead = f"{name} max limit to request ratio per {sort} is {most}"
    if request is None or not request.value:
        yield f"{lead}, but no request is specified or request is 0"
    elif limit is None or not limit.value:
        yield f"{lead}, but no limit is specified or limit is 0"
    elif limit / request > most.value:
        yield f"{lead}, but provided ratio is {float(limit / request):f}"


def _claim(limit: Mapping[str, Any], claim: Object) -> Iterator[str]:
    requests = podresources.of_claim(claim)
    for member, word in (("min", "minimum"), ("max", "maximum")):
        for name, bound in _each(limit, member):
            request = requests.get(name)
            lead = f"{word} {name} usage per {_CLAIM} is {bound}"
            if request is None:
                yield f"{lead}.  No request is specified"
            elif (request.value < bound.value) if member == "min" else (request.value > bound.value):
                yield f"{lead}, but request is {request}"
