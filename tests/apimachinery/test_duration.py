"""Durations: Go's verdicts, and no text that costs more than its length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.apimachinery.duration import DurationError, canonical, nanoseconds

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0s"),
        ("-0", "0s"),
        ("90m", "1h30m0s"),
        ("+5s", "5s"),
        ("-1m30.5s", "-1m30.5s"),
        (".5h3.ms", "30m0.003s"),
        ("1µs", "1µs"),
        ("1μs", "1µs"),
        ("0.3333333333333333333h", "20m0s"),
        ("2562047h47m16.854775807s", "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
        pytest.param("0" * 20_000 + "1s", "1s", id="zeros"),
        pytest.param("0." + "0" * 20_000 + "s", "0s", id="zeros behind the point"),
    ],
)
def test_read_and_printed_as_go_does(text: str, printed: str) -> None:
    assert canonical(text) == printed


@pytest.mark.parametrize(
    "text",
    [
        *("", "3", "-", "s", ".", "-.", ".s", "+.s", "1d", "1h ", " 1h", "1s\n", "1e3s", "--1s", "1s-1s", "\u0663s"),
        *("9223372036854775808ns", "2562048h", "-9223372036854775809ns", "9223372036854775808s"),
        pytest.param("9" * 5_000 + "s", id="nines"),
        pytest.param("0" * 20_000, id="zeros without a unit"),
        pytest.param("1000h" * 20_000, id="a sum"),
    ],
)
def test_refused_as_go_does(text: str) -> None:
    with pytest.raises(DurationError, match="time: invalid duration"):
        nanoseconds(text)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_what_is_printed_is_read_again(length: int) -> None:
    assert nanoseconds(canonical(f"{length}ns")) == length
