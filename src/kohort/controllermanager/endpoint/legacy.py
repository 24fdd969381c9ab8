"""The Endpoints of a Service, one object with all its pods, for clients from before EndpointSlices."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, meta_of, name_of, namespace_of, uid_of
from kohort.controllermanager.endpoint.backends import HEADLESS, Backend, Port, backends, families, is_headless
from kohort.controllers.reconcile import Reconcile, ReconcileError, Result, Step, Write
from kohort.controllers.writes import create, delete, update

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
CONTROLLER: Final = "endpoint-controller"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
MOST: Final = 1000  # addresses


def reconcile(service: Object | None, pods: Iterable[Object], known: Object | None) -> Reconcile:
    """`known`: the Endpoints of that name."""
    if service is None or is_deleting(service):
        if known is not None and label(known, MANAGED_BY) == CONTROLLER:
            yield from _sent(delete(known))
        return Result()
    # Of a pod that is going nobody should hear here; who can handle it reads slices.
    found = [one for one in backends(service, pods, families(service)[0]) if not one.terminating]
    wanted, cut = _subsets(found, publish=bool(service["spec"].get("publishNotReadyAddresses")))
    labels = _labels(service)
    had = meta_of(known or {}).get("annotations") or {}
    annotations = {
        **{k: v for k, v in had.items() if k != OVER_CAPACITY},
        **({OVER_CAPACITY: "truncated"} if cut else {}),
    }
    if known is None:
        yield from _sent(create(_body(service, wanted, labels, annotations)))
    elif (known.get("subsets") or [], meta_of(known).get("labels") or {}, had) != (wanted, labels, annotations):
        meta = {**known["metadata"], "labels": labels, "annotations": annotations}
        yield from _sent(update({**known, "metadata": meta, "subsets": wanted}))
    return Result()


def _sent(write: Write) -> Any:
    (answer,) = yield Step((write,))
    if answer.refusal is not None and not answer.refusal.not_found:
        raise ReconcileError(f"{write}: {answer.refusal.message}")


def _body(service: Object, subsets: list[Object], labels: dict[str, str], annotations: dict[str, str]) -> Object:
    meta = {"name": name_of(service), "namespace": namespace_of(service), "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets}


def _labels(service: Object) -> dict[str, str]:
    given = {k: v for k, v in (meta_of(service).get("labels") or {}).items() if k != HEADLESS}
    return {**given, MANAGED_BY: CONTROLLER, **({HEADLESS: ""} if is_headless(service) else {})}


def _subsets(found: Sequence[Backend], *, publish: bool) -> tuple[list[Object], bool]:
    """Pods with the same ports together; whether some had to be left out, and those that are not ready first."""
    ready = [one for one in found if publish or one.serving]
    others = [one for one in found if not publish and not one.serving]
    shown, hidden = ready[:MOST], others[: max(0, MOST - len(ready))]
    groups: dict[tuple[Port, ...], tuple[list[Backend], list[Backend]]] = {}
    for number, part in enumerate((shown, hidden)):
        for one in part:
            groups.setdefault(one.ports, ([], []))[number].append(one)
    subsets = []
    for ports, (up, down) in sorted(groups.items(), key=lambda item: [port.number for port in item[0]]):
        subset: Object = {}
        if up:
            subset["addresses"] = [_address(one) for one in sorted(up, key=_order)]
        if down:
            subset["notReadyAddresses"] = [_address(one) for one in sorted(down, key=_order)]
        if ports:
            subset["ports"] = [_port(port) for port in ports]
        subsets.append(subset)
    return subsets, len(shown) + len(hidden) < len(found)


def _port(port: Port) -> dict[str, Any]:
    fields = port.fields()
    return fields if port.name else {key: value for key, value in fields.items() if key != "name"}


def _order(one: Backend) -> tuple[int, str]:
    return _number(one.address), uid_of(one.pod)


@lru_cache(maxsize=4096)
def _number(address: str) -> int:
    return int(ipaddress.ip_address(address))


def _address(one: Backend) -> dict[str, Any]:
    found: dict[str, Any] = {"ip": one.address}
    if one.hostname:
        found["hostname"] = one.hostname
    if one.node:
        found["nodeName"] = one.node
    return {**found, "targetRef": one.target}
