"""The audit of locked packages: finds what the index reports, and never takes silence for health."""

from __future__ import annotations

from typing import Any

import pytest
from hack import audit

ADVISORY = {
    "id": "PYSEC-2026-1",
    "aliases": ["CVE-2026-0001"],
    "summary": "reads too much",
    "fixed_in": ["9.9"],
    "withdrawn": None,
}


def index(**reported: list[dict[str, Any]]) -> audit.Ask:
    return lambda name, _: {"vulnerabilities": reported.get(name, [])}


def test_every_lock_is_read() -> None:
    found = dict(audit.locked(audit.ROOT / name for name in audit.LOCKS))
    assert {"aiohttp", "cryptography", "mypy", "hatchling"} <= set(found)


def test_nothing_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main([], index()) == 0
    assert "0 known weaknesses" in capsys.readouterr().out


def test_something_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main(["--if-reachable"], index(aiohttp=[ADVISORY])) == audit.FOUND
    said = capsys.readouterr().out
    assert "CVE-2026-0001: reads too much (fixed in 9.9: make lock)" in said


def test_what_was_withdrawn_does_not_count() -> None:
    assert audit.main([], index(aiohttp=[{**ADVISORY, "withdrawn": "2026-01-01"}])) == 0


def test_an_accepted_one_passes_and_an_old_one_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "ACCEPTED", {"CVE-2026-0001": "not used", "CVE-2020-1": "gone"})
    assert audit.main([], index(aiohttp=[ADVISORY])) == 0
    assert "CVE-2020-1 is accepted" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "code"), [([], audit.UNREACHABLE), (["--if-reachable"], 0)])
def test_silence_is_not_health(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def nobody(name: str, version: str) -> dict[str, Any]:
        raise audit.UnreachableError(f"{name} {version}: refused")

    assert audit.main(arguments, nobody) == code
    assert "NOT AUDITED" in capsys.readouterr().out
    assert audit.main(arguments, lambda *_: {}) == code  # an index that publishes no advisories
