"""create, update, patch, apply: from a body to a stored object.

decode -> (patch) -> managedFields -> mutating plugins -> rules -> validating plugins -> store. A write that builds on
what is stored is tried again when somebody else was faster, unless it named the version it meant.
"""

from __future__ import annotations

import secrets
import uuid
from typing import TYPE_CHECKING, Any, Final

from kohort.api import admit, apply, shape
from kohort.api.errors import invalid
from kohort.server import ages, codec, objects, options, status
from kohort.server.call import CREATE, UPDATE, Call
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.answer import Answer
    from kohort.api.kind import Context, Object
    from kohort.server.ask import Ask
    from kohort.server.core import Core
    from kohort.server.options import WriteOptions
    from kohort.server.stencil import Key
    from kohort.server.store import Item

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # no words by accident
_TRIES: Final = 8
_GENERATED: Final = 58  # characters of generateName that are kept
_PATCH_TRIES: Final = 50
_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


def suffix() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(5))


def body_of(ask: Ask, ctx: Context | None = None) -> Any:
    """The body of a write as a value; repeated keys are warned of, or refused (with what else is not known)."""
    media = codec.media_type(ask.content_type) or codec.JSON
    if media not in codec.READ:
        raise status.unsupported_media_type(codec.READ)
    value, remarks = codec.parse(ask.request.body, ask.resource.kind, media)
    if value is None:
        return {}
    if not isinstance(value, dict):
        kind = ask.resource.kind
        raise status.bad_request(
            f'{kind} in version "{ask.resource.version}" cannot be handled as a {kind}: json: cannot unmarshal '
            f"{_go_type(value)} into Go value of type object"
        )
    _check_kind(ask, value, ctx)
    remark(ask, remarks, admit.unknown(ask.resource.rules, value, ctx) if remarks and ctx else ())
    return value


def _check_kind(ask: Ask, body: Object, ctx: Context | None) -> None:
    """Of a custom resource the kind is a field like others; where there are rules, a wrong one cannot be read."""
    one, given = ask.resource, body.get("kind")
    if one.native or not isinstance(given, str) or given in ("", one.kind) or body.get("apiVersion") != one.api_version:
        return
    if ctx is None or admit.received({**body, "kind": one.kind}, ctx, kind=one.rules).code == 400:
        return  # something else cannot be read
    name = str((body.get("metadata") or {}).get("name") or "")
    raise status.invalid(one.group, given, name, [invalid("kind", given, f"must be {one.kind}")])


def _go_type(value: Any) -> str:
    return {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")


def remark(ask: Ask, remarks: list[str], unknown: Sequence[str] = ()) -> None:
    mode = options.one(ask.query, "fieldValidation") or "Warn"
    if remarks and mode == "Strict":
        one = ask.resource
        lead = f'{one.kind} in version "{one.version}" cannot be handled as a {one.kind}: strict decoding error: '
        raise status.bad_request(lead + ", ".join([*unknown, *remarks]))
    if mode == "Warn":
        ask.warnings += remarks


def refused(answer: Answer) -> status.ApiError:
    """What upstream answers with 500 though the client is wrong is 400 here (a listed difference)."""
    if answer.code == 500:
        return status.ApiError(status.failure(400, "BadRequest", answer.message), warnings=answer.warnings)
    return status.from_answer(answer)


class _TakenError(Exception):
    """There is an object of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Writer:
    def __init__(self, core: Core) -> None:
        self.core = core

    # ---- create

    async def create(self, ask: Ask) -> tuple[int, Item | Object]:
        """201 and what is stored; with dryRun, what would be."""
        chosen = options.write_options(ask.query, "CreateOptions", ask.agent)
        body = body_of(ask, self.core.ctx)
        self.core.check_namespace(ask.resource, ask.namespace)
        return await self.create_object(ask, body, chosen)

    async def create_object(self, ask: Ask, body: Object, chosen: WriteOptions) -> tuple[int, Item | Object]:
        for attempt in range(_TRIES):
            key = self.core.stencils.key(ask.resource, body, ask.namespace, chosen) if not ask.name else None
            try:
                if key is not None:
                    found = await self._traced(ask, key, body, chosen)
                    if found is not None:
                        return 201, found
                return 201, await self._created(ask, body, chosen, key)
            except _TakenError as taken:
                if not _generated(body) or attempt == _TRIES - 1:
                    raise self._exists(ask, body, taken.name) from None
                ask.warnings.clear()
        raise AssertionError("unreachable")

    def _exists(self, ask: Ask, body: Object, name: str) -> status.ApiError:
        resource = ask.resource
        error = status.already_exists(resource.group, resource.plural, name)
        head = self.core.head(resource, ask.namespace, name)
        if head is not None and objects.load(resource, head)["metadata"].get("deletionTimestamp"):
            error.status["message"] = f"object is being deleted: {error.status['message']}"
        if body["metadata"].get("generateName"):
            error.status["message"] += ", the server was not able to generate a unique name for the object"
            error.status["details"]["retryAfterSeconds"] = 1
        return error

    async def _traced(self, ask: Ask, key: Key, body: Object, chosen: WriteOptions) -> Item | Object | None:
        """The short way, for a pod like one before."""
        meta = body["metadata"]
        name = meta.get("name") or (meta["generateName"][:_GENERATED] + suffix() if meta.get("generateName") else "")
        new = self.core.stencils.make(key, ask.resource, body, ask.namespace, name)
        if new is None:
            return None
        self.core.check_terminating(ask.resource, ask.namespace, name)
        new["metadata"]["uid"] = str(uuid.uuid4())
        ask.warnings += self.core.stencils.warnings(key)
        return await self._finish(ask, self._call(ask, CREATE, new, None, chosen), chosen)

    async def _created(self, ask: Ask, body: Object, chosen: WriteOptions, key: Key | None) -> Item | Object:
        """The long way."""
        resource, core = ask.resource, self.core
        read = admit.received(
            body,
            core.ctx,
            namespace=ask.namespace if resource.namespaced else None,
            suffix=suffix,
            field_validation=chosen.validation,
            kind=resource.rules,
        )
        if read.object is None:
            raise refused(read)
        new = read.object
        if ask.name and new["metadata"].get("name") != ask.name:
            raise status.bad_request("the name of the object does not match the name on the URL")
        if "managedFields" not in (body.get("metadata") or {}):
            new = core.books.keep(resource, "", None, new, chosen.manager)
        core.check_terminating(resource, ask.namespace, str(new["metadata"].get("name") or ""))
        call = self._call(ask, CREATE, new, None, chosen)
        new["metadata"]["creationTimestamp"] = ages.stamp()
        new["metadata"]["uid"] = str(uuid.uuid4())
        await core.mutate(call)
        new = call.object or new
        answer = core.judge_create(resource, new, ask.namespace, read.warnings)
        if answer.object is None:
            raise refused(answer)
        warnings = (*answer.warnings, *call.warnings)
        ask.warnings += warnings
        call.object = shape.written(resource.rules, answer.object)
        await core.complete_new(resource, call.object)
        if key is not None:
            core.stencils.remember(key, call.object, warnings)
        return await self._finish(ask, call, chosen)

    async def _finish(self, ask: Ask, call: Call, chosen: WriteOptions) -> Item | Object:
        resource, core, new = ask.resource, self.core, call.object
        assert new is not None
        before = len(call.warnings)
        await core.validate(call)
        ask.warnings += call.warnings[before:]
        namespace = new["metadata"].get("namespace", "") if resource.namespaced else ""
        name = new["metadata"]["name"]
        if core.store.table(resource.table).head(namespace, name) is not None:
            raise _TakenError(name)
        if chosen.dry_run:
            return new
        item = await core.store.write(
            resource.table, namespace, name, lambda revision: objects.dump(resource, new, revision), expect=None
        )
        await core.stored(call)
        return item

    # ---- update

    async def update(self, ask: Ask) -> tuple[int, Item | Object]:
        chosen = options.write_options(ask.query, "UpdateOptions", ask.agent)
        body = body_of(ask, self.core.ctx)
        meta = body.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        for _ in range(_PATCH_TRIES):
            head = self.core.head(ask.resource, ask.namespace, ask.name)
            if head is None:
                return await self._update_nothing(ask, body, chosen)
            try:
                return 200, await self.replace(ask, head, body, chosen)
            except ConflictError:
                if meta.get("resourceVersion"):
                    break
        raise self._conflict(ask)

    async def _update_nothing(self, ask: Ask, body: Object, chosen: WriteOptions) -> tuple[int, Item | Object]:
        resource = ask.resource
        if ask.subresource or not resource.create_on_update:
            self._readable(ask, body, chosen)
            raise status.not_found(resource.group, resource.plural, ask.name)
        self.core.check_namespace(resource, ask.namespace)
        return await self.create_object(ask, body, chosen)

    def _readable(self, ask: Ask, body: Object, chosen: WriteOptions) -> None:
        """A body is read, and remarked on, before anybody looks for what it is about."""
        rules = ask.resource.rules
        namespace = ask.namespace if ask.resource.namespaced else None
        read = admit.received(
            body, self.core.ctx, namespace=namespace, field_validation=chosen.validation, kind=rules, suffix=suffix
        )
        if read.object is None and read.code == 400:
            raise refused(read)
        if (body.get("metadata") or {}).get("name") != ask.name:
            raise status.bad_request("the name of the object does not match the name on the URL")
        ask.warnings += read.warnings

    async def replace(
        self,
        ask: Ask,
        head: Item,
        body: Object,
        chosen: WriteOptions,
        *,
        named: bool = True,
        applied: bool = False,
        prior: Object | None = None,
    ) -> Item | Object:
        """Put an object in the place of the stored one. ConflictError: it is no longer the stored one.

        `prior`: the stored one with its defaults, where the caller has it already.
        """
        resource, core = ask.resource, self.core
        old = objects.load(resource, head)
        if prior is None:
            prior = admit.defaulted(old, resource.rules, core.ctx)
        # The approval of a certificate is a part of its status.
        sub = "status" if ask.subresource in ("status", "approval") else ""
        read = admit.replacing(
            body,
            old,
            core.ctx,
            subresource=sub,
            field_validation=chosen.validation,
            kind=resource.rules,
            named=named,
            prior=prior,
        )
        if read.object is None:
            raise refused(read)
        new = read.object
        if sub == "status" and not applied:
            fields = (body.get("metadata") or {}).get("managedFields")
            if fields is not None:
                new["metadata"]["managedFields"] = fields
        if applied:
            fields = (body.get("metadata") or {}).get("managedFields")
            _put(new["metadata"], "managedFields", fields)
        else:
            new = core.books.keep(resource, ask.subresource, old, new, chosen.manager)
        call = self._call(ask, UPDATE, new, old, chosen)
        await core.mutate(call)
        new = call.object or new
        answer = core.judge_update(resource, new, old, sub, read.warnings, prior)
        if answer.object is None:
            raise refused(answer)
        new = apply.keep_times(old, shape.written(resource.rules, answer.object))
        call.object = new
        await core.validate(call)
        ask.warnings += [*answer.warnings, *call.warnings]
        return await self.put(ask, head, old, new, dry_run=chosen.dry_run, call=call)

    async def put(
        self, ask: Ask, head: Item, old: Object, new: Object, *, dry_run: bool, call: Call | None = None
    ) -> Item | Object:
        """Store what passed; nothing is written if nothing changed; the last finalizer gone is the end."""
        resource, store = ask.resource, self.core.store
        new["metadata"]["resourceVersion"] = old["metadata"].get("resourceVersion")
        ending = is_over(new)
        if not ending and _equal(new, old):
            return head
        if dry_run:
            return new
        item = await store.write(
            resource.table,
            head.namespace,
            head.name,
            lambda revision: objects.dump(resource, old if ending else new, revision),  # the last that was stored
            expect=head,
            delete=ending,
        )
        if call is not None:
            await self.core.stored(call)
        return new if ending else item

    # ---- patch

    async def patch(self, ask: Ask) -> tuple[int, Item | Object]:
        media = codec.media_type(ask.content_type)
        _check_patch(ask, media)
        chosen = options.write_options(ask.query, "PatchOptions", ask.agent, media)
        if media == options.APPLY:
            return await self._apply(ask, chosen)
        change = _change(ask)
        for _ in range(_PATCH_TRIES):
            head = self.core.head(ask.resource, ask.namespace, ask.name)
            if head is None:
                raise status.not_found(ask.resource.group, ask.resource.plural, ask.name)
            ask.warnings.clear()
            prior = admit.defaulted(objects.load(ask.resource, head), ask.resource.rules, self.core.ctx)
            answer = admit.patched(
                change,
                prior,
                self.core.ctx,
                content_type=media,
                field_validation=chosen.validation,
                kind=ask.resource.rules,
                prior=prior,
            )
            if answer.object is None:
                raise refused(answer)
            try:
                return 200, await self.replace(ask, head, answer.object, chosen, named=False, prior=prior)
            except ConflictError:
                continue
        raise self._conflict(ask)

    async def _apply(self, ask: Ask, chosen: WriteOptions) -> tuple[int, Item | Object]:
        resource = ask.resource
        applied, remarks = codec.parse(ask.request.body, resource.kind, codec.YAML)
        if not isinstance(applied, dict):
            raise status.bad_request("error decoding YAML: an applied object is a mapping")
        remark(ask, remarks)
        target = self.core.books.target(resource, ask.subresource)
        if target is None:
            raise status.unsupported_media_type(("application/json-patch+json", "application/merge-patch+json"))
        self._named(ask, applied)
        for _ in range(_PATCH_TRIES):
            head = self.core.head(resource, ask.namespace, ask.name)
            live = objects.load(resource, head) if head is not None else None
            if live is not None:
                self._same_version(ask, applied, live)
            elif ask.subresource:
                raise status.not_found(resource.group, resource.plural, ask.name)
            try:
                result = apply.apply(
                    live,
                    applied,
                    of=target,
                    manager=chosen.manager,
                    now=ages.stamp(),
                    force=bool(chosen.force),
                )
            except apply.ApplyError as error:
                raise status.bad_request(str(error)) from None
            if result.conflicts:
                raise status.ApiError(apply.conflict_status(result.conflicts))
            try:
                if head is None:
                    return await self._apply_new(ask, result.object, chosen)
                return 200, await self.replace(ask, head, result.object, chosen, named=False, applied=True)
            except ConflictError:
                continue
        raise self._conflict(ask)

    async def _apply_new(self, ask: Ask, new: Object, chosen: WriteOptions) -> tuple[int, Item | Object]:
        resource = ask.resource
        self.core.check_namespace(resource, ask.namespace)
        given = (new.get("metadata") or {}).get("uid")
        if given:
            text = f"uid mismatch: the provided object specified uid {given}, and no existing object was found"
            raise status.conflict(resource.group, resource.plural, ask.name, text)
        new.setdefault("metadata", {}).setdefault("name", ask.name)
        return await self.create_object(ask, new, chosen)

    def _named(self, ask: Ask, applied: Object) -> None:
        meta = applied.get("metadata")
        if not isinstance(meta, dict):
            return
        if meta.get("name") and meta["name"] != ask.name:
            text = f"metadata.name: the name of the object ({meta['name']}) does not match the name on the URL"
            raise status.bad_request(f"{text} ({ask.name})")
        if meta.get("namespace") and meta["namespace"] != ask.namespace:
            raise status.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )

    def _same_version(self, ask: Ask, applied: Object, live: Object) -> None:
        meta = applied.get("metadata")
        version = meta.get("resourceVersion") if isinstance(meta, dict) else None
        if version and version != live["metadata"].get("resourceVersion"):
            raise self._conflict(ask)

    # ---- helpers

    def _conflict(self, ask: Ask) -> status.ApiError:
        return status.conflict(ask.resource.group, ask.resource.plural, ask.name, _MODIFIED)

    def _call(self, ask: Ask, operation: str, new: Object, old: Object | None, chosen: WriteOptions) -> Call:
        meta = new.get("metadata") or {}
        return Call(
            operation,
            ask.resource,
            ask.subresource,
            ask.namespace,
            ask.name or str(meta.get("name") or ""),
            new,
            old,
            ask.user,
            chosen.dry_run,
            {"fieldManager": chosen.manager, "fieldValidation": chosen.validation},
        )


def _generated(body: Object) -> bool:
    meta = body.get("metadata") or {}
    return bool(meta.get("generateName")) and not meta.get("name")


def _put(block: Object, name: str, value: Any) -> None:
    if value is None:
        block.pop(name, None)
    else:
        block[name] = value


def _check_patch(ask: Ask, media: str) -> None:
    accepted = [
        "application/json-patch+json",
        "application/merge-patch+json",
        *(["application/strategic-merge-patch+json"] if ask.resource.definition else []),
        options.APPLY,
    ]
    if media not in accepted:
        raise status.unsupported_media_type(accepted)


def _change(ask: Ask) -> Any:
    try:
        value, _ = codec.parse_json(ask.request.body, "")
    except status.ApiError as error:
        if "nested" in str(error):
            raise
        raise status.bad_request("invalid JSON patch") from None
    return value


def is_over(obj: Object) -> bool:
    """Whether an object that was asked to go has nothing left to wait for."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    # A namespace has finalizers of its own.
    return not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"))


def _equal(new: Object, old: Object) -> bool:
    return new == old or _tidy(new) == _tidy(old)


def _tidy(obj: Object) -> Object:
    """Absent and empty metadata are the same."""
    kept = dict(obj)
    kept["metadata"] = {name: value for name, value in obj["metadata"].items() if value not in (None, [], {})}
    return kept
