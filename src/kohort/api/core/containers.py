"""Containers: names, images, ports, environment, mounts and probes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kohort.api import formats
from kohort.api.core.resources import check_resources
from kohort.api.errors import FieldError, at, duplicate, forbidden, invalid, not_found, not_supported, required

Item = Mapping[str, Any]

_PORT_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9]|-(?!-))*")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL: Final = ("Always", "IfNotPresent", "Never")
_MESSAGES: Final = ("FallbackToLogsOnError", "File")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_VALUE_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What containers may refer to."""

    volumes: frozenset[str]
    claims: frozenset[str]


def check_containers(spec: Mapping[str, Any], path: str, around: Surroundings) -> Iterator[FieldError]:
    """Init containers and containers, whose names are told apart together."""
    containers, first = spec.get("containers") or [], spec.get("initContainers") or []
    if not containers:
        yield required(at(path, "containers"))
    names: set[str] = set()
    for member, items in (("containers", containers), ("initContainers", first)):
        for index, container in enumerate(items):
            place = f"{at(path, member)}[{index}]"
            yield from check_name(container, place, names, init=member == "initContainers")
            yield from check_container(container, place, around)
            yield from _restart(container, place, init=member == "initContainers")


def container_names(spec: Mapping[str, Any]) -> set[str]:
    every = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return {str(container.get("name") or "") for container in every}


def check_name(container: Item, path: str, seen: set[str], *, init: bool) -> Iterator[FieldError]:
    """`seen`: the names of those before, to which this one is added."""
    name = container.get("name") or ""
    problem = formats.label(name)
    if not name:
        yield required(at(path, "name"))
    elif problem:
        yield invalid(at(path, "name"), name, problem)
    if name in seen:  # bad names repeat as well; of the nameless only containers count
        yield duplicate(at(path, "name"), name)
    elif name or not init:
        seen.add(name)


def check_container(container: Item, path: str, around: Surroundings) -> Iterator[FieldError]:
    """A container alone, its name aside."""
    image = container.get("image") or ""
    if not image:
        yield required(at(path, "image"))
    elif image != image.strip():
        yield invalid(at(path, "image"), image, "must not have leading or trailing whitespace")
    yield from _one_of(container, "imagePullPolicy", _PULL, path)
    yield from _one_of(container, "terminationMessagePolicy", _MESSAGES, path)
    yield from _ports(container.get("ports") or [], at(path, "ports"))
    yield from _environment(container.get("env") or [], at(path, "env"))
    yield from _mounts(container.get("volumeMounts") or [], at(path, "volumeMounts"), around)
    yield from check_resources(container.get("resources"), at(path, "resources"), around.claims)
    for member in _PROBES:
        yield from _probe(container.get(member), at(path, member))


def _one_of(container: Item, member: str, accepted: tuple[str, ...], path: str) -> Iterator[FieldError]:
    value = container.get(member)
    if value is not None and value not in accepted:
        yield not_supported(at(path, member), value, accepted)


def _restart(container: Item, path: str, *, init: bool) -> Iterator[FieldError]:
    """Only an init container may have Always (a sidecar), and only a sidecar may have probes."""
    policy = container.get("restartPolicy")
    if policy is None:
        if init:
            for member in (*_PROBES, "lifecycle"):
                if container.get(member) is not None:
                    yield forbidden(at(path, member), "may not be set for init containers without restartPolicy=Always")
    elif not init and policy == "Always":
        yield forbidden(at(path, "restartPolicy"), "may not be set to Always for non-init containers")
    elif policy not in {"Always", "Never", "OnFailure"}:
        yield not_supported(at(path, "restartPolicy"), policy, ("Always", "Never", "OnFailure"))


def _ports(ports: list[Item], path: str) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        place, name = f"{path}[{index}]", port.get("name") or ""
        if name and (len(name) > 15 or not _PORT_NAME.fullmatch(name) or name.endswith("-")):
            yield invalid(
                at(place, "name"),
                name,
                "must be at most 15 lower case alphanumeric characters or '-', with at least one letter, "
                "no '-' at either end and no two together",
            )
        elif name and name in names:
            yield duplicate(at(place, "name"), name)
        names.add(name)
        if not port.get("containerPort"):
            yield required(at(place, "containerPort"))
        for member in ("containerPort", "hostPort"):
            number = port.get(member) or 0
            if number and not 1 <= number <= 65535:
                yield invalid(at(place, member), number, "must be between 1 and 65535, inclusive")
        yield from _one_of(port, "protocol", _PROTOCOLS, place)


def _environment(variables: list[Item], path: str) -> Iterator[FieldError]:
    for index, variable in enumerate(variables):
        place, name = f"{path}[{index}]", variable.get("name") or ""
        if not name:
            yield required(at(place, "name"))
        elif "=" in name or not name.isascii() or not name.isprintable():
            yield invalid(
                at(place, "name"), name, "a valid environment variable name is printable ASCII other than '='"
            )
        yield from _value_source(variable, at(place, "valueFrom"))


def _value_source(variable: Item, path: str) -> Iterator[FieldError]:
    source = variable.get("valueFrom")
    if source is None:
        return
    chosen = [member for member in _VALUE_SOURCES if source.get(member) is not None]
    if not chosen:
        yield invalid(path, "", f"must specify one of: `{'`, `'.join(_VALUE_SOURCES)}`")
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(chosen) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _mounts(mounts: list[Item], path: str, around: Surroundings) -> Iterator[FieldError]:
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        place, name, where = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(at(place, "name"))
        elif name not in around.volumes:
            yield not_found(at(place, "name"), name)
        if not where:
            yield required(at(place, "mountPath"))
        elif where in taken:
            yield invalid(at(place, "mountPath"), where, "must be unique")
        taken.add(where)
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield invalid(
                at(place, "subPathExpr"), mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive"
            )


def _probe(probe: Item | None, path: str) -> Iterator[FieldError]:
    if probe is None:
        return
    chosen = [member for member in _HANDLERS if probe.get(member) is not None]
    if not chosen:
        yield required(path, "must specify a handler type")
    for surplus in chosen[1:]:
        yield forbidden(at(path, surplus), "may not specify more than 1 handler type")
    for member in _PROBE_NUMBERS:
        number = probe.get(member)
        if number is not None and number < 0:
            yield invalid(at(path, member), number, "must be greater than or equal to 0")
    threshold = probe.get("successThreshold") or 1
    if not path.endswith("readinessProbe") and threshold != 1:
        yield invalid(at(path, "successThreshold"), threshold, "must be 1")
