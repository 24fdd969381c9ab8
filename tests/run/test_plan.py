"""What is decided from what was found: one line for each capability, and what is started."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api.releases import Gate
from kohort.run.options import Options, Reports
from kohort.run.plan import Plan, plan
from kohort.run.process import managed
from kohort.run.survey import Survey

MANAGED = managed()
OPERATORS = frozenset({"jobset", "trainjob", "grove", "leaderworkerset"})
KINDS = {
    "1.37": {
        "Workload": "scheduling.k8s.io/v1beta1",
        "PodGroup": "scheduling.k8s.io/v1beta1",
        "CompositePodGroup": "scheduling.k8s.io/v1alpha3",
    },
    "1.36": {"Workload": "scheduling.k8s.io/v1alpha2", "PodGroup": "scheduling.k8s.io/v1alpha2"},
    "1.35": {"Workload": "scheduling.k8s.io/v1alpha1"},
    "": {},
}


def found(minor: str = "1.37", **members: Any) -> Survey:
    given: dict[str, Any] = {"served": OPERATORS, "kube_controllers": "kcm-0", "gates": {"GenericWorkload": True}}
    return Survey(version=f"v{minor or '1.34'}.1", minor=minor, kinds=KINDS[minor], **(given | members))


def made(survey: Survey, **chosen: Any) -> Plan:
    return plan(survey, Options(**chosen), MANAGED)


def line(of: Plan, what: str) -> tuple[str, str, str]:
    (one,) = [one for one in of.lines if one.what == what]
    return one.verdict, one.text, one.how


def test_a_cluster_with_everything() -> None:
    done = made(found())
    assert set(done.controllers) == OPERATORS
    assert done.scheduler
    assert done.ctx is not None
    assert done.ctx.release.minor == "1.37"
    assert done.ctx.on(Gate.COMPOSITE)
    assert {one.verdict for one in done.lines} == {"does", "leaves"}


@pytest.mark.parametrize("minor", ["1.36", "1.35"])
def test_older_releases_have_what_they_have(minor: str) -> None:
    done = made(found(minor))
    assert done.ctx is not None
    assert done.ctx.release.minor == minor
    assert "CompositePodGroup" not in [one.what for one in done.lines]
    assert line(done, "controller jobset")[1] == f"manages JobSet.jobset.x-k8s.io with groups of release {minor}"


def test_without_the_workload_api_pods_are_placed_one_by_one_and_it_is_said_how_to_get_it() -> None:
    done = made(found(""))
    verdict, text, how = line(done, "Workload API")
    assert verdict == "missing"
    assert "does not serve it" in text
    assert "--feature-gates=GenericWorkload=true" in how
    assert done.ctx is None
    assert done.scheduler
    assert line(done, "controller jobset")[1] == "manages JobSet.jobset.x-k8s.io without groups"


def test_a_gate_that_is_off_is_said_with_the_way_to_turn_it_on() -> None:
    survey = found(gates={"WorkloadWithJob": False, "TopologyAwareWorkloadScheduling": True})
    done = made(survey)
    verdict, text, how = line(done, "WorkloadWithJob")
    assert (verdict, text) == ("missing", "off: no gangs of plain Jobs (kube-controller-manager makes them)")
    assert how == "start kube-apiserver and kube-controller-manager with --feature-gates=WorkloadWithJob=true"
    assert done.ctx is not None
    assert not done.ctx.on(Gate.JOB)


def test_what_a_gate_requires_is_required_here_too() -> None:
    done = made(found(gates={"TopologyAwareWorkloadScheduling": False}))
    assert done.ctx is not None
    assert not done.ctx.on(Gate.COMPOSITE)


def test_gates_that_may_not_be_read_are_told() -> None:
    done = made(found(gates=None, unread=("Leases: forbidden",)))
    assert line(done, "feature gates")[0] == "missing"
    assert line(done, "not looked at")[1] == "Leases: forbidden"


def test_gates_that_are_not_listed_are_told_in_other_words() -> None:
    verdict, text, how = line(made(found(gates={})), "feature gates")
    assert (verdict, how) == ("missing", "")
    assert text == "are not listed in /metrics of the API server; taken to be on where the API shows nothing else"


def test_jobs_belong_to_kube_controller_manager() -> None:
    done = made(found())
    assert line(done, "controller job")[:2] == ("leaves", "kube-controller-manager's (kcm-0)")
    insisted = made(found(), controllers=("job", "jobset"))
    assert insisted.controllers == ("jobset",)
    alone = made(found(kube_controllers=None), controllers=("job",))
    assert alone.controllers == ("job",)
    sets = made(found(kube_controllers=None), controllers=("replicaset",))
    assert sets.controllers == ()
    assert line(sets, "controller replicaset")[0] == "leaves"


def test_a_kind_that_somebody_else_manages_is_left_alone_unless_we_are_told_to() -> None:
    others = {"jobset": "Lease jobset-system/6d4.jobset.x-k8s.io, held by manager-0"}
    done = made(found(others=others))
    verdict, text, how = line(done, "controller jobset")
    assert verdict == "leaves"
    assert "held by manager-0" in text
    assert "--controllers jobset" in how
    assert "jobset" not in done.controllers
    assert made(found(others=others), controllers=("jobset",)).controllers == ("jobset",)


def test_a_kind_that_is_not_served_names_the_command_that_brings_it() -> None:
    verdict, _, how = line(made(found(served=frozenset())), "controller leaderworkerset")
    assert verdict == "missing"
    assert how.startswith("kohort crds |")


def test_nothing_to_do() -> None:
    done = made(found(), controllers=(), scheduler=False)
    assert done.idle
    assert line(done, "scheduler")[0] == "off"


def test_progress_of_trainings() -> None:
    what, gate = "progress of trainings", {"TrainJobStatus": True}
    reports = {"trainerStatus": Reports(url="https://kohort.svc:1", certificate="c", key="k", ca="a")}
    assert not any(one.what == what for one in made(found()).lines)
    assert line(made(found(), gates=gate), what)[0] == "missing"
    assert line(made(found(), reports=reports), what)[0] == "off"
    assert line(made(found(), gates=gate, reports=reports), what)[0] == "does"
