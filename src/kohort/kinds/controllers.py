"""The controllers there are, as the bundles of kinds list them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from kohort.api.bundle import ControllerGroup, Listener, bundles
from kohort.api.releases import SCHEDULING_GROUP
from kohort.controllermanager import registry as manager
from kohort.controllers.controller import Controller
from kohort.gang.compile import CompileContext
from kohort.kinds.batch.settings import JobSettings
from kohort.kube.client import Client

STAR = "*"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Setup:
    """What controllers are made from. `grouping`: whether the server has Workloads and PodGroups.

    `listeners`: who takes reports of pods, by the name of the controllers that want them.
    """

    ctx: CompileContext
    grouping: bool = True
    listeners: Mapping[str, Listener] = field(default_factory=dict)


Maker = Callable[[Setup], Controller]


def groups() -> dict[str, ControllerGroup]:
    """Those that only make sense together, by the name by which people ask for them."""
    return {one.name: one for bundle in bundles() for one in bundle.controllers}


def names() -> tuple[str, ...]:
    """Of every single controller."""
    return tuple(name for group in groups().values() for name in group.controllers)


def is_enabled(words: Sequence[str] | None, name: str) -> bool:
    """Whether `--controllers` means this one, by kube-controller-manager's rule: the first word about it decides.

    `*`: all about which nothing else is said; `name`: this one; `-name`: not this one. None: all.
    """
    if words is None:
        return True
    about = next((word for word in words if word.removeprefix("-") == name), "")
    return not about.startswith("-") if about else STAR in words


def selected(words: Sequence[str] | None) -> tuple[str, ...]:
    """The single controllers that `--controllers` means; words are names of groups, or of what `kohort up` adds."""
    ours = tuple(part for name, one in groups().items() if is_enabled(words, name) for part in one.controllers)
    return (*ours, *(name for name in manager.names() if is_enabled(words, name)))


def selection_mistakes(words: Sequence[str]) -> list[tuple[str, str]]:
    """(word, what is wrong with it) of those that `--controllers` does not accept."""
    known = (*groups(), *manager.names())
    accepted = ", ".join(known)
    wrong = [
        (word, f"not known; accepted are {accepted}, each with - before it to leave it out, and {STAR} for all")
        for word in words
        if word != STAR and word.removeprefix("-") not in known
    ]
    if words and not wrong and all(word.startswith("-") for word in words):
        given = ",".join(words)
        wrong.append((given, f"leaves out of nothing; write {STAR},{given} for all but these"))
    return wrong


def built_in() -> tuple[str, ...]:
    """Those that need nothing but Kubernetes' own kinds; other kinds are served where their CRDs are, or by us."""
    return tuple(name for group in groups().values() if group.built_in for name in group.controllers)


def _modules() -> dict[str, str]:
    """Controller -> module with its maker."""
    return {name: one.makers for one in bundles() for group in one.controllers for name in group.controllers}


def make(setup: Setup, wanted: Iterable[str] | None = None) -> list[Controller]:
    """The named ones; without names, the built-in ones."""
    modules, chosen = _modules(), tuple(built_in() if wanted is None else wanted)
    unknown = [name for name in chosen if name not in modules]
    if unknown:
        raise ValueError(f"controller {', '.join(unknown)}: not known; accepted are {', '.join(modules)}")
    return [_maker(modules[name], name)(setup) for name in chosen]


def _maker(module: str, name: str) -> Maker:
    makers: Mapping[str, Maker] = import_module(module).MAKERS
    return makers[name]


def needs(wanted: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """API groups and kinds that the server must have before these controllers start."""
    chosen = set(wanted)
    found = (one for one in groups().values() if not chosen.isdisjoint(one.controllers))
    return tuple(dict.fromkeys(kind for one in found for kind in (one.manages, *one.needs)))


async def install(client: Client, wanted: Iterable[str]) -> None:
    """Objects that come with the families of these controllers."""
    chosen = set(wanted)
    for one in bundles():
        if one.objects and any(not chosen.isdisjoint(group.controllers) for group in one.controllers):
            await import_module(one.objects).install(client)


async def probe(client: Client, ctx: CompileContext) -> Setup:
    """Whether the server serves groups in the version of this release (T-48: upstream would wait for ever)."""
    if ctx.settings.of(JobSettings).parity:
        return Setup(ctx)
    kind = "PodGroup" if ctx.release.has_pod_groups else "Workload"
    served = await client.discovery.versions(SCHEDULING_GROUP, kind)
    if ctx.release.workload_version in served:
        return Setup(ctx)
    log.error(
        "the server does not serve %ss as %s (served: %s): Jobs run without groups, and nothing starts together",
        kind,
        ctx.release.api_version,
        ", ".join(served) or "none",
    )
    return Setup(ctx, grouping=False)
