"""The configuration of `kohort run`: all errors at once, and the command line over the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.gang.settings import SettingsByKind
from kohort.kinds.jobset.settings import JobSetSettings
from kohort.run.options import Election, Options, OptionsError, Reports, merged, parse, read

HEAD = {"apiVersion": "config.kohort.dev/v1alpha1", "kind": "KohortConfiguration"}


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "kohort.yaml"
    path.write_text(
        """
apiVersion: config.kohort.dev/v1alpha1
kind: KohortConfiguration
controllers: [jobset, leaderworkerset]
scheduler: true
schedulerNames: [kohort, gangs]
namespaces: [team-a]
leaderElection: {enabled: false, namespace: ops, name: one, leaseSeconds: 60, renewSeconds: 40, retrySeconds: 5}
listen: 0.0.0.0:9000
featureGates: {GangOfGangs: false}
settings: {jobset: {gangRendering: Composite}}
"""
    )
    assert read(path) == Options(
        controllers=("jobset", "leaderworkerset"),
        scheduler_names=("kohort", "gangs"),
        namespaces=("team-a",),
        election=Election(enabled=False, namespace="ops", name="one", lease=60, renew=40, retry=5),
        listen="0.0.0.0:9000",
        gates={"GangOfGangs": False},
        settings=SettingsByKind(JobSetSettings(gang_rendering="Composite")),
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
        "settings": {"jobset": {"parity": "yes"}, "pod": {}},
        "colour": "red",
    }
    with pytest.raises(OptionsError) as told:
        parse({**HEAD, **document})
    paths = [one.field for one in told.value.errors]
    assert paths == [
        "controllers", "schedulerNames", "scheduler", "namespaces", "leaderElection.enabled", "leaderElection.lease",
        "listen", "featureGates.A", "settings.jobset.parity", "settings.pod", "colour",
    ]  # fmt: skip
    assert "accepted are apiVersion, kind, kubeconfig, context, controllers" in str(told.value)


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
        parse({**HEAD, "leaderElection": times})
    assert said in str(told.value)
    assert len(told.value.errors) == 1


@pytest.mark.parametrize("document", ["text", ["list"], 3, None])
def test_a_file_is_a_mapping(document: object) -> None:
    with pytest.raises(OptionsError, match="one YAML mapping"):
        parse(document)


def test_a_file_says_what_it_is() -> None:
    assert parse(HEAD) == Options()
    with pytest.raises(OptionsError) as told:
        parse({"kind": "KubeSchedulerConfiguration", "scheduler": False})
    assert [str(one) for one in told.value.errors] == [
        "apiVersion: Required value: accepted is config.kohort.dev/v1alpha1",
        'kind: Invalid value: "KubeSchedulerConfiguration": accepted is KohortConfiguration',
    ]


def test_settings_of_the_command_line_win_one_by_one() -> None:
    base = parse({**HEAD, "settings": {"jobset": {"gangRendering": "Composite", "onSuspend": "Preserve"}}})
    done = merged(base, assignments=("jobset.gangRendering=Flat", "jobset.parity=true"))
    assert done.settings.of(JobSetSettings) == JobSetSettings(on_suspend="Preserve", parity=True)
    with pytest.raises(OptionsError) as told:
        merged(base, listen="y", assignments=("jobset.parity=1", "x"))
    assert [one.field for one in told.value.errors] == ["--listen", "--set jobset.parity", "--set"]


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
    found = parse({**HEAD, "trainerStatus": {"url": "https://kohort.kohort-system.svc:10352/", **files}})
    assert found.reports == {"trainerStatus": Reports(url="https://kohort.kohort-system.svc:10352", **files)}
    with pytest.raises(OptionsError) as told:
        parse({**HEAD, "trainerStatus": {"url": "http://kohort", "listen": "x", "key": "k", "port": 1}})
    assert [one.field.removeprefix("trainerStatus.") for one in told.value.errors] == [
        "url", "listen", "port", "certificate", "ca",
    ]  # fmt: skip
