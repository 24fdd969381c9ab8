"""What `kohort run` will do on a cluster, what it leaves to others, what is missing: decided here, one line each.

Pure: from what was found and what was chosen. The same plan is printed by a dry run and carried out by a real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kohort.api.kind import Context
from kohort.api.options import context
from kohort.api.releases import Gate, release
from kohort.controllermanager import registry as manager
from kohort.grouping.settings import Grouping
from kohort.kinds.controllers import built_in, groups, is_enabled
from kohort.run.options import Options
from kohort.run.survey import Managed, Survey

Verdict = Literal["does", "leaves", "missing", "off"]

_API: Final = {"1.35": "v1alpha1=true", "1.36": "v1alpha2=true", "1.37": "v1beta1=true"}
_WHAT: Final = {
    Gate.TOPOLOGY: "topology constraints of groups",
    Gate.CLAIMS: "resource claims that a group shares",
    Gate.JOB: "gangs of plain Jobs (kube-controller-manager makes them)",
    Gate.COMPOSITE: "trees of groups (CompositePodGroup)",
    Gate.PREEMPTION: "disruption modes of groups",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One capability. `how`: what somebody can do about it."""

    what: str
    verdict: Verdict
    text: str
    how: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    lines: tuple[Line, ...]
    controllers: tuple[str, ...]
    scheduler: bool
    home: str = "kube-system"  # the namespace of the lease
    ctx: Context | None  # None: there is no Workload API, and so no groups

    @property
    def idle(self) -> bool:
        return not self.controllers and not self.scheduler


def plan(found: Survey, chosen: Options, managed: Sequence[Managed]) -> Plan:
    ctx = _context(found, chosen)
    lines = [_api(found), *_gates(found, ctx)]
    running, told = _controllers(found, chosen, managed, ctx)
    lines += told
    lines += _reports(chosen, running)
    lines.append(_scheduler(found, chosen))
    lines += [Line("not looked at", "missing", text, "see deploy/rbac.yaml") for text in found.unread]
    home = chosen.election.namespace or found.home
    return Plan(lines=tuple(lines), controllers=running, scheduler=chosen.scheduler, home=home, ctx=ctx)


def grouping_of(chosen: Options, found: Plan) -> Grouping:
    """Kinds that controllers of ours make groups for need no rule."""
    return chosen.grouping.without(found.controllers if found.ctx is not None else ())


def _context(found: Survey, chosen: Options) -> Context | None:
    """Gates as the server has them; where they may not be read, as the resources that it serves show them."""
    if not found.minor:
        return None
    known = release(found.minor).gates
    on = {str(gate): _on(gate, found) for gate in known}
    for gate, needs in known.items():  # requirements come first in the table
        on[gate] = on[gate] and all(on[need] for need in needs)
    return context(found.minor, on | dict(chosen.gates))


def _on(gate: Gate, found: Survey) -> bool:
    if gate is Gate.COMPOSITE:
        return "CompositePodGroup" in found.kinds
    if gate in {Gate.GENERIC_WORKLOAD, Gate.GANG_SCHEDULING}:
        return True  # the API is served, and who schedules is ours to say
    return found.gates is None or found.gates.get(gate, True)


def _api(found: Survey) -> Line:
    what = "Workload API"
    if found.minor:
        served = ", ".join(f"{kind} {version.rpartition('/')[2]}" for kind, version in sorted(found.kinds.items()))
        return Line(what, "does", f"{found.version} serves {served}: release {found.minor}")
    short = found.kubernetes if found.kubernetes in _API else "1.37"
    how = (
        f"start kube-apiserver with --feature-gates=GenericWorkload=true "
        f"--runtime-config=scheduling.k8s.io/{_API[short]} (Kubernetes 1.35 or newer)"
    )
    return Line(
        what, "missing", f"{found.version} does not serve it: gangs come from rules only (docs/companion.md)", how
    )


def _gates(found: Survey, ctx: Context | None) -> Iterator[Line]:
    if ctx is None:
        return
    if found.gates is None:
        yield Line(
            "feature gates", "missing", "may not be read; taken to be on where the API shows nothing else",
            "let us GET /metrics of the API server (deploy/rbac.yaml does)",
        )  # fmt: skip
    elif not found.gates:
        text = "are not listed in /metrics of the API server; taken to be on where the API shows nothing else"
        yield Line("feature gates", "missing", text)
    for gate, text in _WHAT.items():
        if gate not in ctx.release.gates:
            continue
        if ctx.on(gate):
            yield Line(gate, "does", f"on: {text}")
        else:
            yield Line(gate, "missing", f"off: no {text}", _how(gate))


def _how(gate: Gate) -> str:
    extra = " --runtime-config=scheduling.k8s.io/v1alpha3=true" if gate is Gate.COMPOSITE else ""
    whose = "kube-apiserver and kube-controller-manager" if gate is Gate.JOB else "kube-apiserver"
    return f"start {whose} with --feature-gates={gate}=true{extra}"


def _controllers(
    found: Survey, chosen: Options, managed: Sequence[Managed], ctx: Context | None
) -> tuple[tuple[str, ...], list[Line]]:
    running: list[str] = []
    lines: list[Line] = []
    by_controller: dict[str, list[Managed]] = {}
    for one in managed:
        by_controller.setdefault(one.controller, []).append(one)
    for name, kinds in by_controller.items():
        line = _controller(name, kinds, found, chosen, ctx)
        lines.append(line)
        if line.verdict == "does":
            running.append(name)
    named = [name for name in manager.names() if name in (chosen.controllers or ())]
    lines += [
        Line(f"controller {name}", "leaves", "kube-controller-manager's; only kohort up runs it") for name in named
    ]
    return tuple(running), lines


def _controller(name: str, kinds: Sequence[Managed], found: Survey, chosen: Options, ctx: Context | None) -> Line:
    what = f"controller {name}"
    named = chosen.controllers is not None and name in chosen.controllers
    if not is_enabled(chosen.controllers, name):
        return Line(what, "off", "not among --controllers")
    if name in built_in():
        return _builtin(what, found, named=named)
    if name not in found.served:
        return Line(what, "missing", f"{_names(kinds)} not served", "kohort crds | kubectl apply --server-side -f -")
    if name in found.others and not named:
        return Line(
            what, "leaves", f"somebody manages {_names(kinds)} already ({found.others[name]})",
            f"stop that operator, or insist with --controllers {name}",
        )  # fmt: skip
    beside = f", although {found.others[name]} looks like somebody else's" if name in found.others else ""
    groups = f"with groups of release {ctx.release.minor}" if ctx is not None else "without groups"
    return Line(what, "does", f"manages {_names(kinds)} {groups}{beside}")


def _reports(chosen: Options, running: Sequence[str]) -> Iterator[Line]:
    """Only where somebody asked for it: such gates are off by default, as upstream."""
    for one in (groups()[name].reports for name in running):
        if one is None or not (chosen.gates.get(one.gate) or one.option in chosen.reports):
            continue
        if not chosen.gates.get(one.gate):
            how = f"set featureGates: {{{one.gate}: true}}"
            yield Line(one.what, "off", f"featureGates.{one.gate} is off", how)
        elif one.option not in chosen.reports:
            how = f"say in the configuration where: {one.option}: {{url, …}}"
            yield Line(one.what, "missing", "nobody listens for it", how)
        else:
            url = chosen.reports[one.option].url
            yield Line(one.what, "does", f"taken at {url}, written to {one.field}")


def _builtin(what: str, found: Survey, *, named: bool) -> Line:
    """Kubernetes' own kinds are Kubernetes' own business, unless nobody is there to do it and we were asked."""
    if found.kube_controllers is not None or not named:
        by = f" ({found.kube_controllers})" if found.kube_controllers else ""
        return Line(what, "leaves", f"kube-controller-manager's{by}")
    return Line(what, "does", "asked for by name, and no kube-controller-manager holds its lease")


def _scheduler(found: Survey, chosen: Options) -> Line:
    names = ", ".join(chosen.scheduler_names)
    if not chosen.scheduler:
        return Line("scheduler", "off", "switched off: kube-scheduler places all pods")
    where = f" in {', '.join(chosen.namespaces)}" if chosen.namespaces else ""
    beside = f"; kube-scheduler ({found.kube_scheduler}) places the others" if found.kube_scheduler else ""
    how = f"pods ask for it with spec.schedulerName: {chosen.scheduler_names[0]}"
    return Line("scheduler", "does", f"places pods of schedulerName {names}{where}{beside}", how)


def _names(kinds: Iterable[Managed]) -> str:
    return ", ".join(dict.fromkeys(f"{one.kind}.{one.group}" for one in kinds))
