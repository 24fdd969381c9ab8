"""What Grove looks at in a clique's pod template, beside what a CRD says of its lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kohort.api import definitions
from kohort.api.errors import FieldError, at, duplicate, invalid, required

POD_SPEC: Final = "io.k8s.api.core.v1.PodSpec"
_ENV_NAME: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
MEMBERSHIP: Final = ("schedulingGroup", "workloadRef")  # from 1.36 on; 1.35


def check(pod: Any, path: str, minor: str) -> Iterator[FieldError]:
    """On create and update."""
    if (pod or {}).get("containers") is None:
        yield required(f"{path}.containers", "a list, which may be empty")
        return
    yield from _repeated_keys(definitions.definition(minor, POD_SPEC), pod, path, minor)
    for member in ("initContainers", "containers"):
        for index, container in enumerate(pod.get(member) or []):
            yield from _env(container, f"{path}.{member}[{index}]")


def check_new(pod: Any, path: str) -> Iterator[FieldError]:
    """Only on create: an update may set both."""
    found = pod or {}
    if found.get("nodeName"):
        yield invalid(f"{path}.nodeName", found["nodeName"], "must not be set")
    if found.get("topologySpreadConstraints") is not None:
        yield invalid(f"{path}.topologySpreadConstraints", found["topologySpreadConstraints"], "must not be set")


def membership(pod: Any) -> Any:
    """The group that a template names itself: `schedulingGroup`, or `workloadRef` on 1.35."""
    return next((pod[name] for name in MEMBERSHIP if (pod or {}).get(name) is not None), None)


def _env(container: dict[str, Any], path: str) -> Iterator[FieldError]:
    for index, variable in enumerate(container.get("env") or []):
        name = variable.get("name") or ""
        if not _ENV_NAME.fullmatch(name):
            yield invalid(
                f"{path}.env[{index}].name",
                name,
                "an environment variable name consists of letters, digits, '_', '-' or '.' "
                "and does not start with a digit",
            )


def _repeated_keys(schema: dict[str, Any], value: Any, path: str, minor: str) -> Iterator[FieldError]:
    """Items of one key in a list that the Kubernetes schema calls a map."""
    name = definitions.target(schema)
    if name is not None:
        schema = definitions.definition(minor, name)
    if isinstance(value, dict):
        for member, item in value.items():
            below = schema.get("properties", {}).get(member)
            if below is not None:
                yield from _repeated_keys(below, item, at(path, member), minor)
    elif isinstance(value, list) and "items" in schema:
        yield from _repeats(schema.get("x-kubernetes-list-map-keys") or [], value, path)
        for index, item in enumerate(value):
            yield from _repeated_keys(schema["items"], item, f"{path}[{index}]", minor)


def _repeats(keys: list[str], items: list[Any], path: str) -> Iterator[FieldError]:
    seen: set[tuple[Any, ...]] = set()
    for index, item in enumerate(items if keys else []):
        if not isinstance(item, dict):
            continue
        # A CRD defaults an absent protocol of a port, which is part of that key.
        key = {name: item.get(name, "TCP" if name == "protocol" else None) for name in keys}
        if tuple(key.values()) in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.add(tuple(key.values()))
