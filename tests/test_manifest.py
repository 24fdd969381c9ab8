"""Bad input gets one clear line, good input is read as kubectl reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.manifest import parse, read
from kohort.yamlread import MAX_BYTES, MAX_DEPTH, ManifestError

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no document in it"),
        ("# nothing but a comment\n---\n", "no document in it"),
        ("just words", "an object was expected, found a string"),
        ("- a\n- b\n", "an object was expected, found a list"),
        ("42", "an object was expected, found a number"),
        ("a: [1, 2", "not YAML"),
        ("a: b\n\t- c", "line 2: not YAML: found a tab"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "line 4: key b.c is given twice (first in line 3)"),
        ('{"a": 1, "a": 2}', "key a is given twice"),
        ("[" * 100_000, f"nested deeper than {MAX_DEPTH} levels"),
        (BOMB, "more than 1,000,000 values once aliases are written out"),
        ("a: &x\n  b: *x", "alias *x names no anchor before it"),
        ("a: !!python/name:os.system x", "is not accepted in a manifest"),
        ("? [a]\n: b", "a key must be a scalar"),
        ("a: .inf", ".inf is not a JSON number"),
        ("a: 1e999", "1e999 is not a JSON number"),
        ("a: " + "9" * 5000, "a number of 5000 digits"),
        ("a: b: c", "not YAML"),
        ("<<: 3", "<< takes a mapping"),
    ],
    ids=lambda text: text[:24],
)
def test_bad_text_is_one_line(text: str, says: str) -> None:
    documents, problems = parse(text, "bad.yaml")
    assert documents == []
    assert len(problems) == 1
    assert says in problems[0]
    assert problems[0].startswith("bad.yaml: ")
    assert "\n" not in problems[0]


def test_a_tag_on_a_list_runs_nothing() -> None:
    (document,), problems = parse("a: !!python/object/apply:os.system [x]")
    assert problems == []
    assert document.obj == {"a": ["x"]}


def test_a_document_larger_than_a_server_takes() -> None:
    _, problems = parse("a: " + "x" * (10 << 20))
    assert problems == [f"document 1: 10.0 MiB; an API server takes at most {MAX_BYTES >> 20} MiB"]


def test_one_bad_document_does_not_hide_the_others() -> None:
    documents, problems = parse("kind: A\n---\na: [\n---\nkind: B\n---\na: 1\na: 2\n")
    assert [document.obj["kind"] for document in documents] == ["A", "B"]
    assert [problem.split(":")[0] for problem in problems] == ["document 2", "document 4"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("off", False),
        ("y", "y"),
        ("~", None),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0b11", -3),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", 1000),
        ("4.0", 4),
        ("1e30", 1e30),
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("'42'", "42"),
        ('"yes"', "yes"),
        ("!!str 42", "42"),
        ("!!int 42", 42),
        ("4Gi", "4Gi"),
        ("08", 8),
        ("+12", 12),
    ],
)
def test_scalars_as_kubectl_reads_them(text: str, value: Any) -> None:
    documents, problems = parse(f"a: {text}")
    assert problems == []
    assert documents[0].obj == {"a": value}
    assert type(documents[0].obj["a"]) is type(value)


def test_keys_become_strings_and_merges_give_way() -> None:
    documents, _ = parse("1: a\ntrue: b\nbase: &b {p: 1, q: 2}\nmine: {<<: *b, q: 3}\n")
    assert documents[0].obj == {"1": "a", "true": "b", "base": {"p": 1, "q": 2}, "mine": {"q": 3, "p": 1}}


def test_aliases_do_not_share_state() -> None:
    (document,), _ = parse("a: &x {b: [1]}\nc: *x\n")
    document.obj["a"]["b"].append(2)
    assert document.obj["c"] == {"b": [1]}


def test_lines_of_fields() -> None:
    (_, second), _ = parse("kind: A\n---\nkind: B\nspec:\n  items:\n  - name: x\n    size: 3\n")
    assert second.line("spec.items[0].size") == 7
    assert second.line("spec.items[0].colour") == 6  # the nearest thing that is there
    assert second.line("status.phase") == 3


def test_a_list_is_taken_apart() -> None:
    documents, problems = parse(
        '{"kind": "List", "items": [{"kind": "A"}, 7, {"kind": "B", "metadata": {"name": "b"}}]}'
    )
    assert [document.name for document in documents] == ["A/(no name)", "B/b"]
    assert problems == ["document 1, items[1]: an object was expected, found a number"]


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("kind: B\n")
    (tmp_path / "a.json").write_text('{"kind": "A"}')
    (tmp_path / "notes.txt").write_text("not a manifest")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.yml").write_text("kind: C\n")
    assert [d.obj["kind"] for d in read([str(tmp_path)])] == ["A", "B"]
    assert [d.obj["kind"] for d in read([str(tmp_path)], recursive=True)] == ["A", "B", "C"]


def test_files_that_cannot_be_read_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "nul.yaml").write_bytes(b"a: b\nc: \0\n")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(ManifestError) as caught:
        read([str(tmp_path), str(tmp_path / "absent.yaml")])
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "latin.yaml: line 1: not UTF-8" in lines[0]
    assert "nul.yaml: line 2: a NUL byte" in lines[1]
    assert "absent.yaml: no such file or directory" in lines[2]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=8).filter(lambda key: key != "<<"), _JSON, max_size=4))
def test_json_is_read_as_json(obj: dict[str, Any]) -> None:
    text = json.dumps(obj)
    if "<<" in text or obj.get("kind") == "List":
        return
    documents, problems = parse(text)
    assert problems == []
    assert documents[0].obj == obj


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    documents, problems = parse(text)
    assert documents or problems
