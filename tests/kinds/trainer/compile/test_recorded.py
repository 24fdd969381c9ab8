"""What real Trainer rendered (recorded cases `r-…`) against what we render: the whole JobSet, and the hostfile."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.kinds.trainer.api.recorded import CTX, cases, typed

from kohort.api import admit
from kohort.api.kind import Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.api.registry import find
from kohort.api.releases import default_gates, release
from kohort.gang.compile import Compilation, CompileContext, Lookup
from kohort.gang.settings import SettingsByKind
from kohort.kinds.trainer.compile.trainjob import compile_object
from kohort.kinds.trainer.settings import TrainJobSettings

_D11 = "D11: mlPolicy.numNodes sizes the nodes of MPI, not the launcher"
_GHOST = "spec trainjob 1.4: a patch may only name what the runtime has"
# Jobs that become something else here, on purpose.
DIFFERENT = {
    ("r-mpi-sizes", "policy"): _D11,
    ("r-mpi-asnode", "policy"): _D11,
    ("r-patches", "odd"): _GHOST,
    ("r-ghost", "fulljob"): _GHOST,
    ("r-ghost", "container"): _GHOST,
    ("r-ghost", "init"): _GHOST,
    ("r-both", "b"): "D3: at most one podGroupPolicy",
}
# Compared where they are made: tests/kinds/trainer/control/test_recorded.py.
_ELSEWHERE = "Secret", "scheduling.x-k8s.io/v1alpha1 PodGroup", "scheduling.volcano.sh/v1beta1 PodGroup"
_LEFT_OUT: list[tuple[str, Any]] = [
    ("network", {"enableDNSHostnames": True, "publishNotReadyAddresses": True}),
    ("startupPolicy", {"startupPolicyOrder": "AnyOrder"}),
    ("successPolicy", {"operator": "All"}),
    ("groupName", "default"),
    ("replicas", 1),
    ("metadata", {}),
    ("completionMode", "Indexed"),
    ("restartPolicy", "OnFailure"),
    ("resources", {}),
]
_VIEW = SettingsByKind(TrainJobSettings(flux_view_image="<default flux view image>"))


def _rendered(kind: str) -> list[Any]:
    return [
        pytest.param(case, recorded, id=f"{case}:{recorded['name']}")
        for case, found in cases().items()
        if case.startswith("r-")
        for recorded in found.get("objects", [])
        if recorded["kind"] == kind
    ]


def compiled(case: str, name: str) -> Compilation:
    """The TrainJob of a recorded case, compiled with the runtimes of that case."""
    made = [
        typed(step["create"], step["object"], case) for step in cases()[case]["timeline"] if step.get("code") == 201
    ]
    job = next(one for one in made if one["kind"] == "TrainJob" and one["metadata"]["name"] == name)
    answer = admit.create(job, CTX)
    assert answer.object is not None, answer.message
    ctx = CompileContext(release("1.37"), default_gates("1.37"), DEFAULT_OPTIONS, Lookup(made), _VIEW)
    return compile_object(answer.object, ctx)


@pytest.mark.parametrize(("case", "recorded"), _rendered("JobSet"))
def test_jobset(case: str, recorded: Any) -> None:
    result = compiled(case, recorded["name"])
    if (case, recorded["name"]) in DIFFERENT:
        assert result.errors or _shown(result.objects[-1]) != recorded["spec"]
        return
    assert result.errors == ()
    jobset = result.objects[-1]
    assert _shown(jobset) == bare(_unordered(recorded["spec"]))
    for member in ("labels", "annotations"):
        assert jobset["metadata"].get(member) == recorded.get(member)
    owner = jobset["metadata"]["ownerReferences"][0]
    words = f"{owner['apiVersion']} {owner['kind']} {owner['name']}, controller, blockOwnerDeletion"
    assert recorded["owners"] == [words]


def _shown(jobset: Object) -> Any:
    """The JobSet after JobSet's own defaulting, without what the recordings leave out."""
    kind = find(jobset["apiVersion"], "JobSet")
    assert kind is not None
    return bare(_unordered(admit.defaulted(jobset, kind, CTX)["spec"]))


def bare(value: Any) -> Any:
    if isinstance(value, list):
        return [bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: bare(item) for name, item in value.items() if (name, item) not in _LEFT_OUT}


def _unordered(spec: Any) -> Any:
    """xgboost's and the job's own variables come in either order; a server fills in the protocol of ports."""
    made = deepcopy(spec)
    for job in made["replicatedJobs"]:
        for container in job["template"]["spec"]["template"]["spec"]["containers"]:
            if any(one["name"].startswith("DMLC") for one in container.get("env", [])):
                container["env"].sort(key=lambda one: one["name"])
            for port in container.get("ports", []):
                port.setdefault("protocol", "TCP")
    return made


@pytest.mark.parametrize(("case", "recorded"), _rendered("ConfigMap"))
def test_hostfile(case: str, recorded: Any) -> None:
    if "hostfile" not in recorded["data"]:
        assert recorded["name"].endswith(("-runtime-snapshot", "-flux-entrypoint"))
        return
    job = recorded["name"].removesuffix("-mpi-hostfile")
    made = [obj for obj in compiled(case, job).objects if obj["kind"] == "ConfigMap"]
    if (case, job) in DIFFERENT:
        assert made[0]["data"] != recorded["data"]
        return
    assert [(obj["metadata"]["name"], obj["data"]) for obj in made] == [(recorded["name"], recorded["data"])]


def test_what_else_upstream_makes_is_known() -> None:
    kinds = {one["kind"] for case, found in cases().items() if case[0] == "r" for one in found.get("objects", [])}
    assert kinds == {"JobSet", "ConfigMap", *_ELSEWHERE}


@pytest.mark.parametrize(
    ("letter", "length", "made"), [("a", 63, False), ("b", 54, False), ("c", 49, False), ("d", 48, True)]
)
def test_names_too_long_for_pods(letter: str, length: int, made: bool) -> None:
    """Recorded r-long: upstream admits the job and then never makes its JobSet; we say why."""
    result = compiled("r-long", letter * length)
    assert [error.field for error in result.errors] == ([] if made else ["metadata.name"])


def test_empty_mpi_implementation_cannot_be_built() -> None:
    assert [error.field for error in compiled("r-mpi-sizes", "noimpl").errors] == ["spec.runtimeRef"]
