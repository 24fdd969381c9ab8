"""Every request of the recorded Job cases: the same verdict, and for refusals the same fields and reasons."""

from __future__ import annotations

import pytest
from tests.api.batch.replay import every_case, play


@pytest.mark.parametrize(("minor", "case"), every_case())
def test_same_answers(minor: str, case: str) -> None:
    for played in play(minor, case):
        label = f"{case}: {played.request['do']} {played.request.get('body')}"
        assert played.answer.code == played.code, f"{label}: {played.answer}"
        if played.causes:
            ours = {(error.field, str(error.kind)) for error in played.answer.causes}
            assert ours == played.causes, label
