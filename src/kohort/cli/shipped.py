"""Where the examples are: in the package if it was installed, beside it in a clone."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGED: Final = Path(__file__).parents[1] / "examples"
FOLDER: Final = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[3] / "examples"


def example_path(name: str) -> str:
    """As somebody in this directory would write it."""
    file = FOLDER / name
    try:
        return str(file.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(file)
