"""`kohort run --dashboard` on real Kubernetes, in a real browser: TokenReview says who it is, SubjectAccessReview what
they see. KOHORT_PICTURES=FOLDER keeps what was seen."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.support.browser import MISSING, Page, browser, found
from tests.support.real import Kubernetes, on
from tests.web import stage
from tests.web.access import PAGE_TEXT, check_access, go, placed, reader

from kohort.kube.client import Client
from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster
from kohort.testing.environment.environment import Environment

pytestmark = pytest.mark.skipif(found() is None, reason=MISSING)
DEPLOY = Path(__file__).parents[2] / "deploy"
GPU = "nvidia.com/gpu"
NODES = Pool(
    name="gpu",
    count=8,
    capacity={"cpu": "64", "memory": "1Ti", "pods": "110", GPU: "8"},
    topology=(Level(stage.RACK, 2),),
    annotations=stage.LONG,
)


def _port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def kubernetes(kubernetes_environments: Callable[..., Environment]) -> Iterator[Kubernetes]:
    made = Kubernetes(kubernetes_environments("1.37", ("kcm",), {}), DEPLOY / "rbac.yaml")
    made.env.kubectl("apply", "-f", str(DEPLOY / "rbac-dashboard.yaml"))
    made.more = {"dashboard": {"listen": f"127.0.0.1:{_port()}"}}
    yield made
    made.stop()


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    async with browser() as opened:
        yield opened


async def _keep(page: Page, name: str) -> None:
    if folder := os.environ.get("KOHORT_PICTURES"):
        await page.picture(Path(folder) / f"{name}.png")


async def _fill(cluster: Cluster, others: str) -> Client:
    client = cluster.client
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": others}}
    await client.of(space).create(space)
    await stage.create(client, stage.job("mine", cluster.namespace, 4, 8), stage.job("secret-plan", others, 2, 8))
    await stage.create(client, stage.job("too-large", cluster.namespace, 16, 8))
    await placed(client, cluster.namespace, "mine")
    await placed(client, others, "secret-plan")
    return client


async def test_people_see_what_they_may_read(kubernetes: Kubernetes, page: Page) -> None:
    async with on(kubernetes, pools=[NODES], gates={}, name="board") as cluster:
        others = f"{cluster.namespace}-others"
        client = await _fill(cluster, others)
        url = f"http://{kubernetes.more['dashboard']['listen']}/"
        try:
            await _nothing_without_a_token(url)
            await _reads_one_namespace(page, url, await reader(client, cluster.namespace, "ana"), others)
            assert kubernetes.denied() == []
        finally:
            await client.kind("v1", "Namespace").delete(others)


async def _nothing_without_a_token(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        for path in ("", "api/view", "api/events", "api/node/gpu-0", "api/object?kind=Pod&name=a&namespace=b"):
            async with session.get(f"{url}{path}", allow_redirects=False) as answer:
                assert answer.status in {302, 303, 401}, path
                assert "secret-plan" not in await answer.text()


async def _reads_one_namespace(page: Page, url: str, token: str, others: str) -> None:
    await page.scheme("light")
    await page.open(url)
    await page.until("location.pathname === '/login' && document.getElementById('token') !== null")
    await check_access(page)
    await page.run("document.getElementById('token').value = 'wrong'; document.forms[0].submit()")
    await page.until("document.getElementById('refused')?.hidden === false")
    await _keep(page, "real-login")
    await page.run(f"document.getElementById('token').value = {token!r}; document.forms[0].submit()")
    await page.until("document.getElementById('main')?.innerText.includes('may not list the nodes')")
    await go(page, "workloads", f"{PAGE_TEXT}.includes('Job mine')")
    await check_access(page)
    await _keep(page, "real-workloads")
    await go(page, "queue", f"{PAGE_TEXT}.includes('too-large') && !{PAGE_TEXT}.includes('looking')")
    await page.until(f"{PAGE_TEXT}.includes('needs 16 × cpu 8, nvidia.com/gpu 8')")
    await _keep(page, "real-queue")
    await go(page, "timeline", f"{PAGE_TEXT}.includes('mine')")
    for route in ("workloads", "queue", "timeline", "map"):
        await page.run(f"void (location.hash = '#/{route}')")
        shown = await page.run("document.body.innerText")
        assert "secret-plan" not in shown
        assert others not in shown
    seen = await page.run("fetch('/api/view').then((one) => one.text())")
    assert "secret-plan" not in seen
    refused = await page.run(
        f"fetch('/api/object?kind=Job&name=secret-plan&namespace={others}').then((one) => one.status)"
    )
    assert refused == 404
    # The two that were refused on purpose are told by the browser itself.
    assert [one for one in page.problems if "401" not in one and "404" not in one and "403" not in one] == []
    own = urlsplit(url).netloc
    assert [one for one in page.requests if urlsplit(one).netloc not in {own, ""}] == []
