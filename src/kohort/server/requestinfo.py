"""One request to a resource, taken apart: which resource, which object, by whom, in which form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kohort.server.negotiation import DEFAULT, MediaTypeOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kohort.kube.wire import Request, User
    from kohort.server.resources import Resource, Resources


class ResourcePath(NamedTuple):
    """A path under /api or /apis. `plural` is empty for a discovery document of a group or version."""

    group: str
    version: str
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False  # the old way to ask for a watch: /api/v1/watch/...
    rest: bool = False  # there is more of the path after the subresource; only a proxy can have that


def address(path: str) -> ResourcePath | None:
    """None: a path that no resource can have."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    watch = len(rest) > 1 and rest[0] == "watch"
    if watch:
        rest = rest[1:]
    namespace = ""
    # A namespace is an object itself, and the folder of others.
    inside = len(rest) > 2 and rest[0] == "namespaces"
    if inside and not (group == "" and len(rest) == 3 and rest[2] in {"status", "finalize"}):
        namespace, rest = rest[1], rest[2:]
    if "" in rest[:3]:
        return None
    plural, name, subresource = (*rest, "", "", "")[:3]
    return ResourcePath(group, version, namespace, plural, name, subresource, watch, len(rest) > 3)


@dataclass(slots=True)
class RequestInfo:
    """`namespace` is that of the path; for a Namespace itself it is empty. `warnings` reach the client."""

    request: Request
    resource: Resource
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    user: User | None = None
    accepted: MediaTypeOptions = DEFAULT
    warnings: list[str] = field(default_factory=list)

    @property
    def query(self) -> Mapping[str, list[str]]:
        return self.request.query

    @property
    def content_type(self) -> str:
        return self.request.headers.get("content-type", "")

    @property
    def agent(self) -> str:
        return self.request.headers.get("user-agent", "")


def request_verb(method: str, named: bool, watching: bool) -> str:
    """The verb of a method: that of rules and of discovery. Empty: there is none."""
    if method in ("GET", "HEAD"):
        if watching:
            return "watch"
        return "get" if named else "list"
    plain = {"POST": "create", "PUT": "update", "PATCH": "patch"}
    if method == "DELETE":
        return "delete" if named else "deletecollection"
    return plain.get(method, "")


def find(resources: Resources, at: ResourcePath) -> Resource | None:
    return resources.find(at.group, at.version, at.plural)
