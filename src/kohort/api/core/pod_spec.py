"""The rules of a pod's spec that people trip over, with the kinds and paths of an API server.

Not covered (a real server looks further): most of security contexts, the insides of most volume sources, lifecycle
hooks, host aliases, DNS configuration, Windows and host-namespace combinations, resize policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.core import volumes
from kohort.api.core.containers import Surroundings, check_containers
from kohort.api.core.directives import check_directives
from kohort.api.core.resources import check_resources
from kohort.api.errors import FieldError, at, duplicate, invalid, not_supported, required
from kohort.api.scheduling import membership

if TYPE_CHECKING:
    from kohort.api.kind import Context

Spec = dict[str, Any]

RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_LONGEST_SYSCTL: Final = 253
_NAMES: Final = {
    "serviceAccountName": formats.subdomain,
    "nodeName": formats.subdomain,
    "hostname": formats.label,
    "subdomain": formats.label,
    "runtimeClassName": formats.subdomain,
}


def check_pod_spec(spec: Spec, path: str, ctx: Context) -> Iterator[FieldError]:
    """Everything wrong with a pod's spec; it need not have been defaulted."""
    claims = spec.get("resourceClaims") or []
    around = Surroundings(
        frozenset(volumes.names(spec.get("volumes"))),
        frozenset(str(claim.get("name") or "") for claim in claims),
    )
    yield from volumes.check_volumes(spec.get("volumes"), at(path, "volumes"), ctx.release.minor)
    yield from _claims(claims, at(path, "resourceClaims"))
    yield from check_containers(spec, path, around)
    yield from check_resources(spec.get("resources"), at(path, "resources"))
    yield from _words(spec, path)
    yield from _numbers(spec, path)
    yield from _sysctls(spec, at(path, "securityContext.sysctls"))
    for index, secret in enumerate(spec.get("imagePullSecrets") or []):
        if not secret.get("name"):
            yield required(f"{at(path, 'imagePullSecrets')}[{index}].name")
    yield from check_directives(spec, path)
    yield from membership.check(spec, path, ctx)


def _words(spec: Spec, path: str) -> Iterator[FieldError]:
    for member, accepted in (("restartPolicy", RESTART_POLICIES), ("dnsPolicy", _DNS)):
        value = spec.get(member)
        if value is not None and value not in accepted:
            yield not_supported(at(path, member), value, accepted)
    for member, form in _NAMES.items():
        value = spec.get(member)
        problem = form(value) if value else None
        if problem:
            yield invalid(at(path, member), value, problem)


def _numbers(spec: Spec, path: str) -> Iterator[FieldError]:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield invalid(at(path, "activeDeadlineSeconds"), deadline, "must be between 1 and 2147483647, inclusive")


def _sysctls(spec: Spec, path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, one in enumerate((spec.get("securityContext") or {}).get("sysctls") or ()):
        place, name = f"{path}[{index}].name", one.get("name") or ""
        if not name:
            yield required(place)
        elif len(name) > _LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            text = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL.pattern}$"
            yield invalid(place, name, text)
        elif name in seen:
            yield duplicate(place, name)
        seen.add(name)


def _claims(claims: list[Spec], path: str) -> Iterator[FieldError]:
    """Resource claims: a name of its own and exactly one source."""
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        place, name = f"{path}[{index}]", claim.get("name") or ""
        yield from volumes.own_name(name, place, seen)
        sources = [member for member in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(member)]
        if len(sources) != 1:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            both = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(place, claim, both if sources else detail)
        for member in sources:
            problem = formats.subdomain(claim[member])
            if problem:
                yield invalid(at(place, member), claim[member], problem)
