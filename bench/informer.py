"""How fast an informer reads: 50,000 pods as a streaming list, as pages, and as a watch. `python -m bench.informer`

The server's side is bytes made beforehand, so this is the client alone: splitting, decoding, cache, handlers. Pods are
of the size that a real server sends, managedFields included. Numbers are of one core, shared with whatever else runs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from kohort.kube.client import Client
from kohort.kube.codec import Meta
from kohort.kube.discovery import ResourceType
from kohort.kube.informer import Informer
from kohort.kube.wire import Request, Response

PODS = ResourceType("", "v1", "pods", "Pod", namespaced=True)
CHUNK = 256 << 10


class PodMeta(Meta, rename="camel"):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    deletion_timestamp: str | None = None


class Resources(msgspec.Struct):
    requests: dict[str, str] = msgspec.field(default_factory=dict)


class Container(msgspec.Struct):
    resources: Resources = msgspec.field(default_factory=Resources)


class Spec(msgspec.Struct, rename="camel"):
    containers: list[Container]
    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0


class Status(msgspec.Struct):
    phase: str = ""


class Pod(msgspec.Struct):
    metadata: PodMeta
    spec: Spec
    status: Status = msgspec.field(default_factory=Status)


def pod(number: int, version: int) -> dict[str, Any]:
    """About 3.5 kB, as a Job's pod comes from a real server."""
    owned = {f"f:{name}": {} for name in ("image", "imagePullPolicy", "name", "resources", "terminationMessagePath")}
    fields = {"f:metadata": {"f:labels": {f"f:label-{n}": {} for n in range(6)}}, "f:spec": {"f:containers": owned}}
    managed = {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields, "manager": "kube-controller-manager"}
    mount = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": True}
    container = {
        "name": "main",
        "image": "registry.example/train/model:2026.1",
        "command": ["python", "-m", "train", "--steps=10000"],
        "env": [{"name": f"VARIABLE_{n}", "value": f"value-{n}"} for n in range(8)],
        "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"nvidia.com/gpu": "1"}},
        "volumeMounts": [mount],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    tolerations = [
        {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    conditions = [
        {"lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z", "status": "True", "type": kind}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"job-{number // 8}-{number % 8}-abcde",
            "namespace": f"team-{number % 50}",
            "uid": f"7a1e0f5c-0000-4000-8000-{number:012d}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {f"label-{n}": f"value-{number % 7}" for n in range(6)},
            "managedFields": [managed, {**managed, "manager": "kubelet", "subresource": "status"}],
        },
        "spec": {
            "containers": [container],
            "nodeName": f"node-{number % 5000}",
            "schedulerName": "kohort",
            "priority": 0,
            "tolerations": tolerations,
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        },
        "status": {"phase": "Running", "conditions": conditions, "podIP": "10.0.0.1", "qosClass": "Burstable"},
    }


def compact(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def line(kind: str, body: dict[str, Any]) -> bytes:
    return compact({"type": kind, "object": body}) + b"\n"


class Canned:
    """Answers from memory; after the list, a watch of one change per pod when `go` is set."""

    def __init__(self, count: int) -> None:
        self.count = count
        bodies = [pod(number, 1000 + number) for number in range(count)]
        self.pages = [
            json.dumps({"items": bodies[n : n + 500]}, separators=(",", ":")).encode()[1:] for n in range(0, count, 500)
        ]
        end = {"metadata": {"resourceVersion": str(1000 + count), "annotations": {"k8s.io/initial-events-end": "true"}}}
        self.initial = b"".join(line("ADDED", body) for body in bodies) + line("BOOKMARK", end)
        self.changes = b"".join(line("MODIFIED", pod(number, 2000 + count + number)) for number in range(count))
        self.go: asyncio.Event  # of the event loop of each measurement

    async def handle(self, request: Request) -> Response:
        if "watch" in request.query:
            return Response(200, {}, self.stream(initial="sendInitialEvents" in request.query))
        number = int(request.query.get("continue", ["0"])[0])
        rest = f',"continue":"{number + 1}"' if number + 1 < len(self.pages) else ""
        meta = f'{{"metadata":{{"resourceVersion":"{1000 + self.count}"{rest}}},'
        return Response(200, {}, meta.encode() + self.pages[number])

    async def stream(self, *, initial: bool) -> AsyncIterator[bytes]:
        if initial:
            for start in range(0, len(self.initial), CHUNK):
                yield self.initial[start : start + CHUNK]
        await self.go.wait()
        for start in range(0, len(self.changes), CHUNK):
            yield self.changes[start : start + CHUNK]
        await asyncio.Event().wait()


async def measure(api: Canned, decode: Any, *, streaming: bool) -> tuple[float, float]:
    """Seconds of the list, seconds of the watch; of this process, so that busy neighbours do not count."""
    api.go = asyncio.Event()
    done = asyncio.Event()
    told = 0

    def changed(_old: object, _new: object) -> None:
        nonlocal told
        told += 1
        if told == api.count:
            done.set()

    added: list[object] = []
    informer = Informer(Client.within(api).resource(PODS, decode), streaming=streaming)
    informer.handle(added=added.append, updated=changed)
    began = time.process_time()
    async with informer:
        await informer.ready()
        listed = time.process_time() - began
        await asyncio.sleep(0)
        began = time.process_time()
        api.go.set()
        await done.wait()
        watched = time.process_time() - began
    assert len(added) == told == len(informer.cache) == api.count
    return listed, watched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pods", type=int, default=50_000)
    count = parser.parse_args().pods
    api = Canned(count)
    print(f"{count} pods of {len(api.changes) / count / 1000:.1f} kB")
    print(f"{'decoded as':<12}{'list':<11}{'list s':>8}{'pods/s':>10}{'watch s':>9}{'events/s':>10}")
    kinds: list[tuple[str, Any]] = [("struct", Pod), ("dictionary", dict[str, Any]), ("raw", msgspec.Raw)]
    for name, decode in kinds:
        for streaming in (True, False):
            gc.collect()
            listed, watched = asyncio.run(measure(api, decode, streaming=streaming))
            way = "streaming" if streaming else "pages"
            print(f"{name:<12}{way:<11}{listed:>8.2f}{count / listed:>10,.0f}{watched:>9.2f}{count / watched:>10,.0f}")
    print(
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB, the canned answers included"
    )


if __name__ == "__main__":
    main()
