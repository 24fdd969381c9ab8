"""AdmissionReview, as a webhook is asked and as it answers. Pure."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kohort.api.kind import Object

VERSION: Final = "admission.k8s.io/v1"


class BadReviewError(Exception):
    """What came is no question that can be answered."""


class _Kind(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class Question(msgspec.Struct, rename="camel"):
    """The members of a request that somebody here reads."""

    uid: str
    kind: _Kind
    operation: str
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool | None = None

    @property
    def api_version(self) -> str:
        return f"{self.kind.group}/{self.kind.version}" if self.kind.group else self.kind.version


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    request: Question | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`refusal`: a Status; None: the write may go on, with the operations of a JSON patch if there are any."""

    refusal: Object | None = None
    warnings: tuple[str, ...] = ()
    patch: tuple[Object, ...] = ()


ALLOWED: Final = Answer()


def read(body: bytes) -> Question:
    try:
        found = msgspec.json.decode(body, type=_Review)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadReviewError(f"not an AdmissionReview: {error}") from None
    if found.api_version != VERSION:
        raise BadReviewError(f"apiVersion: found {found.api_version!r}, accepted is {VERSION}")
    if found.request is None:
        raise BadReviewError("request: required")
    return found.request


def write(uid: str, answer: Answer) -> bytes:
    response: Object = {"uid": uid, "allowed": answer.refusal is None}
    if answer.refusal is not None:
        response["status"] = answer.refusal
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    if answer.patch and answer.refusal is None:
        response |= {"patchType": "JSONPatch", "patch": b64encode(msgspec.json.encode(answer.patch)).decode()}
    return msgspec.json.encode({"apiVersion": VERSION, "kind": "AdmissionReview", "response": response})
