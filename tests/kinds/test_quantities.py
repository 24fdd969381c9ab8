"""The same amount in other words (4 and "4", 1000m and 1) is no change, for any kind and on any server.

The embedded server keeps quantities in their shortest form, as a server does on which the webhooks of these kinds run.
One without webhooks keeps what was written, so the controllers compare amounts, too.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.leaderworkerset.api.revision import revision_data, revision_key
from kohort.kinds.leaderworkerset.control import children, revisions, rollout

CTX = Context.of("1.37")
WORDS = [(4, "4"), ("4000m", 4), ("4", 4)]


def pod(chips: Any) -> Object:
    amounts = {"google.com/tpu": chips, "memory": "1024Mi"}
    return {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "x", "resources": {"limits": amounts, "requests": dict(amounts)}}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}],
    }


def jobset(chips: Any) -> Object:
    template = {"spec": {"parallelism": 1, "completions": 1, "template": {"spec": pod(chips)}}}
    spec = {"replicatedJobs": [{"name": "w", "replicas": 1, "template": template}]}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": META, "spec": spec}


def lws(chips: Any) -> Object:
    worker = pod(chips) | {"restartPolicy": "Always"}
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": worker}}}
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": META, "spec": spec}


def podcliqueset(chips: Any) -> Object:
    worker = pod(chips) | {"restartPolicy": "Always"}
    clique = {"name": "w", "spec": {"roleName": "w", "replicas": 1, "podSpec": worker}}
    spec = {"replicas": 1, "template": {"cliques": [clique]}}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": META, "spec": spec}


def trainjob(chips: Any) -> Object:
    trainer = {"resourcesPerNode": {"limits": {"google.com/tpu": chips}, "requests": {"google.com/tpu": chips}}}
    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": META, "spec": spec}


META = {"name": "a", "namespace": "n", "uid": "u"}
KINDS = [jobset, lws, podcliqueset, trainjob]


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize(("before", "after"), WORDS)
def test_the_same_amount_is_no_change(make: Any, before: Any, after: Any) -> None:
    made = admit.create(make(before), CTX)
    assert made.object is not None, made
    old = deepcopy(made.object)
    old["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    written = make(after)
    written["metadata"] = {**META, "resourceVersion": "1"}
    answer = admit.update(written, old, CTX)
    assert answer.object is not None, answer
    assert answer.object["spec"] == old["spec"]
    assert answer.object["metadata"].get("generation") == old["metadata"].get("generation")


@pytest.mark.parametrize(("before", "after"), WORDS)
def test_a_leaderworkerset_keeps_its_revision(before: Any, after: Any) -> None:
    keys = {revision_key(revision_data(lws(chips))) for chips in (before, after)}
    assert len(keys) == 1
    assert revision_key(revision_data(lws(5))) not in keys


def test_a_revision_that_was_written_in_other_words_is_still_the_newest() -> None:
    """Made before amounts were compared, or by a controller that does not."""
    key = "old"
    stored = children.revision(lws("4000m"), key, 1, {rollout.ANNOTATION: rollout.first(lws(4), key).text()})
    stored["metadata"] |= {"uid": "r"}
    stored["data"]["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {
        "spec": pod("4000m") | {"restartPolicy": "Always"}
    }
    with pytest.raises(StopIteration) as ended:  # nothing is written
        next(revisions.ensure(lws(4), [stored]))
    assert ended.value.value.key == key


@pytest.mark.parametrize(("before", "after"), WORDS)
def test_a_podcliqueset_keeps_its_hashes(before: Any, after: Any) -> None:
    one, other, third = (CliqueSet(podcliqueset(chips)) for chips in (before, after, 5))
    assert one.generation_hash == other.generation_hash != third.generation_hash
    assert one.template_hash("w") == other.template_hash("w") != third.template_hash("w")
