"""Type checking of policies: the warnings that kube-controller-manager 1.37.1 wrote."""

import asyncio
from typing import Any

from tests.server.admission.policy_cases import V, rule
from tests.server.controllers.world import World

from kohort.server.controllers import PolicyStatus

Object = dict[str, Any]


async def _status(*validations: Object, rules: list[Object], **spec: Any) -> Object:
    async with World([PolicyStatus]) as world:
        body = {"matchConstraints": {"resourceRules": rules}, "validations": list(validations), **spec}
        await world.post(V, {"metadata": {"name": "p"}, "spec": body})
        for _ in range(100):
            await asyncio.sleep(0)
            found = await world.get(f"{V}/p")
            assert found is not None
            if (found.get("status") or {}).get("observedGeneration"):
                return dict(found["status"])
    raise AssertionError("no status")


def status(*expressions: str, rules: list[Object], **spec: Any) -> Object:
    return asyncio.run(_status(*({"expression": one} for one in expressions), rules=rules, **spec))


def test_fields_that_a_kind_does_not_have_are_told() -> None:
    found = status(
        "object.spec.replicas > 1", "object.spec.replicas == 'x'", rules=[rule("deployments", "apps"), rule("pods")]
    )
    undefined = "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'\n | {}\n | ...........^\n"
    overload = (
        "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_==_' applied to "
        "'(int, string)'\n | object.spec.replicas == 'x'\n | .....................^\n"
    )
    assert found["typeChecking"]["expressionWarnings"] == [
        {"fieldRef": "spec.validations[0].expression", "warning": undefined.format("object.spec.replicas > 1")},
        {
            "fieldRef": "spec.validations[1].expression",
            "warning": undefined.format("object.spec.replicas == 'x'") + "\n" + overload,
        },
    ]


def test_variables_and_parameters_have_types_too() -> None:
    found = status(
        "variables.n == 'x' || params.data.x == 1",
        rules=[rule("deployments", "apps")],
        variables=[{"name": "n", "expression": "object.spec.replicas"}],
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    assert "'(int, string)'" in found["typeChecking"]["expressionWarnings"][0]["warning"]


def test_nothing_is_told_where_nothing_is_wrong_or_known() -> None:
    assert status("object.data.x == 'a'", rules=[rule()]) == {"observedGeneration": 1, "typeChecking": {}}
    everything = rule("*", "*", "*")
    assert status("object.nothing == 1", rules=[everything]) == {"observedGeneration": 1, "typeChecking": {}}
