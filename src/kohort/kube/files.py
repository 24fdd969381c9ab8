"""How many files and connections this process may have open."""

from __future__ import annotations

import resource
from typing import Final

_ENOUGH: Final = 1 << 20  # some systems know no limit; tables of descriptors should not grow without one


def raise_file_limit() -> int:
    """The soft limit becomes the hard one, as Go's runtime does it: 1,024 are too few for a server. What it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # a sandbox that forbids it
        return soft
    return wanted
