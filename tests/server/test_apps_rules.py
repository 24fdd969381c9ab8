"""Deployments, StatefulSets, DaemonSets and ReplicaSets, right and wrong: what Kubernetes 1.37.1 answered to each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import Talk

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "recorded" / "apps-1.37.json").read_text())
# Ours ends after the first example; a list of claims is shown as it was written, not as Go's structs.
_SHORTER = re.compile(r"',  or '123-abc', regex used for validation is '[^ ]+'\)")
_CLAIMS = re.compile(r"(spec\.volumeClaimTemplates: Invalid value: )\[.*?(?=: field is immutable)")


@pytest.fixture(scope="module")
def talk() -> Iterator[Talk]:
    made = Talk()
    made.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
    yield made
    made.close()


def told(message: str) -> list[str]:
    """The findings of a message: kubectl prints each in a line, servers one after the other."""
    text = _CLAIMS.sub(r"\1[]", _SHORTER.sub("')", message))
    found = text.partition(" is invalid: ")[2].strip()
    parts = re.split(r"\n?\* ", found) if found.startswith("* ") else re.split(r", (?=spec\.)", found.strip("[]"))
    return sorted(part.strip() for part in parts if part.strip())


def name(row: dict[str, Any]) -> str:
    changed = f"-changed-{'-'.join(row['change'])}" if "change" in row else ""
    return f"{row['create']['kind']}-{row['create']['metadata']['name']}{changed}"


@pytest.mark.parametrize("row", ROWS, ids=map(name, ROWS))
def test_it_is_accepted_or_refused_as_by_a_real_server(talk: Talk, row: dict[str, Any]) -> None:
    body = row["create"]
    path = f"/apis/apps/v1/namespaces/d/{body['kind'].lower()}s"
    if "change" not in row:
        answer = talk.request("POST", f"{path}?dryRun=All", body)
    else:
        talk.create(path, body)
        changed = {**body, "spec": {**body["spec"], **row["change"]}}
        answer = talk.request("PUT", f"{path}/{body['metadata']['name']}?dryRun=All", changed)
        talk.request("DELETE", f"{path}/{body['metadata']['name']}")
    if not row["says"]:
        assert answer.code < 300, answer.json()
    else:
        assert answer.code == 422, answer.json()
        assert told(str(answer.json()["message"])) == told(row["says"])
