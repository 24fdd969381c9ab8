"""The process: what it asks before it has loaded what it decides with."""

import subprocess
import sys

from kohort.api.releases import SCHEDULING_GROUP
from kohort.scheduler.command import LISTED
from kohort.scheduler.sources import SOURCES


def test_what_is_asked_ahead_is_what_is_listed() -> None:
    names = ((one.group, one.kind.lower()) for one in SOURCES)
    assert {(group, f"{name}es" if name.endswith("ss") else f"{name}s") for group, name in names} == LISTED
    assert (SCHEDULING_GROUP, "podgroups") in LISTED


def test_requests_are_sent_before_numpy_is_loaded() -> None:
    code = "import sys, kohort.scheduler.command as c; sys.exit('numpy' in sys.modules or 'aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
