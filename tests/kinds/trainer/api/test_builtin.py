"""The runtimes that come with Kohort are valid ones, and asking for them gives copies."""

from __future__ import annotations

import pytest

from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.kinds.trainer.api import builtin_names, builtin_runtime, builtin_runtimes
from kohort.kinds.trainer.api.groups import wants_groups


def test_names_that_people_know() -> None:
    known = {"torch-distributed", "jax-distributed", "deepspeed-distributed", "xgboost-distributed", "mpi", "plain"}
    assert set(builtin_names()) == known


@pytest.mark.parametrize("runtime", builtin_runtimes(), ids=builtin_names())
@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
def test_valid_everywhere(runtime: Object, minor: str) -> None:
    ctx = Context.of(minor, options=DEFAULT_OPTIONS)
    assert admit.check(runtime, ctx) == []
    assert wants_groups(runtime)


def test_copies() -> None:
    first = builtin_runtime("plain")
    assert first is not None
    first["spec"].clear()
    assert builtin_runtime("plain") != first
    assert builtin_runtime("nope") is None
