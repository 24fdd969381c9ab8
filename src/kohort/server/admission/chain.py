"""What happens to a write between its decoding and the store: the plugins, in upstream's order.

Mutating ones first (`admit`), then the rules of the kinds, then validating ones (`validate`). Priority, tolerations and
the protection of pod groups are rules of the kinds (kohort.api.scheduling.admission); here they run ahead of webhooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kohort.api import meta, result
from kohort.api.scheduling import admission as scheduling_rules
from kohort.server import status
from kohort.server.admission.attributes import CREATE, DELETE
from kohort.server.admission.cross_object import CrossObjectAdmission
from kohort.server.admission.limitranger import LimitRanger
from kohort.server.admission.pod_webhooks import PodWebhooks
from kohort.server.admission.policies.mutating import MutatingAdmissionPolicies
from kohort.server.admission.policies.validating import ValidatingAdmissionPolicies
from kohort.server.admission.reinvocation import MutatingAdmission
from kohort.server.admission.resourcequota import ResourceQuotas
from kohort.server.admission.runtimeclass import RuntimeClass
from kohort.server.admission.serviceaccount import ServiceAccount
from kohort.server.admission.storageclass import DefaultStorageClass
from kohort.server.admission.webhooks import MutatingWebhooks, ValidatingWebhooks, WebhookRules
from kohort.server.admission.webhooks.caller import WebhookClient, local_services
from kohort.server.admission.webhooks.conversion import WebhookConverter
from kohort.server.auth import escalation
from kohort.server.auth.rbac import GROUP as RBAC

if TYPE_CHECKING:
    from kohort.api.kind import Context
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.webhooks.caller import CallWebhook, Resolver
    from kohort.server.auth.lister import Lister
    from kohort.server.auth.rbac import Authorizer
    from kohort.server.core import Core

PROTECTED_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})
_SCHEDULING_KINDS: Final = {("", "Pod"), ("scheduling.k8s.io", "PodGroup"), ("scheduling.k8s.io", "CompositePodGroup")}


class NamespaceLifecycle:
    """Some namespaces cannot be deleted. (That a namespace must exist and not be terminating to take new objects, the
    server checks itself, also for writers that skip admission.)"""

    repeatable = True

    async def admit(self, attrs: AdmissionAttributes) -> None:
        if (
            attrs.operation == DELETE
            and (attrs.resource.group, attrs.resource.plural) == ("", "namespaces")
            and attrs.name in PROTECTED_NAMESPACES
        ):
            raise status.forbidden("", "namespaces", attrs.name, "this namespace may not be deleted")


class PodScheduling:
    """Priority, DefaultTolerationSeconds and PodGroupProtection, ahead of the webhooks.

    The rules are those of `kohort.api.scheduling.admission`, which every write passes anyway when it is validated. Here
    they are applied once before, so that webhooks see what upstream's would see; a second time changes nothing.
    """

    repeatable = True

    def __init__(self, lister: Lister, ctx: Context) -> None:
        self._lister, self._ctx = lister, ctx

    async def admit(self, attrs: AdmissionAttributes) -> None:
        if (
            attrs.object is None
            or attrs.subresource
            or (attrs.resource.group, attrs.resource.kind) not in _SCHEDULING_KINDS
        ):
            return
        classes = self._lister.list("scheduling.k8s.io", "priorityclasses") if attrs.operation == CREATE else ()
        why = scheduling_rules.mutate(attrs.resource.rules, attrs.object, self._ctx, classes, attrs.old)
        if why is not None:
            raise status.from_result(result.forbidden(attrs.resource.rules, meta.name_of(attrs.object), why))


class RBACEscalation:
    """Roles and bindings are checked against what their writer holds."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def concerns(self, attrs: AdmissionAttributes) -> bool:
        return attrs.resource.group == RBAC

    async def validate(self, attrs: AdmissionAttributes) -> None:
        """Without a user, the write comes from the server itself."""
        if attrs.resource.group == RBAC and attrs.object is not None and attrs.user is not None:
            escalation.check(self._authorizer, attrs.user, attrs.resource.plural, attrs.object, attrs.old)


@dataclass(frozen=True, slots=True)
class Admission:
    """The plugins in order, and those of them that have work of their own."""

    plugins: tuple[Any, ...]
    quotas: ResourceQuotas
    caller: WebhookClient


def admission(
    core: Core,
    authorizer: Authorizer | None = None,
    *,
    resolver: Resolver | None = None,
    service_accounts: bool = False,
    own_kinds: bool = True,
    call_webhook: CallWebhook | None = None,
    quotas: Any = None,
) -> Admission:
    """`resolver`: where the services of webhooks are. `service_accounts`: upstream's plugin of that name. `own_kinds`:
    what the operators of the kinds that we know would do as webhooks; where they run themselves it is theirs.

    `call_webhook`, `quotas`: what takes the place of the two parts that belong to the server's own process.
    """
    lister, resources, ctx = core.lister, core.resources, core.ctx
    caller = WebhookClient(resolver or local_services(lister))
    call = call_webhook or caller.call
    quotas = quotas or ResourceQuotas(core.store, resources)
    accounts = (ServiceAccount(lister),) if service_accounts else ()
    limits, scheduling = LimitRanger(lister), PodScheduling(lister, ctx)
    core.converter = converter = WebhookConverter(call)
    escalation_check = (RBACEscalation(authorizer),) if authorizer is not None else ()
    operators = (PodWebhooks(core.lister),) if own_kinds else ()
    own = (*accounts, limits, RuntimeClass(lister), scheduling, DefaultStorageClass(lister), *operators)
    mutating = MutatingAdmissionPolicies(lister, resources, ctx, authorizer, core.field_manager)
    plugins = (
        NamespaceLifecycle(),
        *own,
        CrossObjectAdmission(lister, resources, ctx),
        MutatingAdmission(mutating, MutatingWebhooks(lister, resources, ctx, call, converter, authorizer), own),
        *escalation_check,
        WebhookRules(),
        ValidatingAdmissionPolicies(lister, resources, authorizer),
        ValidatingWebhooks(lister, resources, ctx, call, converter, authorizer),
        quotas,  # last: what it counts must be written before anything else happens
    )
    return Admission(plugins, quotas, caller)
