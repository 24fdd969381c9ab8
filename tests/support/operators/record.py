"""`python -m tests.support.operators.record`: what real operators make of samples, as tests/recorded/operators.json.

Each sample is applied unmodified, but for `schedulerName: kohort`, while no node takes pods, and what its operator has
made by then is `first`. Then nodes take pods, and what comes after that is `later`. Only what grouping can see is kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import yaml
from tests.support.operators.bed import Bed, asking, for_kohort, sample
from tests.support.operators.recipes import OPERATORS

Json = dict[str, Any]
FILE: Final = Path(__file__).parents[2] / "recorded" / "operators.json"
_QUIET: Final = 20.0  # seconds without a new pod: the operator has made what it makes now
_KEPT: Final = ("schedulerName", "nodeSelector", "tolerations", "affinity")  # of a pod's spec
SAMPLES: Final = {  # operator -> files of its module, or names of our copies
    "jobset": ("jobset-coordinator", "jobset-in-order", "jobset-depends-on", "jobset-exclusive"),
    "lws": (
        "config/samples/leaderworkerset_v1_leaderworkerset.yaml",
        "config/samples/leaderworkerset_multi_template.yaml",
        "config/samples/leaderworkerset_exclusiveplacement.yaml",
    ),
    "kuberay": (
        "config/samples/ray-cluster.sample.yaml",
        "config/samples/ray-cluster.complete.yaml",
        "config/samples/ray-cluster.autoscaler.yaml",
        "config/samples/ray-cluster.kai-scheduler.yaml",
        "config/samples/ray-job.sample.yaml",
        "config/samples/ray-service.sample.yaml",
    ),
    "training-operator": (
        "examples/pytorch/elastic/echo/echo.yaml",
        "examples/tensorflow/simple.yaml",
        "examples/mpi/tensorflow-mnist.yaml",
        "examples/jax/cpu-demo/demo.yaml",
        "examples/xgboost/xgboostjob.yaml",
        "examples/paddlepaddle/simple-cpu.yaml",
    ),
}


def documents(operator: str, name: str) -> list[Json]:
    if not name.endswith(".yaml"):
        return sample(operator, name)
    text = (OPERATORS[operator].folder / name).read_text()
    found = [one for one in yaml.safe_load_all(text) if one]
    for one in found:
        one["metadata"].pop("namespace", None)
    return [one for one in found if one["kind"] not in {"ConfigMap", "Namespace", "Queue", "Service"}]


class Recorder:
    def __init__(self, bed: Bed) -> None:
        self.bed = bed

    def record(self, operator: str, name: str) -> Json:
        bodies = [asking(for_kohort(one)) for one in documents(operator, name)]
        self._take_pods(False)
        self.bed.apply(*bodies)
        first = self._quiet(0)
        self._take_pods(True)
        every = self._quiet(len(first))
        later = [one for one in every if one["metadata"]["name"] not in {pod["metadata"]["name"] for pod in first}]
        made = {
            "operator": f"{operator} {OPERATORS[operator].version}",
            "owners": self._owners([*first, *later]),
            "first": [_pod(one) for one in first],
            "later": [_pod(one) for one in later],
        }
        for one in bodies:
            self.bed.delete(f"{one['kind'].lower()}.{one['apiVersion'].partition('/')[0]}", one["metadata"]["name"])
        self.bed.until(lambda: not self.bed.pods(), "its pods are gone", 120)
        return made

    def _take_pods(self, taken: bool) -> None:
        for node in self.bed.items("nodes"):
            self.bed.env.kubectl("uncordon" if taken else "cordon", node["metadata"]["name"])

    def _quiet(self, before: int) -> list[Json]:
        """Pods, once no more come."""
        found, since = self.bed.pods(), time.monotonic()
        while time.monotonic() - since < _QUIET or not found:
            time.sleep(0.5)
            now = self.bed.pods()
            if len(now) != len(found):
                since = time.monotonic()
            found = now
            assert time.monotonic() - since < 90, "no pods"
        return sorted(found, key=lambda one: str(one["metadata"]["name"]))

    def _owners(self, pods: list[Json]) -> list[Json]:
        """Whoever stands above them, all the way up."""
        found: dict[tuple[str, str], Json] = {}
        waiting = [ref for pod in pods for ref in pod["metadata"].get("ownerReferences") or ()]
        while waiting:
            ref = waiting.pop()
            key = (ref["kind"], ref["name"])
            group = ref["apiVersion"].rpartition("/")[0]
            if key in found or ref["kind"] == "Pod":
                continue
            kind = f"{ref['kind'].lower()}.{group}" if group else ref["kind"].lower()
            body = json.loads(self.bed.env.kubectl("get", kind, ref["name"], "-o", "json").stdout)
            found[key] = _owner(body)
            waiting += body["metadata"].get("ownerReferences") or ()
        return [found[key] for key in sorted(found)]


def _meta(body: Json) -> Json:
    meta = body["metadata"]
    left = "kubectl.kubernetes.io/last-applied-configuration"
    notes = {key: value for key, value in (meta.get("annotations") or {}).items() if key != left}
    made: Json = {"name": meta["name"], "labels": meta.get("labels") or {}, "annotations": notes}
    owner = next((one for one in meta.get("ownerReferences") or () if one.get("controller")), None)
    if owner is not None:
        made["owner"] = {key: owner[key] for key in ("apiVersion", "kind", "name")}
    return {key: value for key, value in made.items() if value}


def _pod(body: Json) -> Json:
    gates = [one["name"] for one in body["spec"].get("schedulingGates") or ()]
    return {**_meta(body), **({"gates": gates} if gates else {})}


def _owner(body: Json) -> Json:
    meta = {**_meta(body), "uid": body["metadata"]["uid"]}  # labels of pods name it
    kept = {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": meta}
    return {**kept, "spec": _trimmed(body.get("spec") or {})}


def _trimmed(value: Any) -> Any:
    """Without what runs in containers."""
    if isinstance(value, list):
        return [_trimmed(one) for one in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("containers"), list):
        containers = [{"name": one["name"], "resources": one.get("resources") or {}} for one in value["containers"]]
        return {**{key: value[key] for key in _KEPT if key in value}, "containers": containers}
    return {
        key: _trimmed(one)
        for key, one in value.items()
        if key not in {"rayStartParams", "serveConfigV2", "autoscalerOptions", "runtimeEnvYAML", "entrypoint"}
    }


def short(name: str) -> str:
    """What a sample is called in the file."""
    return name.removeprefix("config/samples/").removeprefix("examples/").removesuffix(".yaml")


def write(made: Json) -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(made[name], sort_keys=True)}" for name in sorted(made))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.operators.record", description=__doc__)
    parser.add_argument("--missing", action="store_true", help="only samples that are not in the file")
    chosen = parser.parse_args()
    for one in OPERATORS.values():
        one.build()
    made: Json = json.loads(FILE.read_text()) if chosen.missing and FILE.exists() else {}
    with Bed(*OPERATORS) as bed:
        bed.run()
        bed.nodes(4, "64")
        for node in bed.items("nodes"):  # samples of exclusive placement want a pool of nodes for each Job
            name = node["metadata"]["name"]
            bed.env.kubectl("label", "node", name, f"cloud.google.com/gke-nodepool={name}")
        for operator, names in SAMPLES.items():
            for name in (one for one in names if short(one) not in made):
                found = made[short(name)] = Recorder(bed).record(operator, name)
                write(made)
                print(f"{name}: {len(found['first'])} pods, then {len(found['later'])} more", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
