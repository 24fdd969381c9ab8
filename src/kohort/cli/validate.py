"""`kohort validate`."""

from __future__ import annotations

from rich.text import Text

from kohort import library, manifest
from kohort.api.options import context
from kohort.cli.common import as_json, checked, choice, count, friendly, out, parse_gates, problems_json, report, write


@friendly
def run(filenames: list[str], kubernetes: str, output: str, gates: str, *, recursive: bool) -> int:
    choice("-o", output, ("text", "json"))
    switched = parse_gates(gates)
    checked(lambda: context(kubernetes, switched))
    documents = manifest.read(filenames, recursive=recursive)
    problems = library.validate(documents, kubernetes=kubernetes, gates=switched, warnings=True)
    errors = sum(problem.severity == "error" for problem in problems)
    if output == "json":
        write(as_json({"documents": len(documents), "problems": problems_json(problems)}))
        return 1 if errors else 0
    report(problems, out)
    out.print(_summary(len(documents), errors, len(problems) - errors, kubernetes))
    return 1 if errors else 0


def _summary(documents: int, errors: int, warnings: int, kubernetes: str) -> Text:
    verdict = Text.assemble((count(errors, "error"), "bold red")) if errors else Text("valid", "bold green")
    extra = f", {count(warnings, 'warning')}" if warnings else ""
    return Text.assemble(f"{count(documents, 'document')} for Kubernetes {kubernetes}: ", verdict, extra)
