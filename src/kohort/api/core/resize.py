"""Another amount of cpu or memory for the containers of a pod that exists (`kubectl patch --subresource resize`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api.copying import copied
from kohort.api.core.qos import qos_class
from kohort.api.core.resources import check_resources
from kohort.api.errors import FieldError, forbidden, invalid
from kohort.api.kind import Context, Object, SubresourceStrategy
from kohort.api.rules import same
from kohort.apimachinery import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTS: Final = ("initContainers", "containers")
_RESIZABLE: Final = frozenset({"cpu", "memory"})
_MIRROR: Final = "kubernetes.io/config.mirror"
_SIDECARS_ONLY: Final = frozenset({"1.35"})  # releases in which other init containers stay as they are
_MUTABLE: Final = "only cpu and memory resources are mutable"


def _reset(new: Object, old: Object) -> None:
    """Nothing but resources and resize policies is written; another set of containers is left for `_validate`."""
    given, version = new.get("spec") or {}, new["metadata"].get("resourceVersion")
    wanted = {member: given.get(member) or [] for member in _LISTS}
    pod_level = given.get("resources")
    for member in ("metadata", "spec", "status"):
        new[member] = copied(old.get(member) or {})
    new["metadata"]["resourceVersion"] = version
    spec = new["spec"]
    for member, containers in wanted.items():
        if _names(containers) != _names(spec.get(member)):
            spec[member] = containers
            continue
        for container, other in zip(spec.get(member) or (), containers, strict=True):
            _put(container, "resources", other.get("resources") or {})
            _put(container, "resizePolicy", other.get("resizePolicy"))
    _put(spec, "resources", pod_level)


def _names(containers: Any) -> list[Any]:
    return [one.get("name") for one in containers or ()]


def _put(block: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        block.pop(name, None)
    else:
        block[name] = value


def _validate(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    spec, before = new["spec"], old["spec"]
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("", "static pods cannot be resized")]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden("", "windows pods cannot be resized")]
    found = list(_containers(spec))
    kept = (old.get("status") or {}).get("qosClass") or qos_class(before)
    if kept != qos_class(spec):
        found.append(invalid("spec", kept, "Pod QOS Class may not change as a result of resizing"))
    if not _supported(old.get("status") or {}):
        found.append(forbidden("spec", "Pod running on node without support for resize"))
    moved = list(_moved(spec, before))
    if moved:
        return [*found, *moved]
    every = ctx.release.minor not in _SIDECARS_ONLY
    found += _removed(spec, before, every)
    found += _others(spec, before, every)
    if not found and not same(spec.get("resources"), before.get("resources")):
        found += _pod_level(spec.get("resources") or {}, before.get("resources") or {})
    return found


def _containers(spec: dict[str, Any]) -> Iterator[FieldError]:
    """The new amounts have to be right in themselves, too."""
    claims = frozenset(str(one.get("name")) for one in spec.get("resourceClaims") or ())
    for member in reversed(_LISTS):
        for index, container in enumerate(spec.get(member) or ()):
            yield from check_resources(container.get("resources"), f"spec.{member}[{index}].resources", claims)


def _supported(status: dict[str, Any]) -> bool:
    """A kubelet that can resize says what it gave; without a running container nobody knows."""
    for one in status.get("containerStatuses") or ():
        if (one.get("state") or {}).get("running") is not None:
            return one.get("resources") is not None
    return True


def _moved(spec: dict[str, Any], before: dict[str, Any]) -> Iterator[FieldError]:
    for member in reversed(_LISTS):
        now, then = _names(spec.get(member)), _names(before.get(member))
        if len(now) != len(then):
            yield forbidden(f"spec.{member}", f"{member} may not be added or removed on resize")
            continue
        for index, (name, other) in enumerate(zip(now, then, strict=True)):
            if name != other:
                yield forbidden(f"spec.{member}[{index}].name", f"{member} may not be renamed or reordered on resize")


def _removed(spec: dict[str, Any], before: dict[str, Any], every: bool) -> Iterator[FieldError]:
    for member in _LISTS:
        for index, (now, then) in enumerate(zip(spec.get(member) or (), before.get(member) or (), strict=True)):
            if member == "initContainers" and not _resizable(then, every):
                continue
            for sort in ("requests", "limits"):
                if set((then.get("resources") or {}).get(sort) or ()) - set(
                    (now.get("resources") or {}).get(sort) or ()
                ):
                    yield forbidden(f"spec.{member}[{index}].resources.{sort}", f"resource {sort} cannot be removed")


def _resizable(container: dict[str, Any], every: bool) -> bool:
    """Of an init container; `every`: not sidecars only."""
    return every or container.get("restartPolicy") == "Always"


def _others(spec: dict[str, Any], before: dict[str, Any], every: bool) -> Iterator[FieldError]:
    """What a container is given beside cpu and memory does not change."""
    for now, then in zip(spec.get("containers") or (), before.get("containers") or (), strict=True):
        if not _same_but_resizable(now, then):
            yield forbidden("spec", _MUTABLE)
    pairs = zip(spec.get("initContainers") or (), before.get("initContainers") or (), strict=True)
    for index, (now, then) in enumerate(pairs):
        if _resizable(then, every):
            if not _same_but_resizable(now, then):
                text = "only cpu and memory resources for init or sidecar containers are mutable"
                yield forbidden(f"spec.initContainers[{index}]", text)
        elif not _same_resources(now, then):
            yield forbidden("spec", "resources for non-sidecar init containers are immutable")


def _same_but_resizable(now: dict[str, Any], then: dict[str, Any]) -> bool:
    def rest(container: dict[str, Any]) -> dict[str, Any]:
        amounts = container.get("resources") or {}
        return {
            sort: {name: one.value for name, one in _amounts(amounts, sort).items() if name not in _RESIZABLE}
            for sort in ("requests", "limits")
        }

    return (
        rest(now) == rest(then)
        and same((now.get("resources") or {}).get("claims"), (then.get("resources") or {}).get("claims"))
        and same(now.get("resizePolicy"), then.get("resizePolicy"))
    )


def _same_resources(now: dict[str, Any], then: dict[str, Any]) -> bool:
    one, other = now.get("resources") or {}, then.get("resources") or {}
    return all(
        {name: found.value for name, found in _amounts(one, sort).items()}
        == {name: found.value for name, found in _amounts(other, sort).items()}
        for sort in ("requests", "limits")
    ) and same(now.get("resizePolicy"), then.get("resizePolicy"))


def _amounts(resources: dict[str, Any], sort: str) -> quantity.Quantities:
    try:
        return quantity.parse_all(resources.get(sort))
    except ValueError:  # said by the rules of the container
        return {}


def _pod_level(now: dict[str, Any], then: dict[str, Any]) -> Iterator[FieldError]:
    for sort in ("requests", "limits"):
        if set(then.get(sort) or ()) - set(now.get(sort) or ()):
            yield forbidden(f"spec.resources.{sort}", f"resource {sort} cannot be removed")
    if not _same_but_resizable({"resources": now}, {"resources": then}):
        yield forbidden("spec", _MUTABLE)


STRATEGY: Final = SubresourceStrategy(reset=_reset, validate=_validate)
