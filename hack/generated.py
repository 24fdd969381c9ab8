"""Write what follows from code: deploy/rbac.yaml, roles and definitions of the Helm chart, and the table of kinds in
README from the bundles of kinds; the table of limits in docs/security.md from their type;
the table of values in docs/install.md from the schema of the chart; the table of reasons and docs/reference.

python hack/generated.py
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from kohort.api.bundle import Page, bundles
from kohort.api.crd import crds
from kohort.run.roles import chart_roles, rbac, rbac_dashboard, rbac_jobs
from kohort.server import limits
from kohort.webhook.validating import checked, webhook_rules

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for whoever runs this file by its path
reference = importlib.import_module("hack.reference")
_SHARED: Final = Page("Workload, PodGroup, CompositePodGroup", "docs/kinds/scheduling.md")


def table() -> str:
    pages = [*(one.page for one in bundles() if one.page is not None), _SHARED]
    return "".join(
        ("| kind | page |\n", "|---|---|\n", *(f"| {one.kinds} | [{one.path}]({one.path}) |\n" for one in pages))
    )


def between(text: str, begin: str, end: str, body: str) -> str:
    """The text with the lines between two marks replaced."""
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"the lines {begin.strip()} and {end.strip()} are not there")
    return f"{head}{begin}{body}{end}{tail}"


def values_table(chart: Path) -> str:
    """Of the chart, from its schema and its defaults."""
    schema = json.loads((chart / "values.schema.json").read_text())
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    lines = (f"| `{path}` | {_shown(value)} | {text} |\n" for path, value, text in _values(schema, defaults))
    return "".join(("| value | default | |\n", "|---|---|---|\n", *lines))


def _values(schema: Mapping[str, Any], defaults: Any, path: str = "") -> Iterator[tuple[str, Any, str]]:
    for name, one in schema["properties"].items():
        if not path and name == "global":
            continue
        value = (defaults or {}).get(name)
        if one.get("properties"):
            yield from _values(one, value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value, one["description"]


def _shown(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value)}`"


def definitions(folder: Path) -> dict[Path, str]:
    """Of each family a folder, named after its controllers; of what the scheduler itself reads another; and a list for
    Kustomize. One line each: they are large."""
    family = {group: one.controllers[0].name for one in bundles() if not one.native for group in one.groups}
    found = {}
    for one in crds():
        name = f"{family.get(one['spec']['group'], 'scheduler')}/{one['metadata']['name']}.json"
        found[folder / name] = json.dumps(one, separators=(",", ":")) + "\n"
    listed = "".join(f"- {path.relative_to(folder)}\n" for path in found)
    head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
    return {**found, folder / "kustomization.yaml": head + listed}


def webhooks() -> str:
    """files/webhooks.json of the chart: what API servers ask about, by controller."""
    return json.dumps({name: webhook_rules([name]) for name in checked()}, indent=1) + "\n"


def files() -> dict[Path, str]:
    """The files as they should be."""
    deploy, readme, security = ROOT / "deploy", ROOT / "README.md", ROOT / "docs" / "security.md"
    install, scheduler = ROOT / "docs" / "install.md", ROOT / "docs" / "scheduler.md"
    return {
        **reference.files(),
        scheduler: between(
            scheduler.read_text(),
            "<!-- begin: table of reasons, hack/generated.py -->\n\n",
            "\n<!-- end -->\n",
            reference.reasons_table(),
        ),
        install: between(
            install.read_text(),
            "<!-- begin: table of values, hack/generated.py -->\n\n",
            "<!-- end -->\n",
            values_table(deploy / "chart") + "\n",
        ),
        deploy / "rbac.yaml": rbac(),
        deploy / "rbac-jobs.yaml": rbac_jobs(),
        deploy / "rbac-dashboard.yaml": rbac_dashboard(),
        deploy / "chart" / "files" / "roles.json": chart_roles(),
        deploy / "chart" / "files" / "webhooks.json": webhooks(),
        **definitions(deploy / "chart" / "files" / "crds"),
        readme: between(
            readme.read_text(), "<!-- begin: table of kinds, hack/generated.py -->\n", "<!-- end -->\n", table()
        ),
        security: between(
            security.read_text(),
            "<!-- begin: table of limits, hack/generated.py -->\n\n",
            "\n<!-- end -->\n",
            limits.table(),
        ),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
