"""The names of everything a PodCliqueSet brings about (spec grove 1.7, 3.3, 3.5). All computed, none looked up."""

from __future__ import annotations

ROOT_TEMPLATE = "gang"


def service(pcs: str, index: int) -> str:
    """The headless Service of one replica of the set."""
    return f"{pcs}-{index}"


def base_gang(pcs: str, index: int) -> str:
    return f"{pcs}-{index}"


def scaling_group(pcs: str, index: int, group: str) -> str:
    return f"{pcs}-{index}-{group}"


def scaled_gang(scaling_group_name: str, beyond: int) -> str:
    """`beyond`: how far the replica is above minAvailable, from 0."""
    return f"{scaling_group_name}-{beyond}"


def clique(owner: str, index: int, name: str) -> str:
    """Of a set's replica, or of a scaling group's."""
    return f"{owner}-{index}-{name}"


def replica(scaling_group_name: str, index: int) -> str:
    """One replica of a scaling group, where it has a name: a topology group config, or a branch of the base gang."""
    return f"{scaling_group_name}-{index}"


def hostname(clique_name: str, index: int) -> str:
    return f"{clique_name}-{index}"


def runtime(gang: str, name: str) -> str:
    """A group object. The prefix keeps the replica 0 of a scaling group apart from its scaled gang 0."""
    return f"{gang}-{name}"


def scaling_group_template(group: str) -> str:
    return f"sg-{group}"


def replica_template(group: str) -> str:
    return f"sgr-{group}"


def clique_template(name: str) -> str:
    return f"pg-{name}"
