"""Equal pods that may go anywhere, as most roots are: what the long way (`search.py`) finds, without its detours."""

from __future__ import annotations

from kohort.place.demand import Demand, Leaf, Outcome, Reason, Result
from kohort.place.diagnosis import diagnose
from kohort.place.engine import Engine


def place_equal(engine: Engine, leaf: Leaf, *, minimum_only: bool, told: bool) -> Result:
    """Place a leaf that `are_equal` is true of; as `Search.place` does it, with its arguments."""
    (eq_class,) = leaf.eq_classes
    if engine.pause is not None:
        engine.pause()
    pods, missing = leaf.pods, leaf.missing
    if min(engine.total(eq_class), len(pods)) < missing:
        if told or len(pods) < missing:
            return Result(False, diagnose(engine, leaf, engine.all_nodes), {})
        return Result(False, {leaf.name: Outcome(False, reason=Reason.INSUFFICIENT)}, {})
    rows = engine.assume(eq_class, None, missing)
    if not minimum_only and len(pods) > missing:
        rows += engine.assume(eq_class, None, len(pods) - missing)
    placed = {pod.key: row for pod, row in zip(pods, rows, strict=False)}
    # Satisfied by what runs, but none of the pending pods found a place: that is not a success.
    return Result(bool(placed), {leaf.name: Outcome(True, placed)}, dict(placed))


def are_equal(engine: Engine, root: Demand) -> bool:
    """Whether a root is pods of one plain class that prefer nothing, and nobody else chooses nodes."""
    if not isinstance(root, Leaf) or len(root.eq_classes) != 1 or engine.chooser is not None:
        return False
    if root.topology is not None or root.preferred or root.ranked:
        return False
    (eq_class,) = root.eq_classes
    if eq_class.stale or not eq_class.is_plain:
        return False
    for pod in root.pods:  # noqa: SIM110 - asked in every decision
        if pod.nominated is not None:
            return False
    return True
