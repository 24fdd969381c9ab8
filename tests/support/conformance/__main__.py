"""`python -m tests.support.conformance`: upstream's end-to-end tests against a fresh `kohort up`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.support.conformance import pages
from tests.support.conformance.lines import SETS, read
from tests.support.conformance.run import Plan, agents, broken, chosen, cluster, run
from tests.support.conformance.suite import Suite, SuiteError

from kohort.testing.environment import AssetsMissingError, ensure
from kohort.testing.environment.assets import ensure_e2e
from kohort.testing.environment.build import BuildError

KUBERNETES = "1.37"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m tests.support.conformance", description=__doc__)
    top.add_argument("--wide", action="store_true", help="also the wide lines")
    top.add_argument("--all", action="store_true", help="all lines")
    top.add_argument("--only", default="", metavar="REGEX", help="only lines whose name it is found in")
    top.add_argument("--processes", type=int, default=Plan.processes, metavar="N", help="e2e.test side by side")
    top.add_argument("--seconds", type=float, default=Plan.seconds, metavar="N", help="for the whole run")
    top.add_argument("--kubeconfig", type=Path, metavar="FILE", help="of a cluster that runs, instead of a fresh one")
    top.add_argument("--keep", type=Path, metavar="FOLDER", help="for logs and reports, kept in any case")
    top.add_argument("--write-docs", action="store_true", help=f"put the result into {pages.PAGE}")
    return top


def main() -> int:
    args = parser().parse_args()
    sets = SETS if args.all else SETS[: 1 + args.wide]
    lines = chosen(read(), sets=sets, only=args.only)
    folder = args.keep or Path(tempfile.mkdtemp(prefix="kohort-conformance-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.absolute()
    plan = Plan(args.processes, args.seconds)
    try:
        binary, kubectl = ensure_e2e(KUBERNETES), ensure(KUBERNETES, ("kubectl",)).path("kubectl")
        began = time.monotonic()
        if args.kubeconfig:
            results = run(Suite(binary, kubectl, args.kubeconfig.absolute(), folder), lines, plan, print)
        else:
            with cluster(folder) as kubeconfig:
                agents(kubectl, kubeconfig)
                results = run(Suite(binary, kubectl, kubeconfig, folder), lines, plan, print)
    except (AssetsMissingError, BuildError, SuiteError) as error:
        sys.exit(f"kohort conformance: {error}")
    seconds = time.monotonic() - began
    print("\n".join(pages.table(results)))
    print(pages.summary(results, seconds))
    if args.write_docs:
        pages.write(results, seconds)
    failed = broken(results)
    if failed or args.keep:
        print(f"logs: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
