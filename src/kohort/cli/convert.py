"""`kohort convert`."""

from __future__ import annotations

from kohort import library, manifest
from kohort.api.options import context
from kohort.cli.common import as_json, checked, choice, friendly, report, write


@friendly
def run(filenames: list[str], to: str, output: str, *, flatten: bool, recursive: bool) -> int:
    choice("-o", output, ("yaml", "json"))
    checked(lambda: context(to))
    documents = manifest.read(filenames, recursive=recursive)
    done = library.convert(documents, to=to, flatten=flatten)
    report(done.problems)
    if not done.ok:
        return 1
    if output == "json":
        write(as_json({"apiVersion": "v1", "kind": "List", "items": list(done.objects)}))
    else:
        write("---\n".join(manifest.dump(obj) for obj in done.objects))
    return 0
