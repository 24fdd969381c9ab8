"""The controllers of EndpointSlices and of Endpoints as the runtime sees them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kohort.api.kind import Object
from kohort.api.objects import label, meta_of, namespace_of
from kohort.controllermanager.endpoint import legacy, slices
from kohort.controllermanager.endpoint.backends import same, selector_of
from kohort.controllermanager.selections import Selections
from kohort.controllers.controller import Controller, Enqueue, EventHandler, Key, Reader, Watch, enqueue_nothing, key_of
from kohort.controllers.reconcile import Reconcile

_SOON = 0.5  # pods of a Service often change together


def endpointslice_controller() -> Controller:
    chosen = Selections(selector_of)

    def reconcile_key(key: Key, reader: Reader, _: datetime) -> Reconcile:
        service, pods = _selected(key, reader, chosen)
        known = reader.indexed("EndpointSlice", "service", key) if service is not None else []

        def labels(node: str) -> Object:
            found: Object = meta_of(reader.get("Node", Key("", node)) or {}).get("labels") or {}
            return found

        return slices.reconcile(service, pods, known, labels)

    def of_slice(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        """One that somebody else has changed or deleted is put right."""
        for one in (old, new):
            for key in _service_of(one) if one is not None else ():
                yield Enqueue(key, _SOON)

    of_service, of_pod = _handlers(chosen)
    watches = (
        Watch("v1", "Service", of_service),
        Watch("v1", "Pod", of_pod),
        Watch("discovery.k8s.io/v1", "EndpointSlice", of_slice, {"service": _service_of}),
        Watch("v1", "Node", enqueue_nothing),
    )
    return Controller(name="endpointslice", watches=watches, reconcile=reconcile_key, conditions=False)


def endpoints_controller() -> Controller:
    chosen = Selections(selector_of)

    def reconcile_key(key: Key, reader: Reader, _: datetime) -> Reconcile:
        service, pods = _selected(key, reader, chosen)
        return legacy.reconcile(service, pods, reader.get("Endpoints", key))

    def of_endpoints(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        found = new or old
        if found is not None and label(found, legacy.MANAGED_BY) == legacy.CONTROLLER:
            yield Enqueue(key_of(found), _SOON)

    of_service, of_pod = _handlers(chosen)
    watches = (
        Watch("v1", "Service", of_service),
        Watch("v1", "Pod", of_pod),
        Watch("v1", "Endpoints", of_endpoints),
    )
    return Controller(name="endpoints", watches=watches, reconcile=reconcile_key, conditions=False)


def _handlers(chosen: Selections) -> tuple[EventHandler, EventHandler]:
    """Of Services, and of pods that they select."""

    def of_service(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        chosen.see_owner(old, new)
        found = new or old
        return [Enqueue(key_of(found))] if found is not None else []

    def of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        if old is not None and new is not None and same(old, new):
            return
        yield from (Enqueue(key, _SOON) for key in sorted(chosen.see_pod(old, new)))

    return of_service, of_pod


def _selected(key: Key, reader: Reader, chosen: Selections) -> tuple[Object | None, list[Object]]:
    """The Service, if it says itself who is behind it, and its pods."""
    service = reader.get("Service", key)
    if service is None or selector_of(service) is None:
        return None, []
    return service, chosen.pods(key, reader)


def _service_of(one: Object) -> Iterable[Key]:
    if label(one, slices.MANAGED_BY) == slices.CONTROLLER and label(one, slices.SERVICE):
        return (Key(namespace_of(one), label(one, slices.SERVICE)),)
    return ()
