"""What a long-running process sets about itself, once: Python's collector of cycles, memory, open files."""

from __future__ import annotations

import ctypes
import gc
import resource
from contextlib import suppress
from typing import Final

_OBJECTS: Final = 50_000  # new ones, until those are looked at
_FILES: Final = 1 << 20  # some systems know no limit; tables of descriptors should not grow without one


def settle() -> None:
    """Once, when everything is loaded: that stays, and need not be looked at again.

    Left alone the collector looks at all that is new after every 700 objects, which is one pod: a sixth of all
    processor time in a cluster of some thousand pods.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS, 20, 50)
    gc.enable()


def give_back() -> None:
    """Memory that is free goes back to the system, where its library can. Other threads go on meanwhile."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def raise_file_limit() -> int:
    """The soft limit becomes the hard one, as Go's runtime does it: 1,024 are too few for a server. What it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # a sandbox that forbids it
        return soft
    return wanted
