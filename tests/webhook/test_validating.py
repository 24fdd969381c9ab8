"""The webhook says what the embedded server says: of every object that a definition lets pass, the same mistakes."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import yaml
from tests.support.mutate import mutate

from kohort.api import admit
from kohort.api.errors import FieldError
from kohort.api.kind import Context
from kohort.api.registry import find
from kohort.api.validation import validate_create, validate_update
from kohort.gang.admission import of
from kohort.gang.compile import CompileContext, Lookup
from kohort.webhook.asking import MOST, TooManyLooksError, Wanted, asking
from kohort.webhook.review import Answer, BadReviewError, Question, read, write
from kohort.webhook.validating import check, checked, webhook_rules

ROOT = Path(__file__).parents[2]
CTX = Context.of("1.37")
EVERY = tuple(checked())
JOBSET = ("jobset.x-k8s.io/v1alpha2", "JobSet")
Object = dict[str, Any]


def examples() -> list[Object]:
    found = []
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        found += [
            one for one in yaml.safe_load_all(path.read_text()) if one and "apiVersion" in one and _is_checked(one)
        ]
    return found


def _is_checked(one: Object) -> bool:
    kind = find(one["apiVersion"], one["kind"])
    return kind is not None and any(kind in kinds for kinds in checked().values())


def review(new: Object, old: Object | None = None, **more: Any) -> Question:
    group, _, version = new["apiVersion"].rpartition("/")
    request = {
        "uid": "u-1", "kind": {"group": group, "version": version, "kind": new["kind"]},
        "operation": "CREATE" if old is None else "UPDATE", "namespace": "default", "object": new, "oldObject": old,
        **more,
    }  # fmt: skip
    return read(
        msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    )


def asked(question: Question, objects: list[Object] | None = None, controllers: Any = EVERY) -> Answer:
    """With these objects on the cluster."""
    known = Lookup(objects or [])
    ctx = CompileContext(CTX.release, CTX.gates, CTX.options)
    steps = asking(lambda within: check(question, within, controllers), ctx)
    try:
        wanted = next(steps)
        while True:
            wanted = steps.send(_there(known, wanted))
    except StopIteration as end:
        answer: Answer = end.value
        return answer


def _there(known: Lookup, wanted: Wanted) -> list[Object]:
    if wanted.name is None:
        return known.every(wanted.kind, wanted.namespace)
    found = known.find(wanted.kind, wanted.name, wanted.namespace)
    return [found] if found is not None else []


def causes(answer: Answer) -> Counter[tuple[str, str]]:
    details = (answer.refusal or {}).get("details") or {}
    return Counter((one["field"], one["message"]) for one in details.get("causes") or ())


def expected(errors: list[FieldError]) -> Counter[tuple[str, str]]:
    return Counter((one.field, one.message) for one in errors)


@pytest.mark.parametrize("one", examples(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_what_the_embedded_server_says_of_broken_examples(one: Object) -> None:
    """Definition first: what it refuses never comes to a webhook."""
    random = Random(one["metadata"]["name"])
    kind = find(one["apiVersion"], one["kind"])
    assert kind is not None
    runtimes = [obj for obj in examples() if "Runtime" in obj["kind"]]
    compared = 0
    for _ in range(60):
        broken = mutate(random, one, 2)[0]
        read_one = admit.decode_create(deepcopy(broken), CTX, kind=kind, namespace="default")
        if read_one.object is None:
            continue
        found = validate_create(kind, admit.defaulted(read_one.object, kind, CTX), CTX)
        if found.metadata or found.declared:
            continue
        errors = list(found.handwritten)
        rules = of(kind.group, kind.kind)
        if not errors and rules is not None:
            ctx = CompileContext(CTX.release, CTX.gates, CTX.options, Lookup(runtimes))
            errors = list(rules.validate(admit.defaulted(read_one.object, kind, CTX), None, ctx).errors)
        said = asked(review(read_one.object), runtimes)
        assert causes(said) == expected(errors)
        assert (said.refusal is None) == (not errors)
        compared += 1
    assert compared >= 5


def jobset(name: str = "train", **spec: Any) -> Object:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example/c:1"}]}}
    job = {"name": "w", "replicas": 1, "template": {"spec": {"template": pod}}}
    return {
        "apiVersion": JOBSET[0], "kind": JOBSET[1], "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicatedJobs": [job], **spec},
    }  # fmt: skip


def test_a_mistake_that_no_definition_sees() -> None:
    said = asked(review(jobset(name="n" * 60)))
    assert said.refusal is not None
    assert (said.refusal["code"], said.refusal["reason"]) == (422, "Invalid")
    body = msgspec.json.decode(write("u-1", said))
    assert body["response"]["uid"] == "u-1"
    assert body["response"]["allowed"] is False
    assert body["response"]["status"]["details"]["causes"]


def test_an_update_is_compared_with_what_was() -> None:
    old = jobset()
    new = deepcopy(old)
    new["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    kind = find(*JOBSET)
    assert kind is not None
    wrong = validate_update(kind, admit.defaulted(new, kind, CTX), admit.defaulted(old, kind, CTX), CTX, "").handwritten
    assert wrong
    assert causes(asked(review(new, old))) == expected(wrong)


def test_what_was_wrong_before_refuses_no_change() -> None:
    """It came while nobody judged. Whoever sets a label or suspends it is warned, and goes on."""
    old = jobset(name="n" * 60)
    new = deepcopy(old)
    new["spec"]["suspend"] = True
    said = asked(review(new, old))
    assert said.refusal is None


def test_another_object_decides() -> None:
    train = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "t", "namespace": "default"}, "spec": {"runtimeRef": {"name": "torch"}},
    }  # fmt: skip
    said = asked(review(train))
    assert said.refusal is not None
    assert "torch" in said.refusal["message"]


@pytest.mark.parametrize(
    ("what", "more"),
    [
        ("deleted", {"object": {**jobset(name="n" * 60), "metadata": {"name": "n" * 60, "deletionTimestamp": "2026"}}}),
        ("a status", {"subResource": "status"}),
        ("a deletion", {"operation": "DELETE", "object": None}),
        ("an unknown kind", {"kind": {"group": "example.org", "version": "v1", "kind": "JobSet"}}),
        ("a native kind", {"kind": {"group": "batch", "version": "v1", "kind": "Job"}}),
    ],
)
def test_what_is_not_ours_to_judge_passes(what: str, more: Object) -> None:
    assert asked(review(jobset(name="n" * 60), **more)) == Answer(), what


def test_kinds_that_somebody_else_manages_pass() -> None:
    assert asked(review(jobset(name="n" * 60)), controllers=("grove",)) == Answer()


def test_a_question_that_asks_without_end_is_ended() -> None:
    ctx = CompileContext(CTX.release, CTX.gates, CTX.options)

    def greedy(within: CompileContext) -> Answer:
        for number in range(MOST + 1):
            within.lookup.find("Pod", f"p{number}", "default")
        return Answer()

    steps = asking(greedy, ctx)
    next(steps)
    for _ in range(MOST - 1):
        steps.send([])
    with pytest.raises(TooManyLooksError):
        steps.send([])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not an AdmissionReview"),
        (b"[1]", "not an AdmissionReview"),
        (b'{"apiVersion": "admission.k8s.io/v1beta1"}', "accepted is admission.k8s.io/v1"),
        (b'{"apiVersion": "admission.k8s.io/v1"}', "request: required"),
        (b'{"apiVersion":' * 100_000, "not an AdmissionReview"),
        (b"\xff", "not an AdmissionReview"),
    ],
)
def test_what_is_no_question(body: bytes, says: str) -> None:
    with pytest.raises(BadReviewError, match=says):
        read(body)


def test_rules_of_a_configuration_follow_from_the_bundles() -> None:
    rules = webhook_rules(["jobset", "trainjob"])
    assert [(one["apiGroups"], one["resources"]) for one in rules] == [
        (["jobset.x-k8s.io"], ["jobsets"]),
        (["trainer.kubeflow.org"], ["trainjobs", "trainingruntimes", "clustertrainingruntimes"]),
    ]
