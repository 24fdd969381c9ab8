"""`etcd` for tests: a stub that answers its health check and keeps nothing.

envtest starts an etcd before it starts kube-apiserver; Kohort's keeps its objects itself. This file is run alone and
imports nothing of Kohort, so that it is there in some hundredths of a second.
"""

from __future__ import annotations

import select
import signal
import socket
import sys

HELP = """etcd: a stub of Kohort. It answers health checks and keeps nothing: kube-apiserver has the objects in memory.

Usage:
  etcd [flags]

  --listen-client-urls 'http://localhost:2379'  Where /health is answered.
  --unsafe-no-fsync                             Accepted.

Other flags are accepted.
"""
_HEALTH = ("/health", "/healthz", "/livez", "/readyz")
_REQUEST = 8192  # bytes that are read of one
_SECONDS = 1.0  # that a client may take to send it


def main(arguments: list[str]) -> int:
    """Until SIGTERM."""
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(HELP)
        return 0
    if "--version" in arguments:
        sys.stdout.write("etcd Version: 3.6.0 (a stub of Kohort)\n")
        return 0
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        listening = [_listen(url) for url in _urls(arguments)]
    except (OSError, ValueError) as error:
        sys.stderr.write(f"etcd (a stub of Kohort): --listen-client-urls: {error}\n")
        return 1
    sys.stderr.write("etcd: a stub of Kohort that keeps nothing; kube-apiserver has the objects in memory\n")
    sys.stderr.flush()
    while True:
        for one in select.select(listening, (), ())[0]:
            _answer(one)


def _stop(_number: int, _frame: object) -> None:
    raise SystemExit(0)


def _urls(arguments: list[str]) -> list[str]:
    given = "http://localhost:2379"
    for place, one in enumerate(arguments):
        name, equals, value = one.partition("=")
        if name.lstrip("-") == "listen-client-urls":
            given = value if equals else "".join(arguments[place + 1 : place + 2])
    return [one for one in given.split(",") if one]


def _listen(url: str) -> socket.socket:
    host, _, port = url.partition("://")[2].rstrip("/").rpartition(":")
    if not port.isdecimal():
        raise ValueError(f"{url}: expected a URL with a port, such as http://127.0.0.1:2379")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    return socket.create_server((host.strip("[]"), int(port)), family=family, backlog=64)


def _answer(listening: socket.socket) -> None:
    try:
        client, _ = listening.accept()
        with client:
            client.settimeout(_SECONDS)
            client.sendall(response(client.recv(_REQUEST)))
    except OSError:
        pass  # it hung up, or sent nothing in time


def response(request: bytes) -> bytes:
    """To a request of HTTP/1; whatever is not a health check is told where it has come to."""
    words = request.split(b" ", 2)
    path = words[1].decode(errors="replace").partition("?")[0] if len(words) > 2 else ""
    status, kind, body = "501 Not Implemented", "text/plain", HELP.partition("\n")[0] + "\n"
    if path in _HEALTH:
        status, kind, body = "200 OK", "application/json", '{"health":"true","reason":""}'
    elif path == "/version":
        status, kind, body = "200 OK", "application/json", '{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}'
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return (head + body).encode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
