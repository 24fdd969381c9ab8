"""Other people's clients on our server: one server for all, over HTTPS, as `kohort up` has it."""

from kohort.testing.pytest_plugin import kohort_client, kohort_namespace, kohort_server, kohort_servers

__all__ = ["kohort_client", "kohort_namespace", "kohort_server", "kohort_servers"]
