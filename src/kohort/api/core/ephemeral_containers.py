"""Containers that are added to a pod that exists (`kubectl debug`), by an endpoint of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api.copying import copied
from kohort.api.core import volumes
from kohort.api.core.containers import Surroundings, check_container, check_name, container_names
from kohort.api.errors import FieldError, forbidden, not_found
from kohort.api.kind import Context, Object, SubresourceStrategy
from kohort.api.rules import same

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMBER: Final = "ephemeralContainers"
_PATH: Final = f"spec.{MEMBER}"
_NOT_HERE: Final = "cannot be set for an Ephemeral Container"
_NO_FIELDS: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip


def check_create(spec: dict[str, Any]) -> Iterator[FieldError]:
    if spec.get(MEMBER):
        yield forbidden(_PATH, "cannot be set on create")


def check(spec: dict[str, Any]) -> Iterator[FieldError]:
    """All that is wrong with those of a pod."""
    others = container_names(spec)
    names = set(others)
    around = Surroundings(frozenset(volumes.names(spec.get("volumes"))), frozenset())
    for index, container in enumerate(spec.get(MEMBER) or []):
        path = f"{_PATH}[{index}]"
        yield from check_name(container, path, names, init=False)
        given = {name: value for name, value in container.items() if name not in _NO_FIELDS}
        yield from check_container(given, path, around)
        yield from (forbidden(f"{path}.{name}", _NOT_HERE) for name in _NO_FIELDS if container.get(name))
        target = container.get("targetContainerName")
        if target and target not in others:
            yield not_found(f"{path}.targetContainerName", target)
        for place, mount in enumerate(container.get("volumeMounts") or []):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    yield forbidden(f"{path}.volumeMounts[{place}].{name}", _NOT_HERE)


def _reset(new: Object, old: Object) -> None:
    """Nothing but these containers is written."""
    wanted, version = (new.get("spec") or {}).get(MEMBER), new["metadata"].get("resourceVersion")
    for member in ("metadata", "spec", "status"):
        new[member] = copied(old.get(member) or {})
    new["metadata"]["resourceVersion"] = version
    new["spec"].pop(MEMBER, None)
    if wanted:
        new["spec"][MEMBER] = wanted


def _validate(new: Object, old: Object, _: Context) -> list[FieldError]:
    after = {one.get("name"): one for one in new["spec"].get(MEMBER) or []}
    found = list(check(new["spec"]))
    for before in old["spec"].get(MEMBER) or []:
        now = after.get(before.get("name"))
        if now is None or not same(now, before):
            verb = "removed" if now is None else "changed"
            found.append(forbidden(_PATH, f'existing ephemeral containers "{before.get("name")}" may not be {verb}'))
    return found


STRATEGY: Final = SubresourceStrategy(reset=_reset, validate=_validate)
