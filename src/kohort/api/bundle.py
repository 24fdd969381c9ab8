"""What there is to know about a family of workload kinds, in one object, and the list of families.

Each family is a folder `kohort/kinds/<family>` with a module `bundle.py` that holds its `BUNDLE`. All lists of kinds
are made from the bundles: the API registry, compilers, admission, controllers, roles, the survey of `kohort run`, what
`kohort explain` looks for, feature gates, the table in README. A bundle names modules and does not import them, so that
reading all bundles costs next to nothing and a command loads only the code of the kinds that it meets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Final, ParamSpec, TypeVar

# One line for each family. A family that makes objects of another one comes after it.
FAMILIES: Final = (
    "kohort.kinds.batch.bundle",
    "kohort.kinds.jobset.bundle",
    "kohort.kinds.trainer.bundle",
    "kohort.kinds.grove.bundle",
    "kohort.kinds.leaderworkerset.bundle",
)

READ: Final = ("get", "list", "watch")
MANAGE: Final = (*READ, "create", "update", "patch", "delete")
UPDATE: Final = ("update", "patch")


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule of the role that controllers need; `why` becomes a comment."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str = ""
    paths: tuple[str, ...] = ()  # of the server, which are no resources
    names: tuple[str, ...] = ()  # only these objects


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEndpoint:
    """An address of its own, beside the API server's, where the pods of a kind report to its controllers."""

    application: str  # module with application(client), which answers
    gate: str  # the feature gate that has to be on
    option: str  # the member of `kohort run`'s configuration file that says where it listens
    what: str  # is reported, in the words of `kohort run`
    field: str  # of the kind, which a report ends in


@dataclass(frozen=True, slots=True)
class Listener:
    """Who takes reports: `url` without the path, and the certificates (PEM) by which its own is known."""

    url: str
    ca: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerGroup:
    """Controllers that only make sense together, under the name by which people ask for them."""

    name: str
    controllers: tuple[str, ...]  # keys of MAKERS of the bundle's module
    manages: tuple[str, str]  # API group and kind whose objects somebody else may manage already
    needs: tuple[tuple[str, str], ...] = ()  # further kinds that must be served before the controllers start
    built_in: bool = False  # kube-controller-manager has it: it is left to that on a real cluster
    leases: tuple[str, ...] = ()  # parts of names or namespaces by which the leases of upstream's operator are told
    rules: tuple[PolicyRule, ...] = ()
    reports: ReportEndpoint | None = None  # of the pods that they make


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """A gate of the kinds' own controllers, beside those of Kubernetes. What makes gangs is on."""

    name: str
    default: bool
    kind: str
    meaning: str
    alias: str = ""  # the name upstream gives it


@dataclass(frozen=True, slots=True)
class Page:
    """A line of the table of kinds."""

    kinds: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A family of kinds. Everything but the name and the API may be left out."""

    name: str
    api: Mapping[str, str]  # API group -> module with KINDS: tuple[Kind, ...]
    native: bool = False  # Kubernetes' own kinds: no definitions are shipped, upstream's roles know them
    # (API group, kind) -> module with compile_object, module with validate
    compilers: Mapping[tuple[str, str], str] = field(default_factory=dict)
    admission: Mapping[tuple[str, str], str] = field(default_factory=dict)
    consults: tuple[PolicyRule, ...] = ()  # what the rules of `admission` look up
    pods: str = ""  # module with the rules of kohort.api.pod_rules, about pods that are made for the kinds
    gates: tuple[FeatureGate, ...] = ()
    settings: str = ""  # module with SETTINGS: the frozen type of what can be chosen about the kind
    makers: str = ""  # module with MAKERS: controller -> function of a Setup
    objects: str = ""  # module with install(client): objects that `kohort up` brings along for the controllers
    controllers: tuple[ControllerGroup, ...] = ()
    referenced: tuple[tuple[str, str], ...] = ()  # kinds that workloads name: `kohort plan` copies them from a cluster
    explained: tuple[str, ...] = ()  # kinds that a name without a kind may mean (`kohort explain NAME`), topmost first
    # Labels of pods that say their rank, the most important number first; of alternatives the first that is there.
    ranks: tuple[tuple[str, ...], ...] = ()
    page: Page | None = None
    example: str = ""  # of examples/

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(self.api)


_P = ParamSpec("_P")
_T = TypeVar("_T")
_registered: list[Bundle] = []
_derived: list[Callable[[], None]] = []


@cache
def _own() -> tuple[Bundle, ...]:
    return tuple(import_module(name).BUNDLE for name in FAMILIES)


def bundles() -> tuple[Bundle, ...]:
    """All families: our own, then those that were registered."""
    return (*_own(), *_registered)


def registered() -> tuple[Bundle, ...]:
    """Those that do not come with Kohort."""
    return tuple(_registered)


def register(bundle: Bundle) -> None:
    """Add a family of kinds to this process, before servers and controllers are made."""
    for known in bundles():
        twice = sorted(set(known.groups) & set(bundle.groups))
        if known.name == bundle.name or twice:
            what = f"API group {twice[0]}" if twice else "its name"
            raise ValueError(f"bundle {bundle.name}: {what} is taken by bundle {known.name}")
        taken = {one.name for one in known.controllers} & {one.name for one in bundle.controllers}
        if taken:
            raise ValueError(f"bundle {bundle.name}: controllers {', '.join(sorted(taken))} are those of {known.name}")
        switched = _gate_names(known) & _gate_names(bundle)
        if switched:
            raise ValueError(f"bundle {bundle.name}: gates {', '.join(sorted(switched))} are those of {known.name}")
    _registered.append(bundle)
    _forget()


def _gate_names(bundle: Bundle) -> set[str]:
    return {name for gate in bundle.gates for name in (gate.name, gate.alias) if name}


@contextmanager
def with_bundle(bundle: Bundle) -> Iterator[None]:
    """Registered for a while, for tests."""
    register(bundle)
    try:
        yield
    finally:
        _registered.remove(bundle)
        _forget()


def derived(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """`functools.cache` for what follows from the bundles: forgotten when they change."""
    cached = cache(function)
    _derived.append(cached.cache_clear)
    return cached  # type: ignore[return-value]


def _forget() -> None:
    for clear in _derived:
        clear()
