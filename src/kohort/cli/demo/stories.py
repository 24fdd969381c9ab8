"""The workloads that `make demo` starts side by side, and what is promised of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from kohort.api.kind import Object
from kohort.cli.common import FOLDER
from kohort.sim.cluster import Pool, read
from kohort.yamlread import load

# Sixty-four processors. Pods of Jobs run two seconds.
POOLS: Final = (
    Pool(
        name="node",
        count=8,
        capacity={"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"},
        annotations={"sim.kohort.dev/run-seconds": "2"},
    ),
)


def racks() -> tuple[Pool, ...]:
    """The cluster that is shipped with the examples; pods of Jobs run two seconds."""
    quick = {"sim.kohort.dev/run-seconds": "2"}
    return tuple(replace(pool, annotations=quick) for pool in read((FOLDER / "cluster.yaml").read_text()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A workload in a namespace of its own, and what is promised of it.

    `groups`: how many gangs it becomes, `pods`: how many pods in all. `end`: kind and condition that say that it is
    over; none: it never fits, and says why. `serves`: nothing ends, it is over when everything runs.
    """

    name: str
    title: str
    asks: str
    objects: tuple[Object, ...]
    groups: int
    pods: int
    end: tuple[str, str, str] | None = None
    serves: bool = False

    @property
    def fits(self) -> bool:
        return self.end is not None or self.serves


def example(file: str) -> tuple[Object, ...]:
    """The objects of a file in examples/, for stories that tell what is there already."""
    from kohort import manifest

    return tuple(document.obj for document in manifest.read([str(FOLDER / file)]))


def _yaml(text: str) -> tuple[Object, ...]:
    obj, _ = load(text, 1)
    return (obj,)


_RING: Final = _yaml("""
apiVersion: batch/v1
kind: Job
metadata: {name: ring}
spec:
  parallelism: 8
  completions: 8
  completionMode: Indexed
  scheduling:
    schedulingPolicy: {gang: {}}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "2"}}}]
""")

_SLICES: Final = _yaml("""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: slices}
spec:
  replicatedJobs:
  - name: worker
    replicas: 3
    gangConfig: {gangMode: ReplicatedGang}
    template:
      spec:
        parallelism: 4
        completions: 4
        completionMode: Indexed
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, image: busybox, resources: {requests: {cpu: "2"}}}]
""")

_GIANT: Final = _yaml("""
apiVersion: batch/v1
kind: Job
metadata: {name: giant}
spec:
  parallelism: 40
  completions: 40
  completionMode: Indexed
  scheduling:
    schedulingPolicy: {gang: {}}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "4"}}}]
""")

TOGETHER: Final = (
    Story(
        name="ring",
        title="a Job of 8 pods that start together or not at all",
        asks="scheduling: {schedulingPolicy: {gang: {}}}",
        objects=_RING,
        groups=1,
        pods=8,
        end=("batch/v1", "Job", "Complete"),
    ),
    Story(
        name="slices",
        title="a JobSet of 3 replicas, each a gang of 4 pods",
        asks="gangConfig: {gangMode: ReplicatedGang}",
        objects=_SLICES,
        groups=3,
        pods=12,
        end=("jobset.x-k8s.io/v1alpha2", "JobSet", "Completed"),
    ),
)
WAITS: Final = (
    Story(
        name="giant",
        title="a Job of 40 pods with 4 cpu each, on nodes that have 64 in all",
        asks="scheduling: {schedulingPolicy: {gang: {}}}",
        objects=_GIANT,
        groups=1,
        pods=40,
    ),
)

_TRAINED: Final = ("trainer.kubeflow.org/v1alpha1", "TrainJob", "Complete")


def kinds() -> tuple[Story, ...]:
    """One for each manifest of the other kinds in examples/, on machines with GPUs in racks."""
    return (
        Story(
            name="torch",
            title="a TrainJob on 8 nodes with the built-in torch runtime",
            asks="examples/trainjob-torch.yaml",
            objects=example("trainjob-torch.yaml"),
            groups=1,
            pods=8,
            end=_TRAINED,
        ),
        Story(
            name="mpi",
            title="a launcher and its 12 workers as one gang",
            asks="examples/trainjob-mpi.yaml",
            objects=example("trainjob-mpi.yaml"),
            groups=1,
            pods=13,
            end=_TRAINED,
        ),
        Story(
            name="finetune",
            title="data and model are fetched first; then 4 nodes train together",
            asks="examples/trainjob-finetune.yaml",
            objects=example("trainjob-finetune.yaml"),
            groups=2,
            pods=6,
            end=_TRAINED,
        ),
        Story(
            name="rack",
            title="4 nodes in one rack, whichever has room for all of them",
            asks="examples/trainjob-rack.yaml",
            objects=example("trainjob-rack.yaml"),
            groups=1,
            pods=4,
            end=_TRAINED,
        ),
        Story(
            name="llm",
            title="router, prefill and decode: a PodCliqueSet as trees of gangs",
            asks="examples/podcliqueset-disaggregated.yaml",
            objects=example("podcliqueset-disaggregated.yaml"),
            groups=11,
            pods=20,
            serves=True,
        ),
        Story(
            name="serving",
            title="a LeaderWorkerSet: two replicas of 4 pods, each within one rack",
            asks="examples/leaderworkerset-inference.yaml",
            objects=example("leaderworkerset-inference.yaml"),
            groups=2,
            pods=8,
            serves=True,
        ),
    )
