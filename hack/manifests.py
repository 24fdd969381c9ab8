"""Write deploy/kustomize/kohort.yaml: what the chart renders with its default values, for people without Helm.

make manifests      # builds helm first
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from kohort.testing.environment.assets import ensure_helm

ROOT: Final = Path(__file__).parent.parent
SPACE: Final = "kohort-system"
_HEAD: Final = f"""\
# Written by `make manifests` from the chart with its default values.
apiVersion: v1
kind: Namespace
metadata:
  name: {SPACE}
"""


def text(helm: Path) -> str:
    argv = [helm, "template", "kohort", ROOT / "deploy" / "chart", "--namespace", SPACE, "--set=crds.enabled=false"]
    made = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    lines = [line for line in made.splitlines() if line and not line.startswith("# Source:")]
    managed = "app.kubernetes.io/managed-by: "
    return _HEAD + "\n".join(lines).replace(f"{managed}Helm", f"{managed}kohort") + "\n"


if __name__ == "__main__":
    (ROOT / "deploy" / "kustomize" / "kohort.yaml").write_text(text(ensure_helm()))
