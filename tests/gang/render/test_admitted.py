"""What is rendered from a valid plan, a server takes: as a document, and as a series of creations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.strategies import plans

from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.api.releases import RELEASES
from kohort.gang.render import pod_links, render
from kohort.gang.tree import Plan, Template

CONTEXTS = {minor: Context.of(minor, gates=found.gates) for minor, found in RELEASES.items()}


def without_priority(plan: Plan) -> Plan:
    """Numbers without the class that gives them are refused on creation, rightly (spec workload-api 3.5)."""

    def plain(template: Template) -> Template:
        children = tuple(plain(child) for child in template.children)
        return replace(template, priority=None, priority_class=None, preemption_policy=None, children=children)

    return replace(plan, templates=tuple(plain(template) for template in plan.templates))


@settings(max_examples=30, deadline=None)
@given(plans())
def test_documents_have_no_findings(plan: Plan) -> None:
    for minor, ctx in CONTEXTS.items():
        for obj in render(plan, minor, flatten=True).objects:
            assert admit.check(obj, ctx) == []


@settings(max_examples=30, deadline=None)
@given(plans())
def test_creation_in_the_order_of_rendering(plan: Plan) -> None:
    for minor, ctx in CONTEXTS.items():
        existing: list[Object] = []
        for obj in render(without_priority(plan), minor, flatten=True).objects:
            answer = admit.create(obj, ctx, existing=existing, field_validation="Strict")
            assert (answer.code, answer.message) == (201, "")
            existing.append(answer.object or {})


@pytest.mark.parametrize("minor", RELEASES)
@settings(max_examples=15, deadline=None)
@given(plan=plans(max_depth=1))
def test_pods_with_the_link_are_taken(minor: str, plan: Plan) -> None:
    container = {"name": "c", "image": "registry.example/app:1"}
    for link in pod_links(plan, minor).values():
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": plan.namespace},
            "spec": {"containers": [container], **link},
        }
        assert admit.check(pod, CONTEXTS[minor]) == []
