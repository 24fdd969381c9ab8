"""The recorded `ssa` cases of real 1.37: merge, conflicts and managedFields by our functions, the rest by admit.

ssa-09 (no fieldManager) and ssa-21 (another name in the URL) are refused by the endpoint before anything is merged:
they belong to the server's tests.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.api.scheduling.player import Address, Player, seen

from kohort.api import admit
from kohort.api import apply as ssa
from kohort.api.kind import Kind
from kohort.api.result import WriteResult, bad_request

RECORDED = Path(__file__).parents[2] / "recorded" / "validation-1.37.json"
OF_THE_ENDPOINT = {"ssa-09", "ssa-21"}
CASES = [case for case in json.loads(RECORDED.read_text())["cases"] if case["id"].startswith("ssa-")]
NOW = "2026-11-15T00:00:00Z"


def test_all_26_cases_are_there() -> None:
    assert len(CASES) == 26


class Applying(Player):
    """A player that keeps the books and applies."""

    def target(self, kind: Kind, at: Address) -> ssa.Target:
        structure = ssa.native(self.minor, kind.api_version, kind.kind)
        assert structure is not None
        reset = ssa.reset_fields(kind.group, kind.kind, at.subresource, status=kind.status)
        return ssa.Target(kind.api_version, kind.kind, structure, at.subresource, reset)

    def _create(self, kind: Kind, at: Address, body: Any, content_type: str) -> WriteResult:
        tracked = admit.defaulted(body, kind, self.ctx)
        manager = ssa.manager_name(at.query.get("fieldManager", ""), "")
        tracked = ssa.update_managed_fields(None, tracked, of=self.target(kind, at), manager=manager, now=NOW)
        return super()._create(kind, at, tracked, content_type)

    def _patch(self, kind: Kind, at: Address, body: Any, content_type: str) -> WriteResult:
        if "apply" not in content_type:
            return super()._patch(kind, at, body, content_type)
        live = self.read(kind, at.name)
        manager, force = at.query.get("fieldManager", ""), at.query.get("force") == "true"
        of = self.target(kind, at)
        if live is not None:
            live = {**live, "apiVersion": kind.api_version}
        try:
            applied = ssa.apply(live, body, of=of, manager=manager, now=NOW, force=force)
        except ssa.ApplyError as error:
            return bad_request(str(error))
        if applied.conflicts:
            self.conflict = ssa.conflict_status(applied.conflicts)
            return WriteResult(409, "Conflict", message=self.conflict["message"])
        if live is None:
            return super()._create(kind, at, applied.object, "")
        return self._update(kind, at, applied.object, "")


def play(case: dict[str, Any]) -> tuple[Applying, WriteResult]:
    player = Applying("1.37", case["id"], case["gates"])
    for step in case.get("prior", ()):
        assert player.play(step).code == step["code"]
    return player, player.play(case["request"])


def entries(managed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in managed]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["id"] not in OF_THE_ENDPOINT], ids=lambda case: case["id"]
)
def test_ssa(case: dict[str, Any]) -> None:
    player, answer = play(case)
    wanted = case["answer"]
    if wanted["code"] == 500:  # a user's mistake: the same text with a code that says so
        assert (answer.code, answer.message) == (400, wanted["message"])
        return
    assert (answer.code, answer.reason) == (wanted["code"], wanted.get("reason", "")), answer.message
    if answer.object is None:
        if answer.code == 422:  # what validation says, it says in its own words
            causes = [(str(cause.kind), cause.field) for cause in answer.causes]
            assert causes == [(cause["reason"], cause["field"]) for cause in wanted["causes"]]
        else:
            assert answer.message == wanted["message"]
        if wanted.get("causes", [{}])[0].get("reason") == "FieldManagerConflict":
            assert player.conflict["details"]["causes"] == wanted["causes"]
        return
    kind = admit._kind(answer.object)
    assert kind is not None
    expected = json.loads(json.dumps(wanted["object"]))
    managed = expected["metadata"].pop("managedFields", None)
    assert seen(kind, answer.object) == expected
    if managed is not None:
        assert entries(answer.object["metadata"]["managedFields"]) == managed
