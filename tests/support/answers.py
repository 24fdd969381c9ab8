"""An answer of an API server as tests/recorded keeps it: everything that is a fact, nothing that differs per run.

Left out: uid, creation time, resourceVersion, managed fields. Replaced: `<uid>`, `<time>`, `<version>` in texts,
`<time>` for a deletion time, `?????` for the random end of a generated name, `<age>` in tables, `<repeat:x:N>`.
"""

from __future__ import annotations

import re
from typing import Any

from kohort.testing.client import Response

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_VERSION = re.compile(r'(resourceVersion\\*":\\*"|ResourceVersion in record \()\d+')
_RUN = re.compile(r"(.)\1{999,}")
_REPEAT = re.compile(r"<repeat:(.):(\d+)>")

_VOLATILE = ("uid", "creationTimestamp", "resourceVersion", "selfLink")
# A Pod is defaulted in a hundred places that are no subject of ours; these are.
_POD_SPEC = (
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "workloadRef",
    "schedulingGroup",
    "evictionResponders",
)


def expand(value: Any) -> Any:
    """`<repeat:x:N>` written out, at any depth."""
    if isinstance(value, str):
        return _REPEAT.sub(lambda found: found.group(1) * int(found.group(2)), value)
    if isinstance(value, list):
        return [expand(item) for item in value]
    if isinstance(value, dict):
        return {key: expand(item) for key, item in value.items()}
    return value


def normalise(response: Response, *, managed_fields: bool = False, generate_name: str = "") -> dict[str, Any]:
    """The recorded form of an answer; `managed_fields` keeps them (without times) where they are the point."""
    answer: dict[str, Any] = {"code": response.code}
    if generate_name:
        response = Response(response.code, _without_random_end(response.body, generate_name), response.headers)
    try:
        body = response.json()
    except ValueError:
        answer["text"] = _text(response.body.decode(errors="replace"))
        body = {}
    kind = body.get("kind")
    if kind == "Status":
        answer |= _status(body)
    elif kind == "Table":
        answer["table"] = _table(body)
    elif body:
        answer["object"] = _object(body, managed_fields=managed_fields)
    if response.warnings:
        answer["warnings"] = [_text(text) for text in response.warnings]
    return answer


def _without_random_end(body: bytes, generate_name: str) -> bytes:
    """The server makes up a name of the wish's first 58 characters and 5 random ones."""
    begin = generate_name[:58].encode()
    made_up = re.compile(rb'(?<=")' + re.escape(begin) + rb'[a-z0-9]{5}(?=[\\"])')
    return made_up.sub(lambda _: begin + b"?????", body)


def _status(body: dict[str, Any]) -> dict[str, Any]:
    kept = {key: body[key] for key in ("status", "reason", "message") if body.get(key)}
    if "message" in kept:
        kept["message"] = _text(kept["message"])
    details = dict(body.get("details") or {})
    causes = details.pop("causes", [])
    if "uid" in details:
        details["uid"] = "<uid>"
    if details:
        kept["details"] = details
    if causes:
        kept["causes"] = [
            {key: _text(cause[key]) for key in ("reason", "field", "message") if cause.get(key)} for cause in causes
        ]
    return kept


def _object(body: dict[str, Any], *, managed_fields: bool) -> dict[str, Any]:
    shown = dict(body)
    if isinstance(shown.get("metadata"), dict):
        metadata = _metadata(shown["metadata"], managed_fields=managed_fields)
        shown["metadata"] = metadata
        if not metadata:
            del shown["metadata"]
    if isinstance(shown.get("items"), list):
        shown["items"] = [_object(item, managed_fields=managed_fields) for item in shown["items"]]
    if shown.get("kind") == "Pod":
        shown["spec"] = {key: value for key, value in shown["spec"].items() if key in _POD_SPEC}
        shown["status"] = {"phase": shown["status"]["phase"]}
    return _collapse(shown)  # type: ignore[no-any-return]


def _metadata(metadata: dict[str, Any], *, managed_fields: bool) -> dict[str, Any]:
    shown = {key: value for key, value in metadata.items() if key not in _VOLATILE}
    fields = shown.pop("managedFields", None)
    if fields and managed_fields:
        shown["managedFields"] = [{key: value for key, value in one.items() if key != "time"} for one in fields]
    if "deletionTimestamp" in shown:
        shown["deletionTimestamp"] = "<time>"
    return shown


def _table(body: dict[str, Any]) -> dict[str, Any]:
    columns = [{key: value for key, value in one.items() if key != "description"} for one in body["columnDefinitions"]]
    ages = {at for at, one in enumerate(columns) if one["name"] == "Age"}
    rows = []
    for row in body.get("rows", []):
        shown = {key: value for key, value in row.items() if value is not None}
        shown["cells"] = ["<age>" if at in ages else cell for at, cell in enumerate(row["cells"])]
        if isinstance(row.get("object"), dict):
            shown["object"] = _object(row["object"], managed_fields=False)
        rows.append(shown)
    return {"columns": columns, "rows": rows}


def _text(text: str) -> str:
    shortened = _RUN.sub(lambda run: f"<repeat:{run.group(1)}:{len(run.group(0))}>", text)
    return _VERSION.sub(r"\1<version>", _TIME.sub("<time>", _UID.sub("<uid>", shortened)))


def _collapse(value: Any) -> Any:
    if isinstance(value, str):
        return _RUN.sub(lambda run: f"<repeat:{run.group(1)}:{len(run.group(0))}>", value)
    if isinstance(value, list):
        return [_collapse(item) for item in value]
    if isinstance(value, dict):
        return {key: _collapse(item) for key, item in value.items()}
    return value
