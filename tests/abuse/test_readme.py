"""The tests that the table of attacks names exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
NAMED = re.compile(r"`(?:([\w/]+\.py))?(?:::(\w+))?`")


def test_every_attack_has_a_test_that_exists() -> None:
    rows = [line for line in (HERE / "README.md").read_text().splitlines() if re.match(r"\| \d+\.", line)]
    assert {int(row[2:].split(".")[0]) for row in rows} == set(range(1, 13))
    for row in rows:
        path = ""
        found = [one for one in NAMED.findall(row) if any(one)]
        assert found, row
        for file, name in found:
            path = file or path
            text = (HERE.parent / path).read_text()
            assert not name or re.search(rf"def {name}\(", text), (path, name)
