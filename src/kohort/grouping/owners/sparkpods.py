"""What an executor of a SparkApplication will ask for, before its driver makes it: as Spark computes it.

Memory beyond the heap is a tenth of it (for Python and R four tenths), and at least 384 MiB.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kohort.grouping.owners.sizes import whole

Json = dict[str, Any]
_AMOUNT: Final = re.compile(r"([0-9]+)([kmgtp]?)b?", re.IGNORECASE)
_UNITS: Final = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}  # powers of 1024; none: mebibytes
_LEAST_OVERHEAD: Final = 384 * 1024**2
_KEPT: Final = ("nodeSelector", "tolerations", "affinity", "schedulerName")
_SCHEDULERS: Final = ("spark.kubernetes.scheduler.name", "spark.kubernetes.executor.scheduler.name")
_HEAP: Final = "1g"  # spark.executor.memory


def executor(spec: Json) -> Json | None:
    """A template of pods; None: what is said is not understood."""
    own: Json = spec.get("executor") or {}
    heap = _bytes(str(own.get("memory") or _HEAP))
    if heap is None:
        return None
    given = _bytes(str(own["memoryOverhead"])) if own.get("memoryOverhead") else None
    memory = heap + (given if given is not None else max(int(heap * _factor(spec)), _LEAST_OVERHEAD))
    requests: Json = {"cpu": str(own.get("coreRequest") or whole(own.get("cores"), 1)), "memory": str(memory)}
    gpu: Json = own.get("gpu") or {}
    if gpu.get("name"):
        requests[str(gpu["name"])] = str(whole(gpu.get("quantity"), 0))
    made: Json = {}
    for said in ((own.get("template") or {}).get("spec") or {}, spec, own):  # the last counts
        made |= {key: said[key] for key in _KEPT if said.get(key)}
    for key in _SCHEDULERS:
        if (spec.get("sparkConf") or {}).get(key):
            made["schedulerName"] = str(spec["sparkConf"][key])
    return {"spec": {**made, "containers": [{"name": "executor", "resources": {"requests": requests}}]}}


def _factor(spec: Json) -> float:
    said = spec.get("memoryOverheadFactor")
    try:
        return float(said) if said else 0.4 if spec.get("type") in {"Python", "R"} else 0.1
    except (TypeError, ValueError):
        return 0.1


def _bytes(text: str) -> int | None:
    """As Java counts: 512m, 1g."""
    found = _AMOUNT.fullmatch(text.strip())
    return int(found[1]) * 1024 ** _UNITS[found[2].lower() or "m"] if found else None
