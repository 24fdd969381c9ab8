"""The shell: real informers, queues and events on the embedded API in process, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.controllers.cluster import NS, Cluster, cluster, job_of
from tests.kube.fake import FakeApi

from kohort import tuning
from kohort.api.kind import Object
from kohort.controllers.controller import (
    Controller,
    Enqueue,
    Key,
    Reader,
    Watch,
    enqueue_itself,
    key_of,
)
from kohort.controllers.metrics import Metrics
from kohort.controllers.overlay import FORGET, WriteOverlay
from kohort.controllers.reconcile import Reconcile, Result, Step, Write
from kohort.controllers.runtime import Observed, Runtime, Sender
from kohort.kinds.controllers import Setup, make, names, probe
from kohort.kube.client import Client
from kohort.kube.clock import REAL
from kohort.kube.errors import TransportError
from kohort.kube.lease import Leadership
from kohort.kube.wire import Request, Response

GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
GROUPS = "scheduling.k8s.io/v1beta1"


async def apply(found: Cluster, body: Object) -> None:
    await found.client.of(body).create(body)


def gang(name: str, size: int) -> Object:
    return job_of(name, parallelism=size, completions=size, completionMode="Indexed", scheduling=GANG)


async def is_active(found: Cluster, name: str, count: int) -> bool:
    job = await found.job(name)
    return bool((job.get("status") or {}).get("active") == count)


async def is_complete(found: Cluster, name: str) -> bool:
    conditions = ((await found.job(name)).get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Complete" for one in conditions)


async def end_all(found: Cluster, phase: str = "Succeeded") -> None:
    for pod in await found.pods():
        status = {"status": {"phase": phase}}
        await found.client.kind("v1", "Pod").patch(pod["metadata"]["name"], status, NS, subresource="status")


def failing(code: int, *, method: str, plural: str, times: int) -> object:
    """Answers so many requests with an error."""
    left = [times]

    def fault(request: Request) -> Response | None:
        if request.method == method and request.path.endswith(f"/{plural}") and left[0] > 0:
            left[0] -= 1
            return Response(code, {"content-type": "application/json"}, b'{"kind":"Status","message":"not now"}')
        return None

    return fault


async def test_a_gang_job_gets_its_objects_and_pods() -> None:
    async with cluster() as found, found.runtime() as runtime:
        await runtime.ready()
        await apply(found, gang("solver", 3))
        await found.until(lambda: is_active(found, "solver", 3))
        pods = await found.pods()
        (group,) = await found.every("PodGroup", GROUPS)
        assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods} == {group["metadata"]["name"]}
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
        assert [pod["metadata"]["finalizers"] for pod in pods] == [["batch.kubernetes.io/job-tracking"]] * 3


async def test_to_the_end_with_events_and_metrics() -> None:
    registry = CollectorRegistry()
    async with cluster() as found:
        async with found.runtime(registry=registry) as runtime:
            await runtime.ready()
            await apply(found, gang("solver", 2))
            await found.until(lambda: is_active(found, "solver", 2))
            await end_all(found)
            await found.until(lambda: is_complete(found, "solver"))
        events = (await found.client.kind("events.k8s.io/v1", "Event").list(NS)).items
        reasons = Counter(event["reason"] for event in events)
        assert reasons == {"WorkloadCreated": 1, "PodGroupCreated": 1, "SuccessfulCreate": 2, "Completed": 1}
        text = generate_latest(registry).decode()
        assert 'kohort_controller_writes_total{code="200",controller="job",kind="Pod",verb="create"} 2.0' in text
        assert 'kohort_controller_reconciles_total{controller="job",result="done"}' in text


async def test_t_40_the_server_fails_for_a_while() -> None:
    async with cluster() as found, found.runtime() as runtime:
        await runtime.ready()
        found.api.fault = failing(500, method="POST", plural="workloads", times=3)  # type: ignore[assignment]
        await apply(found, gang("stubborn", 2))
        await found.until(lambda: is_active(found, "stubborn", 2))
        assert len(await found.every("Workload", GROUPS)) == 1
        tries = [
            request for request in found.api.requests if request[0] == "POST" and request[1].endswith("/workloads")
        ]
        assert len(tries) == 4


async def test_t_42_killed_and_started_again() -> None:
    """Stopped at once after the Workload was made; the next process finds it and goes on."""
    async with cluster() as found:
        found.api.fault = failing(500, method="POST", plural="podgroups", times=10**6)  # type: ignore[assignment]
        async with found.runtime() as runtime:
            await runtime.ready()
            await apply(found, gang("cut", 2))

            async def has_workload() -> bool:
                return bool(await found.every("Workload", GROUPS))

            await found.until(has_workload)
        before = await found.every("Workload", GROUPS)
        found.api.fault = lambda request: None
        async with found.runtime():
            await found.until(lambda: is_active(found, "cut", 2))
        assert await found.every("Workload", GROUPS) == before


@pytest.mark.parametrize("lost", range(1, 7))
async def test_an_answer_that_is_lost_after_the_deed(lost: int) -> None:
    """The n-th write is done, but nobody hears of it: no pod too many remains, nothing is counted twice."""
    async with cluster() as found, found.runtime() as runtime:
        await runtime.ready()
        left = [lost]
        real = found.api.api.handle

        async def handle(request: Request, read_body: Any = None) -> Response:
            answer = await real(request, read_body)
            if request.method != "GET" and "events" not in request.path:
                left[0] -= 1
                if left[0] == 0:
                    raise TransportError("cut")
            return answer

        await apply(found, gang("solver", 3))
        found.api.api.handle = handle  # type: ignore[method-assign]
        await found.until(lambda: is_active(found, "solver", 3))
        await found.clock.advance(5)
        live = [pod for pod in await found.pods() if not pod["metadata"].get("deletionTimestamp")]
        indexes = sorted(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in live)
        assert indexes == ["0", "1", "2"]
        await end_all(found)
        await found.until(lambda: is_complete(found, "solver"))
        assert (await found.job("solver"))["status"]["succeeded"] == 3


async def test_conflicts_are_tried_again() -> None:
    async with cluster() as found, found.runtime() as runtime:
        await runtime.ready()
        found.api.fault = failing(409, method="PUT", plural="status", times=4)  # type: ignore[assignment]
        await apply(found, gang("solver", 2))
        await found.until(lambda: is_active(found, "solver", 2))


async def test_t_48_degraded_without_the_workload_api(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster("1.36") as found:
        other = await found.client.discovery.versions("scheduling.k8s.io", "PodGroup")
        assert other == ("v1alpha2",)
        async with cluster("1.37") as newer:
            setup = await probe(found.client, newer.ctx)
        assert not setup.grouping
        assert "does not serve PodGroups" in caplog.text
        async with found.runtime(make(setup, ["job"])) as runtime:
            await runtime.ready()
            await apply(found, job_of("plain", parallelism=2, completions=2))
            await found.until(lambda: is_active(found, "plain", 2))
        assert not await found.every("Workload", "scheduling.k8s.io/v1alpha2")


async def test_only_the_leader_works() -> None:
    async with cluster() as found:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        await found.client.kind("v1", "Namespace").create(space)
        leaders = []
        tasks = []
        for name in ("a", "b"):
            client = Client.within(found.api, clock=found.clock)
            lease = Leadership(client, "kohort", namespace="kube-system", identity=name, clock=found.clock)
            leaders.append(lease)
            tasks.append(asyncio.create_task(lease.run(found.runtime().run)))
        await apply(found, gang("solver", 2))
        await found.until(lambda: is_active(found, "solver", 2))
        assert sum(one.is_leader for one in leaders) == 1
        assert len(await found.pods()) == 2
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_stop_lets_looks_end_and_begins_none() -> None:
    """One look is under way, many are in line: that one ends, the others are for whoever comes next."""
    looks: list[str] = []
    release = asyncio.Event()

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        looks.append(key.name)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"seen-{key.name}"}}
        yield Step([Write(verb="create", api_version="v1", kind="ConfigMap", namespace=NS, body=body)])
        looks.append(f"{key.name} ended")
        return Result()

    watch = Watch("batch/v1", "Job", lambda old, new: [Enqueue(key_of(new or old or {}))])
    slow = Controller(name="slow", watches=(watch,), reconcile=reconcile_key, workers=1)
    async with cluster() as found:
        real = found.api.api.handle

        async def handle(request: Request, read_body: Any = None) -> Response:
            if request.method == "POST" and request.path.endswith("/configmaps"):
                await release.wait()
            return await real(request, read_body)

        found.api.api.handle = handle  # type: ignore[method-assign]
        runtime = found.runtime([slow])
        await runtime.__aenter__()
        await runtime.ready()
        for name in ("a", "b", "c"):
            await apply(found, job_of(name))

        async def begun() -> bool:
            return bool(looks)

        await found.until(begun)
        stopping = asyncio.create_task(runtime.__aexit__(None, None, None))
        await found.clock.settle()
        release.set()
        await asyncio.wait_for(stopping, 30)
        assert looks == ["a", "a ended"]


async def test_without_the_lease_nothing_is_written() -> None:
    """A leader that has lost its lease may still look, but does nothing."""
    leads = True
    async with cluster() as found, found.runtime(is_leader=lambda: leads) as runtime:
        await runtime.ready()
        await apply(found, gang("mine", 2))
        await found.until(lambda: is_active(found, "mine", 2))
        leads = False
        await apply(found, gang("theirs", 2))
        await found.clock.advance(20)
        assert len(await found.pods()) == 2
        assert len(await found.every("Workload", GROUPS)) == 1


def test_unknown_controllers_are_named() -> None:
    with pytest.raises(ValueError, match="accepted are job, cronjob"):
        make(Setup(ctx=None), ["jobb"])  # type: ignore[arg-type]
    assert set(names()) >= {"job", "cronjob", "ttl-after-finished", "jobset", "trainjob"}


async def test_a_namespace_that_goes_is_told_by_its_cause() -> None:
    async with cluster() as found:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}}
        write = Write(verb="create", api_version="v1", kind="ConfigMap", namespace=NS, body=body)
        sender = Sender(found.client)
        taken = await sender.send(write)
        assert taken.refusal is None
        await found.client.kind("v1", "Namespace").delete(NS)
        late = await sender.send(write)
        assert late.refusal is not None
        assert late.refusal.forbidden
        assert late.refusal.namespace_terminating


async def test_a_controller_counts_what_it_says_it_counts() -> None:
    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        return Result(counted=("job_seen",))
        yield

    counting = Controller(
        name="counting",
        watches=(Watch("batch/v1", "Job", enqueue_itself),),
        reconcile=reconcile_key,
        conditions=False,
        counters={"job_seen": "Jobs that were seen."},
    )
    registry = CollectorRegistry()
    async with cluster() as found, found.runtime([counting], registry=registry) as runtime:
        await runtime.ready()
        await apply(found, job_of("one"))

        async def counted() -> bool:
            return b'job_seen_total{job_name="one",namespace="lab"} 1.0' in generate_latest(registry)

        await found.until(counted)


def test_counters_of_objects_that_come_and_go_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.controllers.metrics.OBJECTS", 10)
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.add_counters("JobSet", {"jobset_completed": "Those that did."})
    for number in range(100):
        metrics.count("jobset_completed", f"j{number}", "team")
        metrics.count("jobset_completed", "daily", "team")
    lines = [one for one in generate_latest(registry).decode().splitlines() if one.startswith("jobset_completed_total")]
    assert len(lines) == 10
    assert 'jobset_completed_total{jobset_name="daily",namespace="team"} 100.0' in lines


async def test_what_was_written_and_never_seen_is_forgotten_in_calm_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to a write may be a megabyte, and the watch need not bring what was gone before it was read."""
    now = 0.0
    monkeypatch.setattr(tuning, "_forgetful", [])
    monkeypatch.setattr(type(REAL), "monotonic", lambda _: now)
    runtime = Runtime(Client.within(FakeApi()), [])
    overlay = runtime.observed._overlays["Pod"] = WriteOverlay()
    overlay.wrote({"metadata": {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "5"}}, "1", now)
    for _ in range(10):
        tuning._forget()
        await asyncio.sleep(0)
    assert len(overlay) == 1
    now = FORGET + 1
    tuning._forget()
    async with asyncio.timeout(60):
        while len(overlay):
            await asyncio.sleep(0)


def observed_by(found: Cluster, controllers: Iterable[Controller]) -> Observed:
    observed = Observed(found.client, found.clock)
    for one in controllers:
        for watch in one.watches:
            observed.want(watch, one.name)
    observed.start()
    return observed


async def test_of_a_strangers_secret_only_who_it_is_stays_in_memory() -> None:
    """A cluster has many Secrets and ConfigMaps, of any size; a TrainJob's controller reads the contents of its own."""
    async with cluster() as found:
        own = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "t", "uid": "u"}
        owners = {"strange": [], "owned": [{**own, "controller": True}]}
        for name, references in owners.items():
            meta = {"name": name, "namespace": NS, "labels": {"a": "b"}, "ownerReferences": references}
            for kind in ("Secret", "ConfigMap"):
                data = {"k": "djE="}
                await apply(found, {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": data})
        observed = observed_by(found, make(Setup(found.ctx), names()))
        for kind in ("Secret", "ConfigMap"):
            async with observed.informers["v1", kind] as informer:
                await informer.ready()
                owned = observed.get(kind, Key(NS, "owned"))
                strange = observed.get(kind, Key(NS, "strange"))
                assert owned is not None
                assert strange is not None
                assert (owned["data"], owned["metadata"]["labels"]) == ({"k": "djE="}, {"a": "b"})
                assert set(strange) == {"apiVersion", "kind", "metadata"}
                assert set(strange["metadata"]) == {
                    "name",
                    "namespace",
                    "uid",
                    "resourceVersion",
                    "creationTimestamp",
                }


@pytest.mark.parametrize("also", [False, True])
async def test_what_one_of_several_controllers_reads_is_kept_for_it(also: bool) -> None:
    async with cluster() as found:
        await apply(
            found,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": NS}, "data": {"k": "v"}},
        )

        def nothing(key: Key, reader: Reader, now: datetime) -> Reconcile:
            yield from ()
            return Result()

        watches = [Watch("v1", "ConfigMap", enqueue_itself, contents_of=("TrainJob",))]
        watches += [Watch("v1", "ConfigMap", enqueue_itself)] if also else []
        some = [Controller(name=f"c{n}", watches=(one,), reconcile=nothing) for n, one in enumerate(watches)]
        observed = observed_by(found, some)
        async with observed.informers["v1", "ConfigMap"] as informer:
            await informer.ready()
            known = observed.get("ConfigMap", Key(NS, "c"))
            assert known is not None
            assert ("data" in known) == also
