"""Mutating policies, then mutating webhooks; and once more those that want to see what others changed after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kohort.api.copying import copied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.policies.mutating import MutatingAdmissionPolicies
    from kohort.server.admission.webhooks import MutatingWebhooks


class MutatingAdmission:
    """`before`: the server's own mutating plugins, which look again at what policies and webhooks have changed."""

    repeatable = True

    def __init__(
        self, policies: MutatingAdmissionPolicies, webhooks: MutatingWebhooks, before: Sequence[Any] = ()
    ) -> None:
        self._policies, self._webhooks, self._before = policies, webhooks, tuple(before)

    async def admit(self, attrs: AdmissionAttributes) -> None:
        policies, webhooks = self._policies.concerned(attrs), self._webhooks.concerned(attrs)
        if not policies and not webhooks:
            return
        changed, again = self._policies.run(attrs, policies) if policies else (False, [])
        seen = copied(attrs.object)
        hooks_changed, hooks_again = await self._webhooks.run(attrs, webhooks) if webhooks else (False, [])
        if not changed and not hooks_changed:
            return
        left = copied(attrs.object)
        for plugin in self._before:
            await plugin.admit(attrs)
        if attrs.object != seen:
            again = [one for one in policies if one.policy.again]
        if again:
            self._policies.run(attrs, again)
        if attrs.object != left:
            hooks_again = [(hook, resource) for hook, resource in webhooks if hook.again]
        if hooks_again:
            await self._webhooks.run(attrs, hooks_again)
