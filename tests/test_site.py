"""The documentation site, without building it: every page has its place, no link is dead. `make docs` builds it."""

from __future__ import annotations

import re
from pathlib import Path

from hack import reference, site

from kohort.place.demand import MEANINGS, Reason

ROOT = Path(__file__).parent.parent


def test_menus_are_complete_and_no_link_is_dead() -> None:
    assert site.problems() == []


def test_anchors_are_those_of_headings() -> None:
    assert site.anchors("# A page\n\n## `kohort up`: what, why?\n```sh\n# no heading\n```\n") == {
        "a-page",
        "kohort-up-what-why",
    }
    assert site.links("[a](b.md#c) `[x](y.md)`\n```\n[z](q.md)\n```\n") == ["b.md#c"]


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)


def test_every_condition_of_the_kinds_is_on_the_page() -> None:
    """Constants below a comment that says so are condition types."""
    told = {name for found in reference.CONDITIONS.values() for name in found}
    for path in sorted((ROOT / "src" / "kohort" / "kinds").glob("*/api/constants.py")):
        for block in re.findall(
            r"# (?:Condition types|of [A-Z])[^\n]*\n((?:[A-Z_]+: Final = .*\n)+)", path.read_text()
        ):
            for name in re.findall(r'Final = \(?"([A-Z]\w+)"', block):
                assert name in told, f"{path.relative_to(ROOT)}: {name}"


def test_metrics_are_found_in_the_code() -> None:
    found = {one.name for path in reference.metrics_sources() for one in reference.metrics(path)}
    assert {"scheduler_pending_pods", "kohort_store_revision", "kohort_leader"} <= found
    assert len(found) > 30
