"""Plugins that say which writes concern them: the others would have meant nothing to them."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any, NoReturn

import pytest

from kohort.api.kind import Context
from kohort.kube.wire import User
from kohort.server.admission.attributes import CREATE, DELETE, UPDATE, AdmissionAttributes
from kohort.server.admission.chain import RBACEscalation
from kohort.server.admission.cross_object import CrossObjectAdmission
from kohort.server.admission.limitranger import LimitRanger
from kohort.server.admission.pod_webhooks import PodWebhooks
from kohort.server.admission.resourcequota import ResourceQuotas
from kohort.server.admission.runtimeclass import RuntimeClass
from kohort.server.admission.serviceaccount import ServiceAccount
from kohort.server.admission.webhooks.plugins import WebhookRules
from kohort.server.core import Core
from kohort.server.resources import native_resources


class _Untouchable:
    """Whoever has work to do with a write asks for something."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name} was asked for")


NOBODY: Any = _Untouchable()
PLUGINS = (
    RBACEscalation(NOBODY),
    CrossObjectAdmission(NOBODY, NOBODY, NOBODY),
    LimitRanger(NOBODY),
    PodWebhooks(NOBODY),
    ResourceQuotas(NOBODY, NOBODY),
    RuntimeClass(NOBODY),
    ServiceAccount(NOBODY),
    WebhookRules(),
)


def _writes() -> list[AdmissionAttributes]:
    resources = native_resources(Context.of("1.37")).every()
    spec = {"overhead": {"cpu": "1"}, "runtimeClassName": "x", "containers": [{"name": "c"}]}
    obj = {"metadata": {"name": "a", "namespace": "n"}, "spec": spec, "webhooks": [{}], "rules": [{}]}
    return [
        AdmissionAttributes(operation, resource, subresource, "n", "a", obj, obj, User("x"))
        for resource in resources
        for operation, subresource in product((CREATE, UPDATE, DELETE), ("", *resource.subresources))
    ]


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda one: type(one).__name__)
def test_what_does_not_concern_a_plugin_passes_without_a_look(plugin: Any) -> None:
    others = [attrs for attrs in _writes() if not plugin.concerns(attrs)]
    assert others

    async def all_of_them() -> None:
        for attrs in others:
            await plugin.validate(attrs)
            assert not attrs.warnings

    asyncio.run(all_of_them())


def test_a_plugin_is_asked_once_for_each_sort_and_again_when_plugins_change() -> None:
    asked: list[str] = []

    class _Picky:
        def __init__(self, name: str) -> None:
            self.name = name

        def concerns(self, attrs: AdmissionAttributes) -> bool:
            asked.append(self.name)
            return attrs.operation == CREATE

        async def validate(self, attrs: AdmissionAttributes) -> None:
            attrs.warnings.append(self.name)

    ctx = Context.of("1.37")
    core = Core(NOBODY, native_resources(ctx), ctx, [_Picky("a")])
    create, update = (next(one for one in _writes() if one.operation == of) for of in (CREATE, UPDATE))

    async def some() -> None:
        for attrs in (create, update, create):
            await core.validate(attrs)
        core.use([_Picky("b")])
        await core.validate(create)

    asyncio.run(some())
    assert (create.warnings, update.warnings, asked) == (["a", "a", "b"], [], ["a", "a", "b"])
