"""Endpoints that somebody wrote for a Service without a selector, as EndpointSlices: readers need only those."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, is_deleting, label, meta_of, name_of, namespace_of, owner_reference
from kohort.controllermanager.endpoint.backends import selector_of
from kohort.controllermanager.endpoint.slices import MANAGED_BY, SERVICE, send
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, key_of
from kohort.controllers.reconcile import Reconcile, Result
from kohort.controllers.writes import create, delete, update

CONTROLLER: Final = "endpointslicemirroring-controller.k8s.io"
SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_LEFT_OUT: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "endpoints.kubernetes.io/last-change-trigger-time",
)
MOST: Final = 1000  # addresses of a subset
_LONGEST: Final = 57
_OWN: Final = ("labels", "annotations", "ownerReferences")


def endpointslice_mirroring_controller() -> Controller:
    def reconcile_key(key: Key, reader: Reader, _: datetime) -> Reconcile:
        known = reader.indexed("EndpointSlice", "endpoints", key)
        return reconcile(reader.get("Endpoints", key), reader.get("Service", key), known)

    watches = (
        Watch("v1", "Endpoints", _itself),
        Watch("v1", "Service", _itself),
        Watch("discovery.k8s.io/v1", "EndpointSlice", _of_slice, {"endpoints": _endpoints_of}),
    )
    return Controller(name="endpointslice-mirroring", watches=watches, reconcile=reconcile_key, conditions=False)


def _itself(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    found = new or old
    return [Enqueue(key_of(found))] if found is not None else []


def _of_slice(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    found = new or old
    return [Enqueue(key) for key in _endpoints_of(found)] if found is not None else []


def _endpoints_of(one: Object) -> tuple[Key, ...]:
    name = label(one, SERVICE)
    return (Key(namespace_of(one), name),) if label(one, MANAGED_BY) == CONTROLLER and name else ()


def reconcile(endpoints: Object | None, service: Object | None, known: Sequence[Object]) -> Reconcile:
    wanted = list(_slices(endpoints)) if endpoints is not None and _is_mirrored(endpoints, service) else []
    left = [one for one in known if not is_deleting(one)]
    writes = []
    for new in wanted:
        same = next((one for one in left if _place(one) == _place(new)), None)
        if same is None:
            writes.append(create(new))
            continue
        left.remove(same)
        meta = {
            **same["metadata"],
            **{name: value for name, value in new["metadata"].items() if name in _OWN and value},
        }
        body = {**same, "metadata": meta, "endpoints": new["endpoints"]}
        if body != same:
            writes.append(update(body))
    yield from send([*writes, *(delete(one) for one in left)])
    return Result()


def _is_mirrored(endpoints: Object, service: Object | None) -> bool:
    if service is None or is_deleting(endpoints) or selector_of(service) is not None:
        return False
    return label(endpoints, SKIP) != "true" and annotation(endpoints, _LEADER) is None


def _place(one: Object) -> tuple[Any, ...]:
    ports = [(port.get("name") or "", port.get("port"), port.get("protocol")) for port in one.get("ports") or ()]
    return one.get("addressType"), tuple(ports)


def _slices(endpoints: Object) -> Iterator[Object]:
    """One for each set of ports and family of addresses."""
    meta = meta_of(endpoints)
    labels = {**(meta.get("labels") or {}), SERVICE: name_of(endpoints), MANAGED_BY: CONTROLLER}
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in _LEFT_OUT}
    found: dict[tuple[Any, ...], Object] = {}
    for subset in endpoints.get("subsets") or ():
        ports = [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ()]
        for address, ready in _addresses(subset):
            family = f"IPv{ipaddress.ip_address(address['ip']).version}"
            new: Object = {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "generateName": f"{name_of(endpoints)[:_LONGEST]}-",
                    "namespace": namespace_of(endpoints),
                    "labels": labels,
                    "annotations": annotations,
                    "ownerReferences": [owner_reference(endpoints)],
                },
                "addressType": family,
                "endpoints": [],
                "ports": ports,
            }
            found.setdefault(_place(new), new)["endpoints"].append(_endpoint(address, ready))
    return iter(found.values())


def _addresses(subset: Object) -> list[tuple[dict[str, Any], bool]]:
    ready = [(one, True) for one in subset.get("addresses") or ()]
    return [*ready, *((one, False) for one in subset.get("notReadyAddresses") or ())][:MOST]


def _endpoint(address: dict[str, Any], ready: bool) -> Object:
    more = {name: address[name] for name in ("hostname", "nodeName", "targetRef") if address.get(name)}
    return {"addresses": [address["ip"]], "conditions": {"ready": ready}, **more}
