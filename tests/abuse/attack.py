"""One hostile request, and what the sorts of them are made with."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

Object = dict[str, Any]
LARGEST: Final = 2_500_000  # bytes of a body: less than a server accepts
MEDIA: Final = {
    "json": "application/json",
    "yaml": "application/yaml",
    "patch": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
POD: Final[Object] = {
    "containers": [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}],
    "schedulerName": "kohort",
}
JOB_POD: Final[Object] = {**POD, "restartPolicy": "Never"}


@dataclass(frozen=True, slots=True)
class Attack:
    """`unread`: the connection stays open and nobody reads what comes."""

    sort: str
    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    unread: bool = False

    @property
    def writes(self) -> bool:
        return self.method != "GET" and "dryRun" not in self.path

    @property
    def defines(self) -> bool:
        """A kind, of which objects follow."""
        return self.path.endswith("/customresourcedefinitions")


class Source:
    """Names and chance of one sort: the same seed gives the same requests. `hole` is an address that never answers."""

    def __init__(self, namespace: str, sort: str, seed: int, hole: str = "https://127.0.0.1:1") -> None:
        self.namespace, self.sort, self.hole = namespace, sort, hole
        self.chance = random.Random(f"{seed} {sort}")
        self.number = 0

    def name(self) -> str:
        """It begins with the sort, so that whoever stumbles over the object says of which it was."""
        self.number += 1
        return f"{self.sort}-{self.number}"

    def pick(self, *of: Any) -> Any:
        return self.chance.choice(of)

    def space(self, group: str, plural: str) -> str:
        return f"/{group}/namespaces/{self.namespace}/{plural}"

    def send(self, method: str, path: str, body: Any = None, media: str = "json", *, unread: bool = False) -> Attack:
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": MEDIA[media]} if raw else {}
        return Attack(self.sort, method, path, raw[:LARGEST], headers, unread)

    def create(self, api: str, plural: str, kind: str, spec: Any, meta: Object | None = None) -> Attack:
        """An object with a spec in the tenant's namespace."""
        body = {"apiVersion": api, "kind": kind, "metadata": {"name": self.name(), **(meta or {})}, "spec": spec}
        return self.send("POST", self.space(_root(api), plural), body)

    def config_map(self, meta: Object | None = None, data: Object | None = None, query: str = "") -> Attack:
        body = {"metadata": {"name": self.name(), **(meta or {})}, "data": data or {}}
        return self.send("POST", self.space("api/v1", f"configmaps{query}"), body)

    def pod(self, spec: Object, meta: Object | None = None) -> Attack:
        return self.create("v1", "pods", "Pod", {**POD, **spec}, meta)

    def jobset(self, spec: Object, job: Object | None = None, replicas: int = 1) -> Attack:
        template = {"spec": {"template": {"spec": JOB_POD}, **(job or {})}}
        jobs = [{"name": "w", "replicas": replicas, "template": template}]
        return self.create("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet", {"replicatedJobs": jobs, **spec})


def _root(api: str) -> str:
    return f"apis/{api}" if "/" in api else f"api/{api}"


@dataclass(frozen=True, slots=True)
class Sort:
    """`stored`: an API server accepts some of it. What it refuses, all of it, is there to show that it refuses."""

    name: str
    make: Callable[[Source], Iterable[Attack]]
    stored: bool = True

    def batches(self, source: Source, count: int) -> Iterator[list[Attack]]:
        """At least so many requests; those of a batch follow each other."""
        sent = 0
        while sent < count:
            batch = list(self.make(source))
            sent += len(batch)
            yield batch
