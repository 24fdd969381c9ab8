"""The status of a pod: what an update of it keeps, and what it may not say."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from kohort.api import formats
from kohort.api.errors import FieldError, forbidden, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context, Object


def reset(new: Object, old: Object) -> None:
    """The class of service that a pod was created with stays."""
    state, before = new.get("status"), (old.get("status") or {}).get("qosClass")
    if isinstance(state, dict) and before and not state.get("qosClass"):
        state["qosClass"] = before


def validate(new: Object, old: Object, _: Context) -> list[FieldError]:
    state, before = new.get("status") or {}, old.get("status") or {}
    spec = new.get("spec") or {}
    return [
        *_nominated(state, before, spec),
        *_numbers(state, before),
        *_addresses(state, "podIPs"),
        *_host_addresses(state),
        *_claims(state, spec),
    ]


def _nominated(state: dict[str, Any], before: dict[str, Any], spec: dict[str, Any]) -> Iterator[FieldError]:
    """A nomination is for a pod that waits: binding takes it away, and nobody can bring it back."""
    name = state.get("nominatedNodeName")
    if not name:
        return
    path = "status.nominatedNodeName"
    yield from (invalid(path, name, text) for text in formats.problems(formats.subdomain, name))
    if spec.get("nodeName") and name != before.get("nominatedNodeName"):
        yield forbidden(path, "may not be set on pods that are already bound to a node")


def _numbers(state: dict[str, Any], before: dict[str, Any]) -> Iterator[FieldError]:
    if before.get("qosClass") and state.get("qosClass") != before["qosClass"]:
        yield invalid("status.qosClass", state.get("qosClass"), "field is immutable")
    generation = state.get("observedGeneration")
    if isinstance(generation, int) and generation < 0:
        yield invalid("status.observedGeneration", generation, "must be a non-negative integer")


def _addresses(state: dict[str, Any], member: str) -> Iterator[FieldError]:
    for index, one in enumerate(state.get(member) or []):
        address = one.get("ip") or ""
        try:
            ipaddress.ip_address(address)
        except ValueError:
            text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid(f"status.{member}[{index}]", address, text)


def _host_addresses(state: dict[str, Any]) -> Iterator[FieldError]:
    given = state.get("hostIPs") or []
    if given and given[0].get("ip") != (state.get("hostIP") or ""):
        yield invalid("status.hostIPs[0].ip", given[0].get("ip"), "must be equal to `hostIP`")
    yield from _addresses(state, "hostIPs")


def _claims(state: dict[str, Any], spec: dict[str, Any]) -> Iterator[FieldError]:
    given = state.get("resourceClaimStatuses") or []
    known = {claim.get("name") for claim in spec.get("resourceClaims") or []} if given else ()
    for index, one in enumerate(given):
        if one.get("name") not in known:
            path = f"status.resourceClaimStatuses[{index}].name"
            yield invalid(path, one.get("name"), "must match the name of an entry in `spec.resourceClaims`")
