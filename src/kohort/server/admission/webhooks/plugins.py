"""The plugins that call webhooks, and the one that validates their configurations."""

from __future__ import annotations

import asyncio
import logging
import uuid
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from kohort.api import admit, decode, storage_form
from kohort.api import patch as patches
from kohort.api.errors import ErrorKind
from kohort.server import status
from kohort.server.admission.webhooks import matching, review, rules
from kohort.server.admission.webhooks.review import InvalidReviewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.kind import Context, Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.webhooks.caller import CallWebhook
    from kohort.server.admission.webhooks.matching import Hook
    from kohort.server.auth.lister import Lister
    from kohort.server.resources import Resource, Resources

log = logging.getLogger(__name__)
_CONFIGURATIONS: Final = {
    (matching.GROUP, "MutatingWebhookConfiguration"),
    (matching.GROUP, "ValidatingWebhookConfiguration"),
}


class _Webhooks:
    """What both have in common: the configurations, read again when they have changed, and the call."""

    plural = ""
    mutating = False

    def __init__(self, lister: Lister, resources: Resources, ctx: Context, call_webhook: CallWebhook) -> None:
        self._lister, self._resources, self._ctx, self._call_webhook = lister, resources, ctx, call_webhook
        self._version: int | None = None
        self._hooks: list[Hook] = []

    def _concerned(self, attrs: AdmissionAttributes) -> list[tuple[Hook, Resource]]:
        """The webhooks that a write concerns, and the version each wants."""
        version = self._lister.version(matching.GROUP, self.plural)
        if version != self._version:
            self._hooks = matching.hooks(self._lister.list(matching.GROUP, self.plural))
            self._version = version
        if not self._hooks or matching.exempt(attrs):
            return []
        same = [one for one in self._resources.every() if one.table == attrs.resource.table]
        namespace = self._lister.get("", "namespaces", "", attrs.namespace) if attrs.namespace else None
        found = [(hook, matching.target(hook, attrs, same)) for hook in self._hooks]
        return [
            (hook, resource)
            for hook, resource in found
            if resource is not None and matching.selected(hook, attrs, namespace)
        ]

    async def _call(self, hook: Hook, attrs: AdmissionAttributes, resource: Resource) -> dict[str, Any] | None:
        """The response of a webhook; None if it failed and that is to be ignored."""
        if attrs.dry_run and not hook.dry:
            raise status.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        uid = str(uuid.uuid4())
        new, old = (self._shown(attrs, one, resource) for one in (attrs.object, attrs.old))
        try:
            body = await self._call_webhook(hook, review.question(attrs, resource, uid, new, old))
            response = review.read(body, uid, mutating=self.mutating)
            review.operations(response)
        except InvalidReviewError as error:
            text = f'failed calling webhook "{hook.name}": {error}'
            if hook.ignores_failure:
                log.warning("%s (ignored)", text)
                return None
            raise status.internal(text) from None
        if not response.get("allowed"):
            raise review.denied(hook, response)
        attrs.warnings += review.warnings(response)
        return response

    def _shown(self, attrs: AdmissionAttributes, obj: Object | None, resource: Resource) -> Object | None:
        """An object as a client of that version sees it."""
        if obj is None:
            return None
        if resource is attrs.resource:
            return storage_form.to_response(resource.rules, obj)
        body = {name: value for name, value in deepcopy(obj).items() if name not in ("apiVersion", "kind")}
        found = resource.read(attrs.resource.write(body))
        return storage_form.to_response(
            resource.rules, {"kind": resource.kind, "apiVersion": resource.api_version, **found}
        )


class ValidatingWebhooks(_Webhooks):
    plural = "validatingwebhookconfigurations"

    async def validate(self, attrs: AdmissionAttributes) -> None:
        """All are called at once; the first in order that refuses decides."""
        concerned = self._concerned(attrs)
        if not concerned:
            return
        answers = await asyncio.gather(
            *(self._call(hook, attrs, resource) for hook, resource in concerned), return_exceptions=True
        )
        for one in answers:
            if isinstance(one, BaseException):
                raise one


class MutatingWebhooks(_Webhooks):
    """`before`: the server's own mutating plugins, which look again at what webhooks have changed."""

    repeatable = True

    plural = "mutatingwebhookconfigurations"
    mutating = True

    def __init__(
        self, lister: Lister, resources: Resources, ctx: Context, call_webhook: CallWebhook, before: Sequence[Any] = ()
    ) -> None:
        super().__init__(lister, resources, ctx, call_webhook)
        self._before = tuple(before)

    async def admit(self, attrs: AdmissionAttributes) -> None:
        concerned = self._concerned(attrs)
        if not concerned:
            return
        again = await self._pass(attrs, concerned)
        if again is None:
            return
        changed = deepcopy(attrs.object)
        for plugin in self._before:
            await plugin.admit(attrs)
        if changed != attrs.object:
            again = [(hook, resource) for hook, resource in concerned if hook.again]
        if again:
            await self._pass(attrs, again)

    async def _pass(
        self, attrs: AdmissionAttributes, concerned: Sequence[tuple[Hook, Resource]]
    ) -> list[tuple[Hook, Resource]] | None:
        """One after the other. Gives back those that want to see what later ones changed; None: nothing changed."""
        asked: list[tuple[Hook, Resource]] = []
        again: list[tuple[Hook, Resource]] = []
        changed = False
        for hook, resource in concerned:
            response = await self._call(hook, attrs, resource)
            operations = review.operations(response) if response is not None else None
            if operations and self._patch(attrs, resource, operations):
                changed = True
                again += [one for one in asked if one[0].again and one not in again]
            asked.append((hook, resource))
        return again if changed else None

    def _patch(self, attrs: AdmissionAttributes, resource: Resource, operations: Any) -> bool:
        """Whether a patch changed the object."""
        if attrs.object is None:
            return False
        shown = self._shown(attrs, attrs.object, resource)
        try:
            patched = patches.json_patch(shown, operations)
        except patches.PatchError as error:
            raise status.internal(str(error)) from None
        if patched == shown:
            return False
        attrs.object = self._received(attrs, resource, patched)
        return True

    def _received(self, attrs: AdmissionAttributes, resource: Resource, patched: Any) -> Object:
        """What a webhook made of an object, decoded and with defaults as if a client had sent it."""
        if not isinstance(patched, dict):
            raise status.internal("a webhook's patch left no object")
        if resource is not attrs.resource:
            body = {name: value for name, value in patched.items() if name not in ("apiVersion", "kind")}
            patched = attrs.resource.read(resource.write(body))
            patched = {"kind": attrs.resource.kind, "apiVersion": attrs.resource.api_version, **patched}
        kind = attrs.resource.rules
        found = decode.decode(kind.schema, patched, self._ctx.release.minor)
        wrong = [error for error in found if error.kind is ErrorKind.DECODE]
        if wrong:
            raise status.internal(f"a webhook's patch does not fit: {'; '.join(map(str, wrong))}")
        return admit.defaulted(patched, kind, self._ctx)


class WebhookRules:
    """What this server cannot do for a webhook is refused when the webhook is registered, and not passed over."""

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if (attrs.resource.group, attrs.resource.kind) not in _CONFIGURATIONS or attrs.object is None:
            return
        found = rules.check(attrs.object)
        if found:
            raise status.invalid(matching.GROUP, attrs.resource.kind, attrs.name, found)
