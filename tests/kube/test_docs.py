"""The examples of docs/client.md run, in order, against the embedded server."""

import ast
import re
from pathlib import Path

import pytest

from kohort.kube.client import Client
from kohort.server.server import Server
from kohort.server.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


async def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 7
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.settings.kubeconfig_path))
        async with Client.connect() as client:
            names: dict[str, object] = {"client": client}
            for number, block in enumerate(blocks):
                code = compile(block, f"{PAGE.name}, example {number + 1}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                waiting = eval(code, names)
                if waiting is not None:
                    await waiting
                names["client"] = client
