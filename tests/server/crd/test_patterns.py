"""`pattern` of schemas and patterns of JobSets are those of Go."""

import time

import pytest

from kohort.kinds.jobset.control import policies
from kohort.server.crd import structural, validate

SENTENCE = "Job has reached the specified backoff limit and nobody knows why it did so"


def schema(pattern: str) -> dict[str, object]:
    field = {"type": "string", "pattern": pattern}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"name": field}}}}


def problems(pattern: str, value: str) -> list[str]:
    return [str(one) for one in validate.check(schema(pattern), {"spec": {"name": value}})]


@pytest.mark.parametrize("pattern", [r"^(?i)(none|all)$", r"^\pL+\z", r"^[[:alpha:]]+$"])
def test_patterns_that_python_does_not_have(pattern: str) -> None:
    assert structural.problems(schema(pattern), "", status=False) == []
    assert problems(pattern, "All") == []
    assert len(problems(pattern, "a-1")) == 1


def test_a_final_newline_is_not_the_end() -> None:
    assert len(problems("^[a-z]+$", "abc\n")) == 1


def test_a_pattern_that_is_none() -> None:
    found = structural.problems(schema("(?!a)b"), "s", status=False)
    assert "must be a valid regular expression, but isn't: error parsing regexp: invalid or unsupported Perl" in str(
        found[0]
    )


def test_a_value_that_is_too_long_for_its_pattern_is_refused_at_once() -> None:
    began = time.process_time()
    assert "is too long for a pattern" in problems(r"[ab]*a[ab]{900}c", "ab" * 500_000)[0]
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("patterns", "index"),
    [([r"^(\w+\s?)+!$"], None), ([r"(?i)BACKOFF\pZlimit"], 0), (["([", "limit"], 0), (["(?=x)"], None)],
)
def test_a_failure_policy_reads_the_message_in_linear_time(patterns: list[str], index: int | None) -> None:
    rules = [{"name": "n", "action": "FailJobSet", "onJobFailureMessagePatterns": patterns}]
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": SENTENCE}
    job = {"metadata": {"name": "a-0", "labels": {}}, "status": {"conditions": [failed]}}
    assert (0 if policies._matches(rules[0], job) else None) == index
