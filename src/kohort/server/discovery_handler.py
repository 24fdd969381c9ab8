"""Answers about the API itself: discovery, OpenAPI, the version. Made once, until resources come or go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import definitions
from kohort.kube.wire import Response
from kohort.server import codec, discovery, negotiation, openapi, openapi_protobuf, render
from kohort.server.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from kohort.kube.wire import Request
    from kohort.server.requestinfo import ResourcePath
    from kohort.server.resources import Resources

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class DiscoveryHandler:
    """`added`: OpenAPI definitions of CRDs by name; whoever adds resources keeps it up to date (`add`).

    `fixed`: documents of others by path, such as the public keys of tokens.
    """

    def __init__(self, minor: str, resources: Resources, version: str, address: str) -> None:
        self._minor, self._resources, self._address = minor, resources, address
        self._version = version
        self._makers: dict[str, Callable[[], dict[str, dict[str, Any]]]] = {}
        self.fixed: dict[str, Callable[[], Any]] = {}
        self._made: dict[str, tuple[bytes, str]] = {}
        self._changes = -1

    @property
    def version(self) -> str:
        self._version = self._version or definitions.version(self._minor)
        return self._version

    def add(self, crd: str, make: Callable[[], dict[str, dict[str, Any]]]) -> None:
        """What a CustomResourceDefinition adds to OpenAPI documents. It is made whenever such a document is, and not
        kept: schemas are large, and few ask for them."""
        self._makers[crd] = make

    def remove(self, crd: str) -> None:
        self._makers.pop(crd, None)

    def added(self, group: str | None = None) -> dict[str, dict[str, Any]]:
        """Of one API group, or of all."""
        makers = [make for crd, make in self._makers.items() if group is None or crd.partition(".")[2] == group]
        return {name: one for make in makers for name, one in make().items()}

    def answer(self, request: Request, at: ResourcePath | None) -> Response | None:
        if self._changes != self._resources.changes:
            self._made.clear()
            self._changes = self._resources.changes
        path = request.path.rstrip("/") or "/"
        accept = request.headers.get("accept", "")
        if path in ("/api", "/apis") and _wants_aggregated(accept):
            return self._cached(
                request, f"aggregated {path}", lambda: discovery.aggregated(self._resources, path), _AGGREGATED
            )
        known = self._made.get(f"{path} {codec.JSON}")
        make = self._plain(path, at) if known is None else None
        if make is None and known is None:
            return None
        if path == "/openapi/v2" and "json" not in accept and "proto-openapi" in accept:
            return self._cached(
                request, path, lambda: openapi_protobuf.document(self._resources, self.version), openapi_protobuf.MEDIA
            )
        media = codec.JSON
        if not path.startswith("/openapi") and path != "/version":
            media = negotiation.negotiate(accept).media
        return self._cached(request, path, make, media)

    def _plain(self, path: str, at: ResourcePath | None) -> Callable[[], Any] | None:
        resources, parts = self._resources, path.strip("/").split("/")
        fixed: dict[str, Callable[[], Any]] = {
            "/": self._paths,
            "/version": lambda: discovery.version_info(self.version),
            "/api": lambda: discovery.core_versions(self._address),
            "/apis": lambda: discovery.group_list(resources),
            "/openapi/v2": lambda: openapi.v2(self._minor, resources, self.added()),
            "/openapi/v3": lambda: openapi.v3_index(resources),
            **self.fixed,
        }
        if path in fixed:
            return fixed[path]
        found: Any = None
        if parts[0] == "apis" and len(parts) == 2:
            found = discovery.group(resources, parts[1], whole=True) if parts[1] in resources.versions() else None
        elif at is not None:
            found = discovery.resource_list(resources, at.group, at.version)
        elif path.startswith("/openapi/v3/"):
            name = path.removeprefix("/openapi/v3/")
            found = openapi.v3(self._minor, resources, name, self.added(openapi.group_of(name)))
        return (lambda: found) if found is not None else None

    def _paths(self) -> dict[str, list[str]]:
        versions = self._resources.versions()
        groups = [f"/apis/{group}" for group in versions if group]
        every = [f"/apis/{group}/{one}" for group, found in versions.items() if group for one in found]
        rest = ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        return {"paths": ["/api", "/api/v1", "/apis", *sorted([*groups, *every]), *rest]}

    def _cached(self, request: Request, key: str, make: Callable[[], Any] | None, media: str) -> Response:
        wanted = f"{key} {media}"
        made = self._made.get(wanted)
        if made is None:
            value = make() if make is not None else codec.parse_json(self._made[f"{key} {codec.JSON}"][0], "")[0]
            body = value if isinstance(value, bytes) else codec.to_yaml(value) if media == codec.YAML else encode(value)
            made = self._made[wanted] = (body, f'"{discovery.etag(body)}"')
        body, tag = made
        headers = {"content-type": media, "etag": tag, "vary": "Accept", "cache-control": "public"}
        if request.headers.get("if-none-match") == tag:
            return Response(304, headers, b"")
        found = render.response(200, body, media)
        found.headers.update(headers)
        return found


def _wants_aggregated(accept: str) -> bool:
    return any(
        "as=APIGroupDiscoveryList" in part and "v=v2" in part.replace("v=v2beta1", "") and "json" in part
        for part in accept.split(",")
    )
