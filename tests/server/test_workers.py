"""Requests in worker processes: what they answer and store is what the server would have, letter by letter."""

from __future__ import annotations

import asyncio
import io
import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.crd.documents import crd
from tests.server.talk import Talk
from tests.support.recorder import Player

from kohort.api.kind import Context
from kohort.childprocess import ChildProcess
from kohort.kube.client import Client
from kohort.kube.wire import Request, User
from kohort.server.admission import quota_usage
from kohort.server.admission.chain import admission
from kohort.server.limits import Limits
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.server.workers.pool import Chosen, WorkerPool
from kohort.server.workers.process import Worker
from kohort.server.workers.remote import Line
from kohort.testing.client import Response

RECORDED = Path(__file__).parents[1] / "recorded" / "validation-1.37.json"
MAPS = "/api/v1/namespaces/d/configmaps"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
LIMITS = Limits(workers=1)
_EVERY = 10  # of the recorded cases, one in so many
_UNLIKE = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z")  # uids, times
_EACH_ITS_OWN = (
    "<uid>",
    "generateName",
    "gatesDuringPrior",
    "as=Table",
)  # cases whose answers two servers cannot share


class Worked(Talk):
    """Everything that a worker can do is done by one."""

    def __init__(self, gates: Any = None, limits: Limits = LIMITS, *, everything: bool = True) -> None:
        self._limits, self._everything = limits, everything
        super().__init__(gates=gates)

    def switch(self, gates: Any) -> None:
        super().switch(gates)
        api = self.api
        made = admission(api.core)
        api.core.use(made.plugins)
        self.pool = WorkerPool(api.core, made, self._limits, Chosen(authorize=False), everything=self._everything)
        api.workers = self.pool

    def close(self) -> None:
        self.loop.run_until_complete(self.pool.close())
        super().close()


class Plain(Talk):
    def switch(self, gates: Any) -> None:
        super().switch(gates)
        self.api.core.use(admission(self.api.core).plugins)


class Both:
    """Asks two servers the same, and compares."""

    def __init__(self, gates: Any) -> None:
        self.here, self.there = Plain(gates=gates), Worked(gates)
        self.compared = 0

    def request(self, method: str, path: str, body: Any = None, **more: Any) -> Response:
        answers = [one.request(method, path, body, **more) for one in (self.here, self.there)]
        here, there = (_shown(one) for one in answers)
        assert here == there, (method, path)
        self.compared += 1
        return answers[1]

    def get(self, path: str) -> Any:
        return self.request("GET", path).json()

    def create(self, path: str, body: Any) -> Any:
        return self.request("POST", path, body).json()

    def close(self) -> None:
        self.here.close()
        self.there.close()


def _shown(answer: Response) -> tuple[int, bytes, list[str]]:
    return answer.code, _UNLIKE.sub(b"?", answer.body), answer.warnings


def _request(method: str, path: str, body: bytes, user: User | None = None) -> Request:
    return Request(method, path, {}, {"content-type": "application/json", "user-agent": "talk/1"}, body, user)


@pytest.fixture(scope="module")
def worked() -> Iterator[Worked]:
    made = Worked()
    made.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
    yield made
    made.close()


def test_recorded_requests_have_the_same_answers_and_leave_the_same_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    cases = json.loads(RECORDED.read_text())["cases"]
    gates = cases[0]["gates"]
    usable = [one for one in cases if one["gates"] == gates and not any(part in str(one) for part in _EACH_ITS_OWN)]
    both = Both(gates)
    try:
        for case in usable[::_EVERY]:
            player = Player(json.loads(json.dumps(case)), both)  # type: ignore[arg-type]
            player.prepare()
            player.ask()
            player.clean()
        for table in both.here.store.tables:
            here, there = (
                [(*item.key, item.revision, _UNLIKE.sub(b"?", item.value)) for item in one.store.table(table).items()]
                for one in (both.here, both.there)
            )
            assert here == there, table
        assert both.there.pool.requests > len(usable) // _EVERY
    finally:
        both.close()


def test_what_is_small_stays_on_the_loop_and_what_is_large_does_not() -> None:
    talk = Worked(everything=False)
    try:
        talk.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
        assert talk.create(MAPS, {"metadata": {"name": "small"}, "data": {"a": "b"}})["metadata"]["uid"]
        assert talk.pool.requests == 0
        data = {f"k{number}": "v" for number in range(5000)}
        assert talk.create(MAPS, {"metadata": {"name": "large"}, "data": data})["data"] == data
        assert talk.pool.requests == 1
        assert talk.request("PATCH", f"{MAPS}/large", {"data": {"k1": None}}, content_type=MERGE).ok  # as it is stored
        assert talk.request("GET", f"{MAPS}/large").ok
        assert talk.pool.requests == 2
        assert talk.request("GET", f"{MAPS}/large", accept="application/yaml").body.count(b"\n") > 4999
        assert talk.pool.requests == 3
        lines = "\n".join(f"  k{number}: v" for number in range(1000))
        text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n{lines}\n"
        assert talk.request("PATCH", f"{MAPS}/applied?fieldManager=m", text=text, content_type=APPLY).code == 201
        assert talk.pool.requests == 4
        copies = [{"op": "copy", "from": "/metadata", "path": f"/metadata/{number}"} for number in range(3)]
        assert talk.request("PATCH", f"{MAPS}/small", copies, content_type="application/json-patch+json").ok
        assert (talk.pool.requests, talk.pool.started) == (5, 1)
        found = {one.name: one.samples[0].value for one in talk.pool.collect()}
        assert (found["kohort_worker_requests"], found["kohort_worker_processes"]) == (5, 1)
    finally:
        talk.close()


@pytest.mark.parametrize("count", [24, 25])
async def test_many_templates_are_not_defaulted_on_the_loop(count: int, tmp_path: Path) -> None:
    """A JobSet of 25 KB that names a hundred jobs is 77 KB when their defaults are in, and took 44 ms."""
    settings = Settings(data=tmp_path, minor="1.37", gates={}, port=0, in_memory=True)
    async with Server(settings) as server, Client.within(server.api) as client:
        await client.resource("namespaces").create({"metadata": {"name": "d"}})
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        job = {"spec": {"template": {"spec": pod}}}
        jobs = [{"name": f"j{number}", "template": job} for number in range(count)]
        body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "wide"}}
        made = await client.of(body).create({**body, "spec": {"replicatedJobs": jobs}}, "d")
        assert len(made["spec"]["replicatedJobs"]) == count
        assert server.api.workers is not None
        assert server.api.workers.requests == (count > 24)


def test_deletions_have_the_same_answers_both_ways() -> None:
    both = Both(None)
    pods = "/api/v1/namespaces/d/pods"
    try:
        both.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
        for name in ("plain", "kept", "last"):
            both.create(MAPS, {"metadata": {"name": name, "finalizers": ["a.b/c"] if name == "kept" else []}})
        for name in ("now", "later"):
            spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
            both.create(pods, {"metadata": {"name": name}, "spec": spec})
        both.request("DELETE", f"{MAPS}/plain?dryRun=All")
        both.request("DELETE", f"{MAPS}/plain", {"preconditions": {"uid": "other"}})
        both.request("DELETE", f"{MAPS}/plain")
        both.request("DELETE", f"{MAPS}/plain")
        both.request("DELETE", f"{MAPS}/kept")
        both.request("DELETE", f"{pods}/now?gracePeriodSeconds=0")
        both.request("DELETE", f"{pods}/later")
        both.request("DELETE", MAPS)
        assert [one["metadata"]["name"] for one in both.get(MAPS)["items"]] == ["kept"]
        assert [one["metadata"]["name"] for one in both.get(pods)["items"]] == ["later"]
        assert both.there.pool.requests > both.compared // 2
    finally:
        both.close()


def test_what_is_large_is_deleted_by_a_worker() -> None:
    talk = Worked(everything=False)
    try:
        talk.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
        data = {f"k{number}": "v" for number in range(5000)}
        for name in "abc":
            talk.create(MAPS, {"metadata": {"name": name}, "data": data if name != "c" else {}})
        asked = talk.pool.requests
        assert talk.request("DELETE", f"{MAPS}/a").ok
        assert talk.pool.requests == asked + 1
        assert talk.request("DELETE", MAPS).ok  # b, and c which is small
        assert talk.pool.requests == asked + 2
        assert talk.get(MAPS)["items"] == []
    finally:
        talk.close()


def test_writes_that_meet_in_a_worker_and_on_the_loop_conflict_as_ever(worked: Worked) -> None:
    """The name is taken, the version is old, the namespace is gone: asked again when the worker wants to write."""
    api, core = worked.api, worked.api.core
    body = json.dumps({"metadata": {"name": "x"}, "data": {"a": "b"}}).encode()

    async def together() -> list[int]:
        ways = (api.workers, None, api.workers)
        sent = []
        for way in ways:
            api.workers = way
            sent.append(asyncio.ensure_future(api.handle(_request("POST", MAPS, body))))
            await asyncio.sleep(0)
        api.workers = ways[0]
        return sorted([one.status for one in await asyncio.gather(*sent)])

    assert worked.loop.run_until_complete(together()) == [201, 409, 409]
    assert [item.name for item in core.store.table("configmaps").items("d")] == ["x"]


def test_a_quota_counts_what_workers_write(worked: Worked) -> None:
    worked.create("/api/v1/namespaces", {"metadata": {"name": "q"}})
    hard = {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}}}
    worked.create("/api/v1/namespaces/q/resourcequotas", hard)
    maps = MAPS.replace("/d/", "/q/")
    codes = [worked.request("POST", maps, {"metadata": {"name": f"m{number}"}}).code for number in range(2)]
    assert codes == [201, 403]


def test_pods_count_alike_whoever_reads_them() -> None:
    both = Both(None)
    try:
        both.create("/api/v1/namespaces", {"metadata": {"name": "p"}})
        hard = {"pods": "3", "requests.cpu": "2", "limits.memory": "1Gi"}
        both.create("/api/v1/namespaces/p/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        texts = []
        asked = (("500m", "300Mi"), ("1", ""), ("", "1Mi"), ("1500m", "1Gi"), ("1", "100Mi"))
        for number, (cpu, memory) in enumerate(asked):
            resources = {"requests": {"cpu": cpu} if cpu else {}, "limits": {"memory": memory} if memory else {}}
            containers = [{"name": "c", "image": "i", "resources": resources}]
            body = {"metadata": {"name": f"p{number}"}, "spec": {"containers": containers}}
            answer = both.request("POST", "/api/v1/namespaces/p/pods", body)
            texts.append(answer.json().get("message", str(answer.code)))
    finally:
        both.close()
    assert (texts[0], texts[4]) == ("201", "201")
    assert "must specify limits.memory for: c" in texts[1]
    assert "must specify requests.cpu for: c" in texts[2]
    assert "exceeded quota: q, requested: limits.memory=1Gi" in texts[3]


def test_a_pod_of_many_containers_is_counted_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the loop it would take long for each of its writes, and once more for what a quota keeps."""
    here: list[int] = []  # containers of the pods that are counted on the loop
    real = quota_usage.usage_of

    def usage_of(kind: quota_usage.Source, obj: Any, now: datetime, **more: bool) -> quota_usage.Usage:
        if kind == quota_usage.PODS and threading.current_thread() is threading.main_thread():
            here.append(len(obj["spec"]["containers"]))
        return real(kind, obj, now, **more)

    monkeypatch.setattr(quota_usage, "usage_of", usage_of)
    talk = Worked(everything=False)
    try:
        talk.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
        hard = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3", "requests.cpu": "4001m"}}}
        talk.create("/api/v1/namespaces/d/resourcequotas", hard)
        asked = {"requests": {"cpu": "1m", "memory": "1Ki"}, "limits": {"memory": "1Mi"}}
        containers = [{"name": f"c{number}", "image": "i", "resources": asked} for number in range(2000)]
        codes = []
        for name, some in (("a", containers), ("b", containers[:1]), ("c", containers), ("d", containers[:1])):
            body = {"metadata": {"name": name}, "spec": {"containers": some}}
            codes.append(talk.request("POST", "/api/v1/namespaces/d/pods", body).code)
    finally:
        talk.close()
    assert codes == [201, 201, 201, 403]
    assert set(here) == {1}


def test_a_request_that_takes_too_long_is_ended_and_the_next_one_is_answered() -> None:
    talk = Worked(limits=Limits(workers=1, worker_seconds=0.0))
    try:
        found = talk.request("POST", "/api/v1/namespaces", {"metadata": {"name": "d"}})
        assert (found.code, found.json()["reason"]) == (504, "Timeout")
        assert talk.pool.timeouts == 1
    finally:
        talk.close()


def test_a_worker_that_dies_costs_one_request(worked: Worked) -> None:
    pool = worked.pool
    before = pool.started
    (worker,) = pool._all
    worker.kill()
    worker._process.wait()
    found = worked.request("POST", MAPS, {"metadata": {"name": "a"}})
    again = worked.request("POST", MAPS, {"metadata": {"name": "b"}})
    assert (found.code in (201, 503), again.code, pool.started) == (True, 201, before + 1)


def test_of_two_workers_one_user_has_one() -> None:
    talk = Worked(limits=Limits(workers=2))
    try:
        pool = talk.pool
        body = json.dumps({"metadata": {"name": "x"}}).encode()

        async def crowd() -> int:
            users = ["a", "a", "a", "b"]
            sent = [
                asyncio.ensure_future(talk.api.handle(_request("POST", "/api/v1/namespaces", body, User(name))))
                for name in users
            ]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            waiting = pool._seats.waiting
            await asyncio.gather(*sent)
            return waiting

        assert talk.loop.run_until_complete(crowd()) == 2
    finally:
        talk.close()


class Definitions(Line):
    """The server's side of a worker's questions: there are definitions, and nothing else."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), io.BytesIO())
        self.established = False

    def ask(self, *question: Any) -> Any:
        if question[0] != "items" or question[1] != "apiextensions.k8s.io/customresourcedefinitions":
            return [] if question[0] == "items" else None
        made = {**crd(), "status": {"acceptedNames": crd()["spec"]["names"]}}
        made["status"]["conditions"] = [{"type": "Established", "status": "True"}] if self.established else []
        return [["", "gizmos.kohort.test", 2 if self.established else 1, json.dumps(made).encode()]]

    def read(self) -> Any:
        return ["", []]


def test_a_definition_that_was_served_before_it_was_established_is_read_again() -> None:
    """The server counts a change when it serves it, which is before the status says so: that is the next write."""
    line = Definitions()
    worker = Worker(line, Context.of("1.37", None), Chosen(authorize=False))
    asked: dict[str, Any] = {
        "method": "GET",
        "path": "/apis/kohort.test/v1/namespaces/d/gizmos/g",
        "query": {},
        "headers": {},
        "body": b"",
        "user": None,
        "resource": ["kohort.test", "v1", "gizmos"],
        "verb": "get",
        "namespace": "d",
        "name": "g",
        "subresource": "",
        "accepted": ["application/json", "", "", "", False],
        "changes": 1,
    }
    assert asyncio.run(worker.answer(asked)) == ["unknown"]
    line.established = True
    code, refusal, *_ = asyncio.run(worker.answer(asked))
    assert (code, refusal["reason"]) == ("refused", "NotFound")


def test_a_worker_that_gives_a_service_its_address_does_not_read_all_services() -> None:
    """They may be megabytes each, and every large one would cost as much as all before it."""
    talk = Worked()
    services = "/api/v1/namespaces/d/services"
    ports = [{"port": number, "name": f"p{'o' * 50}{number}"} for number in range(1, 401)]
    try:
        talk.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
        sent = 0
        before = ChildProcess.send

        async def counted(self: ChildProcess, message: Any) -> None:
            nonlocal sent
            sent += len(msgspec.msgpack.encode(message))
            await before(self, message)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ChildProcess, "send", counted)
            found, costs = set(), []
            for number in range(6):
                sent = 0
                spec = {"type": "NodePort", "ports": ports}
                made = talk.create(services, {"metadata": {"name": f"s{number}"}, "spec": spec})
                found.add(made["spec"]["clusterIP"])
                found |= {one["nodePort"] for one in made["spec"]["ports"]}
                costs.append(sent)
        assert len(found) == 6 * 401
        assert costs[-1] < 2 * costs[0]
    finally:
        talk.close()
