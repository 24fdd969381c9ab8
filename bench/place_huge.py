"""50,000 nodes and 500,000 running pods: memory, and one gang. Run by `bench.place` in a process of its own."""

from __future__ import annotations

import json
import resource
import sys

from bench.place_cases import cluster, fill, gang, spent
from kohort.place.demand import Leaf
from kohort.place.engine import Engine
from kohort.place.search import Search


def main() -> None:
    engine = cluster(50_000, 3125, 10)
    fill(engine, 10, {"cpu": 100, "memory": 1 << 30})
    leaf = gang(engine, "g", 1000, None, {"cpu": 500, "memory": 1 << 30})
    first = spent(lambda: _place(engine, leaf))  # the shape is new: every node is looked at
    again = spent(lambda: _place(engine, leaf))
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    print(json.dumps({"gib": kib / (1 << 20), "gang_ms": max(first, again) * 1e3}))


def _place(engine: Engine, leaf: Leaf) -> None:
    mark = engine.mark()
    assert len(Search(engine).place(leaf).placed) == 1000
    engine.undo(mark)


if __name__ == "__main__":
    main()
