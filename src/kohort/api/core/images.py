"""Names of images, as far as the default of imagePullPolicy depends on them."""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DIGEST: Final = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_NAME: Final = re.compile(
    rf"(?P<name>(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*)"
    rf"(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
_LONGEST_NAME: Final = 255
_LONGEST: Final = 1024  # with tag and digest
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")


def tag_of(image: str) -> str:
    """ "latest" where neither tag nor digest is given; empty for what is no name of an image, or has only a digest."""
    if len(image) > _LONGEST or _IDENTIFIER.fullmatch(image):
        return ""
    found = _NAME.fullmatch(image)
    if found is None or len(found["name"]) > _LONGEST_NAME:
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")
