"""What all verbs share: the store, the resources, admission, the rules of the kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from kohort.api import admit, storage_form
from kohort.kinds.batch.api import selector
from kohort.kube.timeslice import TimeSlices
from kohort.server import status, storage_codec
from kohort.server.event_admission_cache import EventAdmissionCache
from kohort.server.fieldmanager import FieldManager
from kohort.server.limits import DEFAULT
from kohort.server.pod_admission_cache import PodAdmissionCache
from kohort.server.pod_status_cache import PodStatusCache
from kohort.server.service_allocator import ServiceAllocator
from kohort.server.storage_codec import StoreLister

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kohort.api.kind import Context, Object
    from kohort.api.result import WriteResult
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.webhooks.conversion import WebhookConverter
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.resources import Resource, Resources
    from kohort.server.store import Item, Store

_CLASSES: Final = "scheduling.k8s.io/priorityclasses"
_PRIORITISED: Final = {"Pod", "PodGroup", "CompositePodGroup", "PriorityClass"}


class Core:
    """`plugins`: admission, in order. `after`: called with every write that was stored.

    `authorize_create`: whether the user of an update or apply may also make what it found missing; or ApiError.
    """

    def __init__(self, store: Store, resources: Resources, ctx: Context, plugins: Sequence[Any] = ()) -> None:
        self.store, self.resources, self.ctx = store, resources, ctx
        self.field_manager = FieldManager(ctx.release.minor, resources)
        self.lister = StoreLister(store, resources)
        self.slices = TimeSlices()
        self.min_request_timeout = DEFAULT.min_request_timeout  # seconds of a watch whose client names no end
        self.marked_seconds = 0.0  # that a pod without time to go is seen marked before it is gone
        self.authorize_create: Callable[[RequestInfo], None] = lambda _info: None
        self.converter: WebhookConverter | None = None  # for custom resources of several versions
        self.after: list[Callable[[AdmissionAttributes], Awaitable[None]]] = []
        self.service_allocator = ServiceAllocator(self.lister)
        self.admission_caches: dict[str, PodAdmissionCache | EventAdmissionCache] = {
            "pods": PodAdmissionCache(store),
            "events": EventAdmissionCache(store),
        }
        self.pod_statuses = PodStatusCache(store)
        self._mutating: list[Any] = []
        self._validating: list[Any] = []
        # Validating plugins by sort of write; a resource of a definition that is gone must not stay for it.
        self._concerned: WeakKeyDictionary[Resource, dict[tuple[str, str], tuple[Any, ...]]] = WeakKeyDictionary()
        self.use(plugins)

    def use(self, plugins: Sequence[Any]) -> None:
        """Admission plugins from now on."""
        self._mutating = [one for one in plugins if hasattr(one, "admit")]
        self._validating = [one for one in plugins if hasattr(one, "validate")]
        self._concerned.clear()
        for cache in self.admission_caches.values():
            cache.use(self._mutating)
        self.pod_statuses.use(self._mutating)

    # ---- admission

    async def mutate(self, attrs: AdmissionAttributes) -> None:
        for plugin in self._mutating:
            await plugin.admit(attrs)

    async def validate(self, attrs: AdmissionAttributes) -> None:
        for plugin in self._validators(attrs):
            await plugin.validate(attrs)

    def _validators(self, attrs: AdmissionAttributes) -> tuple[Any, ...]:
        """Most plugins are about one kind, or one verb: what does not concern them is not shown to them."""
        sorts = self._concerned.get(attrs.resource)
        if sorts is None:
            sorts = self._concerned[attrs.resource] = {}
        found = sorts.get((attrs.operation, attrs.subresource))
        if found is None:
            chosen = (one for one in self._validating if not hasattr(one, "concerns") or one.concerns(attrs))
            found = sorts[attrs.operation, attrs.subresource] = tuple(chosen)
        return found

    async def stored(self, attrs: AdmissionAttributes) -> None:
        for tell in self.after:
            await tell(attrs)

    def check_namespace(self, resource: Resource, namespace: str) -> None:
        """Nothing is created in a namespace that does not exist, or is terminating (upstream's NamespaceLifecycle)."""
        if not resource.namespaced or not resource.stored:
            return
        item = self.store.table("namespaces").head("", namespace)
        if item is None:
            raise status.not_found("", "namespaces", namespace)

    def check_terminating(self, resource: Resource, namespace: str, name: str) -> None:
        item = self.store.table("namespaces").head("", namespace) if resource.namespaced else None
        if item is None or b'"deletionTimestamp"' not in item.value:
            return
        if not storage_codec.decode(item.value)["metadata"].get("deletionTimestamp"):
            return
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        error = status.forbidden(resource.group, resource.plural, name, why)
        error.status["details"]["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise error

    # ---- the rules of the kinds

    def validate_create(self, resource: Resource, new: Object, namespace: str) -> WriteResult:
        existing: Sequence[Object] = ()
        classes: Sequence[Object] = ()
        if resource.kind == "Job" and resource.group == "batch":
            selector.generate(new, new["metadata"]["uid"])
        if resource.kind in _PRIORITISED:
            classes = self.lister.list("scheduling.k8s.io", "priorityclasses")
            if resource.version == "v1alpha2" and resource.kind == "PodGroup":
                existing = self.lister.list("scheduling.k8s.io", "workloads", namespace)
        return admit.complete_create(
            new,
            self.ctx,
            kind=resource.rules,
            priority_classes=classes,
            existing=existing,
        )

    def validate_update(
        self,
        resource: Resource,
        new: Object,
        old: Object,
        subresource: str,
        prior: Object | None = None,
    ) -> WriteResult:
        return admit.complete_update(new, old, self.ctx, kind=resource.rules, subresource=subresource, prior=prior)

    async def allocate(self, resource: Resource, new: Object) -> None:
        """What only a server with a store can fill in."""
        if resource.kind == "Service" and not resource.group:
            self.service_allocator.allocate(new)

    def reallocate(self, resource: Resource, new: Object, old: Object) -> None:
        """The same for an update."""
        if resource.kind == "Service" and not resource.group:
            self.service_allocator.reallocate(new, old)

    def reread(self) -> None:
        """What is stored may be from under other gates: a server fills in the defaults of today as it reads."""
        for resource in self.resources.stored().values():
            if resource.gate is None:
                continue
            table = self.store.table(resource.table)
            for item in table.items():
                old = storage_codec.load(resource, item)
                new = storage_form.to_response(resource.rules, admit.defaulted(old, resource.rules, self.ctx))
                if new != old:
                    table.reread(item, storage_codec.dump(resource, new, item.revision))

    # ---- reading for writers

    async def load(self, resource: Resource, item: Item) -> Object:
        """A stored object in the version of a resource."""
        if resource.conversion is None or self.converter is None:
            return storage_codec.load(resource, item)
        return await self.converter.load(resource, item)

    async def to_storage(self, resource: Resource, obj: Object) -> Object:
        """An object as it is kept."""
        if resource.conversion is None or self.converter is None:
            return obj
        return await self.converter.object(obj, resource, resource.storage)

    def head(self, resource: Resource, namespace: str, name: str) -> Item | None:
        return self.store.table(resource.table).head(namespace if resource.namespaced else "", name)
