"""Revision keys (spec lws 2.8) against every recorded one."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
from tests.kinds.leaderworkerset.api.sample import changed, defaulted, lws

from kohort.api.kind import Object
from kohort.kinds.leaderworkerset.api import LEADER_WORKER_SET, constants
from kohort.kinds.leaderworkerset.api.revision import revision_data, revision_key

CASES = json.loads((Path(__file__).parents[3] / "recorded/lws.json").read_text())["cases"]


def _revisions(case: str) -> list[Object]:
    """Rows with `like` written out."""
    whole: dict[str, Object] = {}
    for row in CASES[case].get("revisions", []):
        if "like" not in row:
            whole[row["name"]] = row
    for row in CASES[case].get("revisions", []):
        if "like" in row:
            whole[row["name"]] = changed(deepcopy(whole[row["like"]]), row["differs"]) | {"name": row["name"]}
    return list(whole.values())


RECORDED = [(case, row) for case in CASES for row in _revisions(case)]


@pytest.mark.parametrize(("case", "row"), RECORDED, ids=[f"{case} {row['name']}" for case, row in RECORDED])
def test_l_26_key_of_the_recorded_data(case: str, row: Object) -> None:
    assert revision_key(row["data"]) == row["labels"][constants.REVISION]


def _created() -> list[tuple[str, Object, str]]:
    """(case, object as sent, name of its first revision), where the recording does not leave the start-up out."""
    found = []
    for case, steps in ((name, body.get("timeline", [])) for name, body in CASES.items()):
        names = [str(step.get("revision", "")) for step in steps]
        for sent in (step["object"] for step in steps if step.get("create") == "lws"):
            lead = sent["metadata"]["name"] + "-"
            first = [name for name in names if name.startswith(lead) and name.endswith("-1")][:1]
            found += [(case, sent, name) for name in first]
    return found


CREATED = _created()


@pytest.mark.parametrize(("case", "body", "made"), CREATED, ids=[f"{c} {b['metadata']['name']}" for c, b, _ in CREATED])
def test_l_26_key_of_the_object_that_was_sent(case: str, body: Object, made: str) -> None:
    """What we store has the text that upstream stores: the key follows from the manifest alone."""
    obj = defaulted({"apiVersion": LEADER_WORKER_SET.api_version, "kind": LEADER_WORKER_SET.kind, **body})
    assert made == f"{body['metadata']['name']}-{revision_key(revision_data(obj))}-1"


def test_the_recording_was_read() -> None:
    assert len(RECORDED) >= 45
    assert len(CREATED) >= 40


def test_l_45_which_changes_make_a_revision() -> None:
    plain = defaulted(lws())

    def key(patch: Object) -> str:
        return revision_key(revision_data(defaulted(changed(plain, patch))))

    before = key({})
    same: list[Object] = [
        {"spec": {"replicas": 7}},
        {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1}}}},
        {"spec": {"startupPolicy": "LeaderReady"}},
        {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
    ]
    other: list[Object] = [
        {"spec": {"leaderWorkerTemplate": {"size": 4}}},
        {"spec": {"leaderWorkerTemplate": {"restartPolicy": "None"}}},
        {"spec": {"leaderWorkerTemplate": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}},
        {"spec": {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}},
        {"spec": {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"labels": {"a": "b"}}}}}},
    ]
    assert [key(patch) for patch in same] == [before] * len(same)
    assert before not in {key(patch) for patch in other}
    assert len({key(patch) for patch in other}) == len(other)


def test_characters_that_go_escapes() -> None:
    """Go's encoder writes <, > and & as escapes; the key must see the same bytes."""
    escaped = revision_key({"a": "<b> & c"})
    assert escaped != revision_key({"a": "b c"})
    number = 2166136261
    for byte in rb'{"a":"\u003cb\u003e \u0026 c"}':
        number = (number * 16777619) % 2**32 ^ byte
    assert escaped == "".join("bcdfghjklmnpqrstvwxz2456789"[ord(digit) % 27] for digit in str(number))
