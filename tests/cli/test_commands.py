"""The commands as people run them: output, exit codes, and errors of a line or two."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kohort.cli.main import app

ROOT = Path(__file__).parent.parent.parent
GANG = str(ROOT / "examples" / "jobset-gang.yaml")
TREE = str(ROOT / "examples" / "jobset-tree.yaml")
RUNNER = CliRunner()


def kohort(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "kohort.cli.main", *arguments], input=stdin, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_help_lists_the_commands() -> None:
    result = RUNNER.invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("translate", "validate", "convert"):
        assert command in result.output


@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
def test_translate_yaml_is_applicable(minor: str) -> None:
    text = Path(GANG).read_text().replace("  name: aurora\n", "  name: aurora\n  namespace: ml\n", 1)
    code, out, err = kohort("translate", "-f", "-", "--to", minor, stdin=text)
    assert (code, err) == (0, "")
    objects = list(yaml.safe_load_all(out))
    assert objects[0]["kind"] == "Workload"
    assert len(objects) == (1 if minor == "1.35" else 2)
    assert all(obj["metadata"]["namespace"] == "ml" for obj in objects)


def test_translate_json_is_a_list() -> None:
    code, out, _ = kohort("translate", "-f", GANG, "-o", "json")
    assert code == 0
    assert [item["kind"] for item in json.loads(out)["items"]] == ["Workload", "PodGroup"]


def test_translate_reads_standard_input_and_says_how_pods_join() -> None:
    code, out, _ = kohort("translate", "-f", "-", stdin=Path(GANG).read_text())
    assert code == 0
    assert "# pods of Job aurora-ctl-0 … Job aurora-wrk-2 (17): spec.schedulingGroup: {podGroupName: pg-aurora}" in out


def test_a_tree_on_an_older_kubernetes_is_an_error_that_names_it() -> None:
    code, out, err = kohort("translate", "-f", TREE, "--to", "1.36")
    assert code == 1
    assert out == ""
    assert "1.36" in err
    assert "error: " in err


def test_translate_wants_a_workload() -> None:
    code, _, err = kohort("translate", "-f", "-", stdin="{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    assert code == 1
    assert "no workload in the input (found ConfigMap/a); accepted are Job" in err


def test_validate_names_document_object_field_and_line() -> None:
    text = Path(GANG).read_text() + "---\n" + Path(GANG).read_text().replace("gangMode: Gang", "gangMode: gang")
    code, out, _ = kohort("validate", "-f", "-", stdin=text)
    assert code == 1
    assert "error: document 2, JobSet/aurora: spec.gangConfig.gangMode: Unsupported value" in out
    assert out.splitlines()[-1] == "2 documents for Kubernetes 1.37: 1 error"


def test_validate_json_for_machines() -> None:
    bad = "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: a}, spec: {}}"
    code, out, _ = kohort("validate", "-f", "-", "-o", "json", stdin=bad)
    assert code == 1
    (problem,) = json.loads(out)["problems"]
    assert problem["field"] == "spec.schedulingPolicy"
    assert problem["severity"] == "error"


def test_validate_the_good_ones() -> None:
    code, out, _ = kohort("validate", "-f", GANG)
    assert code == 0
    assert out.endswith("1 document for Kubernetes 1.37: valid\n")


@pytest.mark.parametrize("flag", ["--feature-gates", "--gates"])
def test_gates_are_switched(flag: str) -> None:
    group = (
        "{apiVersion: scheduling.k8s.io/v1alpha3, kind: CompositePodGroup, metadata: {name: a}, spec: "
        "{workloadRef: {workloadName: w, templateName: t}, schedulingPolicy: {basic: {}}}}"
    )
    assert kohort("validate", "-f", "-", stdin=group)[0] == 0
    assert kohort("validate", "-f", "-", flag, "CompositePodGroup=false", stdin=group)[0] == 1


def test_convert_between_releases() -> None:
    _, objects, _ = kohort("translate", "-f", GANG, "--to", "1.36")
    code, out, _ = kohort("convert", "-f", "-", "--to", "1.37", stdin=objects)
    assert code == 0
    workload, group = yaml.safe_load_all(out)
    assert workload["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert group["spec"]["workloadRef"] == {"workloadName": "w-aurora", "templateName": "pg-aurora"}


def test_convert_down_names_what_is_lost() -> None:
    _, objects, _ = kohort("translate", "-f", TREE)
    code, _, err = kohort("convert", "-f", "-", "--to", "1.36", stdin=objects)
    assert code == 1
    assert "error: " in err
    code, out, err = kohort("convert", "-f", "-", "--to", "1.36", "--flatten", stdin=objects)
    assert code == 0
    assert "warning: " in err
    assert "CompositePodGroup" not in [obj["kind"] for obj in yaml.safe_load_all(out)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["translate", "-f", GANG, "--to", "1.12"], 'Kubernetes "1.12": not known; accepted are 1.35, 1.36, 1.37'),
        (["translate", "-f", GANG, "-o", "xml"], '-o "xml": not known; accepted are yaml, json, tree'),
        (
            ["validate", "-f", GANG, "--feature-gates", "Nope=true"],
            "feature gate Nope: Kubernetes 1.37 does not know it",
        ),
        (
            ["validate", "-f", GANG, "--gates", "GenericWorkload=maybe"],
            "--feature-gates GenericWorkload=maybe: the value is",
        ),
        (["translate", "-f", GANG, "--gates", "GenericWorkload=maybe"], "accepted are true and false"),
        (["validate", "-f", "no/such/file.yaml"], "no/such/file.yaml: no such file or directory"),
    ],
)
def test_usage_errors_are_one_line(arguments: list[str], says: str) -> None:
    code, out, err = kohort(*arguments)
    assert code == 1
    assert out == ""
    assert says in err
    assert len(err.splitlines()) == 1


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)
BAD = {
    "not yaml": "a: [",
    "empty": "",
    "words": "hello there",
    "wrong apiVersion": "{apiVersion: jobset.x-k8s.io/v9, kind: JobSet, metadata: {name: a}}",
    "apiVersion a number": "{apiVersion: 1, kind: JobSet}",
    "kind a list": "{apiVersion: batch/v1, kind: [Job]}",
    "no kind": "{apiVersion: batch/v1}",
    "metadata a list": "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: [1], spec: 3}",
    "spec a string": "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: hello}",
    "deep": "apiVersion: batch/v1\nkind: Job\nspec: " + "[" * 5000,
    "bomb": BOMB,
    "repeated key": "apiVersion: batch/v1\nkind: Job\nkind: Job\n",
    "10 MB": "apiVersion: v1\nkind: Pod\nmetadata: {name: " + "x" * (10 << 20) + "}\n",
}


@pytest.mark.parametrize("command", ["translate", "validate", "convert"])
@pytest.mark.parametrize("name", BAD)
def test_bad_input_never_shows_a_traceback(command: str, name: str) -> None:
    code, out, err = kohort(command, "-f", "-", stdin=BAD[name])
    assert code == 1
    assert "Traceback" not in out + err
    assert 1 <= len((out + err).splitlines()) <= 4


@pytest.mark.parametrize("command", ["translate", "validate", "convert"])
def test_nul_bytes(command: str, tmp_path: Path) -> None:
    file = tmp_path / "nul.yaml"
    file.write_bytes(b"apiVersion: v1\nkind: Pod\0\n")
    code, out, err = kohort(command, "-f", str(file))
    assert code == 1
    assert "line 2: a NUL byte" in out + err


def test_a_closed_pipe_is_no_accident() -> None:
    command = f"{sys.executable} -m kohort.cli.main translate -f {GANG} | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
