"""Admission policies on real Kubernetes 1.37: the answers that tests/server/admission/test_policies.py expects.

KOHORT_RECORD=1 writes them anew.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.admission.policy_cases import ASKED, NAMESPACES, REFUSED, SETUP, Object, seen

from kohort.testing.client import Client
from kohort.testing.environment import Environment

RECORDED = Path(__file__).parents[1] / "recorded" / "policies-1.37.json"
_PATIENCE = 15.0  # until a real server has heard of the last policy


def ask(client: Client, method: str, path: str, body: Object | None) -> Object:
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = client.request(method, path, body, content_type=media)
    return seen(answer.code, answer.json(), answer.warnings)


@pytest.mark.timeout(120)
def test_a_real_server_gives_the_recorded_answers(kubernetes_environments: Callable[..., Environment]) -> None:
    client = kubernetes_environments("1.37", ()).client()
    for name, labels in NAMESPACES.items():
        client.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    for path, body in SETUP:
        client.create(path, body)
    refused = [ask(client, "POST", path, body) for path, body in REFUSED]
    record = os.environ.get("KOHORT_RECORD") == "1"
    known = json.loads(RECORDED.read_text()) if not record else {}
    end = time.monotonic() + (4.0 if record else _PATIENCE)
    while True:
        asked = [ask(client, method, f"{path}?dryRun=All", body) for _, method, path, body in ASKED]
        if time.monotonic() > end or asked == known.get("asked"):
            break
        time.sleep(0.5)
    if record:
        RECORDED.write_text(json.dumps({"asked": asked, "refused": refused}, indent=1) + "\n")
        return
    assert refused == known["refused"]
    for (name, *_), theirs, wanted in zip(ASKED, asked, known["asked"], strict=True):
        assert theirs == wanted, name
