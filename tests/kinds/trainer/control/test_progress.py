"""Progress of a training, as its pods report it (gate TrainJobStatus; spec trainjob 1.5): the whole way, over TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from kohort.embedded import whole
from kohort.kinds.trainer.api.constants import API_VERSION
from kohort.kinds.trainer.compile.progress import audience, path
from kohort.kube.client import Client
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import plain
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.asyncio(loop_scope="module")
STATUS: dict[str, Any] = {
    "progressPercentage": 45,
    "estimatedRemainingSeconds": 120,
    "metrics": [{"name": "loss", "value": "0.15"}, {"name": "accuracy", "value": "0.92"}],
    "lastUpdatedTime": "2026-08-21T03:00:00Z",
}


class Trainings:
    """A cluster with the training `fit`, and what one of its pods knows."""

    def __init__(self, server: Server, client: Client) -> None:
        self.server = server
        self.cluster = Cluster(client, "default", patience=60)
        self.pod: dict[str, Any] = {}

    async def begin(self) -> None:
        spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2}}
        job = {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": {"name": "fit"}, "spec": spec}
        await self.cluster.create(job)
        await self.cluster.running(2)
        self.pod = (await self.cluster.pods())[0]

    @property
    def env(self) -> dict[str, str]:
        return {one["name"]: one.get("value", "") for one in self.pod["spec"]["containers"][0]["env"]}

    async def token(self, meant: str, space: str = "default", bound: bool = True) -> str:
        spec: dict[str, Any] = {"audiences": [meant]} if meant else {}
        if bound and space == "default":
            spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": self.pod["metadata"]["name"]}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        where = f"/api/v1/namespaces/{space}/serviceaccounts/default/token"
        answer = await self.cluster.client.calls.call("POST", where, body=msgspec.json.encode(body))
        return str(msgspec.json.decode(answer)["status"]["token"])

    async def post(self, body: object, token: str, url: str = "") -> tuple[int, dict[str, Any]]:
        """As a training does: the address and the authority are what the pod was given."""
        config = await self.cluster.get("v1", "ConfigMap", "fit-tls-config")
        assert config is not None
        context = ssl.create_default_context(cadata=config["data"]["ca.crt"])
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                url or self.env["KUBEFLOW_TRAINER_SERVER_URL"], data=data, headers=headers, ssl=context
            ) as answer,
        ):
            return answer.status, await answer.json()

    async def status(self) -> Any:
        job = await self.cluster.get(API_VERSION, "TrainJob", "fit")
        return ((job or {}).get("status") or {}).get("trainerStatus")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def trainings(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Trainings]:
    folder: Path = tmp_path_factory.mktemp("progress")
    settings = Settings(folder, in_memory=True, port=0, gates={"TrainJobStatus": True})
    async with Server(settings) as server, whole(server, plain(2)) as client:
        found = Trainings(server, client)
        await found.begin()
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def token(trainings: Trainings) -> str:
    return await trainings.token(audience("default", "fit"))


async def test_pods_know_where_to_report(trainings: Trainings) -> None:
    spec = trainings.pod["spec"]
    assert trainings.env["KUBEFLOW_TRAINER_SERVER_URL"].endswith(path("default", "fit"))
    assert trainings.env["KUBEFLOW_TRAINER_SERVER_CA_CERT"] == "/var/run/secrets/kubeflow/trainer/ca.crt"
    assert trainings.env["KUBEFLOW_TRAINER_SERVER_TOKEN"] == "/var/run/secrets/kubeflow/trainer/token"
    mounts = {one["name"]: one["mountPath"] for one in spec["containers"][0]["volumeMounts"]}
    assert mounts["kubeflow-trainer-token"] == "/var/run/secrets/kubeflow/trainer"
    (volume,) = [one for one in spec["volumes"] if one["name"] == "kubeflow-trainer-token"]
    found = {next(iter(one)): next(iter(one.values())) for one in volume["projected"]["sources"]}
    assert found["serviceAccountToken"] == {
        "audience": audience("default", "fit"),
        "expirationSeconds": 3600,
        "path": "token",
    }
    assert found["configMap"]["name"] == "fit-tls-config"


async def test_a_report_is_in_the_status(trainings: Trainings, token: str) -> None:
    before = await trainings.cluster.get(API_VERSION, "TrainJob", "fit")
    code, answer = await trainings.post({"trainerStatus": STATUS}, token)
    assert (code, answer) == (200, {"trainerStatus": STATUS})
    assert await trainings.status() == STATUS
    later = {"progressPercentage": 60, "lastUpdatedTime": "2026-08-21T05:00:00.25+02:00", "unheard": 1}
    assert (await trainings.post({"trainerStatus": later}, token))[0] == 200
    assert await trainings.status() == {"progressPercentage": 60, "lastUpdatedTime": "2026-08-21T03:00:00Z"}
    job = await trainings.cluster.get(API_VERSION, "TrainJob", "fit")
    assert before is not None
    assert job is not None
    assert len(before["status"]["jobsStatus"]) == 1
    # The rest of the status is the controller's, which goes on counting meanwhile.
    assert [one["name"] for one in job["status"]["jobsStatus"]] == [
        one["name"] for one in before["status"]["jobsStatus"]
    ]


async def test_a_report_of_nothing_changes_nothing(trainings: Trainings, token: str) -> None:
    await trainings.post({"trainerStatus": STATUS}, token)
    assert await trainings.post({}, token) == (200, {})
    assert await trainings.status() == STATUS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"progressPercentage": 101}, "progressPercentage"),
        ({"progressPercentage": -1}, "progressPercentage"),
        ({"estimatedRemainingSeconds": -1}, "estimatedRemainingSeconds"),
        ({"progressPercentage": "45"}, "progressPercentage"),
        ({"metrics": [{"name": "", "value": "1"}]}, "metrics[0].name"),
        ({"metrics": [{"name": "loss", "value": "9" * 65}]}, "metrics[0].value"),
        ({"metrics": [{"name": "loss", "value": "1"}] * 257}, "metrics"),
        ({"lastUpdatedTime": None}, "lastUpdatedTime"),
        ({"lastUpdatedTime": "yesterday"}, "lastUpdatedTime"),
    ],
)
async def test_a_wrong_report_is_refused(trainings: Trainings, token: str, change: dict[str, Any], words: str) -> None:
    await trainings.post({"trainerStatus": STATUS}, token)
    code, answer = await trainings.post({"trainerStatus": {**STATUS, **change}}, token)
    assert (code, answer["kind"], answer["reason"]) == (422, "Status", "Invalid")
    assert words in answer["message"]
    assert await trainings.status() == STATUS


async def test_no_json_and_too_much(trainings: Trainings, token: str) -> None:
    code, answer = await trainings.post(b"{", token)
    assert (code, answer["reason"]) == (422, "Invalid")
    code, answer = await trainings.post(b" " * 70_000, token)
    assert (code, answer["reason"]) == (413, "RequestEntityTooLarge")


async def test_only_tokens_for_this_job(trainings: Trainings) -> None:
    await trainings.cluster.client.kind("v1", "Namespace").create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    )

    async def account() -> bool:
        return bool((await trainings.cluster.client.kind("v1", "ServiceAccount").list("other")).items)

    await trainings.cluster.until(account)
    tokens = [
        "",
        "nonsense",
        await trainings.token(""),  # good at the API server
        await trainings.token(audience("default", "another")),
        await trainings.token(audience("default", "fit"), "other"),  # of somebody else's namespace
    ]
    for one in tokens:
        code, answer = await trainings.post({"trainerStatus": STATUS}, one)
        assert (code, answer["reason"]) == (403, "Forbidden")


async def test_a_job_and_a_path_that_are_not_there(trainings: Trainings) -> None:
    url = trainings.env["KUBEFLOW_TRAINER_SERVER_URL"]
    token = await trainings.token(audience("default", "gone"))
    code, answer = await trainings.post({"trainerStatus": STATUS}, token, url.replace("/fit/", "/gone/"))
    assert (code, answer["reason"]) == (404, "NotFound")
    code, answer = await trainings.post({"trainerStatus": STATUS}, token, url.rpartition("/apis/")[0])
    assert (code, answer["reason"]) == (404, "NotFound")


async def test_an_authority_that_changes_reaches_the_pods(trainings: Trainings) -> None:
    await trainings.cluster.patch("v1", "ConfigMap", "fit-tls-config", {"data": {"ca.crt": "old"}})

    async def mended() -> bool:
        found = await trainings.cluster.get("v1", "ConfigMap", "fit-tls-config")
        return bool(found and found["data"]["ca.crt"].startswith("-----BEGIN"))

    await trainings.cluster.until(mended)
