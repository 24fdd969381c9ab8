"""Names that a conversion invents: PodGroups for the tuples of 1.35, and keys for PodGroups (spec workload-api 4.4)."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from kohort.api import formats

REPLICA_KEY: Final = "kohort.dev/replica-key"  # annotation of a PodGroup: the podGroupReplicaKey it stands for

_MOST: Final = 253


def group_name(workload: str, template: str, key: str | None) -> str:
    """The PodGroup of a tuple of 1.35. Cut and marked with a hash where it would be longer than a name may be."""
    name = f"{workload}-{template}-{key}" if key else f"{workload}-{template}"
    if len(name) <= _MOST:
        return name
    mark = digest(name)
    return f"{name[: _MOST - 1 - len(mark)].rstrip('-.')}-{mark}"


def replica_key(group: str) -> str:
    """A key for a PodGroup that has none of its own: its name, or a hash of it where the name is no label."""
    return group if formats.label(group) is None else digest(group)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:10]
