"""A skip says what is missing; where CI could have built it, it is a failure."""

from pathlib import Path

import pytest

from kohort.testing.pytest_plugin import require_binaries, wanted_minors


def test_without_go_a_test_skips_with_the_sentence(no_go: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"real Kubernetes 1\.37 is not on this machine.*install Go"):
        require_binaries("1.37")


def test_without_go_ci_skips_too(no_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.skip.Exception):
        require_binaries("1.37")


def test_with_go_ci_fails(fake_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI has Go, so this must not be skipped"):
        require_binaries("1.37")


def test_with_go_ci_fails_only_for_the_versions_it_is_about(fake_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.skip.Exception):
        require_binaries("1.35")
    monkeypatch.setenv("KOHORT_KUBERNETES", "1.37 1.35")
    with pytest.raises(pytest.fail.Exception):
        require_binaries("1.35")


def test_with_go_people_are_told_the_command(fake_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"run `make kubernetes K8S=1\.36`"):
        require_binaries("1.36")


def test_with_binaries_nothing_happens(fake_go: Path) -> None:
    from kohort.testing.environment import ensure

    ensure("1.37", report=lambda text: None)
    require_binaries("1.37")


def test_the_plain_fixtures_are_of_the_first_version_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KOHORT_KUBERNETES", raising=False)
    assert wanted_minors() == ["1.37"]
    monkeypatch.setenv("KOHORT_KUBERNETES", "1.36 1.37.1")
    assert wanted_minors() == ["1.36", "1.37"]
