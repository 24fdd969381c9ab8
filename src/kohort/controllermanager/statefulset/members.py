"""The pods of a StatefulSet: their ordinals, what each is made of, in which state it is."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, meta_of, name_of, namespace_of, number
from kohort.controllermanager import history
from kohort.controllermanager import pods as pods_
from kohort.controllermanager.podtemplate import new_pod

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"


def ordinal(pod: Object) -> int:
    """-1: its name has none."""
    return number(name_of(pod).rpartition("-")[2])


def is_member(sts: Object, pod: Object) -> bool:
    return name_of(pod).rpartition("-")[0] == name_of(sts) and ordinal(pod) >= 0


def replicas(sts: Object) -> int:
    found = sts["spec"].get("replicas")
    return 1 if found is None else int(found)


def start(sts: Object) -> int:
    return int((sts["spec"].get("ordinals") or {}).get("start") or 0)


def ordinals(sts: Object) -> range:
    return range(start(sts), start(sts) + replicas(sts))


def is_parallel(sts: Object) -> bool:
    return str(sts["spec"].get("podManagementPolicy") or "") == "Parallel"


def is_rolling(sts: Object) -> bool:
    return str((sts["spec"].get("updateStrategy") or {}).get("type") or "RollingUpdate") == "RollingUpdate"


def rolling(sts: Object) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (sts["spec"].get("updateStrategy") or {}).get("rollingUpdate")
    return found


def partition(sts: Object) -> int:
    return int((rolling(sts) or {}).get("partition") or 0)


def revision_of(pod: Object) -> str:
    return label(pod, history.HASH)


# ---- states


def is_running_and_ready(pod: Object) -> bool:
    return pods_.phase(pod) == "Running" and pods_.is_ready(pod)


def is_running_and_available(pod: Object, least: int, now: datetime) -> bool:
    return pods_.is_available(pod, least, now)


def is_unavailable(pod: Object | None, least: int, now: datetime) -> bool:
    """None: it is still to be made."""
    return pod is None or is_deleting(pod) or not is_running_and_available(pod, least, now)


# ---- a new one


def new_member(sts: Object, template: Object, revision: str, index: int) -> Object:
    name = f"{name_of(sts)}-{index}"
    pod = new_pod(sts, template, name)
    pod["metadata"]["labels"] = {
        **(pod["metadata"].get("labels") or {}),
        POD_NAME: name,
        POD_INDEX: str(index),
        history.HASH: revision,
    }
    spec = pod["spec"]
    spec["hostname"] = name
    if sts["spec"].get("serviceName"):
        spec["subdomain"] = sts["spec"]["serviceName"]
    _mount(sts, spec, index)
    return pod


def _mount(sts: Object, spec: dict[str, Any], index: int) -> None:
    """Volumes of claims take the place of those that the template has under their names."""
    templates = sts["spec"].get("volumeClaimTemplates") or ()
    if not templates:
        return
    named = {name_of(one): claim_name(sts, one, index) for one in templates}
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in named.items()]
    spec["volumes"] = [*claims, *(one for one in spec.get("volumes") or () if one.get("name") not in named)]


def claim_name(sts: Object, template: Object, index: int) -> str:
    return f"{name_of(template)}-{name_of(sts)}-{index}"


def new_claim(sts: Object, template: Object, index: int) -> Object:
    given = meta_of(template)
    labels = {**(given.get("labels") or {}), **((sts["spec"].get("selector") or {}).get("matchLabels") or {})}
    meta = {"name": claim_name(sts, template, index), "namespace": namespace_of(sts), "labels": labels}
    if given.get("annotations"):
        meta["annotations"] = copied(given["annotations"])
    spec = copied(template.get("spec") or {})
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
