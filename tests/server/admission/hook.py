"""A webhook over HTTPS that does what the path says, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from kohort.server.auth import tls

Operations = list[dict[str, Any]]


class Webhook:
    """`patches`: the JSON patches that /patch/NAME answers with."""

    def __init__(self, pki: tls.Pki) -> None:
        self.pki = pki
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.patches: dict[str, Operations] = {}
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def bundle(self) -> str:
        return b64encode(self.pki.ca_pem).decode()

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [review["request"] for _, review in self.asked]

    async def handle(self, incoming: web.BaseRequest) -> web.Response:
        review = json.loads(await incoming.read())
        path = incoming.rel_url.path
        self.asked.append((str(incoming.rel_url), review))
        raw = RAW.get(path)
        if raw is not None:
            return web.Response(status=raw[0], body=raw[1], headers={"location": "https://127.0.0.1:9/"})
        if path == "/slow":
            await asyncio.sleep(5)
        response = {"uid": review["request"]["uid"], "allowed": True, **ANSWERS.get(path, {})}
        if path.startswith("/patch/"):
            packed = b64encode(json.dumps(self.patches[path.removeprefix("/patch/")]).encode()).decode()
            response |= {"patchType": "JSONPatch", "patch": packed}
        body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
        return web.json_response(body)


ANSWERS: dict[str, dict[str, Any]] = {
    "/deny": {"allowed": False},
    "/teapot": {"allowed": False, "status": {"message": "no way", "code": 418, "reason": "Teapot"}},
    "/no": {"allowed": False, "status": {"message": "no way"}},
    "/warn": {"warnings": ["be careful", "twice"]},
    "/uid": {"uid": "x"},
    "/untyped": {"patch": b64encode(b"[]").decode()},
    "/rubbish-patch": {"patchType": "JSONPatch", "patch": "?"},
}
RAW = {
    "/absent": (200, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'),
    "/v2": (200, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2","response":{}}'),
    "/html": (200, b"<html>"),
    "/500": (500, b"oops"),
    "/redirect": (302, b""),
}


@asynccontextmanager
async def webhook(folder: Path, *names: str) -> AsyncIterator[Webhook]:
    """`names`: of services that the certificate is for, too."""
    pki = tls.ensure(folder, names=names)
    found = Webhook(pki)
    runner = web.ServerRunner(web.Server(found.handle), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=pki.server_context())
    await site.start()
    found.port = runner.addresses[0][1]
    try:
        yield found
    finally:
        await runner.cleanup()
