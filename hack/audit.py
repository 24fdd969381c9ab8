"""Known weaknesses of the locked packages: asks the package index, which publishes advisories beside each release.

make audit                        # every lock file; exit code 1: something is known, 3: not all could be asked about
make audit ARGS=--if-reachable    # for CI, also without the index: says in large letters what was not audited
"""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
LOCKS: Final = ("requirements.lock", "requirements-run.lock", "deploy/image/build.lock")
# Advisories that do not concern us, each with the reason. One that nobody reports any more is told.
ACCEPTED: Final[dict[str, str]] = {}
FOUND, UNREACHABLE = 1, 3
_SECONDS: Final = 20.0
_AT_ONCE: Final = 8

Ask = Callable[[str, str], dict[str, Any]]  # name, version -> what the index says of the release


class UnreachableError(Exception):
    """Nobody to ask."""


@dataclass(frozen=True, slots=True)
class Weakness:
    package: str
    version: str
    name: str
    summary: str
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        mend = f"fixed in {', '.join(self.fixed_in)}: make lock" if self.fixed_in else "no release has it fixed"
        return f"{self.package} {self.version}: {self.name}: {self.summary} ({mend})"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def locked(files: Iterable[Path]) -> list[tuple[str, str]]:
    found = {
        pair for file in files for pair in re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", file.read_text(), re.MULTILINE)
    }
    return sorted(found)


def ask_index(name: str, version: str) -> dict[str, Any]:
    """What is said of the release; some mirrors have only the newest, under the name of the project."""
    from pip._internal.models.index import PyPI  # where the index is, pip knows

    try:
        return _read(f"{PyPI.pypi_url}/{name}/{version}/json")
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise UnreachableError(f"{name} {version}: {error}") from None
    except (urllib.error.URLError, TimeoutError, OSError, ValueError) as error:
        raise UnreachableError(f"{name} {version}: {error}") from None
    try:
        found = _read(f"{PyPI.pypi_url}/{name}/json")
    except (urllib.error.URLError, TimeoutError, OSError, ValueError) as error:
        raise UnreachableError(f"{name} {version}: {error}") from None
    if (found.get("info") or {}).get("version") != version:
        raise UnreachableError(f"{name}: the index speaks of {found['info']['version']} only, not of {version}")
    return found


def _read(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def weaknesses(packages: Iterable[tuple[str, str]], ask: Ask = ask_index) -> tuple[list[Weakness], list[str]]:
    """What is known, and why of some packages nothing is."""

    def of(pair: tuple[str, str]) -> list[Weakness] | str:
        try:
            said = ask(*pair)
        except UnreachableError as error:
            return str(error)
        if "vulnerabilities" not in said:
            return f"{pair[0]} {pair[1]}: the index does not publish advisories"
        return [_weakness(pair, one) for one in said["vulnerabilities"] if not one.get("withdrawn")]

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(of, packages))
    known = [one for found in answers if not isinstance(found, str) for one in found]
    return known, [found for found in answers if isinstance(found, str)]


def _weakness(pair: tuple[str, str], one: Mapping[str, Any]) -> Weakness:
    names = (str(one["id"]), *map(str, one.get("aliases") or ()))
    text = str(one.get("summary") or one.get("details") or "").strip().partition("\n")[0]
    return Weakness(
        *pair, min(names, key=lambda name: not name.startswith("CVE")), text[:120], tuple(one.get("fixed_in") or ())
    )


def main(arguments: list[str], ask: Ask = ask_index) -> int:
    packages = locked(ROOT / name for name in LOCKS)
    found, unasked = weaknesses(packages, ask)
    wrong = [one for one in found if one.name not in ACCEPTED]
    for one in wrong:
        say(str(one))
    if not unasked:
        for name in sorted(set(ACCEPTED) - {one.name for one in found}):
            say(f"{name} is accepted in hack/audit.py, and nobody reports it any more: take it out")
    accepted = len(found) - len(wrong)
    asked = len(packages) - len(unasked)
    say(f"{asked} of {len(packages)} packages audited: {len(wrong)} known weaknesses, {accepted} accepted")
    if unasked:
        more = f" and {len(unasked) - 3} more" if len(unasked) > 3 else ""
        say(f"NOT AUDITED: {len(unasked)} packages ({'; '.join(unasked[:3])}{more})")
    if wrong:
        return FOUND
    return UNREACHABLE if unasked and "--if-reachable" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
