"""Where trainings report their progress: `POST …/trainjobs/NAME/status` with a token that was made for just that job.

It is an address of its own because the token is of no use at the API server: a pod may say how far its job is, and
nothing else. Several processes may listen, whoever leads; the API server has the last word on what is written.
"""

from __future__ import annotations

import logging
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from aiohttp import web

from kohort.apimachinery import times
from kohort.kinds.trainer.api.constants import API_VERSION
from kohort.kinds.trainer.compile.progress import audience, path
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, KubeError

log = logging.getLogger(__name__)
MANAGER: Final = "trainer-status"
LARGEST: Final = 1 << 16  # bytes of a report
_ACCOUNT: Final = "system:serviceaccount:"


class Metric(msgspec.Struct):
    name: str
    value: str


class TrainerStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    progress_percentage: int | None = None
    estimated_remaining_seconds: int | None = None
    metrics: list[Metric] = []
    last_updated_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class Report(msgspec.Struct, rename="camel", omit_defaults=True):
    trainer_status: TrainerStatus | None = None


class ReportError(Exception):
    """Why a report is not taken, in the words of the API."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message


def application(client: Client) -> web.Application:
    async def report(request: web.Request) -> web.Response:
        space, name = request.match_info["namespace"], request.match_info["name"]
        await _authorized(client, request.headers.get("Authorization", ""), space, name)
        try:
            found = msgspec.json.decode(await request.read(), type=Report)
        except msgspec.MsgspecError as error:
            raise ReportError(422, "Invalid", f"Invalid payload: {error}") from None
        if found.trainer_status is not None:
            await _write(client, space, name, found.trainer_status)
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    async def unknown(_: web.Request) -> web.Response:
        raise ReportError(404, "NotFound", "Not found")

    made = web.Application(client_max_size=LARGEST, middlewares=[_told])
    made.router.add_post(path("{namespace}", "{name}"), report)
    made.router.add_route("*", "/{rest:.*}", unknown)
    return made


@web.middleware
async def _told(request: web.Request, handler: Any) -> web.StreamResponse:
    """Refusals as a Status, as clients of Kubernetes read them."""
    try:
        answer: web.StreamResponse = await handler(request)
        return answer
    except ReportError as error:
        code, reason, message = error.code, error.reason, error.message
    except web.HTTPRequestEntityTooLarge:
        code, reason, message = 413, "RequestEntityTooLarge", f"Payload too large: at most {LARGEST} bytes"
    except KubeError as error:
        log.warning("report for %s: %s", request.path, error)
        code, reason, message = HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", "Internal error"
    words = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body = msgspec.json.encode({**words, "message": message, "reason": reason, "code": int(code)})
    return web.Response(status=code, body=body, content_type="application/json")


async def _authorized(client: Client, header: str, namespace: str, name: str) -> None:
    """A service account of the job's namespace, by a token for this job."""
    words, wanted = header.split(), audience(namespace, name)
    if len(words) == 2 and words[0].lower() == "bearer":
        spec = {"token": words[1], "audiences": [wanted]}
        question = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": spec}
        answer = (await client.of(question).create(question)).get("status") or {}
        user = str((answer.get("user") or {}).get("username") or "")
        # A server that does not know audiences says nothing of them, and would let any token pass.
        known = answer.get("authenticated") and wanted in (answer.get("audiences") or ())
        if known and user.startswith(f"{_ACCOUNT}{namespace}:"):
            return
    raise ReportError(403, "Forbidden", "Forbidden")


async def _write(client: Client, namespace: str, name: str, found: TrainerStatus) -> None:
    status = msgspec.to_builtins(found)
    if found.last_updated_time is not None:
        status["lastUpdatedTime"] = times.seconds(found.last_updated_time)
    body = {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "status": {"trainerStatus": status},
    }
    try:
        await client.of(body).apply(body, namespace, manager=MANAGER, force=True, subresource="status")
    except ApiError as error:
        if error.not_found:
            raise ReportError(404, "NotFound", "Train job not found") from None
        if error.code in (400, 422):
            raise ReportError(422, "Invalid", error.message) from None
        raise
