"""Gates of Kohort itself: what the workload APIs call feature gates of their own controllers.

Each family of kinds has its own in its bundle. They live beside the gates of Kubernetes in `Context.options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.api.bundle import FeatureGate, bundles, derived
from kohort.api.kind import Context
from kohort.api.releases import parse_gates, release


@derived
def own_gates() -> Mapping[str, FeatureGate]:
    """By name."""
    return {gate.name: gate for bundle in bundles() for gate in bundle.gates}


@derived
def _aliases() -> Mapping[str, str]:
    return {gate.alias: name for name, gate in own_gates().items() if gate.alias}


def default_options() -> frozenset[str]:
    return frozenset(name for name, gate in own_gates().items() if gate.default)


DEFAULT_OPTIONS: Final = default_options()  # of the families that come with Kohort


def known_option(name: str) -> str | None:
    """The option of that name or alias."""
    return name if name in own_gates() else _aliases().get(name)


def context(minor: str, gates: Mapping[str, bool] | None = None) -> Context:
    """A minor with gates switched, Kubernetes' and ours, by name; ValueError names one that is neither."""
    given = release(minor)
    wanted = dict(gates or {})
    ours = {option: value for name, value in wanted.items() if (option := known_option(name))}
    # GangScheduling is a name of both worlds on 1.35 and 1.36: it then switches both.
    theirs = {name: value for name, value in wanted.items() if not known_option(name) or name in set(given.gates)}
    options = {name for name, gate in own_gates().items() if ours.get(name, gate.default)}
    return Context(given, parse_gates(given.minor, theirs), frozenset(options))
