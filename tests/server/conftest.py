"""What several tests of the server begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.talk import Talk


@pytest.fixture
def talk() -> Iterator[Talk]:
    """A server with a namespace d."""
    made = Talk()
    made.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
    yield made
    made.close()
