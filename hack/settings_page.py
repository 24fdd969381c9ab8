"""Writes docs/configuration.md: the settings and feature gates of workload kinds, from the types that hold them.

Run it when a settings type changes: `python -m hack.settings_page`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kohort.api.options import own_gates
from kohort.gang.settings import Described, KindSettings, describe, settings_types, shown

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"
_HEAD = """\
# Configuration

<!-- Made by hack/settings_page.py from the types in kinds/*/settings.py and the gates in kinds/*/bundle.py. -->

Two things can be chosen about workload kinds:

| | what it is | where it is given |
|---|---|---|
| **settings** | how Kohort does its own work, where upstream leaves it open or Kohort differs from it | \
`settings` of a configuration file, `--set`, `kohort.compile(settings=…)` |
| **feature gates** | whether something is there at all: those of Kubernetes, and those of the kinds' own controllers \
| `featureGates` of a configuration file, `--feature-gates` (`translate`, `validate`, `up`), \
`kohort.compile(gates=…)` |

## The file

```yaml
apiVersion: config.kohort.dev/v1alpha1
kind: KohortConfiguration
featureGates:
  ElasticJobSet: true
settings:
  job:
    byoWorkload: Skip
  jobset:
    gangRendering: Composite
    onSuspend: Preserve
```

`kohort run --config FILE` reads all of it ([the other fields](run-on-kubernetes.md#options)). `kohort up --config FILE`
takes `controllers`, `featureGates`, `profile` and `settings` from the same file, `kohort translate --config FILE`
takes `featureGates` and `settings`; both name the fields that they leave to `kohort run`.

`--set KIND.NAME=VALUE` of the three commands may be repeated and wins over the file, setting by setting:

```console
$ kohort translate -f examples/jobset-hello.yaml --set jobset.gangRendering=Composite
```

In Python, settings are a mapping as in the file, or typed:

```python
import kohort
from kohort.gang.settings import SettingsByKind
from kohort.kinds.jobset.settings import JobSetSettings

kohort.compile("examples/jobset-hello.yaml", settings={"jobset": {"gangRendering": "Composite"}})
kohort.compile("examples/jobset-hello.yaml", settings=SettingsByKind(JobSetSettings(gang_rendering="Composite")))
```

A kind, a setting or a value that is not known is refused, with its path and what is accepted; all that is wrong is told
at once.

## Settings
"""
_GATES = """\
## Feature gates

The gates of Kubernetes have the names and defaults of the release. Kohort's own are these; a gate that upstream calls
otherwise has that name, too.

| gate | kind | default | what it switches |
|---|---|---|---|
"""


def page() -> str:
    return "".join([_HEAD, *(_section(kind) for kind in settings_types().values()), "\n", _GATES, *_gates()])


def _section(kind: type[KindSettings]) -> str:
    rows = [_row(kind.kind, one) for one in describe(kind).values()]
    if not rows:
        return f"\n### {kind.kind}\n\nNone.\n"
    head = f"\n### {kind.kind}\n\n| setting | accepted | default | |\n|---|---|---|---|\n"
    return head + "".join(rows)


def _row(kind: str, one: Described) -> str:
    accepted = ", ".join(f"`{shown(word)}`" for word in one.words) or "a text"
    default = one.default_says or f"`{shown(one.default)}`"
    return f"| `{kind}.{one.name}` | {accepted} | {default} | {one.says} |\n"


def _gates() -> Iterator[str]:
    for name, gate in own_gates().items():
        alias = f" (`{gate.alias}`)" if gate.alias else ""
        yield f"| `{name}`{alias} | {gate.kind} | {'on' if gate.default else 'off'} | {gate.meaning} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
