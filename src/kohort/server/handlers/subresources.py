"""The small endpoints under an object: scale, binding, eviction, log, finalize, ephemeral containers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from kohort.api import apply
from kohort.api import patch as patches
from kohort.api.apply import scale as scale_fields
from kohort.api.errors import invalid, required
from kohort.api.releases import NEWEST
from kohort.apimachinery.labels import matches
from kohort.server import codec, jsonpath, options, status, storage_codec, timestamps
from kohort.server.admission.attributes import CREATE, AdmissionAttributes
from kohort.server.options import DeleteOptions, WriteOptions
from kohort.server.printers.cells import labels as selector_text
from kohort.server.request_body import check_patch_type, decode_body
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kohort.api.kind import Object
    from kohort.server.core import Core
    from kohort.server.handlers.delete import Deleter
    from kohort.server.handlers.patch import Writer
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.store import Item

_TRIES: Final = 50
_BUDGET: Final = "Cannot evict pod as it would violate the pod's disruption budget."


class Subresources:
    """By name; what is not here behaves as the object itself (status, resize)."""

    def __init__(self, core: Core, writer: Writer, deleter: Deleter) -> None:
        self.core, self.writer, self.deleter = core, writer, deleter
        self.handlers: dict[tuple[str, str], Callable[[RequestInfo], Awaitable[tuple[int, Item | Object]]]] = {
            ("binding", "create"): self.bind,
            ("eviction", "create"): self.evict,
            ("scale", "get"): self.get_scale,
            ("scale", "update"): self.put_scale,
            ("scale", "patch"): self.patch_scale,
        }

    def _item(self, info: RequestInfo) -> Item:
        head = self.core.head(info.resource, info.namespace, info.name)
        if head is None:
            raise status.not_found(info.resource.group, info.resource.plural, info.name)
        return head

    # ---- binding

    async def bind(self, info: RequestInfo) -> tuple[int, Item | Object]:
        """A pod gets its node: the one change of a pod's spec that a scheduler makes."""
        chosen = options.write_options(info.query, "CreateOptions", info.agent)
        body = self._binding_body(info)
        meta, target = body.get("metadata") or {}, body.get("target") or {}
        if info.name and meta.get("name") not in (None, "", info.name):
            raise status.bad_request("the name of the object does not match the name on the URL")
        name = info.name or str(meta.get("name") or "")
        node = target.get("name")
        problems = []
        if not node:
            problems.append(required("target.name"))
        if target.get("kind") not in (None, "", "Node"):
            problems.append(invalid("target.kind", target["kind"], 'must be empty or "Node"'))
        if problems:
            raise status.invalid("", "Binding", name, problems)
        store, pods = self.core.store, self.core.store.table("pods")
        for _ in range(_TRIES):
            head = pods.head(info.namespace, name)
            if head is None:
                raise status.not_found("", "pods", name)
            pod = storage_codec.load_quickly(info.resource, head)
            _check_bindable(pod, meta, name)
            _bind(pod, meta, str(node))
            attrs = AdmissionAttributes(
                CREATE, info.resource, "binding", info.namespace, name, body, None, info.user, chosen.dry_run
            )
            await self.core.validate(attrs)
            if chosen.dry_run:
                break
            try:
                dump = partial(storage_codec.dump, info.resource, pod)
                await store.write("pods", info.namespace, name, dump, expect=head)
                break
            except ConflictError:
                continue
        return 201, {**status.success(), "code": 201}

    def _binding_body(self, info: RequestInfo) -> dict[str, Any]:
        media = codec.media_type(info.content_type) or codec.JSON
        if media not in codec.READ:
            raise status.unsupported_media_type(codec.READ)
        value, _ = codec.parse(info.request.body, "Binding", media, composed=True)
        if not isinstance(value, dict) or any(
            not isinstance(value.get(name) or {}, dict) for name in ("metadata", "target")
        ):
            raise status.bad_request("Binding: expected an object with metadata and target")
        return value

    # ---- eviction

    async def evict(self, info: RequestInfo) -> tuple[int, Item | Object]:
        """A deletion that disruption budgets may refuse."""
        body = decode_body(info)
        given = body.get("deleteOptions")
        chosen = options.delete_options(info.query, given if isinstance(given, dict) else None)
        pod = storage_codec.load(info.resource, self._item(info))
        if not _is_terminal(pod) and not pod["metadata"].get("deletionTimestamp"):
            await self._spend_budget(info, pod, chosen)
        meta = pod["metadata"]
        meant = chosen.uid in (None, meta.get("uid")) and chosen.version in (None, meta.get("resourceVersion"))
        if meant and not chosen.dry_run and not meta.get("deletionTimestamp"):
            version = await self._record_eviction(info)
            chosen = replace(chosen, version=version if chosen.version else None)
        await self.deleter.remove(info, info.namespace, info.name, chosen)
        return 201, {**status.success(), "code": 201}

    async def _record_eviction(self, info: RequestInfo) -> str:
        """Set the condition DisruptionTarget, which failure policies of Jobs read; returns the new resourceVersion."""
        said = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        words = {"message": "Eviction API: evicting", "lastTransitionTime": timestamps.stamp()}
        for _ in range(_TRIES):
            head = self._item(info)
            pod = storage_codec.decode(head.value)
            state = pod.setdefault("status", {})
            others = [one for one in state.get("conditions") or () if one.get("type") != said["type"]]
            state["conditions"] = [*others, {**said, **words}]
            with suppress(ConflictError):
                await self.core.store.write("pods", info.namespace, info.name, partial(_dump, pod), expect=head)
                break
        return str(pod["metadata"]["resourceVersion"])

    async def _spend_budget(self, info: RequestInfo, pod: Object, chosen: DeleteOptions) -> None:
        labels = pod["metadata"].get("labels") or {}
        found = [
            one
            for one in self.core.lister.list("policy", "poddisruptionbudgets", info.namespace)
            if (one.get("spec") or {}).get("selector") is not None
            and matches((one.get("spec") or {}).get("selector") or {}, labels)
        ]
        if len(found) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise status.internal(text)
        if not found or _waits_freely(found[0], pod):
            return
        budget = found[0]
        left = int((budget.get("status") or {}).get("disruptionsAllowed") or 0)
        if left <= 0:
            name, state = budget["metadata"]["name"], budget.get("status") or {}
            text = (
                f"The disruption budget {name} needs {state.get('desiredHealthy', 0)} healthy pods and has "
                f"{state.get('currentHealthy', 0)} currently"
            )
            raise status.too_many_requests(_BUDGET, causes=[{"reason": "DisruptionBudget", "message": text}])
        if not chosen.dry_run:
            await self._count_down(info, budget["metadata"]["name"])

    async def _count_down(self, info: RequestInfo, name: str) -> None:
        resource = self.core.resources.of_plural("policy", "poddisruptionbudgets")
        if resource is None:
            return
        head = self.core.head(resource, info.namespace, name)
        if head is None:
            return
        budget = storage_codec.load(resource, head)
        state = budget.setdefault("status", {})
        state["disruptionsAllowed"] = int(state.get("disruptionsAllowed") or 0) - 1
        state.setdefault("disruptedPods", {})[info.name] = timestamps.stamp()
        await self.core.store.write(
            resource.table,
            info.namespace,
            name,
            lambda revision: storage_codec.dump(resource, budget, revision),
            expect=head,
        )

    # ---- scale

    def _paths(self, info: RequestInfo) -> tuple[str, str, str]:
        scale = info.resource.rules.scale
        if scale is not None:
            return scale.spec_replicas, scale.status_replicas, scale.selector or ""
        return ".spec.replicas", ".status.replicas", ".spec.selector"

    def scale_of(self, info: RequestInfo, obj: Object) -> Object:
        spec_path, status_path, selector_path = self._paths(info)
        wanted = jsonpath.first(obj, spec_path)
        state: dict[str, Any] = {"replicas": jsonpath.first(obj, status_path) or 0}
        selector = jsonpath.first(obj, selector_path) if selector_path else None
        if selector is not None:
            state["selector"] = selector if isinstance(selector, str) else selector_text(selector)
        meta = obj["metadata"]
        kept = {
            name: meta[name]
            for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
            if name in meta
        }
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": kept,
            "spec": {"replicas": wanted} if wanted else {},
            "status": state,
        }

    async def get_scale(self, info: RequestInfo) -> tuple[int, Item | Object]:
        return 200, self.scale_of(info, storage_codec.load(info.resource, self._item(info)))

    async def put_scale(self, info: RequestInfo) -> tuple[int, Item | Object]:
        chosen = options.write_options(info.query, "UpdateOptions", info.agent)
        body, _ = codec.parse(info.request.body, "Scale", info.content_type)
        return await self._rescale(info, chosen, lambda _: body)

    async def patch_scale(self, info: RequestInfo) -> tuple[int, Item | Object]:
        media = codec.media_type(info.content_type)
        check_patch_type(info, media)
        chosen = options.write_options(info.query, "PatchOptions", info.agent, media)
        applied = media == options.APPLY
        change, _ = codec.parse(info.request.body, "Scale", codec.YAML if applied else codec.JSON)

        def patched(now: Object) -> Any:
            try:
                return patches.json_patch(now, change) if media == patches.JSON else patches.merge(now, change)
            except patches.PatchError as error:
                if error.too_large:
                    raise status.entity_too_large(str(error)) from None
                raise status.bad_request(f"error decoding patch: {error}") from None

        return await self._rescale(info, chosen, _applying(change, chosen) if applied else patched)

    async def _rescale(
        self, info: RequestInfo, chosen: WriteOptions, change: Callable[[Object], Any]
    ) -> tuple[int, Item | Object]:
        spec_path = self._paths(info)[0]
        replicas_path = scale_fields.path_of(spec_path)
        for _ in range(_TRIES):
            head = self._item(info)
            old = storage_codec.load(info.resource, head)
            shown = self.scale_of(info, old)
            _put_managers(shown, scale_fields.scale_entries(old, replicas_path))
            scale = change(shown)
            replicas, version = _scale_values(scale)
            if version and version != old["metadata"].get("resourceVersion"):
                why = "the object has been modified; please apply your changes to the latest version and try again"
                raise status.conflict(info.resource.group, info.resource.plural, info.name, why)
            if replicas < 0:
                problem = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
                raise status.invalid("autoscaling", "Scale", info.name, [problem])
            if codec.media_type(info.content_type) != options.APPLY:
                after = {**shown, "spec": {"replicas": replicas} if replicas else {}}
                scale = apply.update_managed_fields(
                    shown, after, of=_scale_target(), manager=chosen.manager, now=timestamps.stamp()
                )
            new = storage_codec.load(info.resource, head)
            _set(new, spec_path, replicas)
            _put_managers(new, scale_fields.parent_entries(old, scale, replicas_path, info.resource.api_version))
            try:
                item = await self.writer.replace(info, head, new, chosen, applied=True)
            except ConflictError:
                continue
            stored = item if isinstance(item, dict) else storage_codec.load(info.resource, item)
            return 200, self.scale_of(info, stored)
        raise status.conflict(info.resource.group, info.resource.plural, info.name, "the object keeps changing")

    # ---- log

    def log(self, info: RequestInfo) -> bytes:
        """There are no containers, so there is nothing that they could have written; the answer says so."""
        pod = storage_codec.load(info.resource, self._item(info))
        names = [
            one.get("name") for member in ("containers", "initContainers") for one in pod["spec"].get(member) or []
        ]
        wanted = options.one(info.query, "container")
        if not wanted and len(pod["spec"].get("containers") or []) > 1:
            listed = " ".join(str(name) for name in names)
            raise status.bad_request(
                f"a container name must be specified for pod {info.name}, choose one of: [{listed}]"
            )
        if wanted and wanted not in names:
            raise status.bad_request(f"container {wanted} is not valid for pod {info.name}")
        if not pod["spec"].get("nodeName"):
            return b""
        return f"kohort: pod {info.name} runs no containers, so there is no output to show\n".encode()


def _dump(pod: Object, revision: int) -> bytes:
    pod["metadata"]["resourceVersion"] = str(revision)
    return codec.encode(pod)


def _check_bindable(pod: Object, meta: dict[str, Any], name: str) -> None:
    own = pod["metadata"]
    if meta.get("uid") and meta["uid"] != own.get("uid"):
        why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {own.get('uid')}"
        raise status.conflict("", "pods/binding", name, why)
    if meta.get("resourceVersion") and meta["resourceVersion"] != own.get("resourceVersion"):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {meta['resourceVersion']}, ResourceVersion in "
            f"object meta: {own.get('resourceVersion')}"
        )
        raise status.conflict("", "pods/binding", name, why)
    if own.get("deletionTimestamp"):
        raise status.conflict("", "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        raise status.conflict("", "pods/binding", name, why)
    if spec.get("schedulingGates"):
        raise status.conflict("", "pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")


def _bind(pod: Object, meta: dict[str, Any], node: str) -> None:
    pod.setdefault("spec", {})["nodeName"] = node
    if meta.get("annotations"):
        pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **meta["annotations"]}
    if meta.get("labels"):
        pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **meta["labels"]}
    state = pod.setdefault("status", {})
    state.pop("nominatedNodeName", None)  # what was wished for does not matter any more
    known = [one for one in state.get("conditions") or [] if one.get("type") == "PodScheduled"]
    conditions = [one for one in state.get("conditions") or [] if one.get("type") != "PodScheduled"]
    scheduled: dict[str, Any] = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    # To be bound is no new generation; which one was seen is only said where somebody has said so before.
    if state.get("observedGeneration") or any(one.get("observedGeneration") for one in known):
        scheduled["observedGeneration"] = pod["metadata"].get("generation")
    scheduled["lastTransitionTime"] = timestamps.stamp()
    state["conditions"] = [*conditions, scheduled]


def _is_terminal(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed", "Pending"}


def _waits_freely(budget: Object, pod: Object) -> bool:
    """A running pod that is not ready may go if the budget is kept, or if its policy says so."""
    state = budget.get("status") or {}
    ready = any(
        one.get("type") == "Ready" and one.get("status") == "True"
        for one in (pod.get("status") or {}).get("conditions") or []
    )
    if ready:
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, wanted = int(state.get("currentHealthy") or 0), int(state.get("desiredHealthy") or 0)
    return healthy >= wanted > 0


@cache
def _scale_target() -> apply.Target:
    structure = apply.native(NEWEST, scale_fields.SCALE_VERSION, "Scale") or apply.DEDUCED
    return apply.Target(scale_fields.SCALE_VERSION, "Scale", structure, "scale")


def _applying(change: Any, chosen: WriteOptions) -> Callable[[Object], Object]:
    """Server-side apply of a Scale: conflicts count whether the replicas are owned there or on the object itself."""
    if not isinstance(change, dict):
        raise status.bad_request("error decoding YAML: an applied object is a mapping")

    def applied(shown: Object) -> Object:
        try:
            result = apply.apply(
                shown,
                change,
                of=_scale_target(),
                manager=chosen.manager,
                now=timestamps.stamp(),
                force=bool(chosen.force),
            )
        except apply.ApplyError as error:
            raise status.bad_request(str(error)) from None
        if result.conflicts:
            raise status.ApiError(apply.conflict_status(result.conflicts))
        return result.object

    return applied


def _put_managers(obj: Object, entries: list[Object]) -> None:
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def _scale_values(scale: Any) -> tuple[int, str]:
    if not isinstance(scale, dict):
        raise status.bad_request("Scale: expected an object")
    spec, meta = scale.get("spec") or {}, scale.get("metadata") or {}
    if not isinstance(spec, dict) or not isinstance(meta, dict):
        raise status.bad_request("Scale: spec and metadata are objects")
    replicas = spec.get("replicas") or 0
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise status.bad_request("Scale: spec.replicas: expected an integer")
    return replicas, str(meta.get("resourceVersion") or "")


def _set(obj: Object, path: str, value: Any) -> None:
    *parents, last = [step[1] for step in jsonpath.steps(path)]
    block = obj
    for name in parents:
        block = block.setdefault(name, {})
    block[last] = value
