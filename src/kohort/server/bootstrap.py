"""What a new cluster has before anybody asks for it: namespaces, priority classes, the kubernetes service, roles."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from kohort.api import storage_form
from kohort.server import randomness, storage_codec, timestamps
from kohort.server.auth import bootstrap as roles
from kohort.server.crd import accepted_names, definition, shipped

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.api import Api
    from kohort.server.crd.shipped import Shipped
    from kohort.server.resources import Resource
    from kohort.server.service_allocator import ServiceAllocator
    from kohort.server.store import Item

_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_MADE_FROM: Final = "kohort.dev/made-from"
_CLASSES: Final = {
    "system-cluster-critical": (2_000_000_000, "Used for system critical pods that must run in the cluster."),
    "system-node-critical": (2_000_001_000, "Used for system critical pods that must not be moved from their node."),
}


async def bootstrap(api: Api) -> None:
    """Everything that is missing, in one go; what somebody changed is left as it is."""
    writes = [write for group, obj in _wanted(api) if (write := _missing(api, group, obj)) is not None]
    await asyncio.gather(*writes)


async def custom_kinds(api: Api) -> None:
    """The definitions of JobSet, Trainer, Grove and LeaderWorkerSet, where nobody has put or changed others.

    Those that an earlier version of Kohort put in and nobody touched since are brought up to date.
    """
    resource = api.resources.of_kind("apiextensions.k8s.io", "CustomResourceDefinition")
    if resource is None:
        return
    alone = not api.store.table(resource.table).items()
    writes = []
    for name, ours in shipped.shipped().items():
        head = api.core.head(resource, "", name)
        if head is None:
            writes.append(_write(api, resource, _defined(ours, established=alone), None))
        elif (wanted := _renewed(resource, ours, head)) is not None:
            writes.append(_write(api, resource, wanted, head))
    await asyncio.gather(*writes)


def _defined(ours: Shipped, *, established: bool) -> Object:
    """A new definition. The annotation says of what, and as which generation, it was put in.

    `established`: there are no others whose names it could take, so it is served from the start.
    """
    meta = {
        "name": ours.name,
        "uid": randomness.uid(),
        "creationTimestamp": timestamps.stamp(),
        "generation": 1,
        "annotations": {_MADE_FROM: f"{ours.made_from}/1"},
        "managedFields": _owners(),
    }
    outline = {"spec": ours.outline}
    status = definition.first_status(outline)
    if established:
        meta["finalizers"] = [accepted_names.CLEANUP]
        status = accepted_names.names_status({**outline, "status": status}, (), timestamps.stamp())
    return {"metadata": meta, "spec": ours.spec, "status": status}


def _owners() -> list[Object]:
    """We own our annotation only: upstream's definition of the same name can be applied without a conflict."""
    return [
        {
            "manager": "kohort",
            "operation": "Update",
            "apiVersion": "apiextensions.k8s.io/v1",
            "time": timestamps.stamp(),
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{_MADE_FROM}": {}}}},
        }
    ]


def _renewed(resource: Resource, ours: Shipped, head: Item) -> Object | None:
    meta = shipped.read(head.value).metadata
    before, _, generation = (meta.get("annotations") or {}).get(_MADE_FROM, "").partition("/")
    if not before or generation != str(meta.get("generation")):
        return None
    if before == ours.made_from:
        if meta.get("managedFields"):
            return None
        new = storage_codec.load(resource, head)  # stored by a version that wrote no owners
        new["metadata"]["managedFields"] = _owners()
        return new
    new = {**storage_codec.load(resource, head), "spec": ours.whole}
    new["metadata"].setdefault("managedFields", _owners())
    now = int(meta.get("generation") or 0) + 1
    annotations = {**(meta.get("annotations") or {}), _MADE_FROM: f"{ours.made_from}/{now}"}
    new["metadata"] |= {"generation": now, "annotations": annotations}
    return new


def _wanted(api: Api) -> list[tuple[str, Object]]:
    found: list[tuple[str, Object]] = [("", {"kind": "Namespace", "metadata": {"name": name}}) for name in _NAMESPACES]
    for name, (value, description) in _CLASSES.items():
        body: dict[str, Any] = {"kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        found.append(("scheduling.k8s.io", {**body, "description": description, "preemptionPolicy": _LOWER}))
    found.append(("", _service(api.core.service_allocator)))
    found.append(("networking.k8s.io", _service_range(api.core.service_allocator)))
    found += [("rbac.authorization.k8s.io", one) for one in roles.objects(api.ctx.release.minor)]
    return found


_LOWER: Final = "PreemptLowerPriority"


def _service(addresses: ServiceAllocator) -> Object:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": addresses.first,
            "clusterIPs": [addresses.first],
            "ipFamilies": [addresses.family],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
        "status": {"loadBalancer": {}},
    }


def _service_range(addresses: ServiceAllocator) -> Object:
    ready = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}
    return {
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [addresses.range]},
        "status": {"conditions": [{**ready, "lastTransitionTime": timestamps.stamp()}]},
    }


async def endpoints(api: Api, host: str, port: int) -> None:
    """Who is behind the service `kubernetes`: this server, wherever it listens this time."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    meta = {"name": "kubernetes", "namespace": "default"}
    legacy: Object = {
        "kind": "Endpoints",
        "metadata": {**meta, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": host}], "ports": ports}],
    }
    own: Object = {
        "kind": "EndpointSlice",
        "metadata": {**meta, "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": api.core.service_allocator.family_of(host),
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": ports,
    }
    for group, obj, members in (("", legacy, ["subsets"]), ("discovery.k8s.io", own, ["endpoints", "ports"])):
        resource = api.resources.of_kind(group, obj["kind"])
        if resource is None:
            continue
        head = api.core.head(resource, "default", "kubernetes")
        if head is None:
            await _write(api, resource, _new(api, resource, obj), None)
            continue
        stored = storage_codec.load(resource, head)
        wanted = {**stored, **{member: obj[member] for member in members}}
        if wanted != stored:
            await _write(api, resource, wanted, head)


def _missing(api: Api, group: str, obj: Object) -> asyncio.Future[Any] | None:
    resource = api.resources.of_kind(group, obj["kind"])
    if resource is None:
        return None
    meta = obj["metadata"]
    head = api.core.head(resource, meta.get("namespace", ""), meta["name"])
    if head is not None:
        wanted = None
        if group == "rbac.authorization.k8s.io":
            wanted = roles.repaired(storage_codec.load(resource, head), obj)
        if wanted is None:
            return None
        return _write(api, resource, wanted, head)
    return _write(api, resource, _new(api, resource, obj), None)


def _new(api: Api, resource: Resource, obj: Object) -> Object:
    new = {**obj, "apiVersion": resource.api_version, "metadata": dict(obj["metadata"])}
    new["metadata"] |= {"uid": randomness.uid(), "creationTimestamp": timestamps.stamp()}
    resource.rules.default(new, api.ctx)
    if resource.rules.status:
        new["status"] = new.get("status") or resource.rules.first_status(new)
    return storage_form.to_response(resource.rules, new)


def _write(api: Api, resource: Resource, obj: Object, head: Any) -> asyncio.Future[Any]:
    meta = obj["metadata"]
    return api.store.write(
        resource.table,
        meta.get("namespace", "") if resource.namespaced else "",
        meta["name"],
        lambda revision: storage_codec.dump(resource, obj, revision),
        expect=head,
    )
