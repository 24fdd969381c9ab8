"""A small synchronous HTTPS client for tests: one request, one answer, nothing hidden.

Not the client of the product (that one is asynchronous and lives in kohort.kube): a test that checks us should not
depend on us. It keeps its connection, sends exactly what it is given, and reads nothing into the answer.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Response:
    """What the server answered."""

    code: int
    body: bytes
    headers: list[tuple[str, str]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return 200 <= self.code < 300

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def warnings(self) -> list[str]:
        """Texts of the Warning headers, in order."""
        texts: list[str] = []
        for name, value in self.headers:
            if name.lower() == "warning":
                texts += [text.replace('\\"', '"').replace("\\\\", "\\") for text in _WARNING.findall(value)]
        return texts


class RequestError(Exception):
    """An answer a test did not expect."""


class Client:
    """Requests to one API server as one user. Not for use by two threads at once."""

    def __init__(self, url: str, *, ca_file: Path, token: str, timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._token = token
        self._timeout = timeout
        self._context = ssl.create_default_context(cafile=str(ca_file))
        # The certificate that kube-apiserver makes for itself is too plain for OpenSSL's strict mode.
        self._context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        self._connection: http.client.HTTPSConnection | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        text: str | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Response:
        """Send `body` as JSON, or `text` as it stands."""
        data = text.encode() if text is not None else json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        if data is not None:
            headers["Content-Type"] = content_type
        reused = self._connection is not None
        try:
            return self._send(method, path, data, headers)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
            # A kept connection may have been closed since its last answer (server restarted); a new one may not.
            self.close()
            if not reused:
                raise
            return self._send(method, path, data, headers)
        except BaseException:
            self.close()
            raise

    def lines(self, path: str) -> Iterator[bytes]:
        """Of a streamed answer (a watch), each as it comes, on a connection of its own that ends with the iteration."""
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
            answer = connection.getresponse()
            while line := answer.readline():
                yield line
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        return self._expect("GET", path, None)

    def create(self, path: str, body: object) -> Any:
        return self._expect("POST", path, body)

    def delete(self, path: str) -> Any:
        return self._expect("DELETE", path, None)

    def _expect(self, method: str, path: str, body: object) -> Any:
        answer = self.request(method, path, body)
        if not answer.ok:
            raise RequestError(f"{method} {path}: {answer.code} {answer.body.decode(errors='replace')[:2000]}")
        return answer.json()

    def _send(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Response:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=self._context
            )
        self._connection.request(method, path, body=data, headers=headers)
        answer = self._connection.getresponse()
        return Response(answer.status, answer.read(), answer.getheaders())
