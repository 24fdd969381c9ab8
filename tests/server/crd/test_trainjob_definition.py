"""The definition of TrainJob alone: refuses what needs no runtime, and nothing that admission accepts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.training import trainjob
from tests.kinds.trainer.api.recorded import Store, answered, cases
from tests.server.crd.alone import alone, judged

from kohort.api.kind import Kind, Object


@pytest.fixture(scope="module")
def definition() -> Kind:
    return alone("trainjobs.trainer.kubeflow.org")


def patch(manager: str = "acme.io/one", *, container: str = "node", env: bool = False) -> Object:
    containers = [{"name": container, **({"env": [{"name": "A", "value": "1"}]} if env else {})}]
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": {"containers": containers}}}}}]
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


# what is wrong -> (TrainJob, field)
REFUSED: dict[str, tuple[Object, str]] = {
    "name": (trainjob(name="a.b"), ""),
    "manager": (trainjob(managedBy="acme.io/other"), "spec.managedBy"),
    "group": (trainjob(runtimeRef={"name": "rt", "apiGroup": "acme.io"}), "spec.runtimeRef.apiGroup"),
    "kind": (trainjob(runtimeRef={"name": "rt", "kind": "Runtime"}), "spec.runtimeRef.kind"),
    "uri": (trainjob(initializer={"dataset": {"storageUri": "data"}}), "spec.initializer.dataset.storageUri"),
    "who patches": (trainjob(runtimePatches=[patch("me")]), "spec.runtimePatches[0].manager"),
    "variables": (trainjob(runtimePatches=[patch(env=True)]), "spec.runtimePatches[0]"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(definition: Kind, what: str) -> None:
    obj, field = REFUSED[what]
    assert set(judged(definition, obj)) == {field}


def test_accepted(definition: Kind) -> None:
    source = {"dataset": {"storageUri": "hf://some/data"}, "model": {"storageUri": ""}}
    patches = [patch(), patch("acme.io/two", container="sidecar", env=True)]
    assert judged(definition, trainjob(2, initializer=source, runtimePatches=patches)) == {}


def test_patches_come_and_go_while_suspended(definition: Kind) -> None:
    none, one = trainjob(), trainjob(runtimePatches=[patch()])
    asleep = trainjob(runtimePatches=[patch()], suspend=True)
    assert set(judged(definition, one, none)) == set(judged(definition, none, one)) == {"spec.runtimePatches"}
    assert judged(definition, asleep, none) == judged(definition, none, asleep) == judged(definition, one, one) == {}


def tries() -> list[Any]:
    return [
        pytest.param(case, attempt, id=f"{case}:{attempt['try']}".replace(" ", "-"))
        for case, recorded in cases().items()
        for attempt in recorded.get("tries", [])
        if attempt.get("of", f"{attempt.get('kind', 'TrainJob')}/").startswith("TrainJob/")
    ]


@pytest.mark.parametrize(("case", "attempt"), tries())
def test_nothing_is_refused_that_admission_accepts(definition: Kind, case: str, attempt: Any) -> None:
    store = Store(case)
    said = answered(store, attempt)
    if not said.accepted or said.object is None:
        return
    old = store.objects["TrainJob", attempt["of"].removeprefix("TrainJob/")] if "patch" in attempt else None
    assert judged(definition, said.object, old) == {}
