"""The sorts of hostile requests: those that once stopped a server or a scheduler, and their kin.

Everything is bounded: a body is smaller than the server accepts, and a tenant's quota bounds what it can make.
"""

from __future__ import annotations

from typing import Final

from tests.abuse.attack import Sort
from tests.abuse.sorts import builtins, definitions, groups, metadata, requests, workloads

SORTS: Final[tuple[Sort, ...]] = (
    *groups.SORTS,
    *workloads.SORTS,
    *metadata.SORTS,
    *requests.SORTS,
    *builtins.SORTS,
    *definitions.SORTS,
)
