"""The EndpointSlices of a Service: at most 100 pods in each, and as few of them rewritten as a change allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, meta_of, name_of, namespace_of, owner_reference, uid_of
from kohort.controllermanager.endpoint.backends import HEADLESS, Backend, Port, backends, families, is_headless
from kohort.controllers.reconcile import Reconcile, ReconcileError, Result, Step, Write
from kohort.controllers.writes import create, delete, update

SERVICE: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
CONTROLLER: Final = "endpointslice-controller.k8s.io"
MOST: Final = 100  # pods in a slice
_WRITES: Final = 200  # in one reconcile; the next goes on
_LONGEST: Final = 58  # of a name that gets five letters more
_ZONE: Final = "topology.kubernetes.io/zone"

Labels = Callable[[str], Object]  # of a node


@dataclass(slots=True)
class _Slices:
    """What has to be written."""

    create: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)


def reconcile(service: Object | None, pods: Iterable[Object], slices: Sequence[Object], labels: Labels) -> Reconcile:
    """`slices`: those that name the Service. Without a Service they are the garbage collector's."""
    if service is None or is_deleting(service):
        return Result()
    ours = [one for one in slices if not is_deleting(one)]
    wanted = families(service)
    found = _Slices(delete=[one for one in ours if one.get("addressType") not in wanted])
    for family in wanted:
        mine = [one for one in ours if one.get("addressType") == family]
        _family(service, family, backends(service, pods, family), mine, labels, found)
    writes = [
        *(create(one) for one in found.create), *(update(one) for one in found.update),
        *(delete(one) for one in found.delete),
    ]  # fmt: skip
    yield from send(writes[:_WRITES])
    return Result(requeue_after=0.0 if len(writes) > _WRITES else None)


def send(writes: Sequence[Write]) -> Any:
    """All at once; what is gone already is as well."""
    if not writes:
        return
    for write, answer in zip(writes, (yield Step(writes)), strict=True):
        if answer.refusal is not None and not answer.refusal.not_found:
            raise ReconcileError(f"{write}: {answer.refusal.message}")


def _family(
    service: Object, family: str, pods: Sequence[Backend], known: Sequence[Object], labels: Labels, found: _Slices
) -> None:
    groups: dict[tuple[Port, ...], list[Backend]] = {}
    for backend in pods:
        groups.setdefault(backend.ports, []).append(backend)
    gone: list[Object] = []
    new: list[Object] = []
    by_ports: dict[tuple[Port, ...], list[Object]] = {}
    for one in known:
        by_ports.setdefault(_ports(one), []).append(one)
    for ports, had in by_ports.items():
        if ports not in groups:
            gone += had
    for ports, members in groups.items():
        wanted = [_endpoint(backend, service, labels) for backend in members]
        _group(service, family, ports, wanted, by_ports.get(ports, []), new, found, gone)
    if not new and len(gone) == len(known):
        _placeholder(service, family, gone, new)
    _reuse(service, new, gone, found)


def _group(
    service: Object,
    family: str,
    ports: tuple[Port, ...],
    wanted: list[Object],
    known: Sequence[Object],
    new: list[Object],
    found: _Slices,
    gone: list[Object],
) -> None:
    """Pods stay in their slices; new ones fill those that are written anyway, then the fullest with room, then more."""
    left = {_id(one): one for one in wanted}
    kept: list[tuple[Object, list[Object]]] = []
    for one in known:
        ids = [_id(endpoint) for endpoint in one.get("endpoints") or ()]
        kept.append((one, [left.pop(key) for key in ids if key in left]))
    rest = list(left.values())
    changed = [(one, now) for one, now in kept if _differs(service, one, now)]
    for _, now in changed:
        room = MOST - len(now)
        now.extend(rest[:room])
        del rest[:room]
    if rest:
        others = [(one, now) for one, now in kept if (one, now) not in changed and len(now) + len(rest) <= MOST]
        if others:
            best = max(others, key=lambda pair: len(pair[1]))
            best[1].extend(rest)
            changed.append(best)
            rest = []
    new += [_slice(service, family, ports, rest[start : start + MOST]) for start in range(0, len(rest), MOST)]
    for one, now in changed:
        if now:
            found.update.append(_rewritten(service, one, now))
        else:
            gone.append(one)


def _placeholder(service: Object, family: str, gone: list[Object], new: list[Object]) -> None:
    """A Service without pods has an empty slice, so that who watches knows that there is nobody."""
    empty = next((one for one in gone if not one.get("endpoints") and not one.get("ports")), None)
    if empty is not None and not _differs(service, empty, []):
        gone.remove(empty)
    else:
        new.append(_slice(service, family, (), []))


def _reuse(service: Object, new: list[Object], gone: list[Object], found: _Slices) -> None:
    """A slice that would go takes what another would be made for."""
    while new and gone:
        old, wanted = gone.pop(0), new.pop()
        body = {**old, "endpoints": wanted["endpoints"], "ports": wanted["ports"]}
        found.update.append(_rewritten(service, body, wanted["endpoints"]))
    found.create += new
    found.delete += gone


# ---- one slice


def _endpoint(one: Backend, service: Object, labels: Labels) -> Object:
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (one.serving and not one.terminating)
    found: Object = {
        "addresses": [one.address],
        "conditions": {"ready": ready, "serving": one.serving, "terminating": one.terminating},
        "targetRef": one.target,
    }
    if one.hostname:
        found["hostname"] = one.hostname
    if one.node:
        found["nodeName"] = one.node
        zone = labels(one.node).get(_ZONE)
        if zone:
            found["zone"] = zone
    return found


def _id(endpoint: Object) -> str:
    target = endpoint.get("targetRef") or {}
    return f"{target.get('uid')} {','.join(endpoint.get('addresses') or ())}"


def _ports(one: Object) -> tuple[Port, ...]:
    return tuple(
        Port(str(p.get("name") or ""), int(p.get("port") or 0), str(p.get("protocol") or "TCP"), p.get("appProtocol"))
        for p in one.get("ports") or ()
    )


def _labels(service: Object) -> dict[str, str]:
    own = {SERVICE: name_of(service), MANAGED_BY: CONTROLLER}
    given = {k: v for k, v in (meta_of(service).get("labels") or {}).items() if k not in {*own, HEADLESS}}
    return {**given, **own, **({HEADLESS: ""} if is_headless(service) else {})}


def _slice(service: Object, family: str, ports: tuple[Port, ...], endpoints: list[Object]) -> Object:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{name_of(service)[: _LONGEST - 1]}-",
            "namespace": namespace_of(service),
            "labels": _labels(service),
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": family,
        "endpoints": endpoints,
        "ports": [port.fields() for port in ports],
    }


def _rewritten(service: Object, one: Object, endpoints: list[Object]) -> Object:
    meta = {**one["metadata"], "labels": _labels(service), "ownerReferences": [owner_reference(service)]}
    return {**one, "metadata": meta, "endpoints": endpoints}


def _differs(service: Object, one: Object, endpoints: list[Object]) -> bool:
    """Whether a slice has to be written to hold these."""
    owners = meta_of(one).get("ownerReferences") or ()
    return (
        list(one.get("endpoints") or ()) != endpoints
        or (meta_of(one).get("labels") or {}) != _labels(service)
        or not any(owner.get("uid") == uid_of(service) for owner in owners)
    )
