"""The same question to real Kubernetes and to us, and whether the answers are the same.

Compared: code, reason, the set of (cause, field path), and of accepted scheduling objects what is stored. Texts are
not: they name Go types and internal values. Of Jobs and Pods the stored object is not compared here, as it holds things
that only a server can know (uid, labels made of it).
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from tests.support.generate import Made, make
from tests.support.mutate import mutate

from kohort.api import admit, storage_form
from kohort.api.kind import Context
from kohort.api.registry import find
from kohort.api.releases import Gate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.result import WriteResult
    from kohort.testing.client import Client, Response

Object = dict[str, Any]

_VOLATILE = ("uid", "creationTimestamp", "resourceVersion", "managedFields")
# What every API server has by itself (spec workload-api 3.5).
_SYSTEM_CLASSES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


@dataclass(frozen=True)
class Verdict:
    """What is compared of an answer."""

    code: int
    reason: str = ""
    causes: frozenset[tuple[str, str]] = frozenset()
    stored: str = ""

    def __str__(self) -> str:
        causes = ", ".join(f"{reason.removeprefix('FieldValue')} {where}" for reason, where in sorted(self.causes))
        return f"{self.code} {self.reason}" + (f" [{causes}]" if causes else "") + self.stored


@dataclass
class Question:
    """A write: `old` is None for a create."""

    number: int
    kind: str
    collection: str
    new: Object
    old: Object | None = None
    strict: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        verb = "create" if self.old is None else "update"
        return f"#{self.number} {verb} {self.kind}{' (strict)' if self.strict else ''}: {'; '.join(self.notes)}"


@dataclass
class Difference:
    question: Question
    real: Verdict
    ours: Verdict
    message: str

    def __str__(self) -> str:
        return f"{self.question.title}\n    real: {self.real}\n    ours: {self.ours}\n    text: {self.message[:300]}"


def questions(seed: int, count: int, client: Client, namespace: str) -> Iterator[Question]:
    """`count` writes; those that are updates are updates of what the server stored a moment ago."""
    for number in range(count):
        random = Random(f"{seed}/{number}")
        made = make(random)
        made.object["metadata"]["name"] += f"-{number}"
        question = Question(number, made.object["kind"], made.collection, made.object)
        if random.random() < 0.4:
            question.old = _stored(client, made, namespace)
            question.new = copy.deepcopy(question.old)
        question.strict = random.random() < 0.1
        question.new, question.notes = mutate(random, question.new, random.randint(1, 3))
        yield question


def _stored(client: Client, made: Made, namespace: str) -> Object:
    stored: Object = client.create(made.collection.replace("{ns}", namespace), made.object)
    return stored


def ask_real(client: Client, question: Question, namespace: str) -> tuple[Verdict, str]:
    """The server's verdict, and its text for people."""
    path = question.collection.replace("{ns}", namespace)
    if question.old is not None:
        path += f"/{question.old['metadata']['name']}"
    query = "?dryRun=All" + ("&fieldValidation=Strict" if question.strict else "")
    response = client.request("POST" if question.old is None else "PUT", path + query, question.new)
    return verdict_of(response), response.json().get("message", "")


def verdict_of(response: Response) -> Verdict:
    if response.ok:
        return Verdict(response.code, stored=_stored_text(response.json()))
    status = response.json()
    causes = (status.get("details") or {}).get("causes", [])
    pairs = frozenset((cause.get("reason", ""), cause.get("field", "")) for cause in causes)
    return Verdict(response.code, status.get("reason", ""), pairs)


def ask_us(question: Question, context: Context, classes: list[Object], namespace: str) -> Verdict:
    mode: admit.FieldValidation = "Strict" if question.strict else "Warn"
    new = copy.deepcopy(question.new)
    if question.old is None:
        answer = admit.create(
            new, context, priority_classes=classes, namespace=namespace, field_validation=mode, suffix=lambda: "abcde"
        )
    else:
        answer = admit.update(new, copy.deepcopy(question.old), context, field_validation=mode)
    return verdict_of_ours(answer)


def verdict_of_ours(answer: WriteResult) -> Verdict:
    if answer.object is not None:
        kind = find(answer.object["apiVersion"], answer.object["kind"])
        assert kind is not None
        return Verdict(answer.code, stored=_stored_text(storage_form.to_response(kind, answer.object)))
    return Verdict(answer.code, answer.reason, frozenset((str(cause.kind), cause.field) for cause in answer.causes))


def _stored_text(body: Object) -> str:
    if not body["apiVersion"].startswith("scheduling.k8s.io/"):
        return ""
    metadata = {key: value for key, value in body["metadata"].items() if key not in _VOLATILE}
    return json.dumps({**body, "metadata": metadata}, sort_keys=True)


def context_of(minor: str, gates: dict[str, bool]) -> Context:
    known = {str(gate) for gate in Gate}
    return Context.of(minor, [Gate(name) for name, on in gates.items() if on and name in known])


def all_classes(own: list[Object]) -> list[Object]:
    """Those made for the test and those that the server makes."""
    system = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in _SYSTEM_CLASSES.items()
    ]
    return [*own, *system]
