"""The stories that `make demo` tells. One more is one more entry in STORIES."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kohort.api.kind import Object
from kohort.sim.cluster import Pool
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
