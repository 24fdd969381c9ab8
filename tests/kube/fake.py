"""A small API server for tests of the client: it can do what real ones do at their worst, when told to.

Not the embedded server: a test of the client should not depend on it, and that one never cuts a line in half.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from kohort.api.patch import merge
from kohort.kube.discovery import ResourceType
from kohort.kube.errors import TransportError
from kohort.kube.wire import Request, Response

TYPES = (
    ResourceType("", "v1", "pods", "Pod", True, "pod", ("po",), subresources=frozenset({"status", "binding"})),
    ResourceType("", "v1", "configmaps", "ConfigMap", True, "configmap", ("cm",)),
    ResourceType("", "v1", "nodes", "Node", False, "node", ("no",)),
    ResourceType("", "v1", "events", "Event", True, "event", ("ev",)),
    ResourceType("events.k8s.io", "v1", "events", "Event", True, "event", ("ev",)),
    ResourceType("batch", "v1", "jobs", "Job", True, "job"),
    ResourceType("batch", "v1beta1", "jobs", "Job", True, "job"),
    ResourceType("coordination.k8s.io", "v1", "leases", "Lease", True, "lease"),
)
END, ABORT, HALF = "end", "abort", "half"


class Watcher:
    """One open watch."""

    def __init__(self, plural: str) -> None:
        self.plural = plural
        self.queue: asyncio.Queue[bytes | str] = asyncio.Queue()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            item = await self.queue.get()
            if item == END:
                return
            if item == ABORT:
                raise TransportError("cut by the test")
            assert isinstance(item, bytes)
            yield item


class FakeApi:
    """Answers requests; `faults` are given out first, one per request."""

    def __init__(self, types: tuple[ResourceType, ...] = TYPES) -> None:
        self.types = types
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.log: list[tuple[int, str, str, dict[str, Any]]] = []
        self.revision = 10
        self.floor = 0
        self.uids = 0
        self.watchers: list[Watcher] = []
        self.faults: deque[Response | Exception | Callable[[Request], Response | None]] = deque()
        self.requests: list[Request] = []
        self.aggregated = True
        self.streaming = True
        self.silent_streaming = False
        self.twice = False
        self.away: set[str] = set()
        self.snapshots: dict[str, list[dict[str, Any]]] = {}

    # ---- what a test does to it

    def put(self, name: str, namespace: str = "default", plural: str = "pods", **fields: Any) -> dict[str, Any]:
        """Create or change."""
        self.revision += 1
        key = (plural, namespace, name)
        old = self.objects.get(key)
        meta = {"name": name, "namespace": namespace, "uid": old["metadata"]["uid"] if old else self.uid()}
        body = {**self.names(plural), **fields, "metadata": {**meta, "resourceVersion": str(self.revision)}}
        self.objects[key] = body
        self._note("MODIFIED" if old else "ADDED", plural, body)
        return body

    def remove(self, name: str, namespace: str = "default", plural: str = "pods") -> None:
        self.revision += 1
        body = copy.deepcopy(self.objects.pop((plural, namespace, name)))
        body["metadata"]["resourceVersion"] = str(self.revision)
        self._note("DELETED", plural, body)

    def compact(self) -> None:
        self.floor = self.revision
        self.log.clear()

    def cut(self, how: str = END) -> None:
        """End every watch: in order, by force, or in the middle of a line."""
        for watcher in self.watchers:
            if how == HALF:
                watcher.queue.put_nowait(b'{"type":"MODIFIED","object":{"metadata":{"name":"ha')
            watcher.queue.put_nowait(ABORT if how == HALF else how)
        self.watchers.clear()

    def say(self, line: bytes) -> None:
        """Any bytes to every watcher."""
        for watcher in self.watchers:
            watcher.queue.put_nowait(line)

    def error(self, code: int, reason: str) -> None:
        self.say(_line("ERROR", status(code, reason)))
        self.cut()

    def bookmark(self) -> None:
        for watcher in self.watchers:
            watcher.queue.put_nowait(self._bookmark(watcher.plural))

    def state(self, plural: str = "pods") -> dict[tuple[str, str], dict[str, Any]]:
        return {key[1:]: body for key, body in self.objects.items() if key[0] == plural}

    def uid(self) -> str:
        self.uids += 1
        return f"uid-{self.uids}"

    def names(self, plural: str) -> dict[str, str]:
        found = next(one for one in self.types if one.plural == plural)
        return {"apiVersion": found.api_version, "kind": found.kind}

    # ---- what the client sees

    async def handle(self, request: Request) -> Response:
        self.requests.append(request)
        if self.faults:
            fault = self.faults.popleft()
            if isinstance(fault, Exception):
                raise fault
            answer = fault if isinstance(fault, Response) else fault(request)
            if answer is not None:
                return answer
        parts = request.path.strip("/").split("/")
        if parts in (["api"], ["apis"]):
            return self._discovery(request)
        root, parts = (("", parts[1]), parts[2:]) if parts[0] == "api" else ((parts[1], parts[2]), parts[3:])
        if not parts:
            return self._resources(root)
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        plural = parts[0]
        if not any((one.group, one.version, one.plural) == (*root, plural) for one in self.types):
            return answer_of(404, status(404, "NotFound"))
        if len(parts) == 1:
            return self._collection(request, plural, namespace)
        return self._object(request, plural, namespace, parts[1], parts[2] if len(parts) > 2 else "")

    def _collection(self, request: Request, plural: str, namespace: str) -> Response:
        if request.method == "POST":
            return self._create(request, plural, namespace)
        query = {name: values[0] for name, values in request.query.items()}
        if query.get("watch") == "true":
            return self._watch(query, plural, namespace)
        return self._list(query, plural, namespace)

    def _list(self, query: dict[str, str], plural: str, namespace: str) -> Response:
        limit = int(query.get("limit") or 0)
        if token := query.get("continue"):
            version, offset = token.split(":")
            if int(version) < self.floor or version not in self.snapshots:
                return answer_of(410, status(410, "Expired"))
            items, start = self.snapshots[version], int(offset)
        else:
            version, start = str(self.revision), 0
            items = [copy.deepcopy(one) for one in self._selected(plural, namespace)]
            for one in items:
                del one["apiVersion"], one["kind"]
            self.snapshots[version] = items
        page = items[start : start + limit] if limit else items
        meta: dict[str, Any] = {"resourceVersion": version}
        if limit and start + limit < len(items):
            meta |= {"continue": f"{version}:{start + limit}", "remainingItemCount": len(items) - start - limit}
        return answer_of(200, {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": page})

    def _watch(self, query: dict[str, str], plural: str, namespace: str) -> Response:
        initial = query.get("sendInitialEvents") == "true"
        if initial and not self.streaming and not self.silent_streaming:
            return answer_of(422, status(422, "Invalid"))
        watcher = Watcher(plural)
        if initial:
            for one in self._selected(plural, namespace):
                watcher.queue.put_nowait(_line("ADDED", one))
            if not self.silent_streaming:
                watcher.queue.put_nowait(self._bookmark(plural, {"k8s.io/initial-events-end": "true"}))
        else:
            version = int(query.get("resourceVersion") or 0)
            if version < self.floor:
                # A real server says so in either of two ways.
                if version % 2:
                    return answer_of(410, status(410, "Expired"))
                watcher.queue.put_nowait(_line("ERROR", status(410, "Expired")))
                watcher.queue.put_nowait(END)
                return Response(200, {}, watcher.chunks())
            if version > self.revision:
                causes = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
                return answer_of(504, {**status(504, "Timeout"), "details": causes})
            for revision, type_, kind, body in self.log:
                if revision > version and kind == plural:
                    watcher.queue.put_nowait(_line(type_, body))
        self.watchers.append(watcher)
        return Response(200, {"content-type": "application/json"}, watcher.chunks())

    def _object(self, request: Request, plural: str, namespace: str, name: str, subresource: str) -> Response:
        key = (plural, namespace, name)
        if key not in self.objects:
            return answer_of(404, status(404, "NotFound"))
        if request.method == "DELETE":
            self.remove(name, namespace, plural)
            return answer_of(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
        if request.method in {"PUT", "PATCH"}:
            return self._change(request, key)
        return answer_of(200, self.objects[key])

    def _create(self, request: Request, plural: str, namespace: str) -> Response:
        body = json.loads(request.body)
        name = body["metadata"]["name"]
        if (plural, namespace, name) in self.objects:
            return answer_of(409, status(409, "AlreadyExists"))
        fields = {key: value for key, value in body.items() if key != "metadata"}
        return answer_of(201, self.put(name, namespace, plural, **fields))

    def _change(self, request: Request, key: tuple[str, str, str]) -> Response:
        old = self.objects[key]
        body = json.loads(request.body)
        if request.method == "PATCH":
            body = merge(old, body)
        version = body["metadata"].get("resourceVersion")
        if version not in {None, old["metadata"]["resourceVersion"]}:
            return answer_of(409, status(409, "Conflict"))
        fields = {name: value for name, value in body.items() if name != "metadata"}
        return answer_of(200, self.put(key[2], key[1], key[0], **fields))

    def _selected(self, plural: str, namespace: str) -> list[dict[str, Any]]:
        return [body for key, body in self.objects.items() if key[0] == plural and namespace in {"", key[1]}]

    def _note(self, type_: str, plural: str, body: dict[str, Any]) -> None:
        self.log.append((self.revision, type_, plural, body))
        for watcher in self.watchers:
            if watcher.plural == plural:
                for _ in range(2 if self.twice else 1):
                    watcher.queue.put_nowait(_line(type_, body))

    def _bookmark(self, plural: str, annotations: dict[str, str] | None = None) -> bytes:
        meta = {"resourceVersion": str(self.revision), "annotations": annotations}
        return _line("BOOKMARK", {**self.names(plural), "metadata": meta})

    # ---- discovery

    def _discovery(self, request: Request) -> Response:
        core = request.path == "/api"
        groups = list(dict.fromkeys(one.group for one in self.types if (one.group == "") == core))
        if self.aggregated and "APIGroupDiscoveryList" in request.headers["accept"]:
            items = [{"metadata": {"name": group}, "versions": self._aggregated(group)} for group in groups]
            return answer_of(200, {"kind": "APIGroupDiscoveryList", "items": items})
        if core:
            return answer_of(200, {"kind": "APIVersions", "versions": ["v1"]})
        found: list[dict[str, Any]] = []
        for group in groups:
            versions = list(dict.fromkeys(one.version for one in self.types if one.group == group))
            found.append({"name": group, "versions": [{"version": one} for one in reversed(versions)]})
            found[-1]["preferredVersion"] = {"version": versions[0]}
        return answer_of(200, {"kind": "APIGroupList", "groups": found})

    def _aggregated(self, group: str) -> list[dict[str, Any]]:
        versions = dict.fromkeys(one.version for one in self.types if one.group == group)
        return [
            {
                "version": version,
                "resources": [
                    {
                        "resource": one.plural,
                        "responseKind": {"group": group, "version": version, "kind": one.kind},
                        "scope": "Namespaced" if one.namespaced else "Cluster",
                        "singularResource": one.singular,
                        "shortNames": list(one.short_names),
                        "subresources": [{"subresource": sub} for sub in sorted(one.subresources)],
                    }
                    for one in self.types
                    if (one.group, one.version) == (group, version)
                ],
            }
            for version in versions
        ]

    def _resources(self, root: tuple[str, str]) -> Response:
        if "/".join(root) in self.away:
            return answer_of(503, status(503, "ServiceUnavailable"))
        found = []
        for one in self.types:
            if (one.group, one.version) == root:
                names = {"kind": one.kind, "namespaced": one.namespaced}
                found.append({"name": one.plural, "singularName": one.singular, **names})
                found[-1]["shortNames"] = list(one.short_names)
                found += [{"name": f"{one.plural}/{sub}", **names} for sub in one.subresources]
        return answer_of(200, {"kind": "APIResourceList", "resources": found})


def status(code: int, reason: str, message: str = "") -> dict[str, Any]:
    words = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return {**words, "code": code, "reason": reason, "message": message or f"the test said {reason}"}


def answer_of(code: int, body: dict[str, Any], **headers: str) -> Response:
    return Response(code, {"content-type": "application/json", **headers}, json.dumps(body).encode())


def _line(type_: str, body: dict[str, Any]) -> bytes:
    return json.dumps({"type": type_, "object": body}).encode() + b"\n"
