"""What representation a client asked for: JSON or YAML; the object, its metadata only, or a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kohort.server import codec, status

OBJECT, TABLE, PARTIAL, PARTIAL_LIST = "", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_KNOWN: Final = {OBJECT, TABLE, PARTIAL, PARTIAL_LIST}
_ANY: Final = {"*/*", "application/*", ""}


@dataclass(frozen=True, slots=True)
class MediaTypeOptions:
    """`kind`: one of the words above; `version` of meta.k8s.io for those that have one."""

    media: str = codec.JSON
    kind: str = OBJECT
    version: str = "v1"
    stream: bool = False
    pretty: bool = False


DEFAULT: Final = MediaTypeOptions()


@lru_cache(maxsize=256)
def negotiate(accept: str, whole: bool = False) -> MediaTypeOptions:
    """The first of the accepted that can be written; 406 if there is none. `whole`: only as itself (reviews are)."""
    if not accept:
        return DEFAULT
    for part in accept.split(","):
        found = _part(part)
        if found is not None and not (whole and found.kind):
            return found
    listed = "application/json, application/yaml, application/json;stream=watch"
    message = f"406: Not Acceptable\n\nAvailable representations: {listed}"
    raise status.ApiError(status.failure(406, "NotAcceptable", message))


def _part(part: str) -> MediaTypeOptions | None:
    media, *rest = (piece.strip() for piece in part.split(";"))
    settings = dict(piece.partition("=")[::2] for piece in rest if "=" in piece)
    kind = settings.get("as", "")
    if kind not in _KNOWN or (kind and settings.get("g", "meta.k8s.io") != "meta.k8s.io"):
        return None
    version = settings.get("v", "v1")
    if kind and version not in {"v1", "v1beta1"}:
        return None
    if media in _ANY:
        return DEFAULT if not kind else MediaTypeOptions(codec.JSON, kind, version)
    if media in (codec.JSON, "application/json-seq"):
        return MediaTypeOptions(
            codec.JSON, kind, version, settings.get("stream") == "watch", settings.get("pretty") == "1"
        )
    if media in (codec.YAML, "application/x-yaml"):
        return MediaTypeOptions(codec.YAML, kind, version)
    return None
