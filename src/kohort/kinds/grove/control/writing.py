"""Writes of Grove's controllers, and conditions: only what differs is written, and only fields that are ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import label, meta_of, status_of
from kohort.controllers.drift import covers
from kohort.controllers.reconcile import Answer, Part, ReconcileError, Step, Write, one
from kohort.controllers.writes import patch

AGAIN: Final = 5.0  # seconds after which what is not complete yet is looked at again, if nothing happens before


def number(obj: Object, key: str) -> int:
    """An index that stands in a label; -1 where it is not one."""
    text = label(obj, key)
    return int(text) if text.isascii() and text.isdigit() else -1


# ---- requests


def done(write: Write, answer: Answer) -> Object | None:
    """What is stored after a patch or a deletion; None if it was gone. ReconcileError if it was refused otherwise."""
    if answer.refusal is None:
        return answer.object
    if answer.refusal.not_found:
        return None
    raise ReconcileError(f"{write}: {answer.refusal.code} {answer.refusal.message}")


def all_done(writes: Sequence[Write]) -> Part:
    """Writes at once; those whose object is gone or exists already count as done. All problems are told together."""
    if not writes:
        return
    answers = yield Step(writes)
    problems = [
        f"{write}: {answer.refusal.message}"
        for write, answer in zip(writes, answers, strict=True)
        if answer.refusal is not None and not answer.refusal.not_found and not answer.refusal.already_exists
    ]
    if problems:
        raise ReconcileError("; ".join(problems))


def without_finalizer(obj: Object, finalizer: str) -> Part:
    """Lets an object that is going go: what it owns is collected after it."""
    held = list(meta_of(obj).get("finalizers") or ())
    if finalizer in held:
        held.remove(finalizer)
        version = meta_of(obj).get("resourceVersion")
        write = patch(obj, {"metadata": {"finalizers": held or None, "resourceVersion": version}})
        done(write, (yield from one(write)))


def write_status(obj: Object, status: dict[str, Any]) -> Part:
    """-> the object as it is stored then."""
    if status.get("replicas") == 0:  # a count that upstream's types leave out while it is 0
        del status["replicas"]
    body = difference(status_of(obj), status)
    if not body:
        return obj
    write = patch(obj, {"status": body}, "status")
    found = done(write, (yield from one(write)))
    return {**obj, "status": status} if found is None else found


# ---- differences


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that makes `new` of `old`; empty if they are the same."""
    found: dict[str, Any] = {key: None for key in old if key not in new and old[key] is not None}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = difference(before, value)
            if inner:
                found[key] = inner
        elif value != before:
            found[key] = value
    return found


def lacking(wanted: Any, stored: Any) -> Any:
    """The merge patch that puts `wanted` into `stored`, which may hold more (defaults); None if it is there."""
    found: dict[str, Any] = {}
    for key, value in wanted.items():
        before = (stored or {}).get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = lacking(value, before)
            if inner is not None:
                found[key] = inner
        elif not covers(before, value):
            found[key] = value
    return found or None


# ---- conditions


def copy_status(obj: Object) -> dict[str, Any]:
    return copied(status_of(obj))
