"""What real Kubernetes 1.37 makes of quantities: the recording by which our server is judged (tests/server) holds.

`KOHORT_RECORD=1` writes it anew.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

from tests.server import amounts

from kohort.testing.environment import Environment

RECORDED = Path(__file__).parents[1] / "recorded" / "quantities.json"


def test_the_recording_is_what_a_real_server_answers(kubernetes_environments: Callable[..., Environment]) -> None:
    real = kubernetes_environments("1.37").client()
    real.request("POST", "/api/v1/namespaces", {"metadata": {"name": amounts.NAMESPACE}})
    found = {where: amounts.became(body, real.request("POST", path, body)) for where, path, body in amounts.asked()}
    if os.environ.get("KOHORT_RECORD"):
        RECORDED.write_text(json.dumps(found, separators=(",", ":")) + "\n")
    assert found == json.loads(RECORDED.read_text())
