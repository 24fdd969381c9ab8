"""Certificates over the years: at every moment, whatever an API server trusts has signed whatever is shown to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kohort.certificates import is_signed_by
from kohort.webhook import rotation
from kohort.webhook.rotation import Keys, Lives, due

NAMES = ("kohort-webhook.kohort-system.svc", "kohort-webhook.kohort-system")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def first() -> Keys:
    made = due(Keys(), NAMES, START)
    assert made is not None
    return made


def test_the_first() -> None:
    made = first()
    assert made.serving is not None
    assert is_signed_by(made.serving.certificate, made.trusted[0])
    assert made.serving.certificate.not_valid_after_utc == START + rotation.LIFE
    assert due(made, NAMES, START) is None
    assert due(made, NAMES, START + 200 * DAY) is None


def test_it_survives_the_secret() -> None:
    data = rotation.write(first())
    assert due(rotation.read(data), NAMES, START) is None
    assert rotation.write(rotation.read(data)) == data


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": "?", "ca.crt": "bm8="}, {"tls.crt": "bm8=", "tls.key": "bm8="}])
def test_rubbish_in_the_secret_is_replaced(data: dict[str, str] | None) -> None:
    made = due(rotation.read(data), NAMES, START)
    assert made is not None
    assert due(made, NAMES, START) is None


def test_a_lost_half_is_made_anew() -> None:
    data = rotation.write(first())
    for part in data:
        made = due(rotation.read({name: text for name, text in data.items() if name != part}), NAMES, START)
        assert made is not None
        assert made.serving is not None
        assert any(is_signed_by(made.serving.certificate, one) for one in made.trusted)


def test_the_serving_certificate_is_renewed_with_a_third_left() -> None:
    made = first()
    assert due(made, NAMES, START + 243 * DAY) is None
    later = due(made, NAMES, START + 244 * DAY)
    assert later is not None
    assert later.trusted == made.trusted
    assert later.serving is not None
    assert later.serving.certificate.not_valid_after_utc == START + 244 * DAY + rotation.LIFE


def test_another_name_is_another_certificate() -> None:
    known = first()
    made = due(known, (*NAMES, "other.svc"), START + DAY)
    assert made is not None
    assert made.trusted == known.trusted
    assert made.serving != known.serving


def test_no_moment_in_thirty_years_without_trust() -> None:
    """A round a week. Some process shows the old certificate still, some API server trusts the old bundle still: each
    of the four pairs fits."""
    keys = first()
    renewed, authorities = 0, set(keys.trusted)
    for day in range(1, 30 * 365, 7):
        now, old = START + day * DAY, keys
        keys = due(old, NAMES, now) or old
        assert old.serving is not None
        assert keys.serving is not None
        for certificate in (old.serving.certificate, keys.serving.certificate):
            assert certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
            for bundle in (old.trusted, keys.trusted):
                assert any(is_signed_by(certificate, one) for one in bundle)
        renewed += keys.serving is not old.serving
        authorities |= set(keys.trusted)
        assert len(keys.trusted) <= 2
    assert 40 <= renewed <= 60
    assert len(authorities) == 5


def test_lives_of_minutes_for_tests() -> None:
    """The same steps in small: what a test on a real cluster watches."""
    lives = Lives(timedelta(minutes=3), timedelta(minutes=1), timedelta(seconds=5))
    keys = due(Keys(), NAMES, START, lives)
    assert keys is not None
    steps = 0
    for second in range(1, 600):
        now = START + timedelta(seconds=second)
        keys, changed = (due(keys, NAMES, now, lives) or keys), due(keys, NAMES, now, lives) is not None
        steps += changed
        assert keys.serving is not None
        assert now < keys.serving.certificate.not_valid_after_utc
    assert steps > 15
