"""The configuration of `kohort run`: all errors at once, and the command line over the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.run.options import Election, Options, OptionsError, Reports, merged, parse, read


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "kohort.yaml"
    path.write_text(
        """
controllers: [jobset, leaderworkerset]
scheduler: true
schedulerNames: [kohort, gangs]
namespaces: [team-a]
leaderElection: {enabled: false, namespace: ops, name: one, leaseSeconds: 60, renewSeconds: 40, retrySeconds: 5}
listen: 0.0.0.0:9000
featureGates: {GangOfGangs: false}
"""
    )
    assert read(path) == Options(
        controllers=("jobset", "leaderworkerset"),
        scheduler_names=("kohort", "gangs"),
        namespaces=("team-a",),
        election=Election(enabled=False, namespace="ops", name="one", lease=60, renew=40, retry=5),
        listen="0.0.0.0:9000",
        gates={"GangOfGangs": False},
    )


def test_all_errors_at_once() -> None:
    document = {
        "controllers": ["jobset", "cronjobs"],
        "schedulerNames": [],
        "scheduler": "yes",
        "namespaces": ["Team_A"],
        "leaderElection": {"enabled": 1, "lease": "x"},
        "listen": "nowhere",
        "featureGates": {"A": "on"},
        "colour": "red",
    }
    with pytest.raises(OptionsError) as told:
        parse(document)
    paths = [one.field for one in told.value.errors]
    assert paths == [
        "controllers", "schedulerNames", "scheduler", "namespaces", "leaderElection.enabled", "leaderElection.lease",
        "listen", "featureGates.A", "colour",
    ]  # fmt: skip
    assert "accepted are kubeconfig, context, controllers" in str(told.value)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"leaseSeconds": 10}, "accepted is leaseSeconds > renewSeconds > 1.2 x retrySeconds"),
        ({"renewSeconds": 2}, "accepted is leaseSeconds > renewSeconds > 1.2 x retrySeconds"),
        ({"retrySeconds": 0.5}, "accepted are whole seconds from 1 to 3600"),
        ({"leaseSeconds": True}, "accepted are whole seconds from 1 to 3600"),
    ],
)
def test_times_of_a_lease(times: dict[str, object], said: str) -> None:
    with pytest.raises(OptionsError) as told:
        parse({"leaderElection": times})
    assert said in str(told.value)
    assert len(told.value.errors) == 1


@pytest.mark.parametrize("document", ["text", ["list"], 3])
def test_a_file_is_a_mapping(document: object) -> None:
    with pytest.raises(OptionsError, match="one YAML mapping"):
        parse(document)


def test_an_empty_file_chooses_nothing() -> None:
    assert parse(None) == Options()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match="cannot be read: No such file"):
        read(tmp_path / "none.yaml")


def test_a_file_that_is_not_yaml(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("a: [1")
    with pytest.raises(OptionsError, match=r"bad\.yaml"):
        read(path)


def test_the_command_line_wins() -> None:
    base = Options(controllers=("jobset",), namespaces=("a",), listen="127.0.0.1:1")
    done = merged(base, controllers="trainjob,grove", namespaces=None, leader_elect=False, kubeconfig="/k")
    assert done.controllers == ("trainjob", "grove")
    assert done.namespaces == ("a",)
    assert not done.election.enabled
    assert done.kubeconfig == "/k"


def test_all_and_none() -> None:
    assert merged(Options(controllers=("jobset",)), controllers="all").controllers is None
    assert merged(Options(), controllers="none").controllers == ()


def test_flags_that_are_wrong_are_told_together() -> None:
    with pytest.raises(OptionsError) as told:
        merged(Options(), controllers="x", listen="y", scheduler_names="")
    assert [one.field for one in told.value.errors] == ["--controllers", "--scheduler-name", "--listen"]


@pytest.mark.parametrize(("listen", "address"), [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:9", ("::1", 9))])
def test_addresses(listen: str, address: tuple[str, int]) -> None:
    assert Options(listen=listen).address == address


def test_where_trainings_report() -> None:
    files = {"certificate": "tls.crt", "key": "tls.key", "ca": "ca.crt"}
    found = parse({"trainerStatus": {"url": "https://kohort.kohort-system.svc:10352/", **files}})
    assert found.reports == Reports(url="https://kohort.kohort-system.svc:10352", **files)
    with pytest.raises(OptionsError) as told:
        parse({"trainerStatus": {"url": "http://kohort", "listen": "x", "key": "k", "port": 1}})
    assert [one.field.removeprefix("trainerStatus.") for one in told.value.errors] == [
        "url", "listen", "port", "certificate", "ca",
    ]  # fmt: skip
