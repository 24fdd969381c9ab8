"""The process on the embedded server: it finds what is there, works, shows itself, and stops cleanly."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kohort.apimachinery.times import micros
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, TransportError
from kohort.kube.limits import Backoff
from kohort.kube.transport import Api
from kohort.kube.wire import Request, Response
from kohort.run.options import Election, Options, Reports
from kohort.run.process import Process, look, page
from kohort.scheduler.settings import SchedulerSettings
from kohort.server.auth import tls
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import plain
from kohort.sim.kubelet import KubeletSimulator
from kohort.testing.cluster import Cluster

JOBSET = "jobset.x-k8s.io/v1alpha2"
_FILES = {"certificate": "server.crt", "key": "server.key", "ca": "ca.crt"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Settings(tmp_path, in_memory=True, listen=False)) as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with Client.within(server.api) as client:
        while not await client.discovery.versions("leaderworkerset.x-k8s.io", "LeaderWorkerSet"):
            await asyncio.sleep(0.01)
        yield client


@asynccontextmanager
async def started(client: Client, chosen: Options, settings: SchedulerSettings | None = None) -> AsyncIterator[Process]:
    process = Process(client, chosen, (await look(client, chosen)).plan, settings)
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def jobset(name: str, scheduler: str = "kohort") -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "schedulerName": scheduler, "containers": [{"name": "c", "image": "i"}]}
    template = {"spec": {"parallelism": 2, "completions": 2, "template": {"spec": pod}}}
    spec = {
        "gangConfig": {"gangMode": "Gang"},
        "replicatedJobs": [{"name": "w", "replicas": 2, "template": template}],
    }
    return {"apiVersion": JOBSET, "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


async def test_it_manages_what_nobody_else_does(client: Client) -> None:
    chosen = Options(controllers=("job", "jobset"), listen="127.0.0.1:0")
    async with KubeletSimulator(client, plain(2), every=True), started(client, chosen) as process:
        await asyncio.wait_for(process.ready.wait(), 30)
        cluster = Cluster(client, "default", patience=30)
        await cluster.create(jobset("a"), jobset("b", scheduler="default-scheduler"))
        await cluster.running(4)
        pods = await cluster.pods()
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        assert {pod["metadata"]["name"][0] for pod in bound} == {"a"}  # the others are not ours to place


async def test_it_reads_the_feature_gates_of_the_embedded_server(client: Client) -> None:
    lines = {one.what: one for one in (await look(client, Options())).plan.lines}
    assert "feature gates" not in lines
    assert lines["CompositePodGroup"].verdict == "does"


async def test_only_in_its_namespaces(client: Client) -> None:
    chosen = Options(controllers=("job", "jobset"), namespaces=("mine",), listen="127.0.0.1:0")
    await client.kind("v1", "Namespace").create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    async with KubeletSimulator(client, plain(2), every=True), started(client, chosen) as process:
        await asyncio.wait_for(process.ready.wait(), 30)
        theirs, mine = Cluster(client, "default", patience=30), Cluster(client, "mine", patience=30)
        await theirs.create(jobset("a"))
        await mine.create(jobset("b"))
        await mine.running(4)
        assert await theirs.every("batch/v1", "Job") == []


async def test_the_page_and_a_clean_stop(client: Client) -> None:
    chosen = Options(controllers=("jobset",), listen="127.0.0.1:0")
    async with started(client, chosen) as process, page(process) as port, aiohttp.ClientSession() as web:
        await asyncio.wait_for(process.ready.wait(), 30)
        for path, text in {
            "healthz": "ok",
            "readyz": "ok",
            "metrics": "kohort_controller_queue_length",
        }.items():
            async with web.get(f"http://127.0.0.1:{port}/{path}") as answer:
                assert answer.status == 200
                assert text in await answer.text()
        async with web.get(f"http://127.0.0.1:{port}/debug/state") as answer:
            assert answer.status == 404
            assert "debugTokenFile" in await answer.text()
        lease = await client.kind("coordination.k8s.io/v1", "Lease").get("kohort", "kube-system")
        assert lease["spec"]["holderIdentity"]
    lease = await client.kind("coordination.k8s.io/v1", "Lease").get("kohort", "kube-system")
    assert not lease["spec"].get("holderIdentity")


async def test_the_state_is_for_those_with_the_token(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "token"
    chosen = Options(controllers=("jobset",), listen="127.0.0.1:0", debug_token_file=str(file))
    async with started(client, chosen) as process, page(process) as port, aiohttp.ClientSession() as web:
        await asyncio.wait_for(process.ready.wait(), 30)

        async def code(token: str) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            async with web.get(f"http://127.0.0.1:{port}/debug/state", headers=headers) as answer:
                await answer.read()
                return answer.status

        assert await code("") == 401  # no file yet: nobody
        file.write_text("\n")
        assert await code("") == 401
        file.write_text("secret\n")
        assert [await code(token) for token in ("", "secre", "secret2", "secret")] == [401, 401, 401, 200]


async def test_the_second_waits_and_takes_over(client: Client) -> None:
    chosen = Options(controllers=("jobset",), listen="127.0.0.1:0")
    async with started(client, chosen) as first:
        await asyncio.wait_for(first.ready.wait(), 30)
        async with started(client, chosen) as second, page(second) as port, aiohttp.ClientSession() as web:

            async def told() -> str:
                async with web.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    return f"{answer.status} {await answer.text()}"

            while not (await told()).startswith("200 ok: standing by, "):
                await asyncio.sleep(0.02)
            assert not second.ready.is_set()
    async with started(client, chosen) as third:
        await asyncio.wait_for(third.ready.wait(), 30)


class _Listening:
    """Between a process and the server: what was asked."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.asked: list[Request] = []

    async def handle(self, request: Request) -> Response:
        self.asked.append(request)
        return await self._api.handle(request)

    @property
    def lists(self) -> list[str]:
        """Requests for whole states."""
        whole = (
            one for one in self.asked if one.method == "GET" and one.path.rpartition("/")[2] in {"pods", "jobsets"}
        )
        return [one.path for one in whole if "watch" not in one.query or "sendInitialEvents" in one.query]


async def test_who_stands_by_knows_the_cluster_and_need_not_list_it(server: Server, client: Client) -> None:
    chosen = Options(controllers=("job", "jobset"), listen="127.0.0.1:0")
    between = _Listening(server.api)
    async with (
        KubeletSimulator(client, plain(2), every=True),
        Client.within(between) as other,
        AsyncExitStack() as stays,
        AsyncExitStack() as leaves,
    ):
        first = await leaves.enter_async_context(started(client, chosen))
        await asyncio.wait_for(first.ready.wait(), 30)
        second = await stays.enter_async_context(started(other, chosen))
        await asyncio.wait_for(second.warm.wait(), 30)
        cluster = Cluster(client, "default", patience=30)
        await cluster.create(jobset("before"))
        await cluster.running(4)
        assert between.lists
        between.asked.clear()
        await leaves.aclose()
        await asyncio.wait_for(second.ready.wait(), 30)
        await cluster.create(jobset("after"))
        await cluster.running(8)
        assert between.lists == []


async def test_kinds_that_come_later_are_managed(client: Client) -> None:
    crds = client.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    crd = await crds.get("jobsets.jobset.x-k8s.io")
    await crds.delete("jobsets.jobset.x-k8s.io")
    while await client.discovery.versions("jobset.x-k8s.io", "JobSet"):
        await asyncio.sleep(0.02)
        await client.discovery.refresh()
    chosen = Options(controllers=("job", "jobset"), listen="127.0.0.1:0")
    async with KubeletSimulator(client, plain(2), every=True), started(client, chosen) as process:
        await asyncio.wait_for(process.ready.wait(), 30)
        assert "jobset" not in process.plan.controllers
        await crds.create({**crd, "metadata": {"name": crd["metadata"]["name"]}, "status": {}})
        while "jobset" not in process.plan.controllers or not process.ready.is_set():
            await asyncio.sleep(0.05)
        cluster = Cluster(client, "default", patience=60)
        await cluster.create(jobset("a"))
        await cluster.running(4)


async def test_operators_are_found_by_their_webhooks_and_leases(client: Client) -> None:
    rule = {"apiGroups": ["jobset.x-k8s.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["jobsets"]}
    hook = {
        "name": "v.jobset.x-k8s.io", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore", "clientConfig": {"url": "https://127.0.0.1:9/x"},
    }  # fmt: skip
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "jobset-validating"}, "webhooks": [hook],
    }  # fmt: skip
    await client.of(configuration).create(configuration)
    now = client.clock.now()
    for name, moment in {"b8b2488c.lws.x-k8s.io": now, "grove-operator": now - timedelta(hours=1)}.items():
        spec = {"holderIdentity": "manager-0", "leaseDurationSeconds": 15, "renewTime": micros(moment)}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
        await client.of(lease).create(lease, "default")
    seen = (await look(client, Options())).survey
    assert seen.others == {
        "jobset": "ValidatingWebhookConfiguration jobset-validating",
        "leaderworkerset": "Lease default/b8b2488c.lws.x-k8s.io, held by manager-0",
    }  # the lease of the third has not been renewed for an hour: nobody is there


async def test_a_server_that_is_busy_at_the_beginning_is_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [TransportError("cut"), ApiError(503, {}), ApiError(429, {})]
    versions = client.discovery.versions

    async def busy(group: str, kind: str) -> list[str]:
        if refusals:
            raise refusals.pop(0)
        return list(await versions(group, kind))

    chosen = Options(controllers=("jobset",), listen="127.0.0.1:0")
    process = Process(client, chosen, (await look(client, chosen)).plan)
    monkeypatch.setattr(client.discovery, "versions", busy)
    monkeypatch.setattr(Backoff, "next", lambda _: 0.01)
    task = asyncio.create_task(process.run())
    await asyncio.wait_for(process.ready.wait(), 30)
    assert not refusals
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(("refusals", "seconds", "works"), [(9, 60.0, True), (10_000, 0.2, False)])
async def test_who_never_read_the_cluster_asks_for_a_minute_before_it_believes_that_it_has_no_roles(
    client: Client, monkeypatch: pytest.MonkeyPatch, refusals: int, seconds: float, works: bool
) -> None:
    chosen = Options(controllers=("jobset",), listen="127.0.0.1:0", election=Election(lease=3, renew=2, retry=1))
    found = await look(client, chosen)
    left, versions = [ApiError(403, {}) for _ in range(refusals)], client.discovery.versions

    async def forbidden(group: str, kind: str) -> list[str]:
        if left:
            raise left.pop()
        return list(await versions(group, kind))

    monkeypatch.setattr(client.discovery, "versions", forbidden)
    monkeypatch.setattr(Backoff, "next", lambda _: 0.01)
    monkeypatch.setattr("kohort.run.process._REFUSED", seconds)
    process = Process(client, chosen, found.plan)
    work = asyncio.create_task(process.run())
    ready = asyncio.create_task(process.ready.wait())
    await asyncio.wait({work, ready}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    assert (process.ready.is_set(), work.done()) == (works, not works)
    if not works:
        with pytest.raises(ApiError, match="403"):
            await work
        assert 2 < refusals - len(left) < refusals
    for task in (work, ready):
        task.cancel()
    await asyncio.gather(work, ready, return_exceptions=True)


async def test_who_stands_by_knows_that_it_has_its_roles(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has read the cluster, and never worked: an API server that is started anew and refuses it is waited for."""
    election = Election(lease=3, renew=2, retry=1)
    leases = client.kind("coordination.k8s.io/v1", "Lease")
    other = {"holderIdentity": "other", "leaseDurationSeconds": 3600}
    meta = {"name": "kohort", "namespace": "kube-system"}
    await leases.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": other})
    chosen = Options(controllers=("jobset",), listen="127.0.0.1:0", election=election)
    monkeypatch.setattr("kohort.run.process._REFUSED", 0.0)
    async with started(client, chosen) as process:
        await asyncio.wait_for(process.warm.wait(), 30)
        assert process._passes(ApiError(403, {}))
        assert not process.ready.is_set()


async def test_a_server_that_has_not_read_the_roles_yet_is_waited_for_by_who_has_worked(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts anew with a lease that expires in our hands; when we lead again, it refuses for a moment."""
    election = Election(lease=3, renew=2, retry=1)
    chosen = Options(controllers=("jobset",), listen="127.0.0.1:0", election=election)
    refusals = [ApiError(403, {}), ApiError(401, {})]
    versions = client.discovery.versions

    async def forbidden(group: str, kind: str) -> list[str]:
        if refusals:
            raise refusals.pop(0)
        return list(await versions(group, kind))

    async with started(client, chosen) as process:
        await asyncio.wait_for(process.ready.wait(), 30)
        monkeypatch.setattr(client.discovery, "versions", forbidden)
        monkeypatch.setattr(Backoff, "next", lambda _: 0.01)
        leases = client.kind("coordination.k8s.io/v1", "Lease")
        thief = {"holderIdentity": "thief", "leaseDurationSeconds": 1}
        await leases.patch("kohort", {"spec": thief}, "kube-system")
        async with asyncio.timeout(30):
            while process.ready.is_set():
                await asyncio.sleep(0.02)
            await process.ready.wait()
        assert not refusals


async def test_trainings_are_told_where_to_report(client: Client, tmp_path: Path) -> None:
    tls.ensure(tmp_path / "pki")
    files = {name: str(tmp_path / "pki" / file) for name, file in _FILES.items()}
    reports = {"trainerStatus": Reports(url="https://kohort.example:10352", listen="127.0.0.1:0", **files)}
    chosen = Options(controllers=("trainjob",), gates={"TrainJobStatus": True}, reports=reports, listen="127.0.0.1:0")
    async with started(client, chosen) as process, page(process):
        await asyncio.wait_for(process.ready.wait(), 30)
        spec = {"runtimeRef": {"name": "plain"}, "trainer": {"numNodes": 1}}
        api = "trainer.kubeflow.org/v1alpha1"
        cluster = Cluster(client, "default", patience=30)
        await cluster.create({"apiVersion": api, "kind": "TrainJob", "metadata": {"name": "fit"}, "spec": spec})
        jobset = await cluster.until(lambda: cluster.get(JOBSET, "JobSet", "fit"))
        pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        env = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
        assert env["KUBEFLOW_TRAINER_SERVER_URL"].startswith("https://kohort.example:10352/apis/trainer.kubeflow.org/")
        address = (
            f"https://127.0.0.1:{process.report_ports['trainjob']}/apis/{api}/namespaces/default/trainjobs/fit/status"
        )
        context = ssl.create_default_context(cafile=files["ca"])
        async with aiohttp.ClientSession() as session, session.post(address, json={}, ssl=context) as answer:
            assert (answer.status, (await answer.json())["reason"]) == (403, "Forbidden")


async def test_ends_of_jobsets_are_counted(client: Client) -> None:
    chosen = Options(controllers=("job", "jobset"), listen="127.0.0.1:0")
    async with KubeletSimulator(client, plain(2), every=True), started(client, chosen) as process:
        await asyncio.wait_for(process.ready.wait(), 30)
        cluster = Cluster(client, "default", patience=60)
        for name, code in (("good", "0"), ("bad", "1")):
            body = jobset(name)
            job = body["spec"]["replicatedJobs"][0]["template"]["spec"]
            job["backoffLimit"] = 0
            notes = {"sim.kohort.dev/run-seconds": "0", "sim.kohort.dev/exit-code": code}
            job["template"]["metadata"] = {"annotations": notes}
            await cluster.create(body)

        async def counted() -> bool:
            text = process.metrics().decode()
            wanted = {"completed": "good", "failed": "bad"}
            return all(
                f'jobset_{end}_total{{jobset_name="{name}",namespace="default"}} 1.0' in text
                for end, name in wanted.items()
            )

        await cluster.until(counted)
