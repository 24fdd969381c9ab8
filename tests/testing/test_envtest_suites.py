"""How outcomes of other people's suites are counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.envtest_suites import packages, read, table

GINKGO = """=== RUN   TestAPIs
\x1b[38;5;9m[FAIL]\x1b[0m JobSet controller [It] should finish
  \x1b[38;5;9m[FAIL]\x1b[0m JobSet controller [It] should finish
Ran 41 of 43 Specs in 20.1 seconds
\x1b[1mFAIL!\x1b[0m -- \x1b[38;5;10m40 Passed\x1b[0m | \x1b[38;5;9m1 Failed\x1b[0m | 0 Pending | 2 Skipped
--- FAIL: TestAPIs (20.10s)
FAIL
"""
PLAIN = """=== RUN   TestOne
--- PASS: TestOne (0.10s)
    --- PASS: TestOne/inner (0.00s)
--- FAIL: TestTwo (0.10s)
--- SKIP: TestThree (0.00s)
FAIL
"""
BROKEN = "# example.org/operator\nmain_test.go:3: undefined: x\nFAIL\texample.org/operator [build failed]\n"


@pytest.mark.parametrize(
    ("printed", "counts", "names"),
    [
        (GINKGO, (40, 1, 2), ["JobSet controller [It] should finish"]),
        (PLAIN, (2, 1, 1), ["TestTwo"]),
    ],
)
def test_specs_are_counted_and_failures_named(printed: str, counts: tuple[int, int, int], names: list[str]) -> None:
    found = read("p", printed.splitlines())
    assert (found.passed, found.failed, found.skipped) == counts
    assert (found.names, found.why) == (names, "")


def test_a_package_that_does_not_build_says_so() -> None:
    found = read("p", BROKEN.splitlines())
    assert (found.ran, "build failed" in found.why) == (0, True)
    assert list(table([found]))[-1] == "0 of 0 pass"


def test_packages_are_those_that_use_envtest(tmp_path: Path) -> None:
    uses = 'package x\nimport "sigs.k8s.io/controller-runtime/pkg/envtest"\n'
    for path, text in {"a/suite_test.go": uses, "b/plain_test.go": "package x\n", "vendor/c/d_test.go": uses}.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    assert packages(tmp_path) == [tmp_path / "a"]
