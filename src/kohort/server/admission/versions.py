"""Objects in another version of their resource: what a webhook or a policy asked for."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from kohort.api import admit, decode, storage_form
from kohort.api.errors import ErrorKind

if TYPE_CHECKING:
    from kohort.api.kind import Context, Object
    from kohort.server.resources import Resource


def shown(obj: Object, of: Resource, wanted: Resource) -> Object:
    """An object as a client of the wanted version sees it."""
    if wanted is of:
        return storage_form.to_response(of.rules, obj)
    body = {name: value for name, value in deepcopy(obj).items() if name not in ("apiVersion", "kind")}
    found = wanted.read(of.write(body))
    return storage_form.to_response(wanted.rules, {"kind": wanted.kind, "apiVersion": wanted.api_version, **found})


def received(patched: Any, of: Resource, wanted: Resource, ctx: Context) -> Object:
    """What admission made of an object that it saw in version `of`, with defaults. ValueError: it is no such object."""
    if not isinstance(patched, dict):
        raise ValueError("no object is left")
    if wanted is not of:
        body = {name: value for name, value in patched.items() if name not in ("apiVersion", "kind")}
        patched = {"kind": wanted.kind, "apiVersion": wanted.api_version, **wanted.read(of.write(body))}
    found = decode.decode(wanted.rules.schema, patched, ctx.release.minor)
    wrong = [error for error in found if error.kind is ErrorKind.DECODE]
    if wrong:
        raise ValueError("; ".join(map(str, wrong)))
    return admit.defaulted(patched, wanted.rules, ctx)
