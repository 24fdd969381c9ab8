"""Plays recorded requests against `kohort.api.admit`: just enough of a store to have something to write to."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from kohort.api import admit, storage_form
from kohort.api.kind import Context, Kind, Object
from kohort.api.registry import kinds
from kohort.api.result import WriteResult, not_found, not_served

SUFFIX = "aaaaa"  # stands where a server writes random characters
_REPEAT = re.compile(r"<repeat:(.):(\d+)>")


@dataclass(frozen=True)
class Address:
    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str
    query: dict[str, str]

    @classmethod
    def of(cls, path: str) -> Address:
        parts = urlsplit(path)
        steps = parts.path.strip("/").split("/")
        group, version, rest = ("", steps[1], steps[2:]) if steps[0] == "api" else (steps[1], steps[2], steps[3:])
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (*rest, "", "", "")[:3]
        return cls(
            group, version, namespace, plural, name, subresource, {k: v[0] for k, v in parse_qs(parts.query).items()}
        )


@dataclass
class Player:
    """The objects of one case."""

    minor: str
    namespace: str
    gates: list[str]
    objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)  # by group, plural, name
    versions: int = 0
    first: dict[tuple[str, str, str], str] = field(default_factory=dict)

    @property
    def ctx(self) -> Context:
        return Context.of(self.minor, self.gates)  # type: ignore[arg-type]

    def play(self, step: dict[str, Any]) -> WriteResult:
        """Send one recorded request. The answered object is also what is now stored."""
        at = Address.of(step["path"].replace("{ns}", self.namespace))
        kind = kind_at(step["path"])
        if kind is None or not kind.served(self.ctx):
            return not_served()
        body = self._body(step, at)
        verbs = {
            "GET": self._read,
            "POST": self._create,
            "PUT": self._update,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }
        answer = verbs[step["method"]](kind, at, body, step.get("contentType", ""))
        if answer.object is not None and step["method"] != "GET" and not at.query.get("dryRun"):
            return self._store(kind, at, answer)
        return answer

    def read(self, kind: Kind, name: str) -> Object | None:
        return self.objects.get((kind.group, kind.plural, name))

    # ---- requests

    def _read(self, kind: Kind, at: Address, _: Any, __: str) -> WriteResult:
        found = self.read(kind, at.name)
        return (
            not_found(kind, at.name)
            if found is None
            else WriteResult(200, object=admit.defaulted(found, kind, self.ctx))
        )

    def _create(self, kind: Kind, at: Address, body: Any, _: str) -> WriteResult:
        existing = list(self.objects.values())
        return admit.create(
            body if body is not None else {},
            self.ctx,
            kind=kind,
            namespace=self.namespace if kind.namespaced else None,
            existing=existing,
            priority_classes=[one for one in existing if one["kind"] == "PriorityClass"],
            suffix=lambda: SUFFIX,
            field_validation=at.query.get("fieldValidation", "Warn"),  # type: ignore[arg-type]
        )

    def _update(self, kind: Kind, at: Address, body: Any, _: str) -> WriteResult:
        old = self.read(kind, at.name)
        if old is None:
            return not_found(kind, at.name)
        mode: Any = at.query.get("fieldValidation", "Warn")
        return admit.update(body, old, self.ctx, kind=kind, subresource=at.subresource, field_validation=mode)

    def _patch(self, kind: Kind, at: Address, body: Any, content_type: str) -> WriteResult:
        old = self.read(kind, at.name)
        if old is None:
            return not_found(kind, at.name)
        mode: Any = at.query.get("fieldValidation", "Warn")
        return admit.patch(
            body,
            old,
            self.ctx,
            kind=kind,
            content_type=content_type,
            subresource=at.subresource,
            field_validation=mode,
        )

    def _delete(self, kind: Kind, at: Address, _: Any, __: str) -> WriteResult:
        """For steps before a request only: what a store does with finalizers."""
        old = deepcopy(self.objects[kind.group, kind.plural, at.name])
        old["metadata"]["deletionTimestamp"] = "2026-11-15T00:00:00Z"
        old["metadata"]["deletionGracePeriodSeconds"] = 0
        return WriteResult(200, object=old)

    # ---- the store

    def _store(self, kind: Kind, at: Address, answer: WriteResult) -> WriteResult:
        obj = answer.object
        assert obj is not None
        where = (kind.group, kind.plural, obj["metadata"]["name"])
        self.versions += 1
        meta = obj["metadata"]
        meta["resourceVersion"] = str(100 + self.versions)
        meta.setdefault("uid", f"uid-{self.versions}")
        meta.setdefault("creationTimestamp", "2026-11-15T00:00:00Z")
        self.first.setdefault(where, meta["resourceVersion"])
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            self.objects.pop(where, None)
        else:
            self.objects[where] = obj
        return answer

    def _body(self, step: dict[str, Any], at: Address) -> Any:
        if "bodyText" in step:
            text = step["bodyText"].replace("{ns}", self.namespace)
            return yaml.safe_load(text) if "yaml" in step.get("contentType", "") else json.loads(text)
        if "body" not in step:
            return None
        text = json.dumps(step["body"]).replace("{ns}", self.namespace)
        stored = next((o for (g, p, n), o in self.objects.items() if (g, p, n) == (at.group, at.plural, at.name)), None)
        if stored is not None:
            text = text.replace("<current>", stored["metadata"]["resourceVersion"])
            text = text.replace("<first>", self.first[at.group, at.plural, at.name])
            text = text.replace("<uid>", stored["metadata"]["uid"])
        return json.loads(_REPEAT.sub(lambda found: found[1] * int(found[2]), text))


def kind_at(path: str) -> Kind | None:
    """The kind that an address speaks of."""
    at = Address.of(path)
    return next((kind for kind in kinds(at.group) if (kind.version, kind.plural) == (at.version, at.plural)), None)


def rehearse(case: dict[str, Any]) -> Player:
    """A player after the steps that come before the case's request."""
    minor = ".".join(case["kubernetes"].split(".")[:2])
    player = Player(minor, case["id"], case.get("gatesDuringPrior", case["gates"]))
    for step in case.get("prior", ()):
        if "method" in step:  # the others are waits
            answer = player.play(step)
            assert answer.code == step["code"], (step["method"], step["path"], answer)
    player.gates = case["gates"]
    return player


def seen(kind: Kind, obj: Object) -> Object:
    """An object as the recordings show it."""
    shown = deepcopy(storage_form.to_response(kind, obj))
    meta = shown["metadata"]
    for member in ("uid", "creationTimestamp", "resourceVersion", "managedFields"):
        meta.pop(member, None)
    if meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = "<time>"
    if meta.get("generateName") and meta["name"].endswith(SUFFIX):
        meta["name"] = meta["name"].removesuffix(SUFFIX) + "?????"
    return _short(shown)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, str) and len(value) > 300 and len(set(value)) == 1:
        return f"<repeat:{value[0]}:{len(value)}>"
    return value
