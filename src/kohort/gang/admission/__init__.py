"""What other objects of the cluster have to say about a write: one small module per kind, asked by an API server.

A kind's own rules (`kohort.api`) see an object and its predecessor. Some rules need more: a TrainJob's runtime, the
claims that a JobSet would share, the gangs of another PodCliqueSet. A module here has `validate`, and `complete` if the
kind stamps times. Both see objects that passed the kind's own rules or are about to; neither is asked about the status,
nor about an object that is being deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from kohort.api.bundle import bundles, derived
from kohort.api.errors import FieldError
from kohort.api.kind import Object
from kohort.gang.compile import CompileContext


@dataclass(frozen=True, slots=True)
class Findings:
    """Errors refuse the write (one of `kohort.api.errors.denied` with 403), warnings do not."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


NOTHING: Final = Findings()

# (new, old or None on create, what else there is: `lookup`)
Validate = Callable[[Object, Object | None, CompileContext], Findings]
# (new, in place; old; now)
Complete = Callable[[Object, Object | None, str], None]


@dataclass(frozen=True, slots=True)
class CrossObjectRules:
    """The rules of a kind that look at other objects."""

    validate: Validate
    complete: Complete | None = None


@derived
def of(group: str, kind: str) -> CrossObjectRules | None:
    """Of a kind; None for those whose own rules are all there is."""
    name = next((one.admission[group, kind] for one in bundles() if (group, kind) in one.admission), None)
    if name is None:
        return None
    module = import_module(name)
    return CrossObjectRules(module.validate, getattr(module, "complete", None))
