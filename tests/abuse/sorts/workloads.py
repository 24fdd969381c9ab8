"""Workloads and pods: counts, patterns, amounts, schedules, terms and dependencies without measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.abuse.attack import JOB_POD, POD, Attack, Object, Sort, Source

_MOST: Final = 2**31 - 1


def _pattern(source: Source) -> Iterator[Attack]:
    bad = source.pick(
        r"^(\w+\s?)+!$", r"(a+)+$", r"(a|aa)+$", "(" * 400 + ")" * 400, "a{1,999}{1,999}", "(?=a)", "[" * 5000
    )
    rule = {"name": "r", "action": "FailJobSet", "onJobFailureMessagePatterns": [bad] * source.pick(1, 50)}
    job = {"template": {"spec": {**JOB_POD, "activeDeadlineSeconds": 1}}, "backoffLimit": 0}
    yield source.jobset({"failurePolicy": {"rules": [rule]}}, job)


def _counts(source: Source) -> Iterator[Attack]:
    most = source.pick(_MOST, 2_000_000, 100_000)
    yield source.jobset({}, {"parallelism": most, "completions": most})
    yield source.jobset({}, {"parallelism": 1, "completions": 1}, replicas=most)
    template = {"workerTemplate": {"spec": POD}, "size": most}
    spec: Object = {"replicas": source.pick(1, most), "leaderWorkerTemplate": template}
    yield source.create("leaderworkerset.x-k8s.io/v1", "leaderworkersets", "LeaderWorkerSet", spec)
    clique = {"name": "a", "spec": {"roleName": "r", "replicas": most, "minAvailable": 1, "podSpec": POD}}
    spec = {"replicas": source.pick(1, most), "template": {"cliques": [clique]}}
    yield source.create("grove.io/v1alpha1", "podcliquesets", "PodCliqueSet", spec)
    train = {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": most}}
    yield source.create("trainer.kubeflow.org/v1alpha1", "trainjobs", "TrainJob", train)
    yield source.create("batch/v1", "jobs", "Job", {"parallelism": most, "template": {"spec": JOB_POD}})


def _job(source: Source, **spec: Any) -> Attack:
    return source.create("batch/v1", "jobs", "Job", {"template": {"spec": JOB_POD}, "parallelism": 1, **spec})


def _indexes(source: Source) -> Iterator[Attack]:
    most = 10**5
    rule = {"succeededIndexes": source.pick(f"0-{most - 1}", ",".join(str(n) for n in range(0, 20_000, 2)))}
    yield _job(source, completionMode="Indexed", completions=most, successPolicy={"rules": [rule]})
    rule = {"succeededIndexes": f"0-{_MOST - 2}"}
    yield _job(source, completionMode="Indexed", completions=_MOST, successPolicy={"rules": [rule]})
    rules = [{"succeededIndexes": f"{number}"} for number in range(20)]
    yield _job(source, completionMode="Indexed", completions=most, successPolicy={"rules": rules})


def _status(source: Source) -> Iterator[Attack]:
    """A Job's own record, written by the tenant: indexes and uids that its controller has to read."""
    yield _job(source, completionMode="Indexed", completions=10**5, suspend=True)
    path = source.space("apis/batch/v1", f"jobs/{source.sort}-{source.number}/status")
    odd = ",".join(str(number) for number in range(0, 60_000, 2))
    status = source.pick(
        {"completedIndexes": odd},
        {"completedIndexes": "0-2147483645"},
        {"failedIndexes": odd},
        {"uncountedTerminatedPods": {"succeeded": [f"u{number}" for number in range(3000)]}},
        {"startTime": "0001-01-01T00:00:00Z"},
    )
    yield source.send("PATCH", path, {"status": status}, "merge")


def _quantity(source: Source) -> Iterator[Attack]:
    amount = source.pick(
        "1e-99999999", "1e99999999", "9" * 5000, "1" + "0" * 3000 + "m", "0." + "1" * 4000, "1e18",
        "9223372036854775807", "1e-18", "1E", "999999999Ei",
    )  # fmt: skip
    name = source.pick("cpu", "memory", "example.com/gpu", "pods", "hugepages-2Mi")
    yield source.pod({"containers": [{"name": "c", "image": "i", "resources": {"requests": {name: amount}}}]})
    yield source.pod({"overhead": {"cpu": amount}, "resources": {"requests": {"cpu": amount}}})


def _schedule(source: Source) -> Iterator[Attack]:
    """CronJobs that are never due, always due, or were due a hundred million times."""
    when = source.pick(
        "0 0 31 2 *", "0 0 29 2 *", "* * * * *", "*/1 * * * *", ",".join(["1"] * 3000) + " * * * *",
        "0-59/1 0-23 1-31 1-12 0-6", "@every 1ns", "@yearly", "TZ=UTC * * * * *", "60 * * * *", "x" * 10_000,
    )  # fmt: skip
    job = {"spec": {"template": {"spec": JOB_POD}}}
    spec: Object = {"schedule": when, "jobTemplate": job, "startingDeadlineSeconds": source.pick(1, _MOST)}
    if source.pick(True, False):
        spec["timeZone"] = source.pick("Etc/UTC", "Asia/Kathmandu", "../../etc/passwd", "Local")
    yield source.create("batch/v1", "cronjobs", "CronJob", spec)
    path = source.space("apis/batch/v1", f"cronjobs/{source.sort}-{source.number}/status")
    yield source.send("PATCH", path, {"status": {"lastScheduleTime": "1970-01-01T00:00:00Z"}}, "merge")


def _environment(source: Source) -> Iterator[Attack]:
    env = [{"name": f"E{n}", "value": "$(E0)" * 3} for n in range(source.pick(100, 5000))]
    gates = [{"name": "a.b/c"}]
    yield source.pod({"containers": [{"name": "c", "image": "i", "env": env}], "schedulingGates": gates})


def _containers(source: Source) -> Iterator[Attack]:
    count = source.pick(50, 1000)
    ports = [{"containerPort": 1 + number % 65_535} for number in range(count)]
    several = [{"name": f"c{number}", "image": "i", "ports": ports[: 4000 // count]} for number in range(count)]
    yield source.pod({"containers": several, "initContainers": [{**one, "name": f"i{one['name']}"} for one in several]})


def _terms(source: Source) -> Iterator[Attack]:
    """Affinity, spreading and tolerations, which a scheduler compares with every node and pod."""
    count = source.pick(10, 300, 1000)
    values = [f"v{number}" for number in range(count)]
    labels = [{"key": f"k{number}", "operator": "NotIn", "values": values[:20]} for number in range(min(count, 200))]
    term = {"topologyKey": source.pick("kubernetes.io/hostname", "none"), "labelSelector": {"matchExpressions": labels}}
    spread = [
        {"maxSkew": 1, "topologyKey": f"k{number}", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        for number in range(min(count, 200))
    ]
    nodes = {"nodeSelectorTerms": [{"matchExpressions": labels} for _ in range(min(count, 10))]}
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(count)]
    affinity: Object = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * min(count, 20)},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": nodes},
    }
    yield source.pod({"affinity": affinity, "tolerations": tolerations})
    yield source.pod({"topologySpreadConstraints": spread, "nodeSelector": {f"k{n}": "v" for n in range(count)}})


def _dependencies(source: Source) -> Iterator[Attack]:
    """JobSets and PodCliqueSets whose jobs wait for each other: in a line, in a ring, all for all."""
    count, form = source.pick(5, 30, 100), source.pick("line", "all", "ring")
    template = {"spec": {"template": {"spec": JOB_POD}, "suspend": True}}
    jobs: list[Object] = [{"name": f"j{number}", "template": template} for number in range(count)]
    for number in range(form != "ring", count):
        before = {"line": [number - 1], "all": range(number), "ring": [(number + 1) % count]}[form]
        jobs[number]["dependsOn"] = [{"name": f"j{one}", "status": "Ready"} for one in before]
    yield source.create("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet", {"replicatedJobs": jobs})
    cliques = [{"name": f"c{n}", "spec": {"roleName": f"r{n}", "replicas": 1, "podSpec": POD}} for n in range(8)]
    for n in range(form != "ring", 8):
        cliques[n]["spec"] = {**cliques[n]["spec"], "startsAfter": [f"c{n - 1}"]}  # type: ignore[dict-item]
    spec = {"replicas": 1, "template": {"cliqueStartupType": "CliqueStartupTypeExplicit", "cliques": cliques}}
    yield source.create("grove.io/v1alpha1", "podcliquesets", "PodCliqueSet", spec)


def _restarts(source: Source) -> Iterator[Attack]:
    """Workloads that fail at once and are made again for ever."""
    job = {"backoffLimit": 0, "template": {"spec": {**JOB_POD, "activeDeadlineSeconds": 1}}}
    yield source.jobset({"failurePolicy": {"maxRestarts": _MOST}}, job)
    yield _job(source, backoffLimit=_MOST, activeDeadlineSeconds=1, ttlSecondsAfterFinished=0)


SORTS: Final = (
    Sort("pattern", _pattern),
    Sort("counts", _counts),
    Sort("indexes", _indexes),
    Sort("status", _status),
    Sort("quantity", _quantity),
    Sort("schedule", _schedule),
    Sort("environment", _environment),
    Sort("containers", _containers),
    Sort("terms", _terms),
    Sort("dependencies", _dependencies),
    Sort("restarts", _restarts),
)
