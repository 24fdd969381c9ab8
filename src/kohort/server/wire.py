"""The words between transports and the server; the client's own, so that both sides of one process share them."""

from kohort.kube.wire import Request, Response, User

__all__ = ["Request", "Response", "User"]
