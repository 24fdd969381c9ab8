"""What a dry run tells of the groups that rules would make."""

from __future__ import annotations

from tests.grouping import operators
from tests.grouping.cluster import Cluster
from tests.grouping.test_owners import one

from kohort.grouping.model import Kind
from kohort.grouping.settings import Grouping
from kohort.run.groups import lines


def test_a_line_for_each_rule_with_an_example() -> None:
    found = Cluster()
    operators.jobset(found, one("jobset-coordinator"))
    for group in (0, 1):
        operators.lws(found, one("lws"), group)
    told = {line.what: line.text for line in lines(found.core, Grouping(), {Kind("ray.io", "RayCluster")})}
    assert told["rule jobset"].endswith(
        ": 1 group, such as default/coordinator-example by JobSet default/coordinator-example: a tree of "
        "coordinator-example/driver at least 1 pod together, coordinator-example/workers at least 4 pods together; "
        "5 pods are there"
    )
    assert "2 groups, such as default/leaderworkerset-sample/0" in told["rule leaderworkerset"]
    assert told["rule ray"].endswith("served here, and nothing of it asks for a gang now")
    assert set(told) == {"rule jobset", "rule leaderworkerset", "rule ray"}
