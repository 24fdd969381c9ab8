"""What code, tests and pages cite of the specification can be found in docs/spec."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "docs" / "spec"
PAGES = sorted(page.stem for page in SPEC.glob("*.md") if page.stem != "README")
_CODE = r"[A-Z]{1,2}-?\d+[a-z]?"
_PLACE = rf"(?:\d+(?:\.\d+)*|{_CODE})"
# "spec grove 1.1 to 1.3, D19", "spec trainjob 6, scenarios 1 to 49", "spec lws 5, rows L-01 to L-13"
CITATION = re.compile(
    rf"\bspec[ \n]+(?P<page>(?!else )[a-z]+(?:-[a-z]+)*)[ \n]+(?P<places>{_PLACE}"
    rf"(?:(?:,? and |, | to |,? rows? |,? scenarios? |,? rules? )+{_PLACE})*)"
)
# Whose rows a bare code names, by where it stands; the first that fits.
HOMES = {
    "src/kohort/kinds/batch": "job",
    "src/kohort/kinds/jobset": "jobset",
    "src/kohort/kinds/trainer": "trainjob",
    "src/kohort/kinds/grove": "grove",
    "src/kohort/kinds/leaderworkerset": "lws",
    "src/kohort/scheduler": "scheduler",
    "src/kohort/place": "scheduler",
    "tests/scheduler": "scheduler",
    "tests/place": "scheduler",
}


@cache
def places(page: str) -> frozenset[str]:
    """Sections (4.2), rows with a code (V7, T-49) and rows with a number (41) of a page."""
    text = (SPEC / f"{page}.md").read_text()
    sections = re.findall(r"^#+ (\d+(?:\.\d+)*)\.? ", text, re.MULTILINE)
    rows = re.findall(rf"^\| *\**({_CODE}|\d+[a-z]?)\** *\|", text, re.MULTILINE)
    return frozenset([*sections, *rows])


@cache
def recorded() -> frozenset[str]:
    """Cases that were recorded beyond the tables: J-62, X18."""
    names = set()
    for name in ("job-1.36", "job-1.37", "scheduler-1.37"):
        found = json.loads((ROOT / "tests" / "recorded" / f"{name}.json").read_text())
        cases = found.get("cases") or found["scenarios"]
        names |= {str(case["id"]) for case in cases}
    return frozenset(names)


def sources() -> list[Path]:
    folders = ("src", "tests", "bench", "docs")
    found = [page for folder in folders for end in ("*.py", "*.md") for page in (ROOT / folder).rglob(end)]
    return [page for page in [*found, ROOT / "README.md"] if SPEC not in page.parents and page != Path(__file__)]


def test_citations_are_read() -> None:
    found = CITATION.search("the rules (spec grove 1.1 to 1.3, D19 and 1.7) of it")
    assert found is not None
    assert (found["page"], re.findall(_PLACE, found["places"])) == ("grove", ["1.1", "1.3", "D19", "1.7"])
    assert {"4.2", "V7", "64"} <= places("jobset")
    assert not {"9.9", "V99"} & places("jobset")


def test_every_cited_section_and_row_exists() -> None:
    cited, missing = 0, []
    for source in sources():
        for found in CITATION.finditer(source.read_text()):
            cited += 1
            name, page = source.relative_to(ROOT), found["page"]
            if page not in PAGES:
                missing.append(f"{name}: {found[0]}: pages are {', '.join(PAGES)}")
                continue
            known = places(page) | recorded()
            missing += [f"{name}: spec {page} {one}" for one in re.findall(_PLACE, found["places"]) if one not in known]
    assert missing == []
    assert cited > 150  # as many as there were; a pattern that reads none would pass everything


def test_every_scenario_of_a_job_or_lws_exists() -> None:
    """T-49, J-62 and L-09 are unmistakable, wherever they stand; tests carry them in their names."""
    known = places("job") | places("lws") | recorded()
    known |= {one.rstrip("abf") for one in recorded()}  # variants of a row
    missing, seen = [], 0
    for source in sources():
        text = source.read_text()
        codes = set(re.findall(r"\b[TJL]-\d\d\b", text))
        codes |= {f"{one.upper()}-{number}" for one, number in re.findall(r"def test_([tjl])_(\d\d)_", text)}
        seen += len(codes)
        missing += [f"{source.relative_to(ROOT)}: {one}" for one in sorted(codes - known)]
    assert missing == []
    assert seen > 100


@pytest.mark.parametrize(("folder", "page"), HOMES.items())
def test_bare_codes_belong_to_the_page_of_their_package(folder: str, page: str) -> None:
    known = places(page) | recorded()
    missing = []
    for source in (ROOT / folder).rglob("*.py"):
        text = source.read_text()
        words = re.findall(r'"""(.*?)"""|#(.*)$', text, re.DOTALL | re.MULTILINE)
        said = " ".join(one or other.split("\n")[0] for one, other in words)
        codes = set(re.findall(r"(?<![\w.-])[DVWQFCBPMOX]\d+\b(?!\.)", said))
        if folder.startswith("tests"):
            codes |= {f"{one.upper()}{number}" for one, number in re.findall(r"def test_([a-z])(\d+)_", text)}
        missing += [f"{source.relative_to(ROOT)}: {one}" for one in sorted(codes - known)]
    assert missing == []
