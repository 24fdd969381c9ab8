"""Every example starts on the cluster that is shipped beside them, in virtual time: `kohort up --cluster`."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from kohort import manifest
from kohort.grouping.settings import Grouping
from kohort.run.roles import every_role
from kohort.sim.cluster import read
from kohort.testing.cluster import Cluster, cluster
from kohort.testing.virtual import VirtualLoop

FOLDER = Path(__file__).parent.parent / "examples"
SHIPPED = FOLDER / "cluster.yaml"
DEPLOY = FOLDER.parent / "deploy"
DAY = 25 * 3600.0

# Rights that no example needs (role, group, resource), and what does. All others are used here, and no more are needed.
_LOOKING, _BLOCKING = "kohort run looks around, leads, or both", "OwnerReferencesPermissionEnforcement asks for it"
ELSEWHERE = {
    ("look", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _LOOKING,
    ("look", "admissionregistration.k8s.io", "validatingwebhookconfigurations"): _LOOKING,
    ("look", "coordination.k8s.io", "leases"): _LOOKING,
    ("lease", "coordination.k8s.io", "leases"): _LOOKING,
    (
        "scheduler",
        "kohort.dev",
        "groupingrules/status",
    ): "whether a GroupingRule is accepted (tests/e2e/test_companion.py)",
    ("scheduler", "", "pods/eviction"): "defragmentation, where it is switched on",
    ("scheduler", "", "persistentvolumes"): "a volume is bound for its first pod",
    ("scheduler", "", "persistentvolumeclaims"): "a volume is bound for its first pod",
    ("groups", "scheduling.k8s.io", "priorityclasses"): "exclusive placement of JobSets by templates",
    ("jobset", "jobset.x-k8s.io", "jobsets/finalizers"): _BLOCKING,
    ("trainjob", "trainer.kubeflow.org", "trainjobs/finalizers"): _BLOCKING,
    ("trainjob", "authentication.k8s.io", "tokenreviews"): "trainings report progress (TrainJobStatus)",
    ("trainjob", "scheduling.x-k8s.io", "podgroups"): "runtimes that ask for coscheduling",
    ("trainjob", "scheduling.volcano.sh", "podgroups"): "runtimes that ask for Volcano",
    ("grove", "grove.io", "podcliquesets/finalizers"): _BLOCKING,
    ("grove", "grove.io", "podcliques/finalizers"): _BLOCKING,
    ("grove", "grove.io", "podcliquescalinggroups/finalizers"): _BLOCKING,
    ("grove", "scheduler.grove.io", "podgangs/finalizers"): _BLOCKING,
    ("grove", "", "pods/status"): "is given on to init containers",
    ("leaderworkerset", "leaderworkerset.x-k8s.io", "leaderworkersets/finalizers"): _BLOCKING,
    (
        "leaderworkerset",
        "scheduling.volcano.sh",
        "podgroups",
    ): "gangs that Volcano places (tests/e2e/test_lws_volcano.py)",
}

# Rights that some examples need if their pods happen to wait or to be in the wrong place first.
SOMETIMES = {
    ("scheduler", "", "pods/status"): "a pod that waits has a condition that says why",
    ("jobset", "", "pods/status"): "exclusive placement: a pod that is in its way is told so before it is deleted",
}

Doing = tuple[str, str, str]  # group, resource, and: read, create, change, delete
_READ = frozenset({"get", "list", "watch"})
# Of resources that examples do use, what they do not do with them, and what does.
SELDOM: dict[Doing, str] = {
    ("", "persistentvolumeclaims", "change"): "scheduler: the node of a claim that waits for one",
    ("", "persistentvolumes", "change"): "scheduler: the claim of a volume",
    ("grove.io", "podcliques", "change"): "grove: a set that is changed or deleted (finalizers)",
    ("grove.io", "podcliquescalinggroups", "change"): "the same",
    ("", "persistentvolumeclaims", "create"): "volumeClaimTemplates of a LeaderWorkerSet, volumes of a JobSet",
    ("", "persistentvolumeclaims", "delete"): "a LeaderWorkerSet that shrinks, with a retention policy that says so",
    ("", "pods", "delete"): "preemption; an exclusive JobSet on the wrong node; restarts of groups and cliques",
    ("", "secrets", "delete"): "grove: what a set owns and does not want any more",
    ("", "serviceaccounts", "delete"): "the same",
    ("rbac.authorization.k8s.io", "roles", "delete"): "the same",
    ("rbac.authorization.k8s.io", "rolebindings", "delete"): "the same",
    ("", "services", "change"): "grove: a Service that somebody changed",
    ("", "services", "delete"): "grove: fewer replicas",
    ("apps", "controllerrevisions", "change"): "a LeaderWorkerSet that goes back to an old revision",
    ("apps", "controllerrevisions", "delete"): "a LeaderWorkerSet with a long history",
    ("autoscaling", "horizontalpodautoscalers", "change"): "grove: another scaleConfig",
    ("autoscaling", "horizontalpodautoscalers", "delete"): "grove: no scaleConfig any more",
    ("batch", "jobs", "change"): "a JobSet that is suspended or resumed",
    ("batch", "jobs", "delete"): "a JobSet that restarts",
    ("batch", "jobs/status", "change"): "a JobSet that is resumed",
    ("events.k8s.io", "events", "change"): "the same event again",
    ("grove.io", "podcliques", "delete"): "grove: fewer replicas, or a gang that was below its minimum for too long",
    ("grove.io", "podcliquescalinggroups", "delete"): "the same",
    ("scheduler.grove.io", "podgangs", "delete"): "the same",
    ("jobset.x-k8s.io", "jobsets", "create"): "trainjob: applied, and whoever applies what is not there creates",
    ("jobset.x-k8s.io", "jobsets", "delete"): "ttlSecondsAfterFinished; a TrainJob that is over",
    ("resource.k8s.io", "resourceclaims", "create"): "grove: shared claims",
    ("resource.k8s.io", "resourceclaims", "delete"): "the same",
    ("scheduling.k8s.io", "compositepodgroups", "change"): "a workload that grows or shrinks",
    ("scheduling.k8s.io", "podgroups", "change"): "the same",
    ("scheduling.k8s.io", "workloads", "change"): "the same",
    **{
        ("scheduling.k8s.io", kind, "delete"): "a workload that is suspended, or of another shape now"
        for kind in ("workloads", "podgroups", "compositepodgroups")
    },
}

# How many pods an example has had when all of it has started; those of the first steps may have ended by then.
PODS = {
    "cronjob-nightly.yaml": 4,
    "job-elastic.yaml": 10,
    "job-gang.yaml": 8,
    "job-ranks.yaml": 10,
    "jobset-gang.yaml": 17,
    "jobset-hello.yaml": 9,
    "jobset-policies.yaml": 10,
    "jobset-scheduler-name.yaml": 4,
    "jobset-slices.yaml": 33,
    "jobset-tree.yaml": 9,
    "leaderworkerset-inference.yaml": 8,
    "leaderworkerset-leader-first.yaml": 9,
    "leaderworkerset-tree.yaml": 15,
    "podcliqueset-disaggregated.yaml": 20,
    "podcliqueset-simple.yaml": 2,
    "podcliqueset-topology.yaml": 12,
    "trainjob-finetune.yaml": 6,
    "trainjob-mpi.yaml": 13,
    "trainjob-rack.yaml": 4,
    "trainjob-torch.yaml": 8,
    "workload-gang.yaml": 4,
    "workload-tree.yaml": 4,
}


def test_every_example_is_here() -> None:
    assert {file.name for file in FOLDER.glob("*.yaml")} - {SHIPPED.name} == set(PODS)


def test_there_is_one_name_for_racks() -> None:
    keys = {word.strip('"{}[],') for file in FOLDER.glob("*.yaml") for word in file.read_text().split()}
    assert {key for key in keys if key.endswith("/rack")} == {"topology.kubernetes.io/rack"}


def test_all_of_them_start_on_the_shipped_cluster() -> None:
    """One after another, each in a namespace of its own; what serves goes on serving."""

    async def work() -> None:
        rbac = (DEPLOY / "rbac.yaml", DEPLOY / "rbac-jobs.yaml")
        async with cluster(pools=read(SHIPPED.read_text()), rbac=rbac) as lab:
            for name, pods in PODS.items():
                space = name.removesuffix(".yaml")
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
                await lab.client.kind("v1", "Namespace").create(body)
                own = Cluster(lab.client, space)
                await own.create(*(document.obj for document in manifest.read([str(FOLDER / name)])))
                started = partial(_started, own, set(), pods)
                await own.until(started, seconds=DAY, what=f"{name}: {pods} started pods")
            assert lab.denied == []
            assert _unused(lab.used) - SOMETIMES.keys() - _foreign() == set(ELSEWHERE)
            assert _not_done(lab.used) <= SELDOM.keys()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())


def _foreign() -> set[tuple[str, str, str]]:
    """What companion mode reads of other operators and schedulers: tests/grouping has their samples."""
    return {("scheduler", kind.group, f"{kind.name.lower()}s") for kind in Grouping().reads}


def _unused(used: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Resources of rules of which no verb was used."""
    return {
        (role.name, group, resource)
        for role in every_role()
        for rule in role.rules
        for group in rule.groups
        for resource in rule.resources
        if not any((verb, group, resource) in used for verb in rule.verbs)
    }


def _not_done(used: set[tuple[str, str, str]]) -> set[Doing]:
    done = {(group, resource, _doing(verb)) for verb, group, resource in used}
    looked_at = {(group, resource) for _, group, resource in used}
    return {
        (group, resource, _doing(verb))
        for role in every_role()
        for rule in role.rules
        for group in rule.groups
        for resource in rule.resources
        for verb in rule.verbs
        if (group, resource) in looked_at and (group, resource, _doing(verb)) not in done
    }


def _doing(verb: str) -> str:
    return "read" if verb in _READ else "change" if verb in {"update", "patch"} else verb


async def _started(lab: Cluster, seen: set[str], wanted: int) -> bool:
    pods = await lab.pods()
    seen |= {pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in {"Running", "Succeeded"}}
    return len(seen) >= wanted and all(pod["spec"].get("nodeName") for pod in pods)
