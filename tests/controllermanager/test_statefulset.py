"""Members of a StatefulSet: which revision a new one has, which go for an update, who owns their claims."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllermanager.build import NOW, owner, pod, template
from tests.support.steps import counted

from kohort.api.kind import Object
from kohort.controllermanager import history
from kohort.controllermanager.statefulset import members, volumes
from kohort.controllermanager.statefulset.reconcile import View, reconcile
from kohort.controllers.reconcile import CREATES_AT_MOST, Answer, Event, Step, Write

MOST = 2**31 - 1
CLAIM = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}


def statefulset(replicas: int, **spec: Any) -> Object:
    found = owner("StatefulSet", replicas=replicas, serviceName="web", **spec)
    found["metadata"] |= {"namespace": "lab", "uid": "s", "generation": 1}
    return found


def revision(sts: Object, name: str, number: int, image: str) -> Object:
    data = history.data_of({"spec": {"template": template(image=image)}})
    found = history.new_revision(sts, data, number, name, "controller.kubernetes.io/hash")
    found["metadata"] |= {"name": name, "uid": name}
    return found


def member(index: int, image: str, **state: Any) -> Object:
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s", "controller": True}
    labels = {"app": "web", history.HASH: image, members.POD_NAME: f"web-{index}", members.POD_INDEX: str(index)}
    return pod(f"web-{index}", labels=labels, ownerReferences=[reference], **state)


class Server:
    """Takes every write; what was written, in order, as `verb name`."""

    def __init__(self, claims: dict[str, Object] | None = None) -> None:
        self.written: list[Write] = []
        self.events: list[Event] = []
        self.claims = claims or {}

    def run(self, sts: Object, pods: list[Object]) -> list[str]:
        known = [revision(sts, "old", 1, "old"), revision(sts, "new", 2, "new")]
        steps = reconcile(View(sts, pods, known, lambda _: None, self.claims.get, NOW))
        answers: list[Answer] | None = None
        while True:
            try:
                step: Step = next(steps) if answers is None else steps.send(answers)
            except StopIteration:
                break
            self.written += step.writes
            self.events += step.events
            answers = [Answer(write.body or {}) for write in step.writes]
        return [f"{write.verb} {write.name}" for write in self.written if write.kind == "Pod"]


def updating(replicas: int, *, partition: int = 0, unavailable: Any = 1, **spec: Any) -> Object:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition, "maxUnavailable": unavailable}}
    found = statefulset(replicas, template=template(image="new"), updateStrategy=rolling, **spec)
    found["status"] = {"currentRevision": "old", "updateRevision": "new"}
    return found


def parallel(replicas: int) -> Object:
    return updating(replicas, podManagementPolicy="Parallel")


def on_delete(replicas: int) -> Object:
    found = updating(replicas)
    found["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return found


def four(*images: str) -> list[Object]:
    return [member(index, image) for index, image in enumerate(images)]


@pytest.mark.parametrize(
    ("sts", "pods", "done"),
    [
        (updating(4), four("old", "old", "old", "old"), ["delete web-3"]),
        (updating(4, unavailable=2), four("old", "old", "old", "old"), ["delete web-3", "delete web-2"]),
        (updating(4, unavailable="60%"), four("old", "old", "old", "new"), ["delete web-2", "delete web-1"]),
        (updating(4, partition=3), four("old", "old", "old", "old"), ["delete web-3"]),
        (updating(4, partition=3), four("old", "old", "old", "new"), []),
        (updating(4, partition=9), four("old", "old", "old", "old"), []),
        (updating(3), [*four("old", "old"), member(2, "new", ready=None)], []),  # it waits for what was updated
        # one that is not available anyway goes at no cost
        (parallel(2), [member(0, "old"), member(1, "old", ready=None)], ["delete web-1"]),
        (on_delete(2), four("old", "old"), []),
        # scaled down: one at a time, from the top, unless they are parallel
        (updating(1), four("new", "new", "new"), ["delete web-2"]),
        (updating(1), [*four("new", "new"), member(2, "new", deletionTimestamp="2026-11-16T12:00:00Z")], []),
        (updating(1), [*four("new"), member(1, "new", ready=None), member(2, "new", ready=None)], []),
        (updating(1), [*four("new"), member(2, "new", ready=None)], ["delete web-2"]),
        (updating(1, podManagementPolicy="Parallel"), four("new", "new", "new"), ["delete web-2", "delete web-1"]),
        # one that has ended is made anew, and only when it is gone
        (updating(2), [member(0, "new", phase="Failed", ready=None), member(1, "new")], ["delete web-0"]),
        (updating(2), [member(1, "new")], ["create web-0"]),
        (updating(3, podManagementPolicy="Parallel"), [member(1, "new")], ["create web-0", "create web-2"]),
        (updating(2, ordinals={"start": 5}), [member(5, "new")], ["create web-6"]),
        (updating(2, minReadySeconds=500), [member(0, "new")], []),  # ready for 100 seconds
    ],
)  # fmt: skip
def test_what_is_done_next(sts: Object, pods: list[Object], done: list[str]) -> None:
    assert Server().run(sts, pods) == done


@pytest.mark.parametrize("sts", [updating(MOST), parallel(MOST), updating(MOST, unavailable="50%"), on_delete(MOST)])
def test_two_billion_are_not_counted_one_by_one(sts: Object) -> None:
    with counted() as steps:
        done = Server().run(sts, [*four("new", "old"), member(7, "old")])
    assert done[0] == "create web-2"
    assert len(done) in (1, CREATES_AT_MOST)
    assert steps.count < 1_000_000


@pytest.mark.parametrize(("partition", "image"), [(0, "new"), (1, "new"), (2, "old")])
def test_a_pod_below_the_partition_comes_back_as_it_was(partition: int, image: str) -> None:
    server = Server()
    assert server.run(updating(2, partition=partition), [member(0, "old")]) == ["create web-1"]
    (made,) = [write.body for write in server.written if write.kind == "Pod"]
    assert made["spec"]["containers"][0]["image"] == image
    assert made["metadata"]["labels"][history.HASH] == image
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("web-1", "web")


def test_the_update_is_over_when_all_are_of_the_new_revision_and_ready() -> None:
    server = Server()
    server.run(updating(2), four("new", "new"))
    (status,) = [write.body["status"] for write in server.written if write.subresource == "status"]
    assert status["currentRevision"] == status["updateRevision"] == "new"
    assert status["currentReplicas"] == status["updatedReplicas"] == 2
    half = Server()
    half.run(updating(2), four("old", "new"))
    (status,) = [write.body["status"] for write in half.written if write.subresource == "status"]
    assert (status["currentRevision"], status["currentReplicas"], status["updatedReplicas"]) == ("old", 1, 1)


def claim(*owners: Object) -> Object:
    references = [
        {"kind": one["kind"], "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]} for one in owners
    ]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "ownerReferences": references},
    }


@pytest.mark.parametrize(
    ("deleted", "scaled", "index", "kinds"),
    [
        ("Retain", "Retain", 0, []), ("Retain", "Retain", 7, []),
        ("Delete", "Retain", 0, ["StatefulSet"]), ("Delete", "Retain", 7, ["StatefulSet"]),
        ("Retain", "Delete", 0, []), ("Retain", "Delete", 7, ["Pod"]),
        ("Delete", "Delete", 0, ["StatefulSet"]), ("Delete", "Delete", 7, ["Pod"]),
    ],
)  # fmt: skip
def test_whom_a_claim_goes_with(deleted: str, scaled: str, index: int, kinds: list[str]) -> None:
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    sts, one = (
        statefulset(2, persistentVolumeClaimRetentionPolicy=policy, volumeClaimTemplates=[CLAIM]),
        member(index, "n"),
    )
    for before in (claim(), claim(sts), claim(one)):
        found = {"data-web-0": before, "data-web-7": before}
        step = next(volumes.follow_policy(sts, [one], found.get), Step())
        writes = step.writes
        owners = (writes[0].body if writes else before)["metadata"].get("ownerReferences") or []
        assert [ref["kind"] for ref in owners] == kinds


def test_a_pod_waits_for_the_claim_of_its_predecessor_to_go() -> None:
    sts = updating(1, volumeClaimTemplates=[CLAIM])
    stale = claim({"kind": "Pod", "metadata": {"name": "web-0", "uid": "former"}})
    assert Server({"data-web-0": stale}).run(sts, []) == []
    server = Server()
    assert server.run(sts, []) == ["create web-0"]
    assert [write.name for write in server.written if write.kind == "PersistentVolumeClaim"] == ["data-web-0"]
