"""Minimums by CEL: an expression about the owner, checked when its rule is read, and bounded whenever it is run.

`object` is the owner with `spec` and, of its metadata, `name`, `namespace` and `labels`. Its schema is not known here,
so what an expression may cost cannot be estimated; instead each run has a budget, in the units of API servers.
"""

from __future__ import annotations

from typing import Final

from kohort.cel import language as cel
from kohort.cel.run import run
from kohort.cel.syntax import shown
from kohort.cel.types import DYN
from kohort.cel.values import CostError
from kohort.grouping.model import LONGEST_EXPRESSION, Thing, WrongError

BUDGET: Final = 10_000  # cost of one run: some milliseconds
_SCOPE: Final = {"object": DYN}


def wrong(text: str) -> str:
    """What is wrong with an expression; empty: nothing."""
    if len(text) > LONGEST_EXPRESSION:
        return f"it has {len(text)} characters, accepted are {LONGEST_EXPRESSION}"
    checker = cel.Checker()
    try:
        found = checker.resolved(checker.check(cel.parse(text), _SCOPE))
    except cel.CelSyntaxError as error:
        return shown(text, error)
    except RecursionError:
        return "it is too deep"
    if checker.unfit:
        return checker.unfit
    return "" if found.kind in {"int", "dyn"} else f"it is of type {found}, accepted is int"


def value(text: str, owner: Thing) -> int:
    meta = {"name": owner.name, "namespace": owner.namespace, "labels": dict(owner.labels)}
    where = f"{owner}: {text}"
    try:
        found, _ = run(cel.parse(text), {"object": {"spec": owner.spec, "metadata": meta}}, BUDGET)
    except CostError:
        raise WrongError(f"{where}: it costs more than {BUDGET}; a simpler expression is wanted") from None
    except cel.CelError as error:
        raise WrongError(f"{where}: {error}") from None
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise WrongError(f"{where}: found {found!r}, accepted are whole numbers that are not negative")
    return found
