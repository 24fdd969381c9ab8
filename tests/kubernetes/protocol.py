"""Random requests to a Kubernetes API, as data: what to send, with places that each server fills in for itself.

`<rv NAME>` and `<uid NAME>` stand for what a server last said of that object, `<first NAME>` for its first
resourceVersion, `<start>` for the version at which the namespace was made.
"""

import copy
import itertools
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.api.apply.sequences import MANAGERS, wanted

Object = dict[str, Any]

APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
STRATEGIC, JSON_PATCH = "application/strategic-merge-patch+json", "application/json-patch+json"
JSON = "application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

NAMES = ("x", "y", "z")
KINDS = {
    "ConfigMap": "/api/v1/namespaces/{ns}/configmaps",
    "Pod": "/api/v1/namespaces/{ns}/pods",
    "Deployment": "/apis/apps/v1/namespaces/{ns}/deployments",
    "PodGroup": "/apis/scheduling.k8s.io/v1beta1/namespaces/{ns}/podgroups",
    "Workload": "/apis/scheduling.k8s.io/v1beta1/namespaces/{ns}/workloads",
    "Widget": "/apis/kohort.test/v1/namespaces/{ns}/widgets",
}
WITH_STATUS = ("Pod", "Deployment", "PodGroup", "Widget")
SELECTORS = ("a=1", "a!=1", "a in (1,2),b", "!a", "a,!b", "a notin (3)", "a==2,b=1", "a=1=2", "a in 1")
FIELDS = ("metadata.name=x", "metadata.name!=x", "metadata.namespace={ns}", "spec.nodeName=", "metadata.uid=1")
POLICIES = ("Background", "Foreground", "Orphan")


@dataclass
class Step:
    """`live`: `body` is laid over the object as the server has it. `follow`: pages are read to the end."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    live: bool = False
    follow: bool = False

    def __str__(self) -> str:
        query = "&".join(f"{name}={value}" for name, value in self.query.items())
        sort = "" if self.content_type == JSON else f" [{self.content_type.partition('/')[2]}]"
        seen = "" if self.accept == JSON else " [metadata only]"
        body = "" if self.body is None else f" {'live + ' if self.live else ''}{self.body}"
        return f"{self.method} {self.path}{'?' if query else ''}{query}{sort}{seen}{body}"


def sequence(seed: str, length: int) -> list[Step]:
    """About one kind, so that requests meet; it begins with objects."""
    random = Random(seed)
    one = Requests(random, random.choice(list(KINDS)))
    steps = [one.create(), one.create()]
    steps += [one.any() for _ in range(length)]
    return [*steps, Step("GET", one.collection), one.watch()]


def _asked(body: Object) -> Object:
    """Without what is known to be kept in another form (UNASKED, in known.py)."""
    for member, default in (("paused", False), ("minReadySeconds", 0)):
        if body["kind"] == "Deployment" and body["spec"].get(member) == default:
            del body["spec"][member]
    return body


class Requests:
    def __init__(self, random: Random, kind: str) -> None:
        self.random, self.kind, self.collection = random, kind, KINDS[kind]
        self.made = itertools.count()

    def any(self) -> Step:
        makers = [
            *[self.create] * 4, self.get, self.list, self.list, self.put, self.put, self.put, self.merge, self.merge,
            self.strategic, self.strategic, self.json_patch, self.json_patch, *[self.apply] * 4, *[self.delete] * 3,
            self.unhold, self.unhold, self.collect, self.status, self.status, self.scale, self.watch, self.odd,
        ]  # fmt: skip
        return self.random.choice(makers)()

    # ---- parts

    def name(self) -> str:
        return self.random.choice(NAMES)

    def path(self, name: str = "") -> str:
        return f"{self.collection}/{name or self.name()}"

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def object(self, name: str, *, first: bool) -> Object:
        body = _asked(wanted(self.random, self.kind, name, first=first))
        if self.maybe(0.1):
            body.setdefault("spec" if self.kind != "ConfigMap" else "metadata", {})["unheardOf"] = 1
        return body

    def options(self) -> dict[str, str]:
        """Of every write."""
        query = {"fieldManager": self.random.choice(MANAGERS)}
        if self.maybe(0.15):
            query["dryRun"] = "All" if self.maybe(0.9) else "Some"
        if self.maybe(0.3):
            query["fieldValidation"] = self.random.choice(["Strict", "Strict", "Warn", "Ignore", "Never"])
        return query

    def version(self, name: str) -> Object:
        """Something that may be a precondition."""
        choices: list[Object] = [
            {}, {}, {"resourceVersion": f"<rv {name}>"}, {"resourceVersion": f"<rv {name}>"},
            {"resourceVersion": f"<first {name}>"}, {"uid": f"<uid {name}>"}, {"uid": "0"},
        ]  # fmt: skip
        return self.random.choice(choices)

    # ---- requests

    def create(self) -> Step:
        body, query = self.object(self.name(), first=True), self.options()
        if self.maybe(0.12):
            body["metadata"]["generateName"] = f"made{next(self.made)}-"  # their order is that of the prefixes
            if self.maybe(0.8):
                del body["metadata"]["name"]
        if self.maybe(0.05):
            body["metadata"]["namespace"] = self.random.choice(["{ns}", "elsewhere"])
        if self.maybe(0.05):
            body |= self.random.choice([{"kind": "Other"}, {"apiVersion": "v9"}])
        return Step("POST", self.collection, query, body)

    def get(self) -> Step:
        return Step("GET", self.path(), accept=self.random.choice([JSON, PARTIAL]))

    def list(self) -> Step:
        query: dict[str, str] = {}
        if self.maybe(0.5):
            query["labelSelector"] = self.random.choice(SELECTORS)
        if self.maybe(0.25):
            query["fieldSelector"] = self.random.choice(FIELDS)
        if self.maybe(0.5):
            query["limit"] = str(self.random.randint(1, 2))
        if self.maybe(0.2):
            match = self.random.choice(["Exact", "NotOlderThan", "Other"])
            query |= {"resourceVersion": f"<first {self.name()}>", "resourceVersionMatch": match}
        accept = self.random.choice([JSON, JSON, PARTIAL_LIST])
        return Step("GET", self.collection, query, accept=accept, follow=True)

    def put(self) -> Step:
        name = self.name()
        if self.maybe(0.2):  # without looking first
            body = self.object(name, first=True)
            body["metadata"] |= self.version(name)
            return Step("PUT", self.path(name if self.maybe(0.9) else ""), self.options(), body)
        change = self.object(name, first=False)
        if self.kind == "Pod":
            change.pop("spec")
        change["metadata"] |= self.version(name)
        return Step("PUT", self.path(name), self.options(), change, live=True)

    def merge(self) -> Step:
        name = self.name()
        body = self.object(name, first=False)
        body["metadata"] |= self.version(name)
        body["metadata"] |= self.random.choice([{}, {"labels": {"a": None, "d": "4"}}, {"annotations": None}])
        return Step("PATCH", self.path(name), self.options(), body, MERGE)

    def strategic(self) -> Step:
        name = self.name()
        body = self.object(name, first=False)
        body["metadata"] |= self.version(name)
        if self.maybe(0.3):
            body["metadata"] |= {"$deleteFromPrimitiveList/finalizers": ["a.io/x"]}
        if self.maybe(0.2):
            body["metadata"]["labels"] = {"$patch": "replace", "n": "1"}
        return Step("PATCH", self.path(name), self.options(), body, STRATEGIC)

    def json_patch(self) -> Step:
        operations: list[Object] = [
            {"op": "add", "path": "/metadata/labels", "value": {"a": "1", "e": "5"}},
            {"op": "replace", "path": "/metadata/labels/a", "value": "2"},
            {"op": "remove", "path": "/metadata/labels/e"},
            {"op": "test", "path": "/metadata/name", "value": "x"},
            {"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/copied"},
            {"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/moved"},
            {"op": "add", "path": "/metadata/finalizers", "value": ["d.io/w"]},
            {"op": "remove", "path": "/metadata/uid"},
        ]
        chosen = self.random.sample(operations, self.random.randint(1, 3))
        return Step("PATCH", self.path(), self.options(), chosen, JSON_PATCH)

    def apply(self) -> Step:
        name, query = self.name(), self.options()
        body = self.object(name, first=self.maybe(0.7))
        if self.maybe(0.5):
            query["force"] = "true"
        if self.maybe(0.1):
            body["metadata"] |= self.version(name)
        if self.maybe(0.05):
            del query["fieldManager"]
        return Step("PATCH", self.path(name), query, body, APPLY)

    def delete(self) -> Step:
        name = self.name()
        body: Object = {"dryRun": ["All"]} if self.maybe(0.1) else {}
        if self.maybe(0.6):
            body |= {"propagationPolicy": self.random.choice([*POLICIES, *POLICIES, "Wrong"])}
        if self.maybe(0.2):
            body["gracePeriodSeconds"] = self.random.choice([0, 1, 30, -1])
        precondition = self.version(name)
        if precondition and not ("propagationPolicy" in body and "resourceVersion" in precondition):
            body["preconditions"] = precondition
        if not body and self.maybe(0.5):
            return Step("DELETE", self.path(name), {"propagationPolicy": self.random.choice(POLICIES)})
        return Step("DELETE", self.path(name), {}, body or None)

    def unhold(self) -> Step:
        return Step("PATCH", self.path(), {"fieldManager": "carol"}, {"metadata": {"finalizers": None}}, MERGE)

    def collect(self) -> Step:
        query = {"labelSelector": self.random.choice(SELECTORS)} if self.maybe(0.8) else {}
        if self.maybe(0.3):  # beside a body, upstream does not look at it
            return Step("DELETE", self.collection, query | {"dryRun": "All"})
        return Step("DELETE", self.collection, query, {"propagationPolicy": self.random.choice(POLICIES)})

    def status(self) -> Step:
        if self.kind not in WITH_STATUS:
            return Step("GET", f"{self.path()}/status")
        name = self.name()
        status = copy.deepcopy(self.random.choice(_STATUSES[self.kind]))
        body: Object = {"metadata": {"labels": {"from": "status"}}, "status": status}
        match self.random.randint(0, 2):
            case 0:
                return Step("PUT", f"{self.path(name)}/status", self.options(), body, live=True)
            case 1:
                return Step("PATCH", f"{self.path(name)}/status", self.options(), body, MERGE)
        meta = wanted(Random(0), self.kind, name, first=False)
        body = {"apiVersion": meta["apiVersion"], "kind": self.kind, "metadata": {"name": name}, "status": status}
        return Step("PATCH", f"{self.path(name)}/status", self.options() | {"force": "true"}, body, APPLY)

    def scale(self) -> Step:
        path = f"{self.path()}/scale"
        if self.maybe(0.4):
            return Step("GET", path)
        replicas = self.random.choice([0, 1, 5, -1])
        return Step("PATCH", path, self.options(), {"spec": {"replicas": replicas}}, MERGE)

    def watch(self) -> Step:
        """Until an object that is made for the purpose, which all of these select."""
        query = {"watch": "1", "resourceVersion": self.random.choice(["<start>", "<start>", f"<first {self.name()}>"])}
        if self.maybe(0.4):
            query["labelSelector"] = self.random.choice(["a=1", "a in (1,2),b", "a!=3", "a,!e"])
        if self.maybe(0.2):
            query["fieldSelector"] = "metadata.name!=x"
        return Step("WATCH", self.collection, query, _asked(wanted(Random(1), self.kind, "end", first=True)))

    def odd(self) -> Step:
        """What no server should be surprised by."""
        choices = [
            Step("GET", f"{self.path()}/nothing"),
            Step("GET", f"{self.collection}s"),
            Step("POST", self.path(), {}, {}),
            Step("PATCH", self.path(), {}, {}, "application/json"),
            Step("PATCH", self.path(), {}, [], MERGE),
            Step("PATCH", self.path(), {}, {}, JSON_PATCH),
            Step("POST", self.collection, {}, []),
            Step("POST", self.collection, {}, {}),
            Step("PUT", self.collection, {}, {}),
            Step("GET", self.collection, {"limit": "-1"}),
            Step("GET", self.collection, {"limit": "many"}),
            Step("GET", self.collection, {"continue": "nonsense"}),
            Step("GET", self.collection, {"resourceVersion": "nonsense"}),
            Step("GET", self.path(), {"resourceVersion": "0"}),
        ]
        return self.random.choice(choices)


_CONDITION = {
    "type": "X",
    "status": "True",
    "reason": "R",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_STATUSES: dict[str, list[Object]] = {
    "Pod": [{"phase": "Running"}, {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}],
    "Deployment": [{"replicas": 1}, {"conditions": [{"type": "Available", "status": "True"}]}],
    "PodGroup": [{"conditions": [_CONDITION]}, {}],
    "Widget": [{"seen": 1}, {"seen": "many"}, {}],
}
