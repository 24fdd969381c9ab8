"""LeaderWorkerSets for tests, and the contexts they are judged in."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kohort.api import admit, rules
from kohort.api.errors import FieldError
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.api.releases import Gate, default_gates
from kohort.api.rules import Operation
from kohort.kinds.leaderworkerset.api import LEADER_WORKER_SET

K = "leaderworkerset.sigs.k8s.io/"
WORKER: Object = {"spec": {"containers": [{"name": "main", "image": "tool:1"}]}}


def context(
    minor: str = "1.37", *, without: tuple[str, ...] = (), options: frozenset[str] = DEFAULT_OPTIONS
) -> Context:
    gates = [gate for gate in default_gates(minor) if gate not in without]
    return Context.of(minor, [Gate(gate) for gate in gates], options - set(without))


def lws(
    name: str = "duo",
    *,
    replicas: int | None = 2,
    size: int | None = 3,
    scheduling: Any = None,
    annotations: dict[str, str] | None = None,
    template: dict[str, Any] | None = None,
    **spec: Any,
) -> Object:
    holder: dict[str, Any] = {"workerTemplate": deepcopy(WORKER), **({"size": size} if size is not None else {})}
    holder |= template or {}
    body: dict[str, Any] = {"leaderWorkerTemplate": holder, **spec}
    if replicas is not None:
        body["replicas"] = replicas
    if scheduling is not None:
        body["scheduling"] = scheduling
    meta: dict[str, Any] = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": meta, "spec": body}


def pod_template(**spec: Any) -> Object:
    return {"spec": {**deepcopy(WORKER["spec"]), **spec}}


def defaulted(obj: Object, ctx: Context | None = None) -> Object:
    return admit.defaulted(obj, LEADER_WORKER_SET, ctx or context())


def errors(obj: Object, ctx: Context | None = None) -> list[FieldError]:
    return admit.check(obj, ctx or context())


def fields(obj: Object, ctx: Context | None = None) -> list[str]:
    return [error.field for error in errors(obj, ctx)]


def changed(obj: Object, patch: Object) -> Object:
    """The object after a JSON merge patch."""
    return _merged(deepcopy(obj), patch)


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return deepcopy(patch)
    found = target if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merged(found.get(name), value)
    return found


def update_errors(old: Object, patch: Object, ctx: Context | None = None) -> list[FieldError]:
    """Everything wrong with a patch of a stored object, whoever would say it."""
    ctx = ctx or context()
    before = defaulted(old, ctx)
    after = defaulted(changed(before, patch), ctx)
    declared = rules.check_schema(LEADER_WORKER_SET.schema, after, before, Operation(ctx, update=True, native=False))
    return [*declared, *LEADER_WORKER_SET.validate_update(after, before, ctx)]
