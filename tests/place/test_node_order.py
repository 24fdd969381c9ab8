"""A decision is the same in whatever order the nodes came to be known: a plan on a copy names the same nodes."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from tests.place.short import Short


@pytest.mark.parametrize("seed", range(30))
def test_the_order_of_nodes_decides_nothing(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [(f"n{number}", rng.choice((4, 4, 8)), f"rack-{number % 3}") for number in range(12)]
    busy = [(f"b{number}", rng.choice(nodes)[0], rng.randint(1, 2)) for number in range(6)]
    count, cpu = rng.choice((1, 3, 9, 14)), rng.randint(1, 2)
    topology: dict[str, Any] = {"topology": "example.com/rack"} if rng.random() < 0.5 else {}
    company: dict[str, Any] = {"labels": {"app": "a"}} if rng.random() < 0.3 else {}
    ranked = rng.random() < 0.5
    found = []
    for _ in range(4):
        rng.shuffle(nodes)
        cluster = Short()
        for name, size, rack in nodes:
            cluster.node(name, size, **{"example.com/rack": rack})
        gone = rng.choice(nodes)  # its row is given to another
        cluster.state.remove_node(gone[0])
        cluster.node("x", 4, **{"example.com/rack": "rack-1"})
        cluster.state.remove_node("x")
        cluster.node(gone[0], gone[1], **{"example.com/rack": gone[2]})
        for name, node, asks in busy:
            cluster.run(name, node, asks)
        pods = [cluster.pod(f"p{number}", cpu, **company) for number in range(count)]
        if ranked:
            pods = [replace(pod, rank=(number,)) for number, pod in enumerate(pods)]
        found.append(cluster.place(*pods, **topology))
    assert found == found[:1] * len(found)
