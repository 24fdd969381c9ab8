"""The manifests that people copy: the good ones work, and of the bad ones every planted error is reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import kohort
from kohort.api import admit
from kohort.api.kind import Context
from kohort.api.registry import find
from kohort.api.releases import NEWEST, RELEASES

FOLDER = Path(__file__).parent.parent / "examples"
GOOD = sorted(set(FOLDER.glob("*.yaml")) - {FOLDER / "cluster.yaml"})  # that one is for kohort up --cluster
BAD = sorted((FOLDER / "bad").glob("*.yaml"))
OLDER = [minor for minor in RELEASES if minor != NEWEST]
_EXPECT = re.compile(r"^# expect: (\S+): (.+)$", re.MULTILINE)


def _planted(file: Path) -> list[tuple[int, str, str]]:
    """(document, field, words) of each `# expect:` line above a document."""
    found: list[tuple[int, str, str]] = []
    number = 0
    for part in re.split(r"^---.*$", file.read_text(), flags=re.MULTILINE):
        if any(line.strip() and not line.startswith("#") for line in part.splitlines()):
            number += 1
            found += [(number, field, words) for field, words in _EXPECT.findall(part)]
    return found


def test_there_are_examples_of_both_sorts() -> None:
    assert GOOD
    assert BAD


def _changed(written: Any, kept: Any, path: str = "") -> list[str]:
    if isinstance(written, dict) and isinstance(kept, dict):
        return [one for key, value in written.items() for one in _changed(value, kept.get(key), f"{path}.{key}")]
    if isinstance(written, list) and isinstance(kept, list) and len(written) == len(kept):
        pairs = enumerate(zip(written, kept, strict=True))
        return [one for number, pair in pairs for one in _changed(*pair, f"{path}[{number}]")]
    return [] if type(written) is type(kept) and written == kept else [f"{path}: {written!r} is kept as {kept!r}"]


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.name)
def test_example_is_kept_as_it_is_written(file: Path) -> None:
    """So that kubectl apply --server-side after kubectl apply has no conflict: 8 is not the text "8" for a server."""
    ctx = Context.of(NEWEST)
    for obj in map(dict, yaml.safe_load_all(file.read_text())):
        kind = find(obj["apiVersion"], obj["kind"])
        if kind is not None:  # what only a server has is native, and judged there
            assert _changed(obj, admit.defaulted(obj, kind, ctx)) == []


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.name)
def test_example_is_valid(file: Path) -> None:
    assert [str(problem) for problem in kohort.validate(file)] == []


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.name)
def test_example_goes_where_the_reader_is(file: Path) -> None:
    """A namespace in it would have to be made first: `kubectl apply -f` of a newcomer would only say 404."""
    assert "namespace:" not in file.read_text()


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.name)
def test_example_compiles_on_the_newest(file: Path) -> None:
    for result in kohort.compile(file, to=NEWEST):
        assert [str(problem) for problem in result.errors] == []
        assert result.objects or result.children or result.reason


@pytest.mark.parametrize("minor", OLDER)
@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.name)
def test_example_on_an_older_minor_compiles_or_says_why_not(file: Path, minor: str) -> None:
    for result in kohort.compile(file, to=minor):
        if result.ok:
            assert result.objects or result.children or result.reason
        for problem in result.errors:
            assert problem.field, f"no field: {problem}"
            assert len(problem.message.split()) > 3, f"not a sentence: {problem}"


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.name)
def test_example_begins_with_what_it_shows(file: Path) -> None:
    assert file.read_text().startswith("# "), "the first line says what the example is"


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.name)
def test_every_planted_error_is_reported(file: Path) -> None:
    planted = _planted(file)
    assert planted, "a bad example says what to expect"
    compiled = [problem for result in kohort.compile(file) for problem in result.errors]
    said = [(found.document, found.field, found.message) for found in [*kohort.validate(file), *compiled]]
    missing = [
        (number, field, words)
        for number, field, words in planted
        if not any((number, field) == (document, path) and words in text for document, path, text in said)
    ]
    assert missing == [], f"said: {said}"


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.name)
def test_nothing_but_the_planted_errors_is_reported(file: Path) -> None:
    planted = {(number, field) for number, field, _ in _planted(file)}
    said = {(problem.document, problem.field) for problem in kohort.validate(file)}
    assert said - planted == set()
