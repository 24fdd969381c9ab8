"""The recorded Job cases, played again against our own admission: requests in order, what each left behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from kohort.api import admit, registry
from kohort.api.kind import Context, Kind
from kohort.api.releases import Gate
from kohort.api.result import WriteResult
from kohort.kinds.batch.admission import check_parallelism
from kohort.kinds.batch.api.selector import generate

RECORDED = Path(__file__).parents[3] / "recorded"
FILES = {"1.36": "job-1.36.json", "1.37": "job-1.37.json"}
PRIORITY_CLASSES: list[dict[str, Any]] = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "batch-high"}, "value": 7000}
]

# Cases whose note says that the API server ran with other gates.
OFF = {
    "T-14": {Gate.JOB},
    "T-79": {Gate.JOB},
    "T-27": {Gate.TOPOLOGY, Gate.COMPOSITE, Gate.CLAIMS},
}
ON = {"J-61": {Gate.EVICTION_REQUEST}}


@cache
def cases(minor: str) -> dict[str, dict[str, Any]]:
    loaded = json.loads((RECORDED / FILES[minor]).read_text())
    return {case["id"]: case for case in loaded["cases"]}


def every_case() -> list[tuple[str, str]]:
    return [(minor, name) for minor in FILES for name in cases(minor)]


def gates(minor: str, case: str) -> Context:
    base = Context.of(minor)
    return Context(base.release, (base.gates - OFF.get(case, set())) | ON.get(case, set()))


@dataclass(frozen=True)
class Played:
    """One request with the recorded and with our answer."""

    request: dict[str, Any]
    code: int
    causes: frozenset[tuple[str, str]]
    answer: WriteResult


@dataclass
class Cluster:
    """What is stored, by plural and name."""

    ctx: Context
    case: dict[str, Any]
    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    born: int = 0
    clock: datetime = datetime(2026, 11, 15, tzinfo=UTC)

    def do(self, request: dict[str, Any]) -> WriteResult | None:
        """None: a request that is about kinds of others."""
        verb, _, target = request["do"].partition(" ")
        path, _, query = target.partition("?")
        plural, _, rest = path.partition("/")
        name, _, subresource = rest.partition("/")
        kind = next((kind for kind in served(self.ctx) if kind.plural == plural), None)
        if kind is None:
            return None
        if verb == "POST":
            return self.create(kind, self.timed(request["body"]), strict="Strict" in query)
        if verb == "PATCH":
            return self.patch(kind, name, subresource, self.timed(request["body"]))
        if verb == "DELETE":
            self.objects.pop((plural, name), None)
        return None

    def create(self, kind: Kind, body: dict[str, Any], strict: bool) -> WriteResult:
        answer = admit.create(
            body,
            self.ctx,
            priority_classes=PRIORITY_CLASSES,
            existing=self.objects.values(),
            suffix=lambda: "xxxxx",
            field_validation="Strict" if strict else "Warn",
        )
        if answer.object is not None:
            stored = deepcopy(answer.object)
            if kind.kind == "Job":
                self.born += 1
                stored["metadata"]["uid"] = self.uid(self.born)
                generate(stored, stored["metadata"]["uid"])
            self.objects[kind.plural, stored["metadata"]["name"]] = stored
        return answer

    def patch(self, kind: Kind, name: str, subresource: str, body: dict[str, Any]) -> WriteResult | None:
        old = self.objects.get((kind.plural, name))
        if old is None:  # made by a controller
            return None
        new = merged(old, body)
        if kind.kind == "Job" and not subresource:
            denied = check_parallelism(new, old, self.groups(), self.ctx)
            if denied:
                return WriteResult(403, causes=tuple(denied))
        answer = admit.update(new, old, self.ctx, subresource=subresource)
        if answer.object is not None:
            self.objects[kind.plural, name] = deepcopy(answer.object)
        return answer

    def uid(self, number: int) -> str:
        key = "JOB_UID" if number == 1 else f"JOB{number}_UID"
        return str((self.case.get("uids") or {}).get(key) or f"00000000-0000-4000-8000-{number:012}")

    def groups(self) -> list[dict[str, Any]]:
        """PodGroups: those made by requests, and those that the recording saw a controller make."""
        made = [obj for (plural, _), obj in self.objects.items() if plural == "podgroups"]
        return made + [self.real(group) for look in self.case.get("seen", []) for group in full(look, "podGroups")]

    def real(self, obj: dict[str, Any]) -> dict[str, Any]:
        """A recorded object with real uids in the place of stand-ins."""
        text = json.dumps(obj)
        for stand_in, uid in (self.case.get("uids") or {}).items():
            text = text.replace(f'"{stand_in}"', f'"{uid}"')
        found: dict[str, Any] = json.loads(text)
        return found

    def timed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Each request has its own time."""
        self.clock += timedelta(seconds=1)
        filled: dict[str, Any] = json.loads(json.dumps(body).replace("<time>", self.clock.isoformat()))
        return filled


def full(look: dict[str, Any], member: str) -> list[dict[str, Any]]:
    """The objects that a look wrote out (not "as before")."""
    found = look.get(member)
    return [obj for obj in found if isinstance(obj, dict) and "spec" in obj] if isinstance(found, list) else []


def served(ctx: Context) -> list[Kind]:
    return [
        kind for kind in registry.every_kind() if kind.served(ctx) and kind.group in {"", "batch", "scheduling.k8s.io"}
    ]


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    new = deepcopy(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key), value)
    return new


def play(minor: str, name: str) -> Iterator[Played]:
    case = cases(minor)[name]
    cluster = Cluster(gates(minor, name), case)
    if name == "T-79":
        cluster.objects = dict(after(minor, "T-45").objects)
    yield from run(cluster)


def after(minor: str, name: str) -> Cluster:
    """What a case left behind."""
    cluster = Cluster(gates(minor, name), cases(minor)[name])
    for _ in run(cluster):
        pass
    return cluster


def run(cluster: Cluster) -> Iterator[Played]:
    for request in cluster.case.get("requests", []):
        if "do" not in request:
            continue
        answer = cluster.do(request)
        if answer is not None:
            causes = frozenset((field, reason) for field, reason, _ in request.get("causes") or [])
            yield Played(request, request["code"], causes, answer)
