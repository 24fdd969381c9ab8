"""Amounts: canonical text as Kubernetes writes it."""

import pytest

from kohort.api.core import quantities

TEXTS = [
    ("1", "1"), ("0", "0"), ("1000m", "1"), ("1500m", "1500m"), ("0.5", "500m"), ("100m", "100m"), ("5000", "5k"),
    ("1Gi", "1Gi"), ("1024Mi", "1Gi"), ("600Mi", "600Mi"), ("1.5Gi", "1536Mi"), ("512", "512"), ("0.5Ki", "512"),
    ("1e3", "1k"), ("100n", "100n"), ("0.1n", "1n"), ("2Ei", "2Ei"), ("123456789", "123456789"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "text"), TEXTS)
def test_canonical_text(given: str, text: str) -> None:
    assert str(quantities.read(given)) == text


def test_sums_keep_the_notation_of_the_first() -> None:
    assert str(quantities.read("1Gi").plus(quantities.read("1Gi"))) == "2Gi"
    assert str(quantities.ZERO.plus(quantities.read("600Mi"))) == "600Mi"
    assert str(quantities.read("1G").plus(quantities.read("1Gi"))) == "2073741824"
    assert str(quantities.read("600m").plus(quantities.read("400m"))) == "1"
