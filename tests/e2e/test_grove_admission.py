"""What is refused when a set is submitted: asked of an API server that has these rules in it (ours)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.e2e.grove_short import binding, clique, cliqueset, group, rack, refused, shared

from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster


@pytest.fixture
def gates() -> Mapping[str, bool]:
    """Of the API server itself: this is about its admission, which a plain CRD does not have."""
    return {"GenericWorkload": True}


async def test_g11_a_set_whose_gangs_are_anothers_is_refused(cluster: Cluster) -> None:
    await cluster.create(cliqueset("a", clique("r"), clique("w"), groups=[group("b", ["w"], 2)]))
    with pytest.raises(ApiError) as error:
        await cluster.create(cliqueset("a-0-b", clique("x")))
    assert "a-0-b-0" in error.value.message


@pytest.mark.generations("1.37")
async def test_g37_g38_what_cannot_be_asked_for(cluster: Cluster) -> None:
    await shared(cluster, binding())
    wish = {"topologyConstraint": {"topologyName": "fabric", "pack": {"preferred": "host"}}}
    assert "required" in await refused(cluster, cliqueset("a", clique("x", **wish)))
    host = {"topologyConstraint": {"topologyName": "fabric", "pack": {"required": "host"}}}
    assert "narrower" in await refused(cluster, cliqueset("a", clique("x", **rack()), template=host))
    assert "not found" in await refused(cluster, cliqueset("a", clique("x", **rack("nowhere"))))
