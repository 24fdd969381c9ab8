"""A kind is added by one registration, and nothing else is touched: everything that lists kinds then knows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kinds.toy.band import API_VERSION, BUNDLE, GROUP, KIND

from kohort import library
from kohort.api import options, registry
from kohort.api.bundle import Bundle, FeatureGate, register, with_bundle
from kohort.api.scheduling.ranks import rank_of
from kohort.cli import crds
from kohort.cli.lookup import find_in_cluster
from kohort.gang.settings import SettingsError
from kohort.kinds import controllers
from kohort.run.process import managed
from kohort.run.roles import dashboard_role, roles
from kohort.scheduler.clusterlist import list_cluster
from kohort.testing.cluster import cluster
from kohort.testing.virtual import VirtualLoop
from kohort.web.follower import owners

RBAC = Path(__file__).parents[3] / "deploy" / "rbac.yaml"
QUARTET = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "quartet"}, "spec": {"image": "acme/play:1"}}


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualLoop}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with with_bundle(BUNDLE):
        yield


def test_it_is_validated() -> None:
    assert library.validate([QUARTET]) == []
    (problem,) = library.validate([{**QUARTET, "spec": {"image": "a", "musicians": 1}}])
    assert "spec.musicians" in str(problem)
    assert "at least 2" in str(problem)


def test_it_is_translated() -> None:
    (done,) = library.compile([QUARTET])
    workload, group = done.objects
    assert (workload["kind"], group["kind"], group["metadata"]["name"]) == ("Workload", "PodGroup", "quartet")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}


def test_its_definition_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert crds.run(["band"], "json") == 0
    (definition,) = json.loads(capsys.readouterr().out)["items"]
    assert definition["metadata"]["name"] == "bands.toys.example.com"


def test_its_controller_can_be_chosen_and_its_operator_recognised() -> None:
    assert "band" in controllers.names()
    (one,) = [one for one in managed() if one.controller == "band"]
    assert (one.group, one.version, one.kind, one.plural) == (GROUP, "v1", KIND, "bands")
    assert one.leases == ("band-operator",)


def test_its_roles_are_made() -> None:
    found = {(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(roles())}
    assert {("ClusterRole", "kohort-band"), ("ClusterRoleBinding", "kohort-band")} <= found


def test_the_dashboard_reads_it_and_knows_the_ranks_of_its_pods() -> None:
    assert (GROUP, KIND) in owners()
    assert any((one.groups, one.resources) == ((GROUP,), ("bands",)) for one in dashboard_role().rules)
    assert rank_of({f"{GROUP}/chair": "3"}, {}) == (3,)


def test_its_gates_can_be_switched() -> None:
    assert "BandRehearsal" not in options.context("1.37").options
    assert "BandRehearsal" in options.context("1.37", {"BandRehearsal": True}).options
    with pytest.raises(ValueError, match="BandEncore"):
        options.context("1.37", {"BandEncore": True})


def test_its_settings_can_be_set() -> None:
    (done,) = library.compile([QUARTET], settings={"band": {"soloists": True}})
    assert [group["spec"]["schedulingPolicy"] for group in done.objects[1:]] == [{"basic": {}}]
    with pytest.raises(SettingsError, match="accepted are soloists"):
        library.compile([QUARTET], settings={"band": {"solo": True}})


async def test_a_gang_starts_with_the_roles_that_were_made(tmp_path: Path) -> None:
    text = roles()
    own = [one for one in yaml.safe_load_all(text) if one["metadata"]["name"] == "kohort-band"]
    (tmp_path / "band.yaml").write_text(yaml.safe_dump_all(own))
    async with cluster("1.37", rbac=(RBAC, tmp_path / "band.yaml"), controllers=("band",)) as lab:
        await lab.create(QUARTET)
        await lab.running(4)

        async def counted() -> Any:
            return ((await lab.get(API_VERSION, KIND, "quartet")) or {}).get("status") == {"playing": 4}

        await lab.until(counted)
        (group,) = await lab.pod_groups()
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
        found = await find_in_cluster(lab.client, await list_cluster(lab.client), "", "quartet", lab.namespace)
        assert found.asked == "Band lab/quartet"
        assert len(found.roots) == 1
        assert lab.denied == []


async def test_a_gang_that_does_not_fit_waits_as_a_whole() -> None:
    async with cluster("1.37", controllers=("band",)) as lab:
        await lab.create({**QUARTET, "spec": {"image": "a", "musicians": 2000}})

        async def there() -> Any:
            return len(await lab.pods()) == 2000

        await lab.until(there)
        assert not [pod for pod in await lab.pods() if pod["spec"].get("nodeName")]


@pytest.mark.parametrize(
    ("bundle", "says"),
    [
        (Bundle(name="toy", api={"other.example.com": "x"}), "bundle toy: its name is taken by bundle toy"),
        (Bundle(name="more", api={"batch": "x"}), "bundle more: API group batch is taken by bundle batch"),
        (
            Bundle(name="more", api={"o.example.com": "x"}, gates=(FeatureGate("GroveFlat", True, "Band", ""),)),
            "bundle more: gates GroveFlat are those of grove",
        ),
    ],
)
def test_what_is_there_is_not_registered_again(bundle: Bundle, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        register(bundle)


def test_it_is_forgotten_afterwards() -> None:
    assert registry.find(API_VERSION, KIND) is not None
    with with_bundle(Bundle(name="other", api={"other.example.com": "x"})):
        assert "other.example.com" in registry.groups()
    assert "other.example.com" not in registry.groups()
