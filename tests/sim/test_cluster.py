"""Cluster files: what they mean, and what is said about wrong ones."""

from __future__ import annotations

from collections import Counter

import pytest

from kohort.sim.cluster import ClusterFileError, plain, read

GPU = """
pools:
- name: gpu
  count: 12
  capacity: {cpu: 96, nvidia.com/gpu: 8}
  topology:
  - {key: topology.kubernetes.io/zone, count: 2}
  - {key: example.com/rack, count: 3}
  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
  labels: {tier: training, spot: false}
- {name: cpu, count: 1}
"""


def test_pools_become_nodes() -> None:
    nodes = [node for pool in read(GPU) for node in pool.nodes()]
    assert [node["metadata"]["name"] for node in nodes][:2] == ["gpu-00", "gpu-01"]
    assert nodes[-1]["metadata"]["name"] == "cpu-0"
    first = nodes[0]
    assert first["metadata"]["labels"]["example.com/rack"] == "zone-0-rack-0"
    assert first["metadata"]["labels"]["spot"] == "false"
    assert first["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert first["status"]["allocatable"]["pods"] == "110"
    assert first["spec"]["taints"] == [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    racks = Counter(node["metadata"]["labels"].get("example.com/rack") for node in nodes[:-1])
    assert racks == {f"zone-{zone}-rack-{rack}": 2 for zone in range(2) for rack in range(3)}


@pytest.mark.parametrize(("count", "shares"), [(7, [3, 2, 2]), (3, [1, 1, 1]), (2, [1, 1]), (10, [4, 3, 3])])
def test_shares_are_as_equal_as_can_be(count: int, shares: list[int]) -> None:
    text = f"pools: [{{name: n, count: {count}, topology: [{{key: rack, count: 3}}]}}]"
    nodes = [node for pool in read(text) for node in pool.nodes()]
    found = Counter(node["metadata"]["labels"]["rack"] for node in nodes)
    assert sorted(found.values(), reverse=True) == shares


def test_plain_nodes() -> None:
    assert [pool.count for pool in plain(3)] == [3]
    assert plain(0) == ()


def test_everything_wrong_is_said_at_once() -> None:
    text = """
    pools:
    - {name: Big_One, count: -1, taints: [{key: a, effect: Sometimes}], colour: red}
    - {name: x, count: 2, topology: [{key: rack, count: 0}]}
    racks: 3
    """
    with pytest.raises(ClusterFileError) as caught:
        read(text)
    fields = {error.field for error in caught.value.errors}
    assert fields == {
        "pools[0].name",
        "pools[0].count",
        "pools[0].taints[0].effect",
        "pools[0].colour",
        "pools[1].topology[0].count",
        "racks",
    }


@pytest.mark.parametrize("text", ["", "[]", "pools: {}", "pools: []", "pools: [3]"])
def test_no_pools(text: str) -> None:
    with pytest.raises(ClusterFileError):
        read(text)
