"""The small endpoints under an object: scale, binding, eviction, log, finalize, ephemeral containers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from kohort.api import apply
from kohort.api import patch as patches
from kohort.api.apply import scale as scale_books
from kohort.api.errors import invalid, required
from kohort.api.releases import NEWEST
from kohort.server import ages, codec, objects, options, paths, status
from kohort.server.bodies import body_of
from kohort.server.call import CREATE, Call
from kohort.server.columns.cells import labels as selector_text
from kohort.server.options import DeleteOptions, WriteOptions
from kohort.server.selectors import match_labels
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kohort.api.kind import Object
    from kohort.server.ask import Ask
    from kohort.server.core import Core
    from kohort.server.deleting import Deleter
    from kohort.server.store import Item
    from kohort.server.writing import Writer

_TRIES: Final = 50
_BUDGET: Final = "Cannot evict pod as it would violate the pod's disruption budget."


class Subresources:
    """By name; what is not here behaves as the object itself (status, resize)."""

    def __init__(self, core: Core, writer: Writer, deleter: Deleter) -> None:
        self.core, self.writer, self.deleter = core, writer, deleter
        self.handlers: dict[tuple[str, str], Callable[[Ask], Awaitable[tuple[int, Item | Object]]]] = {
            ("binding", "create"): self.bind,
            ("eviction", "create"): self.evict,
            ("scale", "get"): self.get_scale,
            ("scale", "update"): self.put_scale,
            ("scale", "patch"): self.patch_scale,
        }

    def _item(self, ask: Ask) -> Item:
        head = self.core.head(ask.resource, ask.namespace, ask.name)
        if head is None:
            raise status.not_found(ask.resource.group, ask.resource.plural, ask.name)
        return head

    # ---- binding

    async def bind(self, ask: Ask) -> tuple[int, Item | Object]:
        """A pod gets its node: the one change of a pod's spec that a scheduler makes."""
        chosen = options.write_options(ask.query, "CreateOptions", ask.agent)
        body = self._binding_body(ask)
        meta, target = body.get("metadata") or {}, body.get("target") or {}
        if ask.name and meta.get("name") not in (None, "", ask.name):
            raise status.bad_request("the name of the object does not match the name on the URL")
        name = ask.name or str(meta.get("name") or "")
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
            head = pods.head(ask.namespace, name)
            if head is None:
                raise status.not_found("", "pods", name)
            pod = objects.decode(head.value)
            _bindable(pod, meta, name, node)
            _bind(pod, meta, str(node))
            call = Call(CREATE, ask.resource, "binding", ask.namespace, name, body, None, ask.user, chosen.dry_run)
            await self.core.validate(call)
            if chosen.dry_run:
                break
            try:
                await store.write("pods", ask.namespace, name, partial(_dump, pod), expect=head)
                break
            except ConflictError:
                continue
        return 201, {**status.success(), "code": 201}

    def _binding_body(self, ask: Ask) -> dict[str, Any]:
        media = codec.media_type(ask.content_type) or codec.JSON
        if media not in codec.READ:
            raise status.unsupported_media_type(codec.READ)
        value, _ = codec.parse(ask.request.body, "Binding", media)
        if not isinstance(value, dict) or any(
            not isinstance(value.get(name) or {}, dict) for name in ("metadata", "target")
        ):
            raise status.bad_request("Binding: expected an object with metadata and target")
        return value

    # ---- eviction

    async def evict(self, ask: Ask) -> tuple[int, Item | Object]:
        """A deletion that disruption budgets may refuse."""
        body = body_of(ask)
        given = body.get("deleteOptions")
        chosen = options.delete_options(ask.query, given if isinstance(given, dict) else None)
        pod = objects.load(ask.resource, self._item(ask))
        if not _is_terminal(pod) and not pod["metadata"].get("deletionTimestamp"):
            await self._spend_budget(ask, pod, chosen)
        meta = pod["metadata"]
        meant = chosen.uid in (None, meta.get("uid")) and chosen.version in (None, meta.get("resourceVersion"))
        if meant and not chosen.dry_run and not meta.get("deletionTimestamp"):
            version = await self._say_evicted(ask)
            chosen = replace(chosen, version=version if chosen.version else None)
        await self.deleter.remove(ask, ask.namespace, ask.name, chosen)
        return 201, {**status.success(), "code": 201}

    async def _say_evicted(self, ask: Ask) -> str:
        """The pod tells why it goes: failure policies of Jobs ask for that. The version that it has then."""
        said = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        words = {"message": "Eviction API: evicting", "lastTransitionTime": ages.stamp()}
        for _ in range(_TRIES):
            head = self._item(ask)
            pod = objects.decode(head.value)
            state = pod.setdefault("status", {})
            others = [one for one in state.get("conditions") or () if one.get("type") != said["type"]]
            state["conditions"] = [*others, {**said, **words}]
            with suppress(ConflictError):
                await self.core.store.write("pods", ask.namespace, ask.name, partial(_dump, pod), expect=head)
                break
        return str(pod["metadata"]["resourceVersion"])

    async def _spend_budget(self, ask: Ask, pod: Object, chosen: DeleteOptions) -> None:
        labels = pod["metadata"].get("labels") or {}
        found = [
            one
            for one in self.core.objects.list("policy", "poddisruptionbudgets", ask.namespace)
            if (one.get("spec") or {}).get("selector") is not None
            and match_labels((one.get("spec") or {}).get("selector") or {}, labels)
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
            await self._count_down(ask, budget["metadata"]["name"])

    async def _count_down(self, ask: Ask, name: str) -> None:
        resource = self.core.resources.of_plural("policy", "poddisruptionbudgets")
        if resource is None:
            return
        head = self.core.head(resource, ask.namespace, name)
        if head is None:
            return
        budget = objects.load(resource, head)
        state = budget.setdefault("status", {})
        state["disruptionsAllowed"] = int(state.get("disruptionsAllowed") or 0) - 1
        state.setdefault("disruptedPods", {})[ask.name] = ages.stamp()
        await self.core.store.write(
            resource.table,
            ask.namespace,
            name,
            lambda revision: objects.dump(resource, budget, revision),
            expect=head,
        )

    # ---- scale

    def _paths(self, ask: Ask) -> tuple[str, str, str]:
        scale = ask.resource.rules.scale
        if scale is not None:
            return scale.spec_replicas, scale.status_replicas, scale.selector or ""
        return ".spec.replicas", ".status.replicas", ".spec.selector"

    def scale_of(self, ask: Ask, obj: Object) -> Object:
        spec_path, status_path, selector_path = self._paths(ask)
        wanted = paths.first(obj, spec_path)
        state: dict[str, Any] = {"replicas": paths.first(obj, status_path) or 0}
        selector = paths.first(obj, selector_path) if selector_path else None
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

    async def get_scale(self, ask: Ask) -> tuple[int, Item | Object]:
        return 200, self.scale_of(ask, objects.load(ask.resource, self._item(ask)))

    async def put_scale(self, ask: Ask) -> tuple[int, Item | Object]:
        chosen = options.write_options(ask.query, "UpdateOptions", ask.agent)
        body, _ = codec.parse(ask.request.body, "Scale", ask.content_type)
        return await self._rescale(ask, chosen, lambda _: body)

    async def patch_scale(self, ask: Ask) -> tuple[int, Item | Object]:
        media = codec.media_type(ask.content_type)
        chosen = options.write_options(ask.query, "PatchOptions", ask.agent, media)
        applied = media == options.APPLY
        change, _ = codec.parse(ask.request.body, "Scale", codec.YAML if applied else codec.JSON)

        def patched(now: Object) -> Any:
            try:
                return patches.json_patch(now, change) if media == patches.JSON else patches.merge(now, change)
            except patches.PatchError as error:
                raise status.bad_request(f"error decoding patch: {error}") from None

        return await self._rescale(ask, chosen, _applying(change, chosen) if applied else patched)

    async def _rescale(
        self, ask: Ask, chosen: WriteOptions, change: Callable[[Object], Any]
    ) -> tuple[int, Item | Object]:
        spec_path = self._paths(ask)[0]
        replicas_path = scale_books.path_of(spec_path)
        for _ in range(_TRIES):
            head = self._item(ask)
            old = objects.load(ask.resource, head)
            shown = self.scale_of(ask, old)
            _put_managers(shown, scale_books.scale_entries(old, replicas_path))
            scale = change(shown)
            replicas, version = _scale_values(scale)
            if version and version != old["metadata"].get("resourceVersion"):
                why = "the object has been modified; please apply your changes to the latest version and try again"
                raise status.conflict(ask.resource.group, ask.resource.plural, ask.name, why)
            if replicas < 0:
                problem = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
                raise status.invalid("autoscaling", "Scale", ask.name, [problem])
            if codec.media_type(ask.content_type) != options.APPLY:
                after = {**shown, "spec": {"replicas": replicas} if replicas else {}}
                scale = apply.update_managed_fields(
                    shown, after, of=_scale_target(), manager=chosen.manager, now=ages.stamp()
                )
            new = objects.load(ask.resource, head)
            _set(new, spec_path, replicas)
            _put_managers(new, scale_books.parent_entries(old, scale, replicas_path, ask.resource.api_version))
            try:
                item = await self.writer.replace(ask, head, new, chosen, applied=True)
            except ConflictError:
                continue
            stored = item if isinstance(item, dict) else objects.load(ask.resource, item)
            return 200, self.scale_of(ask, stored)
        raise status.conflict(ask.resource.group, ask.resource.plural, ask.name, "the object keeps changing")

    # ---- log

    def log(self, ask: Ask) -> bytes:
        """There are no containers, so there is nothing that they could have written; the answer says so."""
        pod = objects.load(ask.resource, self._item(ask))
        names = [
            one.get("name") for member in ("containers", "initContainers") for one in pod["spec"].get(member) or []
        ]
        wanted = options.one(ask.query, "container")
        if not wanted and len(pod["spec"].get("containers") or []) > 1:
            listed = " ".join(str(name) for name in names)
            raise status.bad_request(
                f"a container name must be specified for pod {ask.name}, choose one of: [{listed}]"
            )
        if wanted and wanted not in names:
            raise status.bad_request(f"container {wanted} is not valid for pod {ask.name}")
        if not pod["spec"].get("nodeName"):
            return b""
        return f"kohort: pod {ask.name} runs no containers, so there is no output to show\n".encode()


def _dump(pod: Object, revision: int) -> bytes:
    pod["metadata"]["resourceVersion"] = str(revision)
    return codec.encode(pod)


def _bindable(pod: Object, meta: dict[str, Any], name: str, node: Any) -> None:
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
    known = [one for one in state.get("conditions") or [] if one.get("type") == "PodScheduled"]
    conditions = [one for one in state.get("conditions") or [] if one.get("type") != "PodScheduled"]
    scheduled: dict[str, Any] = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    # To be bound is no new generation; which one was seen is only said where somebody has said so before.
    if state.get("observedGeneration") or any(one.get("observedGeneration") for one in known):
        scheduled["observedGeneration"] = pod["metadata"].get("generation")
    scheduled["lastTransitionTime"] = ages.stamp()
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
    structure = apply.native(NEWEST, scale_books.SCALE_VERSION, "Scale") or apply.DEDUCED
    return apply.Target(scale_books.SCALE_VERSION, "Scale", structure, "scale")


def _applying(change: Any, chosen: WriteOptions) -> Callable[[Object], Object]:
    """Server-side apply of a Scale: whoever owns the replicas, there or of the object itself, is asked."""
    if not isinstance(change, dict):
        raise status.bad_request("error decoding YAML: an applied object is a mapping")

    def applied(shown: Object) -> Object:
        try:
            result = apply.apply(
                shown, change, of=_scale_target(), manager=chosen.manager, now=ages.stamp(), force=bool(chosen.force)
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
    *parents, last = [step[1] for step in paths.steps(path)]
    block = obj
    for name in parents:
        block = block.setdefault(name, {})
    block[last] = value
