"""The `kohort` command: a thin face; each command's work is imported when it runs."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from kohort import __version__

app = typer.Typer(
    name="kohort",
    help="Workload-aware scheduling for Kubernetes: gangs and trees that start together or not at all.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Files = Annotated[
    list[str],
    typer.Option("-f", "--filename", metavar="FILE", help="A file, a directory, or - for standard input. Repeatable."),
]
Recursive = Annotated[bool, typer.Option("-R", "--recursive", help="Look into directories below, too.")]
Gates = Annotated[
    str,
    typer.Option("--gates", metavar="A=true,B=false", help="Feature gates of Kubernetes or of Kohort to switch."),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kohort {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    """Kohort."""


@app.command()
def translate(
    filename: Files,
    to: Annotated[str, typer.Option("--to", metavar="1.35|1.36|1.37", help="The Kubernetes minor.")] = "1.37",
    output: Annotated[str, typer.Option("-o", "--output", metavar="yaml|json|tree", help="How to print.")] = "yaml",
    gates: Gates = "",
    recursive: Recursive = False,
    children: Annotated[
        bool, typer.Option("--children", help="Also print what the workload's own controller makes on the way.")
    ] = False,
) -> None:
    """Print the Workload, PodGroup and CompositePodGroup objects that workloads become, in creation order."""
    from kohort.cli.translate import run

    raise typer.Exit(run(filename, to, output, gates, recursive=recursive, children=children))


@app.command()
def validate(
    filename: Files,
    kubernetes: Annotated[str, typer.Option("--kubernetes", metavar="1.35|1.36|1.37", help="The minor.")] = "1.37",
    output: Annotated[str, typer.Option("-o", "--output", metavar="text|json", help="How to print.")] = "text",
    gates: Gates = "",
    recursive: Recursive = False,
) -> None:
    """Print every error of every document at once; exit 1 if there is any."""
    from kohort.cli.validate import run

    raise typer.Exit(run(filename, kubernetes, output, gates, recursive=recursive))


@app.command()
def convert(
    filename: Files,
    to: Annotated[str, typer.Option("--to", metavar="1.35|1.36|1.37", help="The Kubernetes minor.")] = "1.37",
    output: Annotated[str, typer.Option("-o", "--output", metavar="yaml|json", help="How to print.")] = "yaml",
    flatten: Annotated[
        bool, typer.Option("--flatten", help="Take trees apart into independent gangs where the minor has no trees.")
    ] = False,
    recursive: Recursive = False,
) -> None:
    """Carry Workload, PodGroup and CompositePodGroup objects over to another generation of the API."""
    from kohort.cli.convert import run

    raise typer.Exit(run(filename, to, output, flatten=flatten, recursive=recursive))


@app.command()
def up(
    bare: Annotated[bool, typer.Option("--bare", help="Only the API server: no controllers, no nodes.")] = False,
    nodes: Annotated[int, typer.Option("--nodes", min=0, max=50_000, help="So many equal virtual nodes.")] = 4,
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="FILE", help="Virtual nodes as a file describes them, instead.")
    ] = "",
    data_dir: Annotated[str, typer.Option("--data-dir", metavar="DIR", help="Where objects and keys are kept.")] = "",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="On loopback; 0 takes a free one.")] = 6443,
    kubeconfig: Annotated[
        str, typer.Option("--kubeconfig", metavar="FILE", help="To write; DIR/kubeconfig by default.")
    ] = "",
    kubernetes: Annotated[str, typer.Option("--kubernetes", metavar="1.35|1.36|1.37", help="The minor.")] = "1.37",
    feature_gates: Annotated[
        str, typer.Option("--feature-gates", metavar="A=true,B=false", help="Feature gates to switch.")
    ] = "",
    in_memory: Annotated[bool, typer.Option("--in-memory", help="Forget everything at the end.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready; end it with down.")] = False,
    profile: Annotated[
        str, typer.Option("--profile", metavar="FILE", help="What placement weighs; as kube-scheduler by default.")
    ] = "",
) -> None:
    """Start an embedded Kubernetes: API server, controllers, gang scheduler and virtual nodes."""
    from kohort.cli import up as command

    raise typer.Exit(
        command.up(
            data_dir,
            port,
            kubeconfig,
            kubernetes,
            feature_gates,
            bare=bare,
            nodes=nodes,
            cluster=cluster,
            in_memory=in_memory,
            detach=detach,
            profile=profile,
        )
    )


@app.command()
def down(
    data_dir: Annotated[str, typer.Option("--data-dir", metavar="DIR", help="The folder given to up.")] = "",
) -> None:
    """Stop the server that runs on a data folder."""
    from kohort.cli import up as command

    raise typer.Exit(command.down(data_dir))


@app.command()
def run(
    kubeconfig: Annotated[
        str | None, typer.Option("--kubeconfig", metavar="FILE", help="Else KUBECONFIG, ~/.kube/config, or the pod.")
    ] = None,
    context: Annotated[str | None, typer.Option("--context", metavar="NAME", help="Of the kubeconfig.")] = None,
    config: Annotated[str, typer.Option("--config", metavar="FILE", help="Options in a file; flags win.")] = "",
    controllers: Annotated[
        str | None, typer.Option("--controllers", metavar="A,B|all|none", help="Which; all that nobody else runs.")
    ] = None,
    scheduler: Annotated[
        bool | None, typer.Option("--scheduler/--no-scheduler", help="Whether pods are placed.", show_default=False)
    ] = None,
    scheduler_name: Annotated[
        str | None, typer.Option("--scheduler-name", metavar="A,B", help="Whose pods are placed: kohort.")
    ] = None,
    namespaces: Annotated[str | None, typer.Option("--namespaces", metavar="A,B", help="Only there; all.")] = None,
    leader_elect: Annotated[
        bool | None, typer.Option("--leader-elect/--no-leader-elect", help="One of many works.", show_default=False)
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="HOST:PORT", help="Health and metrics: 127.0.0.1:10351.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="With --dry-run: look, say, and end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    output: Annotated[str, typer.Option("-o", "--output", metavar="text|json", help="How to print.")] = "text",
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="A line for each decision.")] = False,
) -> None:
    """Run the controllers and the gang scheduler on a Kubernetes cluster, beside what is there."""
    from kohort.cli import run as command

    raise typer.Exit(
        command.run(
            config,
            output,
            once=once,
            dry_run=dry_run,
            verbose=verbose,
            kubeconfig=kubeconfig,
            context=context,
            controllers=controllers,
            scheduler=scheduler,
            scheduler_names=scheduler_name,
            namespaces=namespaces,
            leader_elect=leader_elect,
            listen=listen,
        )
    )


@app.command()
def explain(
    target: Annotated[
        str, typer.Argument(metavar="[KIND/]NAME", help="A workload, group or pod: job/train, podgroup/g, train.")
    ],
    namespace: Annotated[str, typer.Option("-n", "--namespace", metavar="NS", help="Else the kubeconfig's.")] = "",
    kubeconfig: Annotated[
        str, typer.Option("--kubeconfig", metavar="FILE", help="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
    ] = "",
    context: Annotated[str, typer.Option("--context", metavar="NAME", help="Of the kubeconfig.")] = "",
    state: Annotated[
        str, typer.Option("--state", metavar="FILE", help="Ask a saved /debug/state instead of a cluster.")
    ] = "",
    output: Annotated[str, typer.Option("-o", "--output", metavar="text|json", help="How to print.")] = "text",
) -> None:
    """Say why something waits, what came closest and what would help; or where it runs."""
    from kohort.cli import explain as command

    raise typer.Exit(command.explain(target, namespace, kubeconfig, context, state, output))


@app.command()
def tree(
    target: Annotated[str, typer.Argument(metavar="[KIND/]NAME", help="A workload, a group or a pod.")],
    namespace: Annotated[str, typer.Option("-n", "--namespace", metavar="NS", help="Else the context's.")] = "",
    kubeconfig: Annotated[
        str, typer.Option("--kubeconfig", metavar="FILE", help="Else KUBECONFIG, or kohort up's.")
    ] = "",
    context: Annotated[str, typer.Option("--context", metavar="NAME", help="Of the kubeconfig.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Every pod, however many.")] = False,
    output: Annotated[str, typer.Option("-o", "--output", metavar="text|json", help="How to print.")] = "text",
) -> None:
    """Show a workload as it is now: groups with their minimum, who has a place, on which node, in which domain."""
    from kohort.cli import tree as command

    raise typer.Exit(command.run(target, namespace, kubeconfig, context, output, every=every))


@app.command()
def crds(
    names: Annotated[list[str] | None, typer.Argument(metavar="[KIND|GROUP]...", help="All if none is named.")] = None,
    output: Annotated[str, typer.Option("-o", "--output", metavar="yaml|json|name", help="How to print.")] = "yaml",
) -> None:
    """Print the definitions of JobSet, Trainer, Grove and LeaderWorkerSet kinds, for kubectl apply."""
    from kohort.cli import crds as command

    raise typer.Exit(command.run(names or [], output))


def main() -> None:
    """Entry point of `kohort` and `kubectl kohort`."""
    try:
        app()
    except BrokenPipeError:
        # The reader (head, less) went away; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
