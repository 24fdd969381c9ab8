"""Which allocator a long-running process has: that is decided before its interpreter starts.

Python's own is a little faster and gives memory back in pieces of 1 MiB, once nothing in a piece is used any more.
After objects of megabytes came and went, hundreds of pieces hold a few objects each: 1.8 GiB were left after 10,000 of
them. The C library gives back every free page when it is told to (`kohort.tuning.give_back`), and 366 MiB were left.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

_SETTING: Final = "PYTHONMALLOC"
# It gives nothing back by itself: what was read is soon followed by something of the same size.
_LIBRARY: Final = {
    _SETTING: "malloc",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
}


def begin_again() -> None:
    """This process anew with the C library's allocator, unless somebody has chosen one, or it cannot give back."""
    if _SETTING in os.environ or not sys.platform.startswith("linux") or not sys.executable:
        return
    with suppress(OSError):  # as well without
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**_LIBRARY, **os.environ})
