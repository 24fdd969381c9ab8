"""Is it there yet: free ports before a process starts, a question about health after."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl


def free_ports(count: int) -> list[int]:
    """Chosen together, so that they differ; another process could still take one before it is used."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Probe:
    """Asks one path of one port, over one connection: a TLS handshake costs more than everything else here.

    It accepts any certificate, as it sends no secret and only wants to know whether the answer is 200.
    """

    def __init__(self, port: int, path: str, *, tls: bool = True) -> None:
        self._path = path
        self._connection: http.client.HTTPConnection
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self._connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
        else:
            self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)

    def answers(self) -> bool:
        try:
            self._connection.request("GET", self._path)
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()  # the next request opens it again
            return False
        return answer.status == 200

    def close(self) -> None:
        self._connection.close()
