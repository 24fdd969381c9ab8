"""The same writes to real Kubernetes 1.37 and to us: same code, reason, and set of (cause, field path).

`KOHORT_SEED` chooses other writes, `KOHORT_WRITES` more of them; a failure prints both. A difference that stays has a
line in docs/differences.md, under Validation, and a rule in LISTED below; anything else fails.

The recorded requests are sent to it in test_recorded.py and of us in tests/api/scheduling/test_recorded.py.
"""

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.differential import (
    Difference,
    all_classes,
    ask_real,
    ask_us,
    context_of,
    questions,
)
from tests.support.generate import KINDS, priority_classes

from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import new_namespace

SEED = int(os.environ.get("KOHORT_SEED", "1"))
WRITES = int(os.environ.get("KOHORT_WRITES", "2000"))
PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"

#: What differs on purpose: the first cell of its line in docs/differences.md -> whether a difference is of that sort.
LISTED: dict[str, Callable[[Difference], bool]] = {}


def sort_of(difference: Difference) -> str | None:
    return next((name for name, fits in LISTED.items() if fits(difference)), None)


@pytest.mark.parametrize("policy", [False, True], ids=["default gates", "with PodGroupPreemptionPolicy"])
@pytest.mark.timeout(600)
def test_generated_writes_get_the_same_answer(
    kubernetes_environments: Callable[..., Environment], policy: bool
) -> None:
    count = WRITES if not policy else WRITES // 4
    print(f"KOHORT_SEED={SEED} KOHORT_WRITES={WRITES}")
    env = kubernetes_environments("1.37", (), {"PodGroupPreemptionPolicy": policy})
    namespace = new_namespace(env, "differential")
    for one in priority_classes():
        namespace.client.create("/apis/scheduling.k8s.io/v1/priorityclasses", one)
    time.sleep(1)  # admission learns of them through a watch
    context, classes = context_of("1.37", env.gates), all_classes(priority_classes())

    asked: Counter[tuple[str, int]] = Counter()
    unlisted: list[Difference] = []
    for question in questions(SEED, count, namespace.client, namespace.name):
        real, text = ask_real(namespace.client, question, namespace.name)
        ours = ask_us(question, context, classes, namespace.name)
        asked[question.kind, real.code] += 1
        difference = Difference(question, real, ours, text)
        if real != ours and sort_of(difference) is None:
            unlisted.append(difference)

    assert sum(asked.values()) == count
    assert {kind for kind, code in asked if code == 422} == set(KINDS)
    assert {kind for kind, code in asked if code in (200, 201)} == set(KINDS)
    shown = "\n".join(map(str, unlisted[:30]))
    assert not unlisted, f"{len(unlisted)} of {count} answers differ (KOHORT_SEED={SEED}):\n{shown}"


def test_listed_differences_are_on_the_page() -> None:
    text = PAGE.read_text()
    assert all(f"| {name} |" in text for name in LISTED)
