"""One call to the API: a request out, bytes or an ApiError back, warnings told. What client and discovery share."""

from __future__ import annotations

import re
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final

from kohort.kube.errors import ApiError
from kohort.kube.http import retry_after
from kohort.kube.transport import InProcess, lines
from kohort.kube.wire import Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    from kohort.kube.transport import Transport
    from kohort.kube.wire import Response

JSON: Final = "application/json"
_WARNING: Final = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')


class Calls:
    """A transport, and who is told of the server's warnings."""

    def __init__(
        self, transport: Transport, *, timeout: float = 60.0, warn: Callable[[str], object] | None = None
    ) -> None:
        self.transport = transport
        self.timeout = timeout
        self._warn = warn
        self._here = isinstance(transport, InProcess)
        self._user = transport.user if isinstance(transport, InProcess) else None

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,
        again: bool = True,
        composed: bool = False,
        unread: bool = False,
        unmanaged: bool = False,
    ) -> bytes:
        """`unread`: what an answer that is no error says does not matter; in this process it is then empty.
        `unmanaged`: nobody reads its managedFields; in this process they are then null."""
        request = self._request(method, path, query, body, content_type, accept, composed, False, unread, unmanaged)
        response = await self.transport.request(request, timeout=timeout or self.timeout, again=again)
        assert isinstance(response.body, bytes)
        self._tell(response)
        if not 200 <= response.status < 300:
            raise ApiError.read(response.status, response.body, retry_after=retry_after(response))
        return response.body

    @asynccontextmanager
    async def lines(
        self, path: str, *, query: Mapping[str, str], silence: float, unmanaged: bool = False
    ) -> AsyncGenerator[AsyncIterator[list[bytes]]]:
        """The lines of an answer that goes on, all that arrived at once together. `silence`: seconds without any after
        which it counts as dead."""
        request = self._request("GET", path, query, b"", JSON, JSON, False, True, False, unmanaged)
        async with self.transport.stream(request, timeout=silence) as response:
            self._tell(response)
            if response.lines is not None:
                yield response.lines
                return
            assert not isinstance(response.body, bytes)
            if not 200 <= response.status < 300:
                body = b"".join([chunk async for chunk in response.body])
                raise ApiError.read(response.status, body, retry_after=retry_after(response))
            async with aclosing(lines(response.body)) as found:
                yield found

    def _tell(self, response: Response) -> None:
        if self._warn is not None and "warning" in response.headers:
            for text in _WARNING.findall(response.headers["warning"]):
                self._warn(text.replace('\\"', '"').replace("\\\\", "\\"))

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes,
        content_type: str,
        accept: str,
        composed: bool,
        *of_this_process: bool,
    ) -> Request:
        """`of_this_process`: whole_lines, unread, unmanaged."""
        headers = {"accept": accept}
        if body:
            headers["content-type"] = content_type
        asked = {name: [value] for name, value in query.items()} if query else {}
        if self._here:
            return Request(method, path, asked, headers, body, self._user, composed, *of_this_process)
        return Request(method, path, asked, headers, body, None, composed)
