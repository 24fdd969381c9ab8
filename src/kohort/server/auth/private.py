"""Files that nobody else may read: keys and tokens. Written whole or not at all, mode 0600 in a 0700 folder."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILE, FOLDER = 0o600, 0o700


class FileError(ValueError):
    """A file of the data folder is not what it should be; the text says which, and what to do."""


def folder(path: Path) -> Path:
    """Made with its parents, all of them for us only; one that was there is left as it is."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=FOLDER, exist_ok=True)
    return path


def tighten(path: Path) -> None:
    """A file that lets others in (a copy, a restored backup) no longer does."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_mode & 0o077:
            path.chmod(FILE)


def write(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one; the new one was never readable by others."""
    folder(path.parent)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def read(path: Path) -> bytes | None:
    """None if it is not there. A mode that lets others in (a copy, a restored backup) is tightened."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                os.fchmod(file.fileno(), FILE)
            return file.read()
    except FileNotFoundError:
        return None
