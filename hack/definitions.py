"""Write the definitions that ship with the server. Run it when a schema of a kind that comes as a CRD has changed.

python hack/definitions.py
"""

from __future__ import annotations

import gzip
from pathlib import Path

from kohort.server.crd.shipped import DATA, made

if __name__ == "__main__":
    target = Path(__file__).parent.parent / "src" / "kohort" / "server" / DATA
    target.write_bytes(gzip.compress(made(), 9, mtime=0))
