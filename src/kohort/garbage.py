"""Python's collector of reference cycles, set for a process that keeps very many objects and makes few cycles.

Left alone it looks at all that is new after every 700 objects, which is one pod: a sixth of all processor time in a
cluster of some thousand pods.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from typing import Final

_OBJECTS: Final = 50_000  # new ones, until those are looked at


def settle() -> None:
    """Once, when everything is loaded: that stays, and need not be looked at again."""
    gc.freeze()
    gc.set_threshold(_OBJECTS, 20, 50)
    gc.enable()


def give_back() -> None:
    """Memory that is free goes back to the system, where its library can. Other threads go on meanwhile."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
