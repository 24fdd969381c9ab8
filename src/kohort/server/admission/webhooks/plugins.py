"""The plugins that call webhooks, and the one that validates their configurations."""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING, Any, Final

from kohort.api import patch as patches
from kohort.server import status
from kohort.server.admission import versions
from kohort.server.admission.webhooks import matching, review, rules
from kohort.server.admission.webhooks.review import InvalidReviewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.kind import Context, Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.webhooks.caller import CallWebhook
    from kohort.server.admission.webhooks.conversion import WebhookConverter
    from kohort.server.admission.webhooks.matching import Hook
    from kohort.server.auth.lister import Lister
    from kohort.server.auth.rbac import Authorizer
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

    def __init__(
        self,
        lister: Lister,
        resources: Resources,
        ctx: Context,
        call_webhook: CallWebhook,
        converter: WebhookConverter | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self._lister, self._resources, self._ctx, self._call_webhook = lister, resources, ctx, call_webhook
        self._converter, self._authorizer = converter, authorizer
        self._version: int | None = None
        self._hooks: list[Hook] = []

    def concerned(self, attrs: AdmissionAttributes) -> list[tuple[Hook, Resource]]:
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
            if resource is not None
            and matching.selected(hook.spec, attrs, namespace)
            and self._conditions_hold(hook, attrs, resource)
        ]

    def _conditions_hold(self, hook: Hook, attrs: AdmissionAttributes, resource: Resource) -> bool:
        """One that is false takes the webhook out; an error is as if it had failed itself."""
        if not hook.spec.get("matchConditions"):
            return True
        from kohort.server.admission.policies import evaluate
        from kohort.server.admission.policies.activation import Activation
        from kohort.server.admission.webhooks.conditions import compiled

        texts = tuple(str(one["expression"]) for one in hook.spec["matchConditions"])
        names = Activation(attrs, self._lister, self._authorizer).names(resource, None, condition=True)
        try:
            return evaluate.conditions(names, {}, compiled(texts))
        except (evaluate.EvaluationError, evaluate.OutOfBudgetError) as error:
            if hook.ignores_failure:
                log.warning('webhook "%s" is passed over: %s', hook.name, error)
                return False
            group, plural = attrs.resource.group, attrs.resource.plural
            raise status.forbidden(group, plural, attrs.name, str(error)) from None

    async def _call(self, hook: Hook, attrs: AdmissionAttributes, resource: Resource) -> dict[str, Any] | None:
        """The response of a webhook; None if it failed and that is to be ignored."""
        if attrs.dry_run and not hook.dry:
            raise status.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        uid = str(uuid.uuid4())
        new, old = [await self._shown(attrs, one, resource) for one in (attrs.object, attrs.old)]
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

    async def _shown(self, attrs: AdmissionAttributes, obj: Object | None, resource: Resource) -> Object | None:
        if obj is None or not self._is_converted(attrs.resource, resource):
            return None if obj is None else versions.shown(obj, attrs.resource, resource)
        return versions.shown(await self._converted(obj, attrs.resource, resource), resource, resource)

    def _is_converted(self, source: Resource, target: Resource) -> bool:
        """Whether the definition has a webhook that carries objects over."""
        return source is not target and (source.conversion is not None or target.conversion is not None)

    async def _converted(self, obj: Object, source: Resource, target: Resource) -> Object:
        assert self._converter is not None
        return await self._converter.object(obj, source, target)


class ValidatingWebhooks(_Webhooks):
    plural = "validatingwebhookconfigurations"

    async def validate(self, attrs: AdmissionAttributes) -> None:
        """All are called at once; the first in order that refuses decides."""
        concerned = self.concerned(attrs)
        if not concerned:
            return
        answers = await asyncio.gather(
            *(self._call(hook, attrs, resource) for hook, resource in concerned), return_exceptions=True
        )
        for one in answers:
            if isinstance(one, BaseException):
                raise one


class MutatingWebhooks(_Webhooks):
    """Called by `reinvocation`, which knows what comes before and after."""

    plural = "mutatingwebhookconfigurations"
    mutating = True

    async def run(
        self, attrs: AdmissionAttributes, concerned: Sequence[tuple[Hook, Resource]]
    ) -> tuple[bool, list[tuple[Hook, Resource]]]:
        """One after the other. Whether the object changed, and which want to see what later ones changed."""
        asked: list[tuple[Hook, Resource]] = []
        again: list[tuple[Hook, Resource]] = []
        changed = False
        for hook, resource in concerned:
            response = await self._call(hook, attrs, resource)
            operations = review.operations(response) if response is not None else None
            if operations and await self._patch(attrs, resource, operations):
                changed = True
                again += [one for one in asked if one[0].again and one not in again]
            asked.append((hook, resource))
        return changed, again

    async def _patch(self, attrs: AdmissionAttributes, resource: Resource, operations: Any) -> bool:
        """Whether a patch changed the object."""
        if attrs.object is None:
            return False
        shown = await self._shown(attrs, attrs.object, resource)
        try:
            patched = patches.json_patch(shown, operations)
        except patches.PatchError as error:
            raise status.internal(str(error)) from None
        if patched == shown:
            return False
        source = resource
        if isinstance(patched, dict) and self._is_converted(resource, attrs.resource):
            patched, source = await self._converted(patched, resource, attrs.resource), attrs.resource
        try:
            attrs.object = versions.received(patched, source, attrs.resource, self._ctx)
        except ValueError as error:
            raise status.internal(f"a webhook's patch does not fit: {error}") from None
        return True


class WebhookRules:
    """What this server cannot do for a webhook is refused when the webhook is registered, and not passed over."""

    def concerns(self, attrs: AdmissionAttributes) -> bool:
        return (attrs.resource.group, attrs.resource.kind) in _CONFIGURATIONS

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if (attrs.resource.group, attrs.resource.kind) not in _CONFIGURATIONS or attrs.object is None:
            return
        found = rules.check(attrs.object)
        if found:
            raise status.invalid(matching.GROUP, attrs.resource.kind, attrs.name, found)
