"""update: an object in the place of a stored one. Patches and the small endpoints end here, too.

decode -> managedFields -> mutating plugins -> rules -> validating plugins -> store. A write that builds on what is
stored is tried again when somebody else was faster, unless it named the version it meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import admit, apply, storage_form
from kohort.api.sameness import same
from kohort.server import options, randomness, status, storage_codec
from kohort.server.admission.attributes import UPDATE, AdmissionAttributes
from kohort.server.handlers.create import admission_attributes
from kohort.server.request_body import decode_body, refused
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.core import Core
    from kohort.server.handlers.create import Creator
    from kohort.server.options import WriteOptions
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.store import Item

_TRIES: Final = 50
_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


class Updater:
    def __init__(self, core: Core, creator: Creator) -> None:
        self.core, self.creator = core, creator

    async def update(self, info: RequestInfo) -> tuple[int, Item | Object]:
        chosen = options.write_options(info.query, "UpdateOptions", info.agent)
        body = decode_body(info, self.core.ctx)
        meta = body.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        body_warnings = list(info.warnings)
        for _ in range(_TRIES):
            info.warnings[:] = body_warnings
            head = self.core.head(info.resource, info.namespace, info.name)
            if head is None:
                return await self._update_nothing(info, body, chosen)
            try:
                return 200, await self.replace(info, head, body, chosen)
            except ConflictError:
                if meta.get("resourceVersion"):
                    break
        raise conflict(info)

    async def _update_nothing(self, info: RequestInfo, body: Object, chosen: WriteOptions) -> tuple[int, Item | Object]:
        resource = info.resource
        if info.subresource or not resource.create_on_update:
            self._readable(info, body, chosen)
            raise status.not_found(resource.group, resource.plural, info.name)
        self.core.check_namespace(resource, info.namespace)
        return await self.creator.create_object(info, body, chosen)

    def _readable(self, info: RequestInfo, body: Object, chosen: WriteOptions) -> None:
        """A body is decoded, with its warnings, before the object that it is about is looked up."""
        rules = info.resource.rules
        namespace = info.namespace if info.resource.namespaced else None
        read = admit.decode_create(
            body,
            self.core.ctx,
            namespace=namespace,
            field_validation=chosen.validation,
            kind=rules,
            suffix=randomness.suffix,
        )
        if read.object is None and read.code == 400:
            raise refused(read)
        info.warnings += read.warnings
        if (body.get("metadata") or {}).get("name") != info.name:
            raise status.bad_request("the name of the object does not match the name on the URL")

    async def replace(
        self,
        info: RequestInfo,
        head: Item,
        body: Object,
        chosen: WriteOptions,
        *,
        named: bool = True,
        applied: bool = False,
        by_patch: bool = False,
        old: Object | None = None,
        prior: Object | None = None,
    ) -> Item | Object:
        """Put an object in the place of the stored one. ConflictError: it is no longer the stored one.

        `named`: a uid says which one is meant; `applied`, `by_patch`: how it was made; `old`, `prior`: the stored one,
        and the same with its defaults, where the caller has them already.
        """
        resource, core = info.resource, self.core
        if old is None or prior is None:
            old = await core.load(resource, head)
            prior = admit.stored_with_defaults(old, resource.rules, core.ctx)
            body = admit.sharing(body, prior)
        # The approval of a certificate is a part of its status.
        sub = "status" if info.subresource in ("status", "approval") else ""
        if info.subresource in resource.rules.subresources:
            sub = info.subresource
        read = admit.decode_update(
            body,
            old,
            core.ctx,
            subresource=sub,
            field_validation=chosen.validation,
            kind=resource.rules,
            named=named and not by_patch,
            prior=prior,
            by_patch=by_patch,
        )
        if read.object is None:
            raise refused(read)
        new = read.object
        info.warnings += read.warnings
        if sub == "status" and not applied:
            fields = (body.get("metadata") or {}).get("managedFields")
            if fields is not None:
                new["metadata"]["managedFields"] = fields
        if applied:
            fields = (body.get("metadata") or {}).get("managedFields")
            _put(new["metadata"], "managedFields", fields)
        else:
            new = core.field_manager.update(resource, info.subresource, old, new, chosen.manager)
        attrs = admission_attributes(info, UPDATE, new, old, chosen)
        await core.mutate(attrs)
        new = attrs.object or new
        if not sub:
            core.reallocate(resource, new, old)
        answer = core.validate_update(resource, new, old, sub, prior)
        if answer.object is None:
            raise refused(answer)
        new = apply.keep_times(old, storage_form.to_response(resource.rules, answer.object))
        attrs.object = new
        await core.validate(attrs)
        info.warnings += [*answer.warnings, *attrs.warnings]
        return await self.put(info, head, old, new, dry_run=chosen.dry_run, attrs=attrs)

    async def store(self, info: RequestInfo, head: Item, old: Object, new: Object, chosen: WriteOptions) -> Item:
        """What is known to be another object, and to be valid, if validating admission lets it pass."""
        attrs = admission_attributes(info, UPDATE, new, old, chosen)
        await self.core.validate(attrs)
        info.warnings += attrs.warnings
        item = await self.core.store.write(
            info.resource.table,
            head.namespace,
            head.name,
            lambda revision: storage_codec.dump(info.resource.storage, new, revision),
            expect=head,
        )
        await self.core.stored(attrs)
        return item

    async def put(
        self,
        info: RequestInfo,
        head: Item,
        old: Object,
        new: Object,
        *,
        dry_run: bool,
        attrs: AdmissionAttributes | None = None,
    ) -> Item | Object:
        """Store what passed; nothing is written if nothing changed; the last finalizer gone is the end."""
        resource, store = info.resource, self.core.store
        new["metadata"]["resourceVersion"] = old["metadata"].get("resourceVersion")
        ending = is_finalized(new)
        if not ending and _equal(new, old):
            return head
        if dry_run:
            return new
        kept = await self.core.to_storage(resource, old if ending else new)  # of the end: the last that was stored
        item = await store.write(
            resource.table,
            head.namespace,
            head.name,
            lambda revision: storage_codec.dump(resource.storage, kept, revision),
            expect=head,
            delete=ending,
        )
        if attrs is not None:
            await self.core.stored(attrs)
        return new if ending else item


def conflict(info: RequestInfo) -> status.ApiError:
    return status.conflict(info.resource.group, info.resource.plural, info.name, _MODIFIED)


def _put(block: Object, name: str, value: Any) -> None:
    if value is None:
        block.pop(name, None)
    else:
        block[name] = value


def is_finalized(obj: Object) -> bool:
    """Whether a terminating object has no finalizer and no grace period left."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    # A namespace has finalizers of its own.
    return not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))


def _equal(new: Object, old: Object) -> bool:
    return same(new, old) or same(_tidy(new), _tidy(old))


def _tidy(obj: Object) -> Object:
    """Absent and empty metadata are the same."""
    kept = dict(obj)
    kept["metadata"] = {name: value for name, value in obj["metadata"].items() if value not in (None, [], {})}
    return kept
