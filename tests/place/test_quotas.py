"""What ResourceQuotas leave for pods that were not created yet."""

from typing import Any

import pytest

from kohort.place.columns import amount
from kohort.place.quotas import ResourceQuotas


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    status = {"hard": hard, "used": used} if used is not None else {}
    return {"spec": {"hard": hard, **spec}, "status": status}


def asks(**amounts: str) -> dict[str, int]:
    return {name: amount(name, text) for name, text in amounts.items()}


def test_too_little_is_left() -> None:
    quotas = ResourceQuotas()
    quotas.set("lab/a", quota({"requests.cpu": "10", "pods": "20"}, {"requests.cpu": "7500m", "pods": "3"}))
    found = quotas.shortage("lab", asks(cpu="4", pods="2"))
    assert str(found) == "ResourceQuota a leaves 2.5 of 10 cpu, the missing pods ask 4"
    assert found is not None
    assert found.remedy == "raise cpu of ResourceQuota a to 11.5"
    assert quotas.shortage("lab", asks(cpu="2500m", pods="17")) is None
    assert quotas.shortage("other", asks(cpu="4")) is None


def test_more_is_used_than_its_status_says_yet() -> None:
    quotas = ResourceQuotas()
    quotas.set("lab/a", quota({"count/pods": "5"}, {"count/pods": "1"}))
    assert quotas.shortage("lab", asks(pods="2")) is None
    found = quotas.shortage(
        "lab", asks(pods="2"), lambda name, resource: 4 if (name, resource) == ("a", "count/pods") else 0
    )
    assert found is not None
    assert (found.resource, found.hard, found.used, found.asks) == ("pods", 5, 4, 2)


@pytest.mark.parametrize("scoped", [{"scopes": ["BestEffort"]}, {"scopeSelector": {"matchExpressions": [{}]}}])
def test_quotas_of_some_pods_are_not_looked_at(scoped: dict[str, Any]) -> None:
    quotas = ResourceQuotas()
    quotas.set("lab/a", quota({"pods": "0"}, {}))
    quotas.set("lab/a", quota({"pods": "0"}, {}, **scoped))
    assert quotas.shortage("lab", asks(pods="1")) is None


def test_a_quota_that_is_gone_or_has_no_status_yet() -> None:
    quotas = ResourceQuotas()
    quotas.set("lab/a", quota({"pods": "1"}))
    assert quotas.shortage("lab", asks(pods="2")) is not None
    quotas.set("lab/a", None)
    assert quotas.shortage("lab", asks(pods="2")) is None
