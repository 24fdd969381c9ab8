"""The stories that `make demo` tells. One more is one more entry in STORIES."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kohort.api.kind import Object
from kohort.sim.cluster import Level, Pool
from kohort.yamlread import load

EXAMPLES: Final = Path(__file__).parents[4] / "examples"

# Sixty-four processors. Pods of Jobs run two seconds.
POOLS: Final = (
    Pool(
        name="node",
        count=8,
        capacity={"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"},
        annotations={"sim.kohort.dev/run-seconds": "2"},
    ),
)

# Eight racks of four machines with eight GPUs each. Pods of Jobs run ten seconds.
RACKS: Final = (
    Pool(
        name="gpu",
        count=32,
        capacity={"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110", "nvidia.com/gpu": "8"},
        topology=(Level("topology.example.com/rack", 8), Level("topology.kubernetes.io/rack", 1)),
    ),
)


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

    return tuple(document.obj for document in manifest.read([str(EXAMPLES / file)]))


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

STORIES: Final = (
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
    Story(
        name="giant",
        title="a Job of 40 pods with 4 processors each, on a cluster that has 64",
        asks="scheduling: {schedulingPolicy: {gang: {}}}",
        objects=_GIANT,
        groups=1,
        pods=40,
    ),
)

_TRAINED: Final = ("trainer.kubeflow.org/v1alpha1", "TrainJob", "Complete")


def more() -> tuple[Story, ...]:
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
            title="inference with router, prefill and decode: a PodCliqueSet as trees of gangs",
            asks="examples/podcliqueset-disaggregated.yaml",
            objects=example("podcliqueset-disaggregated.yaml"),
            groups=11,
            pods=20,
            serves=True,
        ),
        Story(
            name="serving",
            title="a LeaderWorkerSet: two replicas of a leader and 3 workers, each in a rack of its own",
            asks="examples/leaderworkerset-inference.yaml",
            objects=example("leaderworkerset-inference.yaml"),
            groups=2,
            pods=8,
            serves=True,
        ),
    )
