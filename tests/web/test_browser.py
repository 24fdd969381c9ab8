"""The dashboard in a real browser, through every page. KOHORT_PICTURES=docs/images keeps what it saw.

It needs Chromium and skips without; axe-core is asked where KOHORT_AXE names its file (npm pack axe-core).
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.browser import MISSING, Page, browser, found
from tests.web import stage
from tests.web.access import PAGE_TEXT as TEXT
from tests.web.access import check_access, go, placed, reader

from kohort.kube.client import Client
from kohort.plan.loading import load
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.web.serve import for_users, local

pytestmark = pytest.mark.skipif(found() is None, reason=MISSING)
PICTURES = os.environ.get("KOHORT_PICTURES", "")
DRAWN = "performance.getEntriesByName('map-drawn').length"


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    async with browser() as opened:
        yield opened


async def keep(page: Page, name: str) -> None:
    if PICTURES:
        await page.picture(Path(PICTURES) / f"{name}.png")


async def link_of(page: Page, words: str) -> str:
    script = (
        f"[...document.querySelectorAll('a')].find((one) => one.textContent.includes({words!r}))?.getAttribute('href')"
    )
    return str(await page.until(script))


def foreign(page: Page, link: str) -> list[str]:
    own = urlsplit(link).netloc
    return [url for url in page.requests if not url.startswith(("data:", "about:")) and urlsplit(url).netloc != own]


async def test_every_page(tmp_path: Path, page: Page) -> None:
    async with stage.running(tmp_path, stage.pools()) as (_, client):
        await stage.play(client)
        await placed(client, "research", "vit")
        async with local(client) as link:
            await page.scheme("light")
            await page.open(link)
            await page.until(DRAWN)
            assert await page.run("location.search") == ""  # the secret is not left in the address
            await placed(client, "batch", "sweep-3")
            await stage.press(client)
            await placed(client, "research", "deadline")

            # The map: what it draws is told to those who cannot see it.
            await page.until("document.body.innerText.includes('TrainJob vit')")
            await page.until("parseInt(document.querySelector('nav .count').textContent) >= 2")
            await page.until("document.querySelector('.big .bad') !== null", 90)  # the node that is away
            await check_access(page)
            await page.run("document.querySelector('canvas').focus()")
            for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
                await page.key(key)
            await page.until("document.getElementById('say').textContent.includes('of 8 gpu')")
            await page.until("document.querySelector('[aria-label=Node] h2')?.textContent.startsWith('gpu-')")
            await keep(page, "dashboard-map")
            await page.key("Escape")
            await page.press("button", "Table")
            await page.until("document.querySelectorAll('.tablewrap tbody tr').length === 9")
            await check_access(page)

            # The queue says what explain says.
            await go(page, "queue", f"{TEXT}.includes('gpt-xl') && !{TEXT}.includes('looking')")
            await page.until(f"{TEXT}.includes('needs 48 × cpu 8, nvidia.com/gpu 8')", 90)  # all its pods are made
            await page.until(f"['Insufficient', 'NotEnough', 'would'].some((word) => {TEXT}.includes(word))")
            await page.until(f"{TEXT}.includes('in one topology.kubernetes.io/rack')")
            await check_access(page)
            await keep(page, "dashboard-queue")

            # A workload from the top to its pods; conditions, events and YAML of each.
            await go(page, "workloads", f"{TEXT}.includes('TrainJob vit')")
            await check_access(page)
            await page.run(f"void (location.hash = {await link_of(page, 'TrainJob vit')!r})")
            await page.until(f"{TEXT}.includes('8 of 8 placed')")
            chain = await page.run("[...document.querySelectorAll('.chain li')].map((one) => one.textContent)")
            assert chain[0] == "TrainJob vit", chain
            ranks = "[...document.querySelectorAll('.pods td:first-child')].map((one) => one.textContent).join(' ')"
            await page.until(f"{ranks} === '0 1 2 3 4 5 6 7'")
            await page.press("[role=tab]", "YAML")
            await page.until("document.querySelector('pre.yaml')?.textContent.includes('kind: TrainJob')")
            await page.press(".pods .link")
            await page.until("document.querySelector('pre.yaml')?.textContent.includes('kind: Pod')")
            await page.press("[role=tab]", "Events")
            await page.until(f"{TEXT}.includes('Scheduled')")
            await page.press(".chain .link")
            await page.until("document.querySelector('.objectpanel h2').textContent === 'TrainJob vit'")
            await check_access(page)
            await keep(page, "dashboard-workload")

            # The timeline.
            await go(page, "timeline", f"{TEXT}.includes('preempted') && {TEXT}.includes('failed on')")
            await page.until("document.querySelectorAll('.lane').length > 8")
            await check_access(page)

            # Live: what is created appears, in the dark as well.
            await page.scheme("dark")
            await stage.create(client, stage.job("newcomer", "batch", 2, 1))
            await page.until(f"{TEXT}.includes('newcomer')")
            assert await page.run("document.documentElement.dataset.theme") == "dark"
            await check_access(page)
            await keep(page, "dashboard-timeline")
            await go(page, "map", f"{TEXT}.includes('newcomer')")
            await check_access(page)
            await keep(page, "dashboard-map-dark")

            # A narrow window.
            await page.size(420, 860)
            await page.until("document.querySelector('.scroller').clientWidth < 420")
            await page.picture(tmp_path / "narrow.png")
            assert page.problems == []
            assert foreign(page, link) == []


async def test_a_user_sees_their_namespaces_only(tmp_path: Path, page: Page) -> None:
    async with stage.running(tmp_path, stage.pools()) as (_, client):
        await stage.play(client)
        await placed(client, "research", "vit")
        token = await reader(client, "research", "ana")
        async with for_users(client, "127.0.0.1", 0) as url:
            await page.open(url)
            await page.until("location.pathname === '/login'")
            await check_access(page)
            await page.run("document.getElementById('token').value = 'wrong'; document.forms[0].submit()")
            await page.until("document.getElementById('refused')?.hidden === false")
            await page.run(f"document.getElementById('token').value = {token!r}; document.forms[0].submit()")
            await page.until("document.getElementById('main')?.innerText.includes('may not list the nodes')")
            await go(page, "workloads", f"{TEXT}.includes('TrainJob vit')")
            assert "llama" not in await page.run(TEXT)
            seen = await page.run("fetch('/api/view').then((one) => one.text())")
            for hidden in ("llama", "sweep", "chat", "gpu-00"):
                assert hidden not in seen
            others = await page.run(
                "fetch('/api/object?kind=Pod&name=llama-0&namespace=serving').then((one) => one.status)"
            )
            nodes = await page.run("fetch('/api/node/gpu-00').then((one) => one.status)")
            assert (others, nodes) == (404, 404)
            assert foreign(page, url) == []


async def test_a_large_cluster(tmp_path: Path, page: Page) -> None:
    """Ten pods on every node. KOHORT_DASHBOARD_NODES=5000 measures: the first picture within two seconds of a visit,
    also of the first, when nothing has been read yet: pods come into the picture as they are read."""
    nodes = int(os.environ.get("KOHORT_DASHBOARD_NODES", "1000"))
    limit = 2.0 if "KOHORT_DASHBOARD_NODES" in os.environ else 20.0  # machines that test are busy
    async with Server(Settings(tmp_path, "1.37", port=0, in_memory=True)) as server:
        await load(server, stage.full(nodes, 10))
        async with Client.within(server.api, clock=server.clock) as client, local(client) as link:
            began = time.monotonic()
            await page.open(link)
            await page.until(DRAWN, 120)
            cold = time.monotonic() - began
            await page.until("document.getElementById('main').getAttribute('aria-busy') === 'false'", 120)
            whole = time.monotonic() - began
            assert await page.run("document.getElementById('notice').hidden")
            assert await page.run("document.querySelectorAll('.legend li').length") > 10
            await page.open(urlsplit(link)._replace(query="", path="/").geturl())
            await page.until(f"{DRAWN} && performance.now() > 0", 60)
            warm = await page.run("performance.getEntriesByName('map-drawn')[0].startTime") / 1000
            frame = await page.run(
                "new Promise((done) => { const began = performance.now();"
                "document.querySelector('.scroller').dispatchEvent(new Event('scroll'));"
                "requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began))); })"
            )
            print(f"{nodes} nodes: first visit {cold:.2f} s, with all pods {whole:.2f} s; later visits {warm:.2f} s")
            print(f"drawn again in {frame:.0f} ms")
            assert f"{nodes:,}" in await page.run("document.querySelector('.big').innerText")
            await keep(page, "dashboard-large")
            assert page.problems == []
            assert max(cold, warm) < limit
