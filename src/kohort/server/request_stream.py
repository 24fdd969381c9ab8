"""Reading the body of an HTTP request: not longer, not larger and not more compressed than is allowed."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Final

from aiohttp.web_exceptions import HTTPRequestEntityTooLarge
from aiohttp.web_protocol import RequestPayloadError

from kohort.server import status

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest

    from kohort.server.limits import Limits

_WINDOWS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


async def read(incoming: BaseRequest, limits: Limits) -> bytes:
    encoding = incoming.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", *_WINDOWS}:
        text = f'content-encoding: "{encoding[:40]}" is not accepted; gzip, deflate and identity are'
        raise status.ApiError(status.failure(415, "UnsupportedMediaType", text))
    if (incoming.content_length or 0) > limits.body_bytes:
        raise status.too_large(limits.body_bytes)
    try:
        async with asyncio.timeout(limits.body_seconds):
            if incoming.headers.get("expect", "").lower() == "100-continue":
                await incoming.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                incoming.writer.output_size = 0
            body = await incoming.read()
    except HTTPRequestEntityTooLarge:
        raise status.too_large(limits.body_bytes) from None
    except TimeoutError:
        raise status.ApiError(status.failure(408, "Timeout", "the body did not come")) from None
    except ConnectionError:
        raise status.bad_request("the connection was closed before the body had come") from None
    except RequestPayloadError as error:
        raise status.bad_request(f"the body cannot be read: {' '.join(str(error).split())}") from None
    return inflate(body, encoding, limits.body_bytes) if encoding in _WINDOWS else body


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """What a compressed body stands for. Work stops at the limit, whatever else it would have become."""
    reader = zlib.decompressobj(_WINDOWS[encoding])
    try:
        found = reader.decompress(body, limit + 1)
    except zlib.error as error:
        raise status.bad_request(f"the body cannot be read as {encoding}: {error}") from None
    if len(found) > limit:
        raise status.too_large(limit)
    if not reader.eof or reader.unused_data:
        why = "something follows its end" if reader.eof else "its end is missing"
        raise status.bad_request(f"the body cannot be read as {encoding}: {why}")
    return found
