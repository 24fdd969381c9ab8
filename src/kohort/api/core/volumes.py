"""Volumes of a pod: each has a name and exactly one source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import definitions, formats
from kohort.api.errors import FieldError, at, duplicate, forbidden, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HOUR, _DAY = 3600, 86400
# The member of a source without which it means nothing.
_NEEDS: Final = {
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
    "secret": "secretName",
    "configMap": "name",
    "csi": "driver",
}


def check_volumes(volumes: list[Mapping[str, Any]] | None, path: str, minor: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes or []):
        place, name = f"{path}[{index}]", volume.get("name") or ""
        yield from own_name(name, place, seen)
        yield from _source(volume, place, minor)


def own_name(name: str, place: str, seen: set[str]) -> Iterator[FieldError]:
    """A label that no item before has."""
    problem = formats.label(name)
    if not name:
        yield required(at(place, "name"))
    elif problem:
        yield invalid(at(place, "name"), name, problem)
    elif name in seen:
        yield duplicate(at(place, "name"), name)
    seen.add(name)


def names(volumes: list[Mapping[str, Any]] | None) -> set[str]:
    return {str(volume.get("name") or "") for volume in volumes or []}


def _source(volume: Mapping[str, Any], path: str, minor: str) -> Iterator[FieldError]:
    chosen = [kind for kind in volume if kind in _sources(minor) and volume[kind] is not None]
    if not chosen:
        yield required(path, "must specify a volume type")
        return
    for surplus in chosen[1:]:
        yield forbidden(at(path, surplus), "may not specify more than 1 volume type")
    kind = chosen[0]
    need = _NEEDS.get(kind)
    if need and not volume[kind].get(need):
        yield required(at(at(path, kind), need))
    for index, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
        certificate = source.get("podCertificate")
        if certificate is not None:
            yield from _lifetime(certificate, f"{path}.projected.sources[{index}].podCertificate.maxExpirationSeconds")


def _lifetime(certificate: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Of a certificate that the pod asks for: from an hour on; Kubernetes' own signers give a day, others 91."""
    asked = certificate.get("maxExpirationSeconds")
    if asked is None:
        return
    own = str(certificate.get("signerName") or "").partition("/")[0]
    most = _DAY if own == "kubernetes.io" or own.endswith(".kubernetes.io") else 91 * _DAY
    if asked < _HOUR:
        yield invalid(path, asked, f"if provided, maxExpirationSeconds must be >= {_HOUR}")
    elif asked > most:
        yield invalid(path, asked, f"if provided, maxExpirationSeconds must be <= {most}")


def _sources(minor: str) -> set[str]:
    return set(definitions.definition(minor, "io.k8s.api.core.v1.Volume")["properties"]) - {"name"}
