"""A server starts with the allocator that gives memory back, in the same process and with the same words."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SAYS = (
    "import os, sys; from kohort.cli import allocator; before = os.getpid(); allocator.begin_again(); "
    "print(os.environ.get('PYTHONMALLOC'), os.getpid(), sys.argv[1:])"
)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only there the C library gives back free pages")
@pytest.mark.parametrize(("chosen", "expected"), [(None, "malloc"), ("pymalloc", "pymalloc")])
def test_the_process_goes_on_as_itself(chosen: str | None, expected: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONMALLOC"}
    env |= {"PYTHONMALLOC": chosen} if chosen else {}
    command = [sys.executable, "-c", _SAYS, "up", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        out, _ = process.communicate(timeout=60)
    assert out.split(maxsplit=2) == [expected, str(process.pid), "['up', '--port', '0']\n"]
