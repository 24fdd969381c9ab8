"""Quantities: upstream's verdicts and texts, sums, and that no text costs more than its length.

quantities.json holds what resource.ParseQuantity of k8s.io/apimachinery v0.37.1 answers: [text] for a refusal, else
[text, String(), String() after RoundUp(Milli), Format]. Above 999E upstream loses the suffix; such texts are left out.
"""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.apimachinery.quantity import INT64_MAX, MILLI, ZERO, QuantityError, canonical, parse, well_formed

ANSWERS = json.loads((Path(__file__).parent / "quantities.json").read_text())


def test_refused_as_upstream_does() -> None:
    refused = {row[0] for row in ANSWERS if len(row) == 1}
    assert {row[0] for row in ANSWERS if not well_formed(row[0])} == refused


@pytest.mark.parametrize("row", [row for row in ANSWERS if len(row) > 1], ids=lambda row: row[0])
def test_texts_and_formats_of_upstream(row: list[str]) -> None:
    text, shortest, milli, notation = row
    assert [canonical(text), canonical(text, MILLI), parse(text).format] == [shortest, milli, notation]


@pytest.mark.parametrize("row", [row for row in ANSWERS if len(row) > 1], ids=lambda row: row[0])
def test_the_canonical_text_is_the_same_number(row: list[str]) -> None:
    assert parse(row[1]).value == parse(row[0]).value
    assert canonical(str(parse(row[0]))) == str(parse(row[0]))


@pytest.mark.parametrize(
    ("text", "shortest", "ones"),
    [
        ("1e-99999999", "1e-9", 1),
        ("-1e-99999999", "-1e-9", 0),
        ("1e99999999", "1e99999999", INT64_MAX),
        ("-1e99999999", "-1e99999999", -INT64_MAX),
        ("1e-2147483000", "1e-9", 1),
        ("0." + "0" * 5000 + "1", "1n", 1),
        ("9" * 5000, "9" * 5000, INT64_MAX),
        ("1" + "0" * 5000 + "Ki", "9223372036854775807", INT64_MAX),
        ("0." + "0" * 5000 + "1Ki", "1n", 1),
        ("0" * 5000 + "1.0", "1", 1),
        ("1." + "9" * 5000, "2", 2),
        ("9.3E", "9300P", INT64_MAX),
        ("-9.3e18", "-9300e15", -INT64_MAX),
        ("9223372036854775807", "9223372036854775807", INT64_MAX),
    ],
)
def test_the_largest_and_the_finest(text: str, shortest: str, ones: int) -> None:
    assert (canonical(text), parse(text).ceil()) == (shortest, ones)


numbers = st.one_of(
    st.from_regex(r"[+-]?[0-9]{0,40}(\.[0-9]{0,40})?", fullmatch=True),
    st.builds(lambda sign, count: sign * count, st.sampled_from("0123456789."), st.integers(1, 200_000)),
)
suffixes = st.one_of(
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "K", "i"]),
    st.builds(lambda sign, power: f"e{sign}{power}", st.sampled_from(["", "-", "+"]), st.integers(0, 1 << 70)),
)


@given(numbers, suffixes)
def test_no_text_costs_more_than_its_length(number: str, suffix: str) -> None:
    """All that is done with a quantity, in processor time: 10**99999999 alone would take seconds."""
    text = number + suffix
    begin = time.process_time()
    try:
        found = parse(text)
    except QuantityError:
        assert canonical(text) == text
    else:
        assert len(canonical(text)) <= len(text) + 20
        assert -INT64_MAX <= found.ceil() <= INT64_MAX
        assert len(str(found + parse("1"))) < 500
    assert time.process_time() - begin < 1.5


def test_a_text_that_is_almost_a_quantity_is_refused_in_linear_time() -> None:
    begin = time.process_time()
    for text in ("0" * 2_000_000 + "x", "1." + "0" * 2_000_000 + "x", "9" * 2_000_000 + ".x", "1e" + "9" * 2_000_000):
        with pytest.raises(QuantityError):
            parse(text)
    assert time.process_time() - begin < 5


def test_sums_keep_the_notation_of_the_first() -> None:
    assert str(parse("1Gi") + parse("1Gi")) == "2Gi"
    assert str(ZERO + parse("600Mi")) == "600Mi"
    assert str(parse("1G") + parse("1Gi")) == "2073741824"
    assert str(parse("600m") + parse("400m")) == "1"
    assert str(parse("1e3") + parse("1e3")) == "2e3"
    assert str(parse("1Gi") - parse("512Mi")) == "512Mi"
    assert str(parse("1500m") * 3) == "4500m"
    assert len(str(parse("1") + parse("1e99999999"))) < 80  # no hundred million digits


def test_numbers_of_json() -> None:
    assert [canonical(value) for value in (4, "4", 1.5, None, True)] == ["4", "4", "1500m", "0", True]
    assert parse(2).value == Decimal(2)
    assert not well_formed(True)
    assert not well_formed(10**5000)
