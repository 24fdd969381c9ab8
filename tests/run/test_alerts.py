"""Alerts and the dashboard name metrics that a process really has, and pages that are there."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.run.test_process import jobset, started

from kohort.kube.client import Client
from kohort.kube.watchdog import watching
from kohort.run.options import Options
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import plain
from kohort.sim.kubelet import KubeletSimulator
from kohort.testing.cluster import Cluster

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy" / "chart" / "files"
RULES: list[dict[str, Any]] = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"][0]["rules"]
BOARD: dict[str, Any] = json.loads((FILES / "dashboard.json").read_text())
_METRIC = re.compile(r"\b(?:kohort|scheduler)_[a-z_]+")


@pytest.fixture
async def shown(tmp_path: Path) -> AsyncIterator[str]:
    """/metrics of a process that has placed a gang."""
    settings = Settings(tmp_path, in_memory=True, listen=False)
    async with Server(settings) as server, Client.within(server.api) as client:
        while not await client.discovery.versions("leaderworkerset.x-k8s.io", "LeaderWorkerSet"):
            await asyncio.sleep(0.01)
        chosen = Options(controllers=("job", "jobset"), listen="127.0.0.1:0")
        async with KubeletSimulator(client, plain(2), every=True), started(client, chosen) as process:
            await asyncio.wait_for(process.ready.wait(), 60)
            with watching() as process.watchdog:
                cluster = Cluster(client, "default", patience=60)
                await cluster.create(jobset("a"))
                await cluster.running(4)
                yield process.metrics().decode()


def named() -> set[str]:
    texts = [rule["expr"] for rule in RULES]
    texts += [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    return {name for text in texts for name in _METRIC.findall(text)}


async def test_every_metric_that_is_named_is_there(shown: str) -> None:
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", shown, re.MULTILINE))
    there = {*types, *(f"{name}_bucket" for name, kind in types.items() if kind == "histogram")}
    assert named() - there == set()
    assert not [name for name in types if not re.search(rf"^# HELP {name} \S", shown, re.MULTILINE)]


async def test_what_alerts_look_at(shown: str) -> None:
    values = dict(re.findall(r"^(kohort_\S+) (\S+)$", shown, re.MULTILINE))
    assert values["kohort_leader"] == "1.0"
    assert values['kohort_scheduler_bindings_total{result="bound"}'] == "4.0"
    assert values['kohort_scheduler_bindings_total{result="refused"}'] == "0.0"
    assert values["kohort_scheduler_half_bound_groups"] == "0.0"
    assert values["kohort_scheduler_cache_stale_seconds"] == "0.0"


def test_every_alert_has_its_page() -> None:
    headings = {
        line[3:].lower() for line in (ROOT / "docs" / "alerts.md").read_text().splitlines() if line[:3] == "## "
    }
    assert {rule["annotations"]["runbook"] for rule in RULES} == {f"docs/alerts.md#{name}" for name in headings}
    assert [rule["alert"].lower() for rule in RULES if rule["alert"].lower() not in headings] == []
    assert {rule["labels"]["severity"] for rule in RULES} <= {"warning", "critical"}


def test_panels_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len(places) == len(set(places))
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(places)
