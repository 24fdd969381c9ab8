"""`python -m kohort.testing.environment`: an environment in a shell, for people and for scripts."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from pathlib import Path

from kohort.testing.environment import AssetsMissingError, ControlPlaneError, Environment, ensure, find
from kohort.testing.environment.assets import BINARIES, can_build, ensure_e2e, ensure_helm, missing_sentence
from kohort.testing.environment.build import BuildError
from kohort.testing.environment.environment import COMPONENTS
from kohort.testing.environment.files import write_private
from kohort.testing.environment.versions import MINORS, parse_gates


def up(args: argparse.Namespace) -> None:
    """Start, say so, stay until interrupted."""
    interrupted = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: interrupted.set())
    components = [name for name in (args.with_ or "").split(",") if name]
    env = Environment(args.kubernetes, components, parse_gates(args.gates or ""))
    env.assets  # noqa: B018 - a build before the clock starts
    began = time.monotonic()
    with env:
        target = Path(args.kubeconfig or "kubeconfig").absolute()
        write_private(target, env.kubeconfig_text())
        running = ", ".join(["etcd", "kube-apiserver", *(COMPONENTS[name] for name in components)])
        print(f"Kubernetes {env.version} is ready at {env.url} after {time.monotonic() - began:.1f} s ({running})")
        print(f"logs: {env.logs}")
        print(f"try:  {env.assets.paths.get('kubectl', 'kubectl')} --kubeconfig {target} get podgroups,workloads -A")
        print("stop: Ctrl-C", flush=True)
        while not interrupted.wait(1.0):
            env.check()
    target.unlink(missing_ok=True)
    print("stopped and removed")


def build(args: argparse.Namespace) -> None:
    """Have the binaries, building them if need be."""
    for minor in args.kubernetes:
        if args.if_possible and find(minor, BINARIES) is None and not can_build():
            print(missing_sentence(minor))
            continue
        assets = ensure(minor, BINARIES)
        print(f"Kubernetes {assets.version} is in {assets.source}")
        if args.e2e:
            print(f"its end-to-end tests are in {ensure_e2e(minor)}")
    if args.helm:
        print(f"helm is {ensure_helm()}" if can_build() else "helm is not built: Go is not here")


def where(args: argparse.Namespace) -> None:
    """The folder of the binaries, or one sentence why there is none."""
    found = find(args.kubernetes)
    if found is None:
        raise AssetsMissingError(missing_sentence(args.kubernetes))
    print(found.source)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m kohort.testing.environment", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    minors = ", ".join(MINORS)

    command = commands.add_parser("up", help="start an environment and stay until interrupted")
    command.add_argument("--kubernetes", default="1.37", metavar="MINOR", help=f"{minors} (default 1.37)")
    command.add_argument("--with", dest="with_", metavar="LIST", help=f"more components: {','.join(COMPONENTS)}")
    command.add_argument(
        *("--feature-gates", "--gates"),
        dest="gates",
        metavar="LIST",
        help="NAME=true,NAME=false; laid over the environment's defaults",
    )
    command.add_argument("--kubeconfig", metavar="FILE", help="where to write it (default ./kubeconfig)")
    command.set_defaults(run=up)

    command = commands.add_parser("build", help="build the binaries of these minors unless they are there")
    command.add_argument("kubernetes", nargs="*", metavar="MINOR", help=minors)
    command.add_argument("--if-possible", action="store_true", help="without Go say so, and go on")
    command.add_argument("--e2e", action="store_true", help="also upstream's end-to-end tests (1.37)")
    command.add_argument("--helm", action="store_true", help="also the helm command")
    command.set_defaults(run=build)

    command = commands.add_parser("where", help="print the folder of the binaries")
    command.add_argument("--kubernetes", default="1.37", metavar="MINOR")
    command.set_defaults(run=where)
    return top


def main() -> None:
    args = parser().parse_args()
    try:
        args.run(args)
    except (AssetsMissingError, ControlPlaneError, BuildError, ValueError) as error:
        sys.exit(f"kohort.testing.environment: {error}")
    except KeyboardInterrupt:
        sys.exit("kohort.testing.environment: interrupted")


if __name__ == "__main__":
    main()
