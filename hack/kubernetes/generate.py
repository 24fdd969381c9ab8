#!/usr/bin/env python3
# ruff: noqa: T201
"""Write the Go module that builds one Kubernetes (or etcd, or Helm) version from published modules.

    hack/kubernetes/generate.py 1.37.1          # -> hack/kubernetes/1.37/
    hack/kubernetes/generate.py e2e 1.37.1      # -> hack/kubernetes/e2e-1.37/
    hack/kubernetes/generate.py etcd 3.6.16     # -> hack/kubernetes/etcd/
    hack/kubernetes/generate.py helm 4.3.1      # -> hack/kubernetes/helm/

`k8s.io/kubernetes` is published, but cannot be required as is: its go.mod points every staging
module to a folder that only exists in its own repository. The published twin of staging
module v0.MINOR.PATCH belongs to Kubernetes v1.MINOR.PATCH, so each of those lines becomes
a replacement by that version. The result (go.mod, go.sum, tools.go) is committed, so that a
build needs no resolution and is verified by checksum.

Needs Go and its module proxy. Plain Python, no dependencies.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

COMMANDS = tuple(
    f"k8s.io/kubernetes/cmd/{name}"
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
)
# Added to a module of its own, since what tests need must not change what the commands are built from.
E2E = "k8s.io/kubernetes/test/e2e"
HELM = "helm.sh/helm/v4"

TOOLS_KUBERNETES = """//go:build tools

// Package tools keeps what kohort's test environment builds in this module's requirements.
package tools

import (
{imports}
)
"""

TOOLS_ETCD = """// Command etcd is the etcd server, as published, for kohort's test environment.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
"""


def go(*args: str, cwd: Path) -> str:
    done = subprocess.run(["go", *args], cwd=cwd, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"generate: `go {' '.join(args)}` failed in {cwd} (exit {done.returncode})")
    return done.stdout


def upstream_go_mod(module: str, version: str, scratch: Path) -> dict[str, Any]:
    """The parsed go.mod of a published module."""
    (scratch / "go.mod").write_text("module scratch\n")
    found = json.loads(go("mod", "download", "-json", f"{module}@v{version}", cwd=scratch))
    return dict(json.loads(go("mod", "edit", "-json", found["GoMod"], cwd=scratch)))


def kubernetes_module(name: str, version: str, scratch: Path, target: Path) -> None:
    upstream = upstream_go_mod("k8s.io/kubernetes", version, scratch)
    staging_version = "v0." + version.split(".", 1)[1]
    replacements = upstream.get("Replace") or []
    replaced = [entry["Old"]["Path"] for entry in replacements if entry["New"]["Path"].startswith("./staging/")]
    if not replaced:
        sys.exit(f"generate: k8s.io/kubernetes v{version} has no `=> ./staging/...` lines; its layout changed")
    lines = [
        f"module kohort.test/kubernetes/{name}",
        "",
        f"go {upstream['Go']}",
        "",
        f"require k8s.io/kubernetes v{version}",
        "",
        "replace (",
        *(f"\t{path} => {path} {staging_version}" for path in sorted(replaced)),
        ")",
        "",
    ]
    (target / "go.mod").write_text("\n".join(lines))
    imports = "\n".join(f'\t_ "{package}"' for package in COMMANDS)
    (target / "tools.go").write_text(TOOLS_KUBERNETES.format(imports=imports))


def etcd_module(version: str, scratch: Path, target: Path) -> None:
    upstream = upstream_go_mod("go.etcd.io/etcd/server/v3", version, scratch)
    (target / "go.mod").write_text(
        f"module kohort.test/etcd\n\ngo {upstream['Go']}\n\nrequire go.etcd.io/etcd/server/v3 v{version}\n"
    )
    (target / "main.go").write_text(TOOLS_ETCD)


def helm_module(version: str, scratch: Path, target: Path) -> None:
    upstream = upstream_go_mod(HELM, version, scratch)
    (target / "go.mod").write_text(f"module kohort.test/helm\n\ngo {upstream['Go']}\n\nrequire {HELM} v{version}\n")
    (target / "tools.go").write_text(TOOLS_KUBERNETES.format(imports=f'\t_ "{HELM}/cmd/helm"'))


def minor_of(version: str) -> str:
    return ".".join(version.split(".")[:2])


def main(argv: list[str]) -> None:
    special = argv[0] if len(argv) == 2 and argv[0] in {"etcd", "e2e", "helm"} else ""
    version = argv[-1].removeprefix("v") if argv else ""
    if not (special or len(argv) == 1) or not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit("usage: generate.py [e2e] 1.MINOR.PATCH | generate.py etcd 3.MINOR.PATCH | generate.py helm 4.MINOR.P")
    name = {"": minor_of(version), "e2e": f"e2e-{minor_of(version)}"}.get(special, special)
    final = HERE / name
    with tempfile.TemporaryDirectory(prefix="kohort-generate-") as folder:
        scratch, target = Path(folder, "scratch"), Path(folder, "target")
        scratch.mkdir()
        target.mkdir()
        print(f"generate: resolving the modules of {name} {version}", flush=True)
        if special == "etcd":
            etcd_module(version, scratch, target)
        elif special == "helm":
            helm_module(version, scratch, target)
        else:
            kubernetes_module(name, version, scratch, target)
        go("mod", "tidy", cwd=target)
        if special == "e2e":
            go("get", "-t", f"{E2E}@v{version}", cwd=target)
            # The build names each package, to say how far it is; their modules must be required for that.
            form = "{{if and (not .ForTest) (not .Standard)}}{{.ImportPath}}{{end}}"
            named = go("list", "-test", "-deps", "-f", form, E2E, cwd=target).split()
            go("list", "-mod=mod", *(name for name in named if not name.endswith(".test")), cwd=target)
        final.mkdir(exist_ok=True)
        for file in sorted(target.iterdir()):
            shutil.copyfile(file, final / file.name)
    print(f"generate: wrote {final.relative_to(HERE.parent.parent)}; commit go.mod, go.sum and the .go file")


if __name__ == "__main__":
    main(sys.argv[1:])
