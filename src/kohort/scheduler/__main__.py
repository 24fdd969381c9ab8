"""python -m kohort.scheduler"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    # numpy's library of linear algebra, which nothing here needs, starts a thread for each core when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()  # until everything is loaded: none of that goes away again, and looking at it is an eighth of the time
    try:
        from kohort.scheduler import command

        return command.run(argv)
    finally:
        gc.enable()


if __name__ == "__main__":
    sys.exit(main())
