"""create: from a body to an object that was not there.

decode -> managedFields -> mutating plugins -> rules -> validating plugins -> store. A pod or an event like one
before comes from an admission cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.api import admit, storage_form
from kohort.server import options, randomness, status, storage_codec, timestamps
from kohort.server.admission.attributes import CREATE, AdmissionAttributes
from kohort.server.request_body import decode_body, generate_name, refused
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.core import Core
    from kohort.server.event_admission_cache import EventAdmissionCache
    from kohort.server.options import WriteOptions
    from kohort.server.pod_admission_cache import PodAdmissionCache
    from kohort.server.remembered import Key
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.store import Item

    AdmissionCache = PodAdmissionCache | EventAdmissionCache

_TRIES: Final = 8


class _NameTakenError(Exception):
    """There is an object of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Creator:
    def __init__(self, core: Core) -> None:
        self.core = core

    async def create(self, info: RequestInfo) -> tuple[int, Item | Object]:
        """201 and what is stored; with dryRun, what would be."""
        chosen = options.write_options(info.query, "CreateOptions", info.agent)
        body = decode_body(info, self.core.ctx)
        self.core.check_namespace(info.resource, info.namespace)
        return await self.create_object(info, body, chosen)

    async def create_object(self, info: RequestInfo, body: Object, chosen: WriteOptions) -> tuple[int, Item | Object]:
        body_warnings = list(info.warnings)
        for attempt in range(_TRIES):
            known = not info.name and not chosen.dry_run
            cache = self.core.admission_caches.get(info.resource.table) if known else None
            key = cache.key(info.resource, body, info.namespace, chosen) if cache is not None else None
            try:
                if cache is not None and key is not None:
                    found = await self._create_from_cache(info, cache, key, body, chosen)
                    if found is not None:
                        return 201, found
                return 201, await self._created(info, body, chosen, cache, key)
            except _NameTakenError as taken:
                if not _generated(body) or attempt == _TRIES - 1:
                    raise self._exists(info, body, taken.name) from None
                info.warnings[:] = body_warnings
        raise AssertionError("unreachable")

    def _exists(self, info: RequestInfo, body: Object, name: str) -> status.ApiError:
        resource = info.resource
        error = status.already_exists(resource.group, resource.plural, name)
        head = self.core.head(resource, info.namespace, name)
        if head is not None and storage_codec.load(resource, head)["metadata"].get("deletionTimestamp"):
            error.status["message"] = f"object is being deleted: {error.status['message']}"
        if body["metadata"].get("generateName"):
            error.status["message"] += ", the server was not able to generate a unique name for the object"
            error.status["details"]["retryAfterSeconds"] = 1
        return error

    async def _create_from_cache(
        self, info: RequestInfo, cache: AdmissionCache, key: Key, body: Object, chosen: WriteOptions
    ) -> Item | Object | None:
        """For a pod or an event like one before."""
        name = generate_name(body["metadata"])
        new = cache.build(key, info.resource, body, info.namespace, name)
        if new is None:
            return None
        self.core.check_terminating(info.resource, info.namespace, name)
        new["metadata"]["uid"] = randomness.uid()
        info.warnings += cache.warnings(key)
        return await self._finish(info, admission_attributes(info, CREATE, new, None, chosen), chosen)

    async def _created(
        self, info: RequestInfo, body: Object, chosen: WriteOptions, cache: AdmissionCache | None, key: Key | None
    ) -> Item | Object:
        """Decoded, defaulted, admitted and validated in full."""
        resource, core = info.resource, self.core
        read = admit.decode_create(
            body,
            core.ctx,
            namespace=info.namespace if resource.namespaced else None,
            suffix=randomness.suffix,
            field_validation=chosen.validation,
            kind=resource.rules,
        )
        if read.object is None:
            raise refused(read)
        new = read.object
        info.warnings += read.warnings
        if info.name and new["metadata"].get("name") != info.name:
            raise status.bad_request("the name of the object does not match the name on the URL")
        if "managedFields" not in (body.get("metadata") or {}):
            new = core.field_manager.update(resource, "", None, new, chosen.manager)
        core.check_terminating(resource, info.namespace, str(new["metadata"].get("name") or ""))
        attrs = admission_attributes(info, CREATE, new, None, chosen)
        new["metadata"]["creationTimestamp"] = timestamps.stamp()
        new["metadata"]["uid"] = randomness.uid()
        await core.mutate(attrs)
        new = attrs.object or new
        answer = core.validate_create(resource, new, info.namespace)
        if answer.object is None:
            raise refused(answer)
        info.warnings += [*answer.warnings, *attrs.warnings]
        attrs.object = storage_form.to_response(resource.rules, answer.object)
        await core.allocate(resource, attrs.object)
        if cache is not None and key is not None:
            cache.add(key, attrs.object, (*read.warnings, *answer.warnings, *attrs.warnings))
        return await self._finish(info, attrs, chosen)

    async def _finish(self, info: RequestInfo, attrs: AdmissionAttributes, chosen: WriteOptions) -> Item | Object:
        resource, core, new = info.resource, self.core, attrs.object
        assert new is not None
        before = len(attrs.warnings)
        if info.verb != "create":
            core.authorize_create(info)
        kept = await core.to_storage(resource, new)  # first: after the quotas, nothing may happen before the write
        await core.validate(attrs)
        info.warnings += attrs.warnings[before:]
        namespace = new["metadata"].get("namespace", "") if resource.namespaced else ""
        name = new["metadata"]["name"]
        if core.store.table(resource.table).head(namespace, name) is not None:
            raise _NameTakenError(name)
        if chosen.dry_run:
            return new
        try:
            item = await core.store.write(
                resource.table,
                namespace,
                name,
                lambda revision: storage_codec.dump(resource.storage, kept, revision),
                expect=None,
            )
        except ConflictError:  # between the look and the write, which are apart in a worker
            raise _NameTakenError(name) from None
        await core.stored(attrs)
        return item


def _generated(body: Object) -> bool:
    meta = body.get("metadata") or {}
    return bool(meta.get("generateName")) and not meta.get("name")


def admission_attributes(
    info: RequestInfo, operation: str, new: Object, old: Object | None, chosen: WriteOptions
) -> AdmissionAttributes:
    """A write as admission sees it."""
    meta = new.get("metadata") or {}
    return AdmissionAttributes(
        operation,
        info.resource,
        info.subresource,
        info.namespace,
        info.name or str(meta.get("name") or ""),
        new,
        old,
        info.user,
        chosen.dry_run,
        {"fieldManager": chosen.manager, "fieldValidation": chosen.validation},
    )
