"""Patterns of users: Go's meaning, and no pattern that holds the process up."""

import subprocess
import sys
import time

import pytest

from kohort.apimachinery import regexp

SENTENCE = "Job has reached the specified backoff limit and nobody knows why it did so"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^(?i)low$", "LOW", True),
        (r"^a\z", "a", True),
        (r"^a\z", "a\n", False),
        (r"^a$", "a\n", False),
        (r"(?m)^a$", "a\nb", True),
        (r"^\pL+$", "Straße", True),
        (r"^\pL+$", "a1", False),
        (r"^\p{Greek}$", "α", True),
        (r"^[[:alpha:]]+$", "abc", True),
        (r"^[[:alpha:]]+$", "ab1", False),
        (r"^\w$", "é", False),
        (r"^\d$", "٣", False),
        (r"^.$", "\n", False),
        (r"^.$", "é", True),
        (r"\Qa.b\E", "axb", False),
        (r"b", "abc", True),
    ],
)
def test_go_meaning(pattern: str, text: str, found: bool) -> None:
    assert regexp.search(pattern, text) is found


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(a{100}){100}", "invalid repeat count: `{100}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_words_of_go_for_what_is_no_pattern(pattern: str, words: str) -> None:
    assert regexp.problem(pattern) == f"error parsing regexp: {words}"
    with pytest.raises(regexp.RegexpError):
        regexp.search(pattern, "")


@pytest.mark.parametrize("pattern", ["(" * 1001 + ")" * 1001, "a" * 70_000, r"(\pL{1,250}){1,4}"])
def test_patterns_without_end(pattern: str) -> None:
    assert "expression" in regexp.problem(pattern)


@pytest.mark.parametrize("pattern", [r"^(\w+\s?)+!$", r"^(a+)+$", r"(x+x+)+y", r"^(.*)*(.*)*!$"])
def test_nested_quantifiers_take_linear_time(pattern: str) -> None:
    began = time.process_time()
    assert not regexp.search(pattern, SENTENCE * 100)
    assert time.process_time() - began < 1


def test_a_text_that_would_be_searched_for_seconds_is_refused() -> None:
    with pytest.raises(regexp.TooLongError, match="1000000 bytes"):
        regexp.search(r"[ab]*a[ab]{900}c", "ab" * 500_000)


def test_matches_one_after_another() -> None:
    assert [one[0] for one in regexp.compiled(r"a*").find_all("baac")] == ["", "aa", ""]
    assert list(regexp.compiled(r"(\d)(x)?").find_all("1 2x")) == [("1", "1", None), ("2x", "2", "x")]
    assert [one[0] for one in regexp.compiled("").find_all("é")] == ["", ""]


@pytest.mark.parametrize(
    ("template", "count", "text"),
    [(r"<\2\1>", -1, "<ba> <dc>"), (r"\\", 1, "\\ cd"), ("x", 0, "ab cd")],
)
def test_replacing(template: str, count: int, text: str) -> None:
    assert regexp.compiled("(a|c)(b|d)").replace("ab cd", template, count) == text


def test_a_lone_surrogate_is_text_too() -> None:
    assert regexp.search("^.$", "\ud800")


def test_the_library_is_loaded_by_the_first_pattern() -> None:
    script = "import sys; import kohort.apimachinery.regexp; print('re2' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "False\n"
    )
