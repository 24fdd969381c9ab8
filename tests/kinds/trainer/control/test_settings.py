"""What settings, gates and the server's age make of a TrainJob (spec trainjob 6: 9, 10, 33, 42, 57, 79)."""

from __future__ import annotations

import pytest
from tests.kinds.trainer.compile.build import rjob, runtime, trainer
from tests.kinds.trainer.control.training import KEYS, NS, Training

from kohort.api.kind import Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.gang.compile import CompileContext
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.jobset.control.controller import jobset_controller
from kohort.kinds.trainer.api.constants import GATE
from kohort.kinds.trainer.control.controller import trainjob_controller
from kohort.kinds.trainer.control.keys import Keys, curve_key, ssh_key, z85


def restarted(world: Training, ctx: CompileContext, *, grouping: bool = True) -> None:
    layers = (
        trainjob_controller(ctx, grouping=grouping, keys=KEYS),
        jobset_controller(ctx, grouping=grouping),
        job_controller(ctx, grouping=grouping),
    )
    world.driver.start(*layers)


def links(world: Training) -> list[Object]:
    jobs = world.find("JobSet")["spec"]["replicatedJobs"]
    return [one["template"]["spec"]["template"]["spec"].get("schedulingGroup") for one in jobs]


def test_9_gate_off_the_runtime_is_refused() -> None:
    world = Training(options=DEFAULT_OPTIONS - {GATE})
    assert world.api.create(runtime(), NS).code == 422


def test_10_gate_off_a_stored_runtime_is_used_without_groups() -> None:
    world = Training()
    world.runtime()
    off = CompileContext(world.ctx.release, world.ctx.gates, world.ctx.options - {GATE})
    restarted(world, off)
    world.job(nodes=3)
    world.run()
    assert world.names("Workload") == world.names("PodGroup") == []
    assert links(world) == [None]
    assert len(world.pods()) == 3


def test_79_the_server_has_no_groups() -> None:
    world = Training()
    world.runtime()
    world.api.unserved |= {"Workload", "PodGroup", "CompositePodGroup"}
    restarted(world, world.ctx, grouping=False)
    world.job(nodes=3)
    world.run()
    assert links(world) == [None]
    assert len(world.pods()) == 3


def test_a_job_that_began_without_groups_goes_on_without() -> None:
    world = Training()
    world.runtime()
    restarted(world, CompileContext(world.ctx.release, world.ctx.gates, world.ctx.options - {GATE}))
    world.job(nodes=2)
    world.run()
    restarted(world, world.ctx)
    world.patch({"metadata": {"labels": {"look": "again"}}})
    world.run()
    assert world.names("Workload") == []
    assert world.reasons() == []


def test_57_groups_preserved_over_a_suspension() -> None:
    world = Training(on_suspend="Preserve")
    world.runtime()
    world.job(nodes=2, suspend=True)
    world.run()
    before = [obj["metadata"]["uid"] for kind in ("Workload", "PodGroup") for obj in world.api.every(kind)]
    assert len(before) == 2
    world.suspend(False)
    world.run()
    assert len(world.pods()) == 2
    world.suspend()
    world.run()
    assert world.pods() == []
    assert [obj["metadata"]["uid"] for kind in ("Workload", "PodGroup") for obj in world.api.every(kind)] == before


def test_42_shared_claim_of_a_stage() -> None:
    claim = {"name": "slice", "resourceClaimTemplateName": "tpu-slice"}
    entries = [{"targetReplicatedJobs": ["node"], "resourceClaims": [claim]}]
    world = Training()
    world.runtime(trainer(resourceClaims=[claim]), workload={"scheduling": {"replicatedJobs": entries}})
    world.job(nodes=2)
    world.run()
    (group,) = world.api.every("PodGroup")
    assert group["spec"]["resourceClaims"] == [claim]


def test_52_writes_in_order() -> None:
    world = Training()
    world.runtime(trainer("launcher"), rjob("node"), ml={"mpi": {}})
    world.job(nodes=2)
    world.run()
    made = [kind for kind in world.created() if kind not in {"Pod", "Job", "Service"}]
    assert made == ["ConfigMap", "Workload", "PodGroup", "ConfigMap", "Secret", "JobSet"]


def test_old_minors_get_the_groups_that_they_know() -> None:
    world = Training("1.35")
    world.runtime()
    world.job(nodes=2)
    world.run()
    assert world.names("Workload") == ["job"]
    (one,) = world.find("JobSet")["spec"]["replicatedJobs"]
    assert one["template"]["spec"]["template"]["spec"]["workloadRef"] == {"name": "job", "podGroup": "trainer"}


def test_keys_that_a_user_brings_are_used() -> None:
    world = Training()
    world.runtime(trainer("launcher"), rjob("node"), ml={"mpi": {}})
    mine = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "job-mpi-ssh-auth"},
        "data": {"ssh-privatekey": ""},
    }
    stored = world.make(mine)
    world.job(nodes=2)
    world.run()
    assert len(world.pods()) == 3
    assert world.find("Secret", "job-mpi-ssh-auth")["metadata"]["uid"] == stored["metadata"]["uid"]


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_what_belongs_to_somebody_else_is_not_taken(kind: str) -> None:
    world = Training()
    world.runtime(trainer("launcher"), rjob("node"), ml={"mpi": {}})
    name = {"ConfigMap": "job-mpi-hostfile", "Secret": "job-mpi-ssh-auth"}[kind]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "x", "controller": True}
    world.api.collects = False
    world.make({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "ownerReferences": [other]}})
    world.job(nodes=2)
    world.run()
    assert world.names("JobSet") == []
    assert set(world.reasons()) == {"TrainJobResourcesCreationFailed"}
    world.delete(kind, name)
    world.run(10)
    assert world.names("JobSet") == ["job"]


def test_a_job_in_trouble_can_be_suspended() -> None:
    world = Training()
    world.runtime()
    world.job(nodes=2)
    world.run()
    (workload,) = world.api.every("Workload")
    world.make({**workload, "metadata": {"name": "second"}})
    world.suspend()
    world.run()
    assert world.reasons().count("TrainJobResourcesCreationFailed") >= 1
    assert world.find("JobSet")["spec"]["suspend"]
    assert world.pods() == []


def test_a_missing_runtime_is_waited_for() -> None:
    world = Training()
    world.job(nodes=2)
    world.run()
    assert set(world.reasons()) == {"TrainJobResourcesCreationFailed"}
    world.runtime()
    world.run(10)
    assert len(world.pods()) == 2


def test_an_unknown_kind_of_runtime_fails_the_job() -> None:
    world = Training()
    world.api.groups -= {"trainer.kubeflow.org"}
    world.job(runtimeRef={"name": "rt", "kind": "JobTemplate"})
    world.run()
    assert world.conditions() == ["Failed=True TrainingRuntimeNotSupported"]


def test_keys_are_random_and_well_formed() -> None:
    first, second = ssh_key(), ssh_key()
    assert first != second
    assert first["ssh-publickey"].startswith(b"ecdsa-sha2-nistp521 ")
    assert b"BEGIN EC PRIVATE KEY" in first["ssh-privatekey"]
    certificate = curve_key()["curve.cert"].decode()
    keys = [line.partition(" = ")[2].strip('"') for line in certificate.splitlines() if "-key" in line]
    assert [len(key) for key in keys] == [40, 40]
    assert curve_key() != curve_key()
    # The vector of ZeroMQ's RFC 32.
    assert z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    assert Keys() == Keys(ssh_key, curve_key)
