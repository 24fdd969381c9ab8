"""Who waits for whom: the `startsAfter` of every PodClique, by full names (spec grove 1.9).

In a base gang a parent that belongs to a scaling group means all its base replicas; in a scaled gang only parents of
the same replica count. Matching is by exact name (D23).
"""

from __future__ import annotations

from kohort.kinds.grove.api import constants
from kohort.kinds.grove.compile.expand import Clique, Expansion, Gang

Parents = list[tuple[str, int]]  # PodClique and how many of its pods must be ready


def waits_for(expansion: Expansion) -> dict[str, Parents]:
    """PodClique name -> its parents, in the order in which they are waited for."""
    return {name: parents for gang in expansion.gangs for name, parents in of_gang(expansion, gang).items()}


def of_gang(expansion: Expansion, gang: Gang) -> dict[str, Parents]:
    """The same for the PodCliques of one gang."""
    before = _before(expansion)
    return {clique.name: _parents(before[clique.template["name"]], gang) for clique in gang.cliques}


def arguments(parents: Parents) -> list[str]:
    """What the init container of a waiting pod is told."""
    return [f"--podcliques={name}:{minimum}" for name, minimum in parents]


def _before(expansion: Expansion) -> dict[str, list[str]]:
    """Clique template -> templates that come first."""
    cliques = expansion.template["cliques"]
    kind = expansion.template.get("cliqueStartupType")
    if kind == constants.IN_ORDER:
        ordered = [clique["name"] for clique in cliques]
        return {name: ordered[max(at - 1, 0) : at] for at, name in enumerate(ordered)}
    if kind == constants.EXPLICIT:
        return {clique["name"]: list(clique["spec"].get("startsAfter") or []) for clique in cliques}
    return {clique["name"]: [] for clique in cliques}


def _parents(templates: list[str], gang: Gang) -> Parents:
    """A scaled gang holds one replica only, so whatever else is named is not found in it."""
    by_template: dict[str, list[Clique]] = {}
    for clique in gang.cliques:
        by_template.setdefault(clique.template["name"], []).append(clique)
    return [(clique.name, clique.minimum) for name in templates for clique in by_template.get(name, [])]
