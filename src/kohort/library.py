"""Three questions about a manifest, without a cluster: is it valid, what does it compile to, how does it convert?

`validate`, `compile` and `convert` take plain dictionaries or files and return plain data. The command line is a
printer around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib import import_module
from os import PathLike, fspath
from typing import Any, Literal

from kohort import manifest
from kohort.api import admit, decode, definitions, registry
from kohort.api.convert import Finding
from kohort.api.errors import ErrorKind, FieldError, invalid
from kohort.api.formats import problems
from kohort.api.kind import Context, Kind, Object
from kohort.api.options import context
from kohort.api.releases import NEWEST, release
from kohort.api.schema import Ref
from kohort.gang import admission, render
from kohort.gang.compile import Compilation, CompileContext, Lookup, compiler, workload_kinds
from kohort.gang.settings import SettingsByKind, SettingsSource, settings_of
from kohort.gang.stand_in import has_uid
from kohort.gang.tree import Plan
from kohort.manifest import Document

Source = Object | Sequence[Object] | str | PathLike[str] | Sequence[Document]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding about one document."""

    severity: Severity
    document: int
    object: str  # "JobSet/aurora"
    field: str
    message: str
    kind: str = ""  # FieldValueInvalid, ...
    source: str = ""  # file
    line: int | None = None
    since: str = ""  # of an unknown field: the minor from which on it is known

    def __str__(self) -> str:
        place = f"{self.field}: " if self.field else ""
        line = f" (line {self.line})" if self.line else ""
        document = f"document {self.document}, " if self.document else ""  # a conversion looks at all of them together
        return f"{document}{self.object}: {place}{self.message}{line}"


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one workload becomes on one Kubernetes minor."""

    document: Document
    minor: str
    objects: tuple[Object, ...] = ()  # Workload, CompositePodGroups, PodGroups in creation order
    plans: tuple[Plan, ...] = ()
    problems: tuple[Problem, ...] = ()
    reason: str = ""  # why there is nothing to create
    children: tuple[Object, ...] = ()  # what the workload's own controller makes on the way (a TrainJob's JobSet)
    stand_in_uid: bool = False  # names with a hash are computed from a stand-in for metadata.uid
    links: Mapping[str, Any] = field(default_factory=dict)  # leaf group -> the part of a pod's spec that joins it

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "warning")

    @property
    def ok(self) -> bool:
        return not self.errors


@dataclass(frozen=True, slots=True)
class Converted:
    """Scheduling objects in another release."""

    objects: tuple[Object, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        return not any(problem.severity == "error" for problem in self.problems)


def validate(
    source: Source, *, kubernetes: str = NEWEST, gates: Mapping[str, bool] | None = None, warnings: bool = False
) -> list[Problem]:
    """Everything wrong with every document. With `warnings`, also what is accepted but unwise."""
    ctx = context(kubernetes, gates)
    every = documents(source)
    found: list[Problem] = []
    for document in every:
        own = _examine(document, ctx, warnings)
        found += own if any(one.severity == "error" for one in own) else [*_between(document, every, ctx), *own]
    return found


def compile(  # noqa: A001 - the word people look for; the builtin is not used here
    source: Source,
    *,
    to: str = NEWEST,
    gates: Mapping[str, bool] | None = None,
    settings: SettingsSource | None = None,
) -> list[Compiled]:
    """One result for each workload among the documents; the others (runtimes, topologies) are there to be looked up.

    `settings`: by kind, as in a configuration file: {"jobset": {"gangRendering": "Composite"}}; or typed ones.
    """
    ctx = context(to, gates)
    chosen = settings_of(settings)
    every = documents(source)
    return [_compile(document, ctx, every, chosen) for document in every if is_workload(document.obj)]


def convert(source: Source, *, to: str = NEWEST, flatten: bool = False) -> Converted:
    """Workload, PodGroup, CompositePodGroup and pod membership in the shapes of another release."""
    from kohort.api.convert import convert as convert_objects

    every = documents(source)
    malformed = [problem for document in every for problem in _malformed(document)]
    if malformed:
        return Converted((), tuple(malformed))
    done = convert_objects([deepcopy(document.obj) for document in every], release(to).minor, flatten=flatten)
    problems = [*_converted("error", done.errors), *_converted("warning", done.warnings)]
    return Converted(tuple(done.objects), tuple(problems))


def documents(source: Source) -> list[Document]:
    """Whatever people have at hand, as documents."""
    if isinstance(source, (str, PathLike)):
        return manifest.read([fspath(source)])
    objects: Iterable[Object | Document] = [source] if isinstance(source, dict) else source
    return [one if isinstance(one, Document) else Document(one, number) for number, one in enumerate(objects, 1)]


def is_workload(obj: Object) -> bool:
    return (_group(obj), obj.get("kind")) in workload_kinds()


def _group(obj: Object) -> str:
    version = obj.get("apiVersion")
    return version.rpartition("/")[0] if isinstance(version, str) else ""


def _examine(document: Document, ctx: Context, warnings: bool) -> list[Problem]:
    kind, problem = _kind_of(document, ctx)
    if kind is None and problem is not None and problem.severity == "warning":
        known = _by_definition(document, ctx, str(document.obj["apiVersion"]), str(document.obj["kind"]))
        return [problem] if known is None else known
    if kind is None:
        return [problem] if problem else []
    found = [_problem(document, "error", error) for error in admit.check(document.obj, ctx)]
    if warnings and not found:
        found = [_problem(document, "warning", text) for text in kind.warn(_defaulted(document, kind, ctx), ctx)]
    return found


def _between(document: Document, every: list[Document], ctx: Context) -> list[Problem]:
    """What other documents beside it refuse: a runtime that a TrainJob does not fit.

    What is not among them may well be on the cluster: only what they bring is told, not what is missing.
    """
    kind, rules = _kind_of(document, ctx)[0], admission.of(_group(document.obj), str(document.obj.get("kind")))
    if kind is None or rules is None:
        return []
    obj = _defaulted(document, kind, ctx)
    others = [one.obj for one in every if one is not document and _is_named(one.obj)]

    def said(known: list[Object]) -> tuple[FieldError, ...]:
        found = rules.validate(obj, None, CompileContext(ctx.release, ctx.gates, ctx.options, Lookup(known)))
        return found.errors

    alone = said([])
    return [_problem(document, "error", error) for error in said(others) if error not in alone]


def _is_named(obj: Object) -> bool:
    meta = obj.get("metadata")
    return isinstance(meta, dict) and isinstance(meta.get("name"), str) and isinstance(obj.get("spec", {}), dict)


def _by_definition(document: Document, ctx: Context, version: str, name: str) -> list[Problem] | None:
    """Of a kind that Kubernetes itself has: wrong types and unknown fields, as its server sees them. None: no such."""
    group, _, short = version.rpartition("/")
    definition = definitions.of_kind(ctx.release.minor, group, short, name)
    if definition is None:
        return None
    found = decode.check(Ref(definition=definition), document.obj, "", ctx.release.minor)
    problems = [_problem(document, "error", error) for error in found]
    meta = document.obj.get("metadata")
    if not problems and not (isinstance(meta, dict) and (meta.get("name") or meta.get("generateName"))):
        error = FieldError(ErrorKind.REQUIRED, "metadata.name", "name or generateName is required")
        problems.append(_problem(document, "error", error))
    return problems or [_problem(document, "error", error) for error in _by_strategy(document.obj, group, name, ctx)]


def _by_strategy(obj: Object, group: str, kind: str, ctx: Context) -> list[FieldError]:
    """What the embedded server says about a kind of Kubernetes' own beyond its types: one place for both.

    By name, as kinds are found: the server is above this module and loaded only for who asks.
    """
    strategy = import_module("kohort.server.registry.strategy").of(group, kind)
    whole = deepcopy(obj)
    strategy.default(whole, ctx)
    found: list[FieldError] = strategy.validate(whole, ctx)
    given = (obj.get("metadata") or {}).get("name")
    if strategy.name_format is not None and given:
        found = [*(invalid("metadata.name", given, one) for one in problems(strategy.name_format, given)), *found]
    return found


def _kind_of(document: Document, ctx: Context) -> tuple[Kind | None, Problem | None]:
    """The document's kind, or why it has none that we can validate."""
    version, name = document.obj.get("apiVersion"), document.obj.get("kind")
    for member, value in (("apiVersion", version), ("kind", name)):
        if not isinstance(value, str) or not value:
            error = FieldError(ErrorKind.REQUIRED, member, "every manifest names its apiVersion and kind")
            return None, _problem(document, "error", error)
    kind = registry.find(str(version), str(name))
    if kind is None:
        return None, _unknown_kind(document, str(version), str(name))
    minor = ctx.release.minor
    if minor not in kind.minors:
        served = [other.version for other in registry.kinds(kind.group) if other.kind == name and minor in other.minors]
        hint = f"it serves {kind.group}/{' and '.join(served)}" if served else f"it has no {name}"
        text = f"Kubernetes {minor} does not serve {version} {name}; {hint}"
        return None, _problem(document, "error", FieldError(ErrorKind.INVALID, "apiVersion", text, version))
    if kind.gate is not None and not ctx.on(kind.gate):
        text = f"Kubernetes {minor} serves {name} only with the feature gate {kind.gate}, which is off"
        return None, _problem(document, "error", FieldError(ErrorKind.INVALID, "kind", text, name))
    return kind, None


def _malformed(document: Document) -> list[Problem]:
    """What keeps a document from being converted: no apiVersion or kind, an unknown version, wrong JSON types."""
    version, name = document.obj.get("apiVersion"), document.obj.get("kind")
    kind = registry.find(version, name) if isinstance(version, str) and isinstance(name, str) else None
    if kind is None:
        _, problem = _kind_of(document, Context())
        return [problem] if problem and problem.severity == "error" else []
    found = decode.decode(kind.schema, document.obj, kind.minors[-1])
    return [_problem(document, "error", error) for error in found if error.kind is ErrorKind.DECODE]


def _unknown_kind(document: Document, version: str, name: str) -> Problem | None:
    known = sorted({kind.api_version for kind in registry.every_kind() if kind.kind == name})
    group_kinds = sorted({kind.kind for kind in registry.kinds(version.rpartition("/")[0])})
    if known:
        detail = f"{name} is served as {', '.join(known)}"
        return _problem(document, "error", FieldError(ErrorKind.INVALID, "apiVersion", detail, version))
    if version.rpartition("/")[0] in registry.groups() and "/" in version and group_kinds:
        detail = f"kinds of {version} are {', '.join(group_kinds)}"
        return _problem(document, "error", FieldError(ErrorKind.INVALID, "kind", detail, name))
    return _problem(document, "warning", f"{version} {name} is not a kind that Kohort knows; it was not looked at")


def _defaulted(document: Document, kind: Kind, ctx: Context) -> Object:
    return admit.defaulted(document.obj, kind, ctx)


def _compile(document: Document, ctx: Context, every: list[Document], settings: SettingsByKind) -> Compiled:
    minor = ctx.release.minor
    problems = [_forgiven(problem) for problem in _examine(document, ctx, warnings=True)]
    kind, _ = _kind_of(document, ctx)
    run = compiler(_group(document.obj), str(document.obj.get("kind")))
    if kind is None or run is None or any(problem.severity == "error" for problem in problems):
        return Compiled(document, minor, problems=tuple(problems))
    lookup = Lookup(other.obj for other in every if other is not document)
    done = run(
        _defaulted(document, kind, ctx),
        CompileContext(ctx.release, ctx.gates, ctx.options, lookup, settings),
    )
    return _rendered(document, done, problems, ctx)


def _forgiven(problem: Problem) -> Problem:
    """A field that only a later Kubernetes knows is dropped by this one: the workload is still worth compiling."""
    if not problem.since:
        return problem
    return replace(problem, severity="warning", message=f"is dropped, being known from Kubernetes {problem.since} on")


def _rendered(document: Document, done: Compilation, problems: list[Problem], ctx: Context) -> Compiled:
    objects: list[Object] = []
    links: dict[str, Any] = {}
    errors: list[FieldError] = list(done.errors)
    warnings: list[FieldError | str] = list(done.warnings)
    plans: list[Plan] = []
    for plan in done.plans:
        plans.append(render.fit(plan, ctx.release).plan)
        result = render.render(plan, ctx.release)
        errors += result.errors
        warnings += result.warnings
        objects += result.objects
        links |= {m.group: render.pod_link(plan, m.group, ctx.release) for m in plan.members if m.group}
    seen = {(problem.field, problem.message) for problem in problems}
    for severity, items in (("error", errors), ("warning", warnings)):
        fresh = [_problem(document, severity, item) for item in items]  # type: ignore[arg-type]
        problems += [problem for problem in fresh if (problem.field, problem.message) not in seen]
    return Compiled(
        document,
        ctx.release.minor,
        objects=() if errors else tuple(objects),
        plans=tuple(plans),
        problems=tuple(problems),
        reason=done.reason,
        children=() if errors else done.objects,
        stand_in_uid=not has_uid(document.obj),
        links=links,
    )


def _problem(document: Document, severity: Severity, found: FieldError | str) -> Problem:
    if isinstance(found, str):
        return Problem(severity, document.number, document.name, "", found, source=document.source)
    line = document.line(found.field)
    return Problem(
        severity,
        document.number,
        document.name,
        found.field,
        found.message,
        kind=str(found.kind),
        source=document.source,
        line=line,
        since=found.since,
    )


def _converted(severity: Severity, found: Iterable[Finding]) -> Iterable[Problem]:
    for item in found:
        yield Problem(severity, 0, item.object, item.field, item.message)
