"""Asks an environment every request of a recorded file and writes down the answers.

A case has `gates`, perhaps `gatesDuringPrior`, `running` components, `prior` steps, a `request`, an `answer`. Gates are
flags of the API server, so cases are played grouped by gate set: one restart per set, on the same store.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.answers import expand, normalise

from kohort.testing.environment.versions import gates_exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from kohort.testing.client import Client, Response
    from kohort.testing.environment import Environment

    Case = dict[str, Any]

_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
# The API server's own admission learns of a new or deleted PriorityClass through a watch.
_CLASS_SECONDS = 0.5
_SHORT_NAMES = {"kube-controller-manager": "kcm", "kube-scheduler": "scheduler"}


class ReplayError(Exception):
    """A prior step did not answer as recorded, so the request would be another question."""


@dataclass
class Player:
    """One case, in its own namespace."""

    case: Case
    client: Client
    classes: list[str] = field(default_factory=list)
    first: dict[str, str] = field(default_factory=dict)  # path of an object -> resourceVersion at its creation
    uids: dict[str, str] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return str(self.case["id"])

    def prepare(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.client.create("/api/v1/namespaces", body)
        for step in self.case.get("prior", []):
            self._step(step)

    def ask(self) -> dict[str, Any]:
        """The recorded form of the answer to the case's request."""
        response = self._send(self.case["request"])
        kept = "managedFields" in json.dumps(self.case.get("answer", {}).get("object", {}))
        return normalise(
            response,
            managed_fields=self.case.get("keepManagedFields", kept),
            generate_name=_wished_name(self.case["request"]),
        )

    def clean(self) -> None:
        for name in self.classes:
            self.client.request("DELETE", f"{_CLASSES}/{name}")
        if self.classes:
            time.sleep(_CLASS_SECONDS)

    def _step(self, step: dict[str, Any]) -> None:
        if "pause" in step:
            time.sleep(step["pause"])
            return
        if "until" in step:
            self._until(step["until"], step["seconds"])
            return
        response = self._send(step)
        if "code" in step and response.code != step["code"]:
            found = response.body.decode(errors="replace")[:500]
            raise ReplayError(
                f"{self.namespace}: {step['method']} {step['path']} was {step['code']}, is {response.code}: {found}"
            )
        step["code"] = response.code

    def _until(self, condition: dict[str, Any], seconds: float) -> None:
        end = time.monotonic() + seconds
        path = condition["path"].replace("{ns}", self.namespace)
        while self.client.request("GET", path).code != condition["code"] and time.monotonic() < end:
            time.sleep(0.1)

    def _send(self, step: dict[str, Any]) -> Response:
        path = step["path"].replace("{ns}", self.namespace)
        text = step.get("bodyText")
        if text is None and "body" in step:
            text = json.dumps(step["body"])
        if text is not None:
            text = self._fill(text, path)
        response = self.client.request(
            step["method"],
            path,
            text=text,
            content_type=step.get("contentType", "application/json"),
            accept=step.get("accept", "application/json"),
        )
        if response.code == 201:
            self._remember(path.split("?")[0], step["method"], response)
        return response

    def _fill(self, text: str, path: str) -> str:
        """What the body says of the object as it is now, or was."""
        at = path.split("?", maxsplit=1)[0].removesuffix("/status")
        text = str(expand(text.replace("{ns}", self.namespace)))
        if "<current>" in text:
            text = text.replace("<current>", self.client.get(at)["metadata"]["resourceVersion"])
        return text.replace("<first>", self.first.get(at, "<first>")).replace("<uid>", self.uids.get(at, "<uid>"))

    def _remember(self, path: str, method: str, response: Response) -> None:
        metadata = response.json().get("metadata") or {}
        if "name" not in metadata:
            return
        at = f"{path}/{metadata['name']}" if method == "POST" else path  # server-side apply creates at the name
        self.first[at] = metadata.get("resourceVersion", "")
        self.uids[at] = metadata.get("uid", "")
        if path == _CLASSES:
            self.classes.append(metadata["name"])
            time.sleep(_CLASS_SECONDS)


def play(
    env: Environment, cases: Sequence[Case], *, report: Callable[[str], None] = lambda text: None
) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Every case with the answer of this environment, in the order they were played, not that of the file."""
    client = env.client()
    waiting: list[Player] = []
    for gates in _distinct(_prior_gates(case) for case in cases):
        own = [case for case in cases if _prior_gates(case) == gates]
        _restart(env, gates, report, len(own))
        for case in own:
            if gates != tuple(case["gates"]):
                player = Player(case, client)
                player.prepare()
                waiting.append(player)
            else:
                yield case, _play_one(env, Player(case, client))
    for gates in _distinct(player.case["gates"] for player in waiting):
        own_waiting = [player for player in waiting if tuple(player.case["gates"]) == gates]
        _restart(env, gates, report, len(own_waiting))
        for player in own_waiting:
            yield player.case, player.ask()
            player.clean()


def refresh(
    env: Environment, cases: Sequence[Case], *, report: Callable[[str], None] = lambda text: None
) -> list[Case]:
    """The same cases in the same order, answered by this environment."""
    answers = {case["id"]: answer for case, answer in play(env, cases, report=report)}
    return [{**case, "kubernetes": env.version, "answer": answers[case["id"]]} for case in cases]


def _play_one(env: Environment, player: Player) -> dict[str, Any]:
    components = [_SHORT_NAMES[name] for name in player.case.get("running", [])]
    for name in components:
        env.start_component(name)
    try:
        player.prepare()
        answer = player.ask()
        player.clean()
    finally:
        for name in components:
            env.stop_component(name)
    return answer


def _wished_name(request: dict[str, Any]) -> str:
    """generateName, which counts only where no name is given."""
    body = request.get("body")
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(metadata, dict) or metadata.get("name"):
        return ""
    return str(metadata.get("generateName") or "")


def _restart(env: Environment, gates: tuple[str, ...], report: Callable[[str], None], count: int) -> None:
    wanted = gates_exactly(env.minor, gates)
    report(f"{count} cases with gates {', '.join(gates) or 'all off'}")
    if env.gates != wanted:
        env.restart(wanted)


def _prior_gates(case: Case) -> tuple[str, ...]:
    return tuple(case["gatesDuringPrior"] if "gatesDuringPrior" in case else case["gates"])


def _distinct(gate_lists: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(gates) for gates in gate_lists))
