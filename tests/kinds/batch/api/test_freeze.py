"""1.36 does not let a gang Job change its parallelism (spec job 3.3)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.api.build import job

from kohort.api.errors import ErrorKind
from kohort.api.kind import Context
from kohort.kinds.batch.admission import check_parallelism

UID = "u-1"


def group(name: str, *, gang: bool, owner: str | None = None) -> dict[str, Any]:
    owners = [{"kind": "Job", "name": "a", "uid": owner, "controller": True}] if owner else []
    policy: dict[str, Any] = {"gang": {"minCount": 4}} if gang else {"basic": {}}
    return {
        "kind": "PodGroup",
        "metadata": {"name": name, "ownerReferences": owners},
        "spec": {"schedulingPolicy": policy},
    }


def stored(parallelism: int, named: str | None = None) -> dict[str, Any]:
    obj = job(parallelism=parallelism, pod={"schedulingGroup": {"podGroupName": named}} if named else None)
    obj["metadata"]["uid"] = UID
    return obj


@pytest.mark.parametrize(
    ("named", "groups", "frozen"),
    [
        (None, [group("own", gang=True, owner=UID)], True),  # T-52
        (None, [], False),  # T-53: not a gang
        (None, [group("own", gang=True, owner="another")], False),
        ("loose", [group("loose", gang=False)], False),  # T-53: a basic group of one's own
        ("tight", [group("tight", gang=True)], True),  # T-53: a gang of one's own
        ("absent", [group("tight", gang=True)], False),  # T-53: it does not exist
    ],
)
def test_t_52_t_53(named: str | None, groups: list[dict[str, Any]], frozen: bool) -> None:
    found = check_parallelism(stored(6, named), stored(4, named), groups, Context.of("1.36"))
    assert [error.kind for error in found] == ([ErrorKind.DENIED] if frozen else [])
    assert check_parallelism(stored(4, named), stored(4, named), groups, Context.of("1.36")) == []


def test_1_37_has_thawed() -> None:
    groups = [group("own", gang=True, owner=UID)]
    assert check_parallelism(stored(6), stored(4), groups, Context.of("1.37")) == []
