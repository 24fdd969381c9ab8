"""What a controller knows of a living set, written as rows of what differs from a new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kohort.api.kind import Object
from kohort.kinds.leaderworkerset.api.levels import size
from kohort.kinds.leaderworkerset.api.revision import revision_data, revision_key
from kohort.kinds.leaderworkerset.compile.names import Instance, Observed


def observed(obj: Object, instances: Iterable[Mapping[str, Any]], newest_workload: int = 0) -> Observed:
    usual = Instance(0, revision_key(revision_data(obj)), size(obj), workload=newest_workload)
    return Observed(tuple(replace(usual, **row) for row in instances), newest_workload)
