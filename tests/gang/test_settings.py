"""Settings of kinds: read from files and command lines, refused with what is accepted, documented, and of effect."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hack import settings_page

import kohort
from kohort.cli import up
from kohort.cli.main import app
from kohort.gang.settings import (
    DEFAULTS,
    KindSettings,
    SettingsByKind,
    SettingsError,
    assign_settings,
    describe,
    read_settings,
    settings_types,
    shown,
)
from kohort.kinds.batch.settings import JobSettings
from kohort.kinds.jobset.settings import JobSetSettings
from kohort.run.options import API_VERSION, KIND, read

GOLDEN = Path(__file__).parent.parent / "golden"
EVERY = {f"{kind}.{name}": one for kind, type_ in settings_types().items() for name, one in describe(type_).items()}
# Read by controllers only: nothing that `kohort translate` prints depends on them.
OF_CONTROLLERS = {
    "jobset.exclusivePlacement": "Admission",
    "jobset.onSuspend": "Preserve",
    "jobset.parity": "true",
    "podcliqueset.initContainerImage": "registry.example/initc:1",
}
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
POD = {"containers": [{"name": "main", "image": "acme/fit:1"}], "restartPolicy": "Never"}


def job(**spec: Any) -> dict[str, Any]:
    body = {"parallelism": 4, "completions": 4, "completionMode": "Indexed", "template": {"spec": POD}, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "fit", "namespace": "ml"}, "spec": body}


def cronjob() -> dict[str, Any]:
    body = {"schedule": "0 3 * * *", "jobTemplate": {"spec": job(scheduling=GANG)["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": body}


def own_workload() -> dict[str, Any]:
    template = {"name": "mine", "schedulingPolicy": {"gang": {"minCount": 2}}}
    reference = {"apiGroup": "batch", "kind": "Job", "name": "fit"}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "mine", "namespace": "ml"},
        "spec": {"controllerRef": reference, "podGroupTemplates": [template]},
    }


def golden(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((GOLDEN / name / "input.yaml").read_text()))


def trainjob(policy: dict[str, Any], **spec: Any) -> list[dict[str, Any]]:
    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    pod = {"containers": [{"name": "node", "image": "acme/fit:1"}]}
    node = {"name": "node", "template": {"metadata": {"labels": step}, "spec": {"template": {"spec": pod}}}}
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "own", "namespace": "ml"},
        "spec": {
            "mlPolicy": {"numNodes": 2, **policy},
            "podGroupPolicy": {"workload": {}},
            "template": {"spec": {"replicatedJobs": [node]}},
        },
    }
    body = {"runtimeRef": {"name": "own", "kind": "TrainingRuntime"}, **spec}
    meta = {"name": "fit", "namespace": "ml"}
    return [runtime, {"apiVersion": runtime["apiVersion"], "kind": "TrainJob", "metadata": meta, "spec": body}]


# setting -> a value that is not the default, and manifests that it makes a difference for
OF_COMPILERS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "job.policySource": ("Inferred", [job()]),
    "job.byoWorkload": ("Ignore", [job(scheduling=GANG), own_workload()]),
    "job.cronjobTransparent": ("false", [cronjob()]),
    "job.shrinkMinCount": ("false", [job(scheduling=GANG, completions=2, completionMode="NonIndexed")]),
    "job.parity": ("true", [job(scheduling=GANG, completions=2, completionMode="NonIndexed")]),
    "jobset.gangRendering": ("Composite", golden("jobset-b-composite")),
    "trainjob.onSuspend": ("Preserve", trainjob({}, suspend=True)),
    "trainjob.fluxViewImage": ("acme/flux:1", trainjob({"flux": {"numProcPerNode": 1}})),
}


def test_every_setting_is_tried_here() -> None:
    assert {*OF_COMPILERS, *OF_CONTROLLERS} == {*EVERY}


def translated(manifests: list[dict[str, Any]], folder: Path, *args: str) -> str:
    path = folder / "manifests.yaml"
    path.write_text(yaml.safe_dump_all(deepcopy(manifests)))
    done = CliRunner().invoke(app, ["translate", "-f", str(path), "--children", "-o", "json", *args])
    assert done.exit_code == 0, done.output
    return done.stdout


def configuration(folder: Path, name: str, value: str) -> Path:
    kind, _, key = name.partition(".")
    written = yaml.safe_load(value)
    path = folder / "kohort.yaml"
    settings = {kind: {key: written}}
    path.write_text(yaml.safe_dump({"apiVersion": API_VERSION, "kind": KIND, "settings": settings}))
    return path


@pytest.mark.parametrize("name", OF_COMPILERS)
def test_a_setting_does_the_same_by_flag_by_file_and_in_python(name: str, tmp_path: Path) -> None:
    value, manifests = OF_COMPILERS[name]
    usual = translated(manifests, tmp_path)
    by_flag = translated(manifests, tmp_path, "--set", f"{name}={value}")
    by_file = translated(manifests, tmp_path, "--config", str(configuration(tmp_path, name, value)))
    assert by_flag == by_file != usual
    kind, _, key = name.partition(".")
    results = kohort.compile(manifests, settings={kind: {key: yaml.safe_load(value)}})
    objects = [obj for one in results for obj in (*one.objects, *one.children)]
    assert objects == yaml.safe_load(by_flag)["items"]


@pytest.mark.parametrize("name", EVERY)
def test_a_setting_is_read_alike_from_the_file_of_run_and_from_flags(name: str, tmp_path: Path) -> None:
    value = OF_CONTROLLERS[name] if name in OF_CONTROLLERS else OF_COMPILERS[name][0]
    found = read(configuration(tmp_path, name, value)).settings
    assert found == assign_settings([f"{name}={value}"])
    (given,) = found
    assert shown(getattr(given, EVERY[name].member)) == value
    assert value != shown(EVERY[name].default)


def names(kind: type[KindSettings]) -> str:
    return ", ".join(describe(kind))


def test_all_that_is_wrong_is_told_with_what_is_accepted() -> None:
    document = {
        "job": {"byoWorkload": "use", "parity": "yes", "byo_workload": "Use"},
        "jobset": ["x"],
        "podcliqueset": {"initContainerImage": 3},
        "trainjob": {"fluxViewImage": ""},
        "leaderworkerset": {"parity": True},
        "pod": {},
    }
    with pytest.raises(SettingsError) as told:
        read_settings(document)
    assert [str(one) for one in told.value.errors] == [
        'settings.job.byoWorkload: Invalid value: "use": accepted are Use, Skip, Ignore',
        'settings.job.parity: Invalid value: "yes": accepted are true, false',
        f'settings.job.byo_workload: Invalid value: "Use": setting not known; accepted are {names(JobSettings)}',
        f'settings.jobset: Invalid value: ["x"]: accepted is a mapping with {names(JobSetSettings)}',
        "settings.podcliqueset.initContainerImage: Invalid value: 3: accepted is a text",
        "settings.trainjob.fluxViewImage: Required value: accepted is a text that is not empty",
        "settings.leaderworkerset.parity: Invalid value: true: setting not known; leaderworkerset has no settings",
        f"settings.pod: Invalid value: {{}}: kind not known; accepted are {', '.join(settings_types())}",
    ]


def test_numbers_are_no_switches() -> None:
    with pytest.raises(SettingsError, match="accepted are true, false"):
        read_settings({"job": {"parity": 1}})


def test_null_and_nothing_choose_nothing() -> None:
    assert read_settings(None) == DEFAULTS
    assert read_settings({"job": {"parity": None}, "jobset": None}).of(JobSettings) == JobSettings()


def test_what_is_given_later_wins_one_by_one() -> None:
    base = read_settings({"job": {"parity": True, "byoWorkload": "Skip"}})
    found = assign_settings(["job.byoWorkload=Use", "jobset.parity=true"], base)
    assert found == SettingsByKind(JobSettings(parity=True, byo_workload="Use"), JobSetSettings(parity=True))


def test_the_library_refuses_what_it_does_not_know() -> None:
    with pytest.raises(SettingsError, match="setting not known"):
        kohort.compile(job(), settings={"job": {"gangRendering": "Flat"}})


def test_the_page_is_that_of_the_types() -> None:
    assert settings_page.PAGE.read_text() == settings_page.page(), "stale: run python -m hack.settings_page"


def test_a_command_names_what_it_leaves_to_run(tmp_path: Path) -> None:
    path = tmp_path / "kohort.yaml"
    path.write_text(f"apiVersion: {API_VERSION}\nkind: {KIND}\nlisten: 127.0.0.1:1\n")
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml.safe_dump(job()))
    done = CliRunner().invoke(app, ["translate", "-f", str(manifest), "--config", str(path)])
    assert done.exit_code == 0
    assert "listen: only kohort run reads this" in done.output


def test_translate_refuses_bad_settings(tmp_path: Path) -> None:
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml.safe_dump(job()))
    done = CliRunner().invoke(app, ["translate", "-f", str(manifest), "--set", "job.parity=1", "--set", "job"])
    assert done.exit_code == 1
    assert '--set job.parity: Invalid value: "1": accepted are true, false' in done.output
    assert '--set: Invalid value: "job": accepted is kind.name=value' in done.output


def started(monkeypatch: pytest.MonkeyPatch, *args: str) -> tuple[Any, Any]:
    """What `kohort up` would start: of the server, and around it."""
    found: list[tuple[Any, Any]] = []

    def here(settings: Any, around: Any) -> int:
        found.append((settings, around))
        return 0

    monkeypatch.setattr(up, "_here", here)
    done = CliRunner().invoke(app, ["up", "--in-memory", "--port", "0", *args])
    assert done.exit_code == 0, done.output
    return found[0]


def test_up_takes_the_file_and_flags_over_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = configuration(tmp_path, "jobset.gangRendering", "Composite")
    path.write_text(path.read_text() + "featureGates: {ElasticJobSet: true, RestartJob: true}\n")
    args = ("--config", str(path), "--set", "jobset.onSuspend=Preserve", "--feature-gates", "RestartJob=false")
    server, around = started(monkeypatch, *args)
    assert server.gates == {"ElasticJobSet": True, "RestartJob": False}
    assert around.settings == SettingsByKind(JobSetSettings(gang_rendering="Composite", on_suspend="Preserve"))
    assert started(monkeypatch)[1].settings is None


@pytest.mark.parametrize("name", EVERY)
def test_up_takes_every_setting_by_flag_and_by_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = OF_CONTROLLERS[name] if name in OF_CONTROLLERS else OF_COMPILERS[name][0]
    by_flag = started(monkeypatch, "--set", f"{name}={value}")[1].settings
    by_file = started(monkeypatch, "--config", str(configuration(tmp_path, name, value)))[1].settings
    assert by_flag == by_file == assign_settings([f"{name}={value}"])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--set", "job.parity=1"), '--set job.parity: Invalid value: "1": accepted are true, false'),
        (("--bare", "--set", "job.parity=true"), "--set: with --bare there are no controllers"),
        (("--config", "/nowhere.yaml"), "cannot be read"),
    ],
)
def test_up_refuses_settings_that_cannot_be(args: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(app, ["up", "--in-memory", "--port", "0", *args])
    assert done.exit_code == 1
    assert said in done.output


def test_the_embedded_server_keeps_exclusive_jobs_apart_unless_told_otherwise() -> None:
    assert DEFAULTS.embedded().of(JobSetSettings).exclusive_placement == "Admission"
    asked = SettingsByKind(JobSetSettings(exclusive_placement="Template"))
    assert asked.embedded().of(JobSetSettings) == asked.of(JobSetSettings)
