"""Is it there yet: free ports before a process starts, a question about health after."""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import ssl
from pathlib import Path
from typing import Final

_FIRST: Final = 20_000
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Of those that the system gives to nobody by itself: a server that is started again finds its port as it left it,
    however many connections were opened meanwhile. Where there are none such, any."""
    wanted = range(_FIRST, _first_given())
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for port in random.sample(wanted, len(wanted)):
            if len(found) == count:
                break
            if _bound(stack, port):
                found.append(port)
        while len(found) < count:
            found.append(_bound(stack, 0))
        return found


def _bound(stack: contextlib.ExitStack, port: int) -> int:
    """The port, held until the end of the stack; 0 if it is not free."""
    one = stack.enter_context(socket.socket())
    try:
        one.bind(("127.0.0.1", port))
    except OSError:
        if port:
            return 0
        raise
    return int(one.getsockname()[1])


def _first_given() -> int:
    """Where those begin that connections get."""
    try:
        return int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):  # not Linux
        return _FIRST


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
