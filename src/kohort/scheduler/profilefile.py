"""A profile from a file: YAML or JSON, every mistake told at once, each with its field."""

from __future__ import annotations

from pathlib import Path

from kohort.place.profile import Profile, ProfileError, read_profile
from kohort.yamlread import ManifestError, load


def read_profile_file(path: str | Path) -> Profile:
    try:
        document, _ = load(Path(path).read_text(), 1)
    except OSError as error:
        raise ProfileError([f"{path}: cannot be read: {error.strerror}"]) from None
    except (ManifestError, UnicodeDecodeError) as error:
        raise ProfileError([f"{path}: {error}"]) from None
    try:
        return read_profile({} if document is None else document)
    except ProfileError as error:
        raise ProfileError([f"{path}: {mistake}" for mistake in error.mistakes]) from None
