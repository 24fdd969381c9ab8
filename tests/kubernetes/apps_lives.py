# ruff: noqa: E501  (a life is a line)
"""Lives of Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers: told, and by chance."""

from random import Random
from typing import Any

from tests.kubernetes.apps_side import Life
from tests.kubernetes.job_side import Object

Step = tuple[str, Any]
ALL: Any = None
BACKGROUND = {"propagationPolicy": "Background"}
ORPHAN = {"propagationPolicy": "Orphan"}


def template(image: str = "a", **spec: Any) -> Object:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def make(kind: str, /, **spec: Any) -> Step:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    selector: Any = {"app": "web"} if version == "v1" else {"matchLabels": {"app": "web"}}
    meta = {"name": "web", "annotations": {"note": "x"}}
    body = {"apiVersion": version, "kind": kind, "metadata": meta}
    return "create", {**body, "spec": {"selector": selector, "template": template(), **spec}}


def change(kind: str, **spec: Any) -> Step:
    return "patch", (f"{kind}/web", {"spec": spec})


def scale(kind: str, count: int) -> Step:
    return "patch", (f"{kind}/web/scale", {"spec": {"replicas": count}})


def image(kind: str, name: str) -> Step:
    return change(kind, template={"spec": {"containers": [{"name": "c", "image": name}]}})


def rolling(surge: Any, unavailable: Any) -> Object:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def late(step: Step) -> Step:
    return "several", [step, ("wait", 4.0)]


def told() -> list[Life]:
    return [*_sets(), *_deployments(), *_stateful(), *_daemons()]


READY: Step = ("ready", ALL)


def _sets() -> list[Life]:
    loose = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "loose", "labels": {"app": "web"}}}
    adopted: Step = ("create", {**loose, "spec": template()["spec"]})
    freed: Step = ("patch", ("pods/loose", {"metadata": {"labels": {"app": "other"}}}))
    rs, rc = "replicasets", "replicationcontrollers"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
    return [
        Life("rs-life", [make("ReplicaSet", replicas=3), ("ready", 2), scale(rs, 2), READY, scale(rs, 4), ("fail", 1), READY]),
        Life("rs-adopt", [adopted, make("ReplicaSet", replicas=2), freed, ("delete", (f"{rs}/web", ORPHAN))]),
        Life("rs-quota", [("create", quota), make("ReplicaSet", replicas=1), READY, scale(rs, 2)]),
        Life("rs-gone", [make("ReplicaSet", replicas=2), READY, ("delete", (f"{rs}/web", BACKGROUND))]),
        Life("rc-life", [make("ReplicationController", replicas=2), READY, scale(rc, 3), READY, scale(rc, 0)]),
    ]  # fmt: skip


def _deployments() -> list[Life]:
    d = "deployments"
    recreate = {"type": "Recreate", "rollingUpdate": None}
    return [
        Life("d-roll", [make("Deployment", replicas=4), READY, image(d, "b"), ("ready", 1), READY, READY, READY, READY]),
        Life("d-bounds", [make("Deployment", replicas=5, strategy=rolling(0, 2)), READY, image(d, "b"), READY, READY, READY]),
        Life("d-stuck", [make("Deployment", replicas=3, strategy=rolling(1, 1)), ("ready", 2), image(d, "b"), image(d, "c"), READY, READY, READY]),
        Life("d-share", [make("Deployment", replicas=6, strategy=rolling(3, 2)), READY, image(d, "b"), scale(d, 10), scale(d, 4), READY, READY, READY]),
        Life("d-undo", [make("Deployment", replicas=2), READY, image(d, "b"), READY, READY, image(d, "a"), READY, READY, image(d, "c"), READY, READY]),
        Life("d-limit", [make("Deployment", replicas=1, revisionHistoryLimit=1), READY, image(d, "b"), READY, image(d, "c"), READY, image(d, "d"), READY]),
        Life("d-pause", [make("Deployment", replicas=2), READY, change(d, paused=True), image(d, "b"), scale(d, 3), change(d, paused=None), READY, READY, READY]),
        Life("d-recreate", [make("Deployment", replicas=2, strategy=recreate), READY, image(d, "b"), READY]),
        Life("d-late", [late(make("Deployment", replicas=2, progressDeadlineSeconds=1)), READY, late(image(d, "b"))]),
        Life("d-note", [make("Deployment", replicas=1), READY, ("patch", (f"{d}/web", {"metadata": {"annotations": {"note": "y", "more": "z"}}})), change(d, minReadySeconds=1)]),
        Life("d-gone", [make("Deployment", replicas=2), READY, ("delete", (f"{d}/web", ORPHAN)), make("Deployment", replicas=3), READY]),
        Life("d-zero", [make("Deployment", replicas=0), image(d, "b"), scale(d, 2), READY, scale(d, 0)]),
    ]  # fmt: skip


def _stateful() -> list[Life]:
    s = "statefulsets"
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]  # fmt: skip

    def partition(value: int, most: Any = 1) -> Object:
        return {"type": "RollingUpdate", "rollingUpdate": {"partition": value, "maxUnavailable": most}}

    def keep(deleted: str, scaled: str) -> Object:
        return {"whenDeleted": deleted, "whenScaled": scaled}

    return [
        Life("s-order", [make("StatefulSet", replicas=3, serviceName="web"), READY, READY, READY, image(s, "b"), READY, READY, READY, scale(s, 1), READY]),
        Life("s-parallel", [make("StatefulSet", replicas=3, podManagementPolicy="Parallel", ordinals={"start": 4}), ("ready", 2), READY, image(s, "b"), READY, READY, scale(s, 1)]),
        Life("s-partition", [make("StatefulSet", replicas=3, podManagementPolicy="Parallel", updateStrategy=partition(2)), READY, image(s, "b"), READY, ("remove", 1), READY, change(s, updateStrategy=partition(0)), READY, READY]),
        Life("s-max", [make("StatefulSet", replicas=4, podManagementPolicy="Parallel", updateStrategy=partition(0, 2)), READY, image(s, "b"), READY, READY]),
        Life("s-broken", [make("StatefulSet", replicas=2, podManagementPolicy="Parallel"), ("ready", 1), image(s, "b"), READY, READY]),
        Life("s-low", [make("StatefulSet", replicas=3, podManagementPolicy="Parallel"), READY, ("unready", 1), image(s, "b"), READY, READY, READY]),
        Life("s-mixed", [make("StatefulSet", replicas=4, podManagementPolicy="Parallel", updateStrategy=partition(0, 2)), READY, ("unready", 1), image(s, "b"), READY, READY]),
        Life("s-ondelete", [make("StatefulSet", replicas=2, updateStrategy={"type": "OnDelete"}), READY, READY, image(s, "b"), ("remove", 1), READY]),
        Life("s-fail", [make("StatefulSet", replicas=2), READY, READY, ("fail", 1), READY]),
        Life("s-undo", [make("StatefulSet", replicas=1, revisionHistoryLimit=1), READY, image(s, "b"), READY, image(s, "a"), READY, image(s, "c"), READY, image(s, "d"), READY]),
        Life("s-claims", [make("StatefulSet", replicas=2, volumeClaimTemplates=claims, persistentVolumeClaimRetentionPolicy=keep("Delete", "Delete")), READY, READY, scale(s, 1), change(s, persistentVolumeClaimRetentionPolicy=keep("Retain", "Retain")), ("delete", (f"{s}/web", BACKGROUND))]),
        Life("s-keep", [make("StatefulSet", replicas=2, volumeClaimTemplates=claims, persistentVolumeClaimRetentionPolicy=keep("Delete", "Retain")), READY, READY, scale(s, 1), scale(s, 2), READY, ("delete", (f"{s}/web", BACKGROUND))]),
    ]  # fmt: skip


def _daemons() -> list[Life]:
    d = "daemonsets"
    return [
        Life("ds-roll", [make("DaemonSet"), ("ready", 2), READY, image(d, "b"), READY, READY, READY, ("fail", 1), READY]),
        Life("ds-some", [make("DaemonSet", template=template(nodeSelector={"kind": "gpu"})), READY, change(d, template={"spec": {"nodeSelector": {"kind": "cpu"}}}), READY]),
        Life("ds-surge", [make("DaemonSet", updateStrategy=rolling(1, 0)), READY, image(d, "b"), READY, READY, READY, READY]),
        Life("ds-ondelete", [make("DaemonSet", updateStrategy={"type": "OnDelete"}), READY, image(d, "b"), ("remove", 1), READY]),
        Life("ds-undo", [make("DaemonSet", revisionHistoryLimit=0, updateStrategy=rolling(0, 3)), READY, image(d, "b"), READY, image(d, "a"), READY, ("delete", (f"{d}/web", BACKGROUND))]),
    ]  # fmt: skip


# ---- by chance


def generated(seed: str, count: int) -> list[Life]:
    return [_generated(Random(f"{seed}/{number}"), f"g{number:02}") for number in range(count)]


def _generated(chance: Random, name: str) -> Life:
    d = "deployments"
    bounds = rolling(chance.choice([0, 1, "25%", 3]), chance.choice([1, 2, "25%", "50%"]))
    steps: list[Step] = [make("Deployment", replicas=chance.randint(1, 6), strategy=bounds)]
    for _ in range(7):
        steps.append(
            chance.choice(
                [
                    READY, READY, ("ready", chance.randint(1, 3)), scale(d, chance.randint(0, 8)),
                    image(d, chance.choice("abc")), ("remove", 1), change(d, paused=chance.choice([True, None])),
                ]
            )
        )  # fmt: skip
    return Life(name, steps)
