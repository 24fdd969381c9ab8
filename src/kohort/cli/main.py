"""The `kohort` command: a thin face; each command's work is imported when it runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from kohort import __version__

F = TypeVar("F", bound=Callable[..., Any])


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it so
        """In the order in which people meet them."""
        return list(self.commands)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="kohort %(version)s", help="Say which.")
def app() -> None:
    """Workload-aware scheduling for Kubernetes: gangs and trees that start together or not at all."""


def _completes(metavar: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """What a shell offers for it; only a shell that asks loads the code."""

    def offered(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[Any]:
        from kohort.cli.completing import completed

        return completed(metavar, ctx, parameter, begun)

    return offered


def _text(*names: str, metavar: str, says: str, default: str | None = "") -> Callable[[F], F]:
    """An option with a text; a default that says something is shown."""
    shown = bool(default)
    offered = _completes(names[0] if names[0] == "--context" else metavar)
    return click.option(*names, metavar=metavar, default=default, show_default=shown, help=says, shell_complete=offered)


def _many(*names: str, metavar: str, says: str) -> Callable[[F], F]:
    return click.option(*names, metavar=metavar, multiple=True, help=says, shell_complete=_completes(metavar))


def _flag(*names: str, says: str) -> Callable[[F], F]:
    return click.option(*names, is_flag=True, help=says)


def _switch(names: str, *, says: str) -> Callable[[F], F]:
    """On, off, or not said."""
    return click.option(names, default=None, help=says)


def _number(name: str, *, most: int, default: int, says: str) -> Callable[[F], F]:
    return click.option(name, metavar="N", type=click.IntRange(0, most), default=default, show_default=True, help=says)


class _ControllersOption(click.Option):
    """Names come from the registration of kinds, which is loaded only for somebody who reads the help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from kohort.controllermanager.registry import names
        from kohort.kinds.controllers import groups

        more = f"; of up alone: {', '.join(names())}" if ctx.info_name == "up" else ""
        self.help = f"{self.help} Names: {', '.join(groups())}{more}."
        return super().get_help_record(ctx)


def _controllers(says: str) -> Callable[[F], F]:
    return click.option("--controllers", metavar="A,-B,*", default=None, cls=_ControllersOption, help=says)


def _output(forms: str) -> Callable[[F], F]:
    return _text("-o", "--output", metavar=forms, default=forms.partition("|")[0], says="How to print.")


def _minor(name: str) -> Callable[[F], F]:
    return _text(name, metavar="1.35|1.36|1.37", default="1.37", says="The Kubernetes minor.")


_files = click.option(
    "-f",
    "--filename",
    metavar="FILE",
    multiple=True,
    required=True,
    shell_complete=_completes("FILE"),
    help="A file, a directory, or - for standard input. Repeatable.",
)
_recursive = _flag("-R", "--recursive", says="Look into directories below, too.")
_gates = _text(
    *("--feature-gates", "--gates", "gates"),
    metavar="A=true,B=false",
    says="Feature gates of Kubernetes or of Kohort to switch.",
)
_set = click.option(
    "--set",
    "assignments",
    metavar="KIND.NAME=VALUE",
    multiple=True,
    help="A setting of a workload kind, such as jobset.gangRendering=Composite. Repeatable; wins over --config.",
)


def _limits(command: F) -> F:
    """kube-apiserver's flags about what clients may ask; None: not said."""
    inflight = click.IntRange(min=1)
    for name, metavar, kind, says in (
        ("--event-ttl", "1h0m0s", str, "How long an Event is kept after its last change."),
        ("--min-request-timeout", "1800", inflight, "Seconds of a watch that names no end, at least."),
        ("--request-timeout", "1m0s", str, "Time for an answer, watches aside."),
        ("--max-mutating-requests-inflight", "200", inflight, "Requests under way that write."),
        ("--max-requests-inflight", "400", inflight, "Requests under way that read."),
    ):
        command = click.option(name, metavar=metavar, type=kind, default=None, help=says)(command)
    return command


_WORDS = "[TYPE] [NAME]... | TYPE/NAME..."
_targets = click.argument("words", metavar=_WORDS, nargs=-1, shell_complete=_completes(_WORDS))
_these_files = _many("-f", "--filename", metavar="FILE", says="What is in a file, a directory, or -. Repeatable.")
_watch = _flag("-w", "--watch", says="Print again whenever the answer has changed.")
_everywhere = _flag("-A", "--all-namespaces", "everywhere", says="In all namespaces.")
_labels = _text("-l", "--selector", "labels", metavar="A=B,...", says="Only with these labels.")
_context = _text("--context", metavar="NAME", says="Of the kubeconfig.")


@app.command()
@_files
@_minor("--to")
@_output("yaml|json|tree")
@_gates
@_recursive
@_flag("--children", says="Also print what the workload's own controller makes on the way.")
@_text("--config", metavar="FILE", says="Feature gates and settings in a file, as for run.")
@_set
def translate(filename: tuple[str, ...], to: str, output: str, gates: str, **chosen: Any) -> None:
    """Print the Workload, PodGroup and CompositePodGroup objects that workloads become, in creation order."""
    from kohort.cli.translate import run

    sys.exit(run(list(filename), to, output, gates, **chosen))


@app.command()
@_files
@_minor("--kubernetes")
@_output("text|json")
@_gates
@_recursive
def validate(filename: tuple[str, ...], kubernetes: str, output: str, gates: str, recursive: bool) -> None:
    """Print every error of every document at once; exit 1 if there is any."""
    from kohort.cli.validate import run

    sys.exit(run(list(filename), kubernetes, output, gates, recursive=recursive))


@app.command()
@_files
@_minor("--to")
@_output("yaml|json")
@_flag("--flatten", says="Take trees apart into independent gangs where the minor has no trees.")
@_recursive
def convert(filename: tuple[str, ...], to: str, output: str, flatten: bool, recursive: bool) -> None:
    """Carry Workload, PodGroup and CompositePodGroup objects over to another release of the API."""
    from kohort.cli.convert import run

    sys.exit(run(list(filename), to, output, flatten=flatten, recursive=recursive))


@app.command()
@_flag("--bare", says="Only the API server: no controllers, no nodes.")
@_number("--nodes", most=50_000, default=4, says="So many equal virtual nodes.")
@_text("--cluster", metavar="FILE", says="Virtual nodes as a file describes them, instead.")
@_text("--data-dir", metavar="DIR", says="Where objects and keys are kept.")
@_number("--port", most=65535, default=6443, says="On loopback; 0 takes a free one.")
@_text("--kubeconfig", metavar="FILE", says="To write; DIR/kubeconfig by default.")
@_minor("--kubernetes")
@_gates
@_flag("--in-memory", says="Forget everything at the end.")
@_flag("--detach", says="Return when it is ready; end it with down.")
@_text("--profile", metavar="FILE", says="What placement weighs; as kube-scheduler by default.")
@_controllers("Which run: by name, -name for not that one, * for all (the default), or none.")
@_text("--config", metavar="FILE", says="Controllers, feature gates, limits, profile, settings in a file, as for run.")
@_set
@click.option("--dashboard/--no-dashboard", default=True, help="Whether a page shows the cluster; on loopback.")
@_limits
def up(data_dir: str, port: int, kubeconfig: str, kubernetes: str, gates: str, **chosen: Any) -> None:
    """Start an embedded Kubernetes: API server, controllers, gang scheduler and virtual nodes."""
    from kohort.cli import up as command

    sys.exit(command.up(data_dir, port, kubeconfig, kubernetes, gates, **chosen))


@app.command()
@_text("--data-dir", metavar="DIR", says="The folder given to up.")
def down(data_dir: str) -> None:
    """Stop the server that runs on a data folder."""
    from kohort.cli import up as command

    sys.exit(command.down(data_dir))


@app.command()
@_many("--only", metavar="PART", says="Only this: together, waits, preempts, heals, kinds. Repeatable.")
def demo(only: tuple[str, ...]) -> None:
    """Show gangs that start, wait, preempt and heal, on a cluster in this process; half a minute, nothing stays."""
    from kohort.cli.common import choice, friendly
    from kohort.cli.demo.__main__ import PARTS, main

    def work() -> int:
        for part in only:
            choice("--only", part, PARTS)
        return main(only)

    sys.exit(friendly(work)())


@app.command()
@_text("--kubeconfig", metavar="FILE", default=None, says="Else KUBECONFIG, ~/.kube/config, or the pod.")
@_text("--context", metavar="NAME", default=None, says="Of the kubeconfig.")
@_text("--config", metavar="FILE", says="Options in a file; flags win.")
@_controllers("Which run: by name, -name for not that one, * for all that nobody else runs (the default), or none.")
@_switch("--scheduler/--no-scheduler", says="Whether pods are placed.")
@_text("--scheduler-name", "scheduler_names", metavar="A,B", default=None, says="Whose pods are placed: kohort.")
@_text("--namespaces", metavar="A,B", default=None, says="Only there; all.")
@_switch("--leader-elect/--no-leader-elect", says="One of many works.")
@_text("--listen", metavar="HOST:PORT", default=None, says="Health and metrics: 127.0.0.1:10351.")
@_text("--log-format", metavar="text|json", default=None, says="Of logs: text.")
@click.option(
    *("--dashboard",),
    metavar="[HOST:PORT]",
    is_flag=False,
    flag_value="",
    default=None,
    help="A page that shows the cluster to its users: 127.0.0.1:10353.",
)
@_set
@_flag("--once", says="With --dry-run: look, say, and end.")
@_flag("--dry-run", says="Write nothing.")
@_output("text|json")
@_flag("-v", "--verbose", says="A line for each decision.")
def run(config: str, output: str, **chosen: Any) -> None:
    """Run the controllers and the gang scheduler on a Kubernetes cluster, beside what is there."""
    gc.disable()  # nothing that is loaded goes away again
    try:
        from kohort.cli import run as command
    finally:
        gc.enable()
    sys.exit(command.run(config, output, **chosen))


@app.command()
@_text("--kubeconfig", metavar="FILE", default=None, says="Else KUBECONFIG, ~/.kube/config, or the pod.")
@_text("--context", metavar="NAME", default=None, says="Of the kubeconfig.")
@_text("--config", metavar="FILE", says="Options in a file, as for run; flags win.")
@_controllers("Whose kinds are judged: by name, -name for not that one, * for all that nobody else runs (the default).")
@_text("--listen", metavar="HOST:PORT", default=None, says="Health and metrics: 127.0.0.1:10351.")
@_text("--log-format", metavar="text|json", default=None, says="Of logs: text.")
@_flag("-v", "--verbose", says="More lines.")
def webhook(config: str, **chosen: Any) -> None:
    """Refuse mistakes that a definition cannot see: a cluster's admission webhook, as the Helm chart installs it."""
    from kohort.cli import webhook as command

    sys.exit(command.run(config, **chosen))


@app.command()
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
@_context
@_number("--port", most=65535, default=0, says="On loopback; 0 takes a free one.")
def dashboard(kubeconfig: str, context: str, port: int) -> None:
    """Show any cluster in the browser, as whom the kubeconfig says, until Ctrl-C. Nothing is written."""
    from kohort.cli import dashboard as command

    sys.exit(command.run(kubeconfig, context, port))


@app.command()
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
@_context
@_number("--count", most=50_000, default=4, says="So many equal nodes.")
@_text("--name", metavar="NAME", default="virtual", says="Their names begin with it.")
@_text("--cpu", metavar="QUANTITY", default="16", says="Of each.")
@_text("--memory", metavar="QUANTITY", default="64Gi", says="Of each.")
@_many("--resource", "resources", metavar="NAME=QUANTITY", says="More of each, such as nvidia.com/gpu=8. Repeatable.")
@_many("--label", "labels", metavar="NAME=VALUE", says="Of each. Repeatable.")
@_many("--taint", "taints", metavar="KEY=VALUE:EFFECT", says="Of each, as for kubectl taint. Repeatable.")
@_text("--cluster", metavar="FILE", says="Nodes as a file describes them, instead.")
@_flag("--attach", says="Make none: play the virtual nodes that are there.")
@_flag("--keep", says="Leave the nodes there at the end.")
def nodes(kubeconfig: str, context: str, attach: bool, keep: bool, **asked: Any) -> None:
    """Make virtual nodes on any cluster, play their kubelets until Ctrl-C, then remove them."""
    from kohort.cli import nodes as command

    sys.exit(command.run(command.NodesOptions(**asked), kubeconfig, context, attach=attach, keep=keep))


@app.command()
@_targets
@_text("-n", "--namespace", metavar="NS", says="Else the kubeconfig's.")
@_everywhere
@_labels
@_these_files
@_recursive
@_watch
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
@_context
@_text("--state", metavar="FILE", says="Ask a file of kohort snapshot instead of a cluster.")
@_output("text|wide|json|yaml|name")
def explain(kubeconfig: str, context: str, state: str, output: str, watch: bool, **asked: Any) -> None:
    """Say why something waits, what came closest and what would help; or where it runs.

    NAME is that of a workload, group or pod: job/train, jobset a b, train. Without one: all that waits, a line each.
    """
    from kohort.cli import explain as command
    from kohort.cli.targets import Question

    sys.exit(command.explain(Question(**asked), kubeconfig, context, state, output, watch=watch))


@app.command()
@_targets
@_text("-n", "--namespace", metavar="NS", says="Else the context's.")
@_everywhere
@_labels
@_these_files
@_recursive
@_watch
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, or kohort up's.")
@_context
@_flag("--all", "every", says="Every pod, however many.")
@_output("text|wide|json|yaml|name")
def tree(kubeconfig: str, context: str, every: bool, output: str, watch: bool, **asked: Any) -> None:
    """Show a workload as it is now: groups with their minimum, who has a place, on which node, in which domain.

    NAME is that of a workload, a group or a pod.
    """
    from kohort.cli import tree as command
    from kohort.cli.targets import Question

    sys.exit(command.run(Question(**asked), kubeconfig, context, output, every=every, watch=watch))


@app.command()
@_targets
@_text("-n", "--namespace", metavar="NS", says="Else the kubeconfig's.")
@_everywhere
@_labels
@_watch
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
@_context
@_output("text|wide|json|yaml|name")
def get(kubeconfig: str, context: str, output: str, watch: bool, **asked: Any) -> None:
    """List workloads as they are scheduled: state, pods that have a place, nodes, how long they wait and why.

    A TYPE (job, jobset, trainjob...) and names are optional.
    """
    from kohort.cli import get as command
    from kohort.cli.targets import Question

    sys.exit(command.get(Question(**asked), kubeconfig, context, output, watch=watch))


@app.command()
@_text("-n", "--namespace", metavar="NS", says="Gangs of this namespace; else of all.")
@_flag("-A", "--all-namespaces", "everywhere", says="Gangs of all namespaces, as without a word.")
@_labels
@_flag("-w", "--watch", says="In a pipe, too: print again whenever it has changed.")
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
@_context
@_flag("--once", says="Print it once; so it is where nobody looks (a pipe).")
@_output("text|wide|json|yaml")
def top(kubeconfig: str, context: str, output: str, once: bool, watch: bool, **asked: Any) -> None:
    """Racks, gangs and the queue on the whole screen, live, until q or Ctrl-C; arrows show more of them.

    Printed once with -o json, yaml or wide (every rack, gang and reason, unshortened), and in a pipe.
    """
    from kohort.cli import top as command
    from kohort.cli.targets import Question

    sys.exit(command.top(Question(**asked), kubeconfig, context, output, once=once, watch=watch))


@app.command()
@_these_files
@_many("--drain", "drain", metavar="NODE", says="Say what a drain of this node would do to gangs. Repeatable.")
@_many("--with", "before", metavar="FILE", says="As if this had been submitted just before. Repeatable.")
@_recursive
@_text("-n", "--namespace", metavar="NS", says="Of objects that name none; else the kubeconfig's.")
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
@_context
@_text("--state", metavar="FILE", says="Ask a file of kohort snapshot instead of a cluster.")
@_text("--cluster", metavar="FILE", says="Ask about an empty cluster of the nodes that a file describes, as for up.")
@_text("--config", metavar="FILE", says="Profile and settings in a file, as for run.")
@_set
@_output("text|wide|json|yaml")
def plan(output: str, **asked: Any) -> None:
    """Say whether workloads would start now, where, and who would be evicted; if not, why. Nothing is written.

    Exit code 0: all of them start (after a drain: run again); 1: one does not; 2: it could not be asked.
    """
    from kohort.cli import plan as command

    sys.exit(command.run(command.PlanOptions(**asked), output))


@app.command()
@_text("--free", metavar="LEVEL[=NODES]", says="A level, and how many nodes of one domain; all.")
@_flag("--apply", says="Move the gangs, one after the other; stop at the first that does not run again.")
@click.option("--timeout", "seconds", default=300, show_default=True, metavar="SECONDS", help="For each gang.")
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
@_context
@_text("--state", metavar="FILE", says="Ask a file of kohort snapshot instead of a cluster.")
@_output("text|json|yaml")
def defrag(free: str, output: str, **asked: Any) -> None:
    """Say which gangs would have to move so that a domain is free: the fewest, and where they would go.

    Nothing is done without --apply. Exit code 0: it can be freed; 1: it cannot.
    """
    from kohort.cli import defrag as command

    sys.exit(command.run(free, output=output, **asked))


@app.command()
@click.argument("trace", metavar="TRACE", shell_complete=_completes("FILE"))
@click.argument("more", metavar="", nargs=-1, shell_complete=_completes("FILE"))
@_text("--cluster", metavar="FILE", says="The nodes, as for up; else those that the trace names.")
@_text("--profile", metavar="FILE", says="What placement weighs, as for up.")
@_many("--compare", metavar="FILE...", says="The same with other clusters or profiles beside it. Repeatable.")
@_text("--report", metavar="FILE", says="Write plots and numbers as one HTML file.")
@_output("text|json")
def simulate(trace: str, more: tuple[str, ...], output: str, **chosen: Any) -> None:
    """Run a trace of jobs on a described cluster, in virtual time, with the scheduler itself.

    TRACE is YAML (docs/simulate.md), Standard Workload Format (.swf), a table (.csv), or a snapshot, whose history runs
    again (.json, .json.gz).
    """
    from kohort.cli import simulate as command

    sys.exit(command.run(trace, more, output, **chosen))


@app.command()
@click.argument("names", metavar="[KIND|GROUP]...", nargs=-1)
@_output("yaml|json|name")
def crds(names: tuple[str, ...], output: str) -> None:
    """Print the definitions of JobSet, Trainer, Grove and LeaderWorkerSet kinds, for kubectl apply.

    All of them if none is named.
    """
    from kohort.cli import crds as command

    sys.exit(command.run(list(names), output))


@app.command()
@_text("-n", "--namespace", metavar="NS", default="kohort-system", says="Where Kohort runs.")
@_text("--image", metavar="NAME", says="Where its image is; kohort with this version's tag by default.")
@_number("--replicas", most=10, default=2, says="Processes; one works, the others stand by.")
@_text("--controllers", metavar="A,B", default="all", says="Which may run; their roles and kinds are printed, too.")
@click.option("--crds/--no-crds", default=True, help="Definitions of the kinds whose controllers may run.")
@click.option(
    "--webhook/--no-webhook", default=True, help="An admission webhook that refuses mistakes in their objects."
)
def manifests(**asked: Any) -> None:
    """Print all that Kohort needs on a cluster: kohort manifests | kubectl apply --server-side -f -"""
    from kohort.cli import manifests as command

    sys.exit(command.run(command.Asked(**asked)))


@app.command()
@_text(
    "-o", "--output", metavar="FILE", default="-", says="Where to; FILE.json.gz is compressed, - is standard output."
)
@_flag("--anonymise", "--anonymize", "anonymise", says="Numbers instead of names; the answers stay the same.")
@_flag("--support", says="An archive with logs, events and what doctor says, too. No secrets are read.")
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
@_context
def snapshot(output: str, kubeconfig: str, context: str, **chosen: Any) -> None:
    """Save what decides whether something starts: for plan --state and explain --state, or for whoever helps you."""
    from kohort.cli import snapshot as command

    sys.exit(command.run(output, kubeconfig, context, **chosen))


@app.command()
@_text("-n", "--namespace", metavar="NS", says="Of Kohort; else where its Deployment is.")
@_text("--kubeconfig", metavar="FILE", says="Else KUBECONFIG, that of kohort up, ~/.kube/config.")
@_context
@_output("text|json")
def doctor(namespace: str, kubeconfig: str, context: str, output: str) -> None:
    """Say what is wrong with Kohort on a cluster, and the command that mends it. Nothing is changed.

    Looks at versions, gates, processes, leases, roles, clocks, other schedulers, definitions and webhooks. Exit code 1:
    something does not work.
    """
    from kohort.cli import doctor as command

    sys.exit(command.run(namespace, kubeconfig, context, output))


@app.group()
def envtest() -> None:
    """For tests with controller-runtime's envtest: Kohort in the place of kube-apiserver and etcd."""


@envtest.command("path")
@_minor("--kubernetes")
@_text("--bin-dir", metavar="DIR", says="Where the folder is made; the user's cache by default.")
def envtest_path(kubernetes: str, bin_dir: str) -> None:
    """Print a folder with kube-apiserver, etcd and kubectl: KUBEBUILDER_ASSETS=$(kohort envtest path) go test ./..."""
    from kohort.cli.envtest import assets

    sys.exit(assets.path(kubernetes, bin_dir))


@app.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what completes commands and options in a shell: source <(kohort completion bash)."""
    from kohort.cli import shells

    program = "kubectl-kohort" if ctx.find_root().info_name == "kubectl-kohort" else "kohort"
    click.echo(shells.script(app, program, shell))


def main() -> None:
    """Entry point of `kohort` and `kubectl kohort`."""
    if sys.argv[1:2] == ["up"]:
        from kohort.cli import allocator

        allocator.begin_again()
    try:
        app()
    except BrokenPipeError:
        # The reader (head, less) went away; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
