"""What happens to a write between its decoding and the store: the plugins, in upstream's order.

Mutating ones first (`admit`), then the rules of the kinds, then validating ones (`validate`). Priority, tolerations and
the protection of pod groups are rules of the kinds (kohort.api.scheduling.admission); here they run ahead of webhooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kohort.server.admission.beside import BesideRules
from kohort.server.admission.escalating import NoEscalation
from kohort.server.admission.jobsets import JobSets
from kohort.server.admission.lifecycle import NamespaceLifecycle
from kohort.server.admission.limits import LimitRanger
from kohort.server.admission.quota import ResourceQuotas
from kohort.server.admission.scheduling import Scheduling
from kohort.server.admission.serviceaccounts import ServiceAccount
from kohort.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks, WebhookRules
from kohort.server.admission.webhooks.caller import Caller, on_this_machine

if TYPE_CHECKING:
    from kohort.server.admission.webhooks.caller import Resolver
    from kohort.server.auth.rbac import Authorizer
    from kohort.server.core import Core

__all__ = ["Admission", "admission"]


@dataclass(frozen=True, slots=True)
class Admission:
    """The plugins, and those of them that have more to do than to be asked."""

    plugins: tuple[Any, ...]
    quotas: ResourceQuotas
    caller: Caller


def admission(
    core: Core,
    authorizer: Authorizer | None = None,
    *,
    resolver: Resolver | None = None,
    service_accounts: bool = False,
) -> Admission:
    """`resolver`: where the services of webhooks are. `service_accounts`: upstream's plugin of that name."""
    objects, resources, ctx = core.objects, core.resources, core.ctx
    caller = Caller(resolver or on_this_machine(objects))
    quotas = ResourceQuotas(core.store, resources)
    accounts = (ServiceAccount(objects),) if service_accounts else ()
    limits, scheduling = LimitRanger(objects), Scheduling(objects, ctx)
    escalation = (NoEscalation(authorizer),) if authorizer is not None else ()
    own = (*accounts, limits, scheduling, JobSets(core.objects))
    plugins = (
        NamespaceLifecycle(),
        *own,
        BesideRules(objects, resources, ctx),
        MutatingWebhooks(objects, resources, ctx, caller.ask, own),
        *escalation,
        WebhookRules(),
        ValidatingWebhooks(objects, resources, ctx, caller.ask),
        quotas,  # last: what it counts must be written before anything else happens
    )
    return Admission(plugins, quotas, caller)
