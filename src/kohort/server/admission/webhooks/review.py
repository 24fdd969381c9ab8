"""AdmissionReview: the question, and what an answer may be. Pure."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.server.auth import users
from kohort.server.status import ApiError, failure

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.webhooks.matching import Hook
    from kohort.server.resources import Resource

VERSION: Final = "admission.k8s.io/v1"
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class InvalidReviewError(Exception):
    """The webhook did not answer, or not in a way that can be used. `cause`: why, without what admission says first."""

    def __init__(self, cause: str, lead: str = "") -> None:
        super().__init__(lead + cause)
        self.cause = cause


class WebhookCallError(InvalidReviewError):
    """There is no answer, or none of the kind that was asked for."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause, "failed to call webhook: ")


def question(
    attrs: AdmissionAttributes, resource: Resource, uid: str, new: Object | None, old: Object | None
) -> dict[str, Any]:
    """`resource`: the version in which `new` and `old` are written."""
    asked = attrs.resource
    request: dict[str, Any] = {
        "uid": uid,
        "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "requestKind": {"group": asked.group, "version": asked.version, "kind": asked.kind},
        "requestResource": {"group": asked.group, "version": asked.version, "resource": asked.plural},
        "operation": attrs.operation,
        "userInfo": users.info(attrs.user) if attrs.user is not None else {},
        "object": new,
        "oldObject": old,
        "dryRun": attrs.dry_run,
        "options": _options(attrs),
    }
    if attrs.subresource:
        request["subResource"] = request["requestSubResource"] = attrs.subresource
    if attrs.name:
        request["name"] = attrs.name
    # A Namespace is, to admission, in itself.
    namespace = attrs.name if (asked.group, asked.plural) == ("", "namespaces") else attrs.namespace
    if namespace:
        request["namespace"] = namespace
    return {"kind": "AdmissionReview", "apiVersion": VERSION, "request": request}


def _options(attrs: AdmissionAttributes) -> dict[str, Any] | None:
    kind = _OPTIONS.get(attrs.operation)
    if kind is None:
        return None
    given = {name: value for name, value in attrs.options.items() if value not in (None, "")}
    dry = {"dryRun": ["All"]} if attrs.dry_run else {}
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **given, **dry}


def read(body: bytes, uid: str, *, mutating: bool) -> dict[str, Any]:
    """The response, if it is one. What is wrong with it is said in upstream's words."""
    try:
        review = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WebhookCallError(f"the answer is not JSON ({error})") from None
    if not isinstance(review, dict) or (review.get("kind"), review.get("apiVersion")) != ("AdmissionReview", VERSION):
        raise WebhookCallError(f"expected an AdmissionReview of {VERSION}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise _invalid("webhook response was absent")
    if response.get("uid") != uid:
        raise _invalid(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    if not isinstance(response.get("allowed"), bool | None) or not isinstance(response.get("status"), dict | None):
        raise _invalid("response.allowed is a boolean, response.status an object")
    _check_patch(response, mutating)
    return response


def _check_patch(response: dict[str, Any], mutating: bool) -> None:
    patch, kind = response.get("patch"), response.get("patchType")
    if not mutating:
        if patch:
            raise _invalid("validating webhook may not return response.patch")
        if kind is not None:
            raise _invalid("validating webhook may not return response.patchType")
        return
    if patch and not kind:
        raise _invalid("webhook returned response.patch but not response.patchType")
    if not patch and kind:
        raise _invalid("webhook returned response.patchType but not response.patch")
    if kind is not None and kind != "JSONPatch":
        raise _invalid(f'webhook returned invalid response.patchType of "{kind}"')


def operations(response: dict[str, Any]) -> Any:
    """The JSON patch, or None."""
    packed = response.get("patch")
    if not packed:
        return None
    try:
        return msgspec.json.decode(b64decode(packed, validate=True))
    except (ValueError, TypeError, RecursionError, msgspec.DecodeError):
        raise _invalid("response.patch is not a JSON patch in base64") from None


def _invalid(text: str) -> InvalidReviewError:
    return InvalidReviewError(text, "received invalid webhook response: ")


def warnings(response: dict[str, Any]) -> list[str]:
    found = response.get("warnings")
    return [one for one in found if isinstance(one, str) and one] if isinstance(found, list) else []


def denied(hook: Hook, response: dict[str, Any]) -> ApiError:
    given = response.get("status") or {}
    code, reason = given.get("code"), given.get("reason")
    text = f'admission webhook "{hook.name}" denied the request'
    why = given.get("message") or reason
    status = failure(
        code if isinstance(code, int) and 400 <= code < 600 else 400,
        reason if isinstance(reason, str) else "",
        f"{text}: {why}" if why else f"{text} without explanation",
        given.get("details") if isinstance(given.get("details"), dict) else None,
    )
    return ApiError(status, warnings=warnings(response))
