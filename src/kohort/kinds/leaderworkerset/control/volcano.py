"""PodGroups for Volcano, where the option LWSVolcano says that it schedules (KEP-407, spec lws 4.2).

Each group's belongs to its leader pod, goes and comes back with it, and is made from the set as it is at that moment.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, label, meta_of, name_of, namespace_of, owner_reference
from kohort.apimachinery import podresources, quantity
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import ROLES, pod_spec, size
from kohort.kinds.leaderworkerset.control.pods import Membership
from kohort.kinds.leaderworkerset.control.reading import leader_name

API_VERSION: Final = "scheduling.volcano.sh/v1beta1"
ALIAS: Final = "PodGroup.scheduling.volcano.sh"  # other projects have PodGroups, too
_GROUP_NAME: Final = "scheduling.k8s.io/group-name"
_QUEUE: Final = "scheduling.volcano.sh/queue-name"
_INHERITED: Final = "volcano.sh/"


def name(lws: Object, index: int, revision: str) -> str:
    return f"{leader_name(lws, index)}-{revision}"


def membership(lws: Object, index: int, revision: str) -> Membership:
    """Who schedules is left to the templates."""
    return Membership(annotations={_GROUP_NAME: name(lws, index, revision)})


def pod_group(lws: Object, leader: Object) -> Object:
    late = (lws.get("spec") or {}).get("startupPolicy") == "LeaderReady"
    spec: dict[str, Any] = {"minMember": 1 if late else size(lws), "minResources": _resources(lws)}
    queue = annotation(lws, _QUEUE)
    if queue:
        spec["queue"] = queue
    index, revision = label(leader, constants.GROUP_INDEX), label(leader, constants.REVISION)
    notes = {key: value for key, value in (meta_of(lws).get("annotations") or {}).items() if key.startswith(_INHERITED)}
    return {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": f"{name_of(leader)}-{revision}",
            "namespace": namespace_of(lws),
            "labels": {constants.NAME: name_of(lws), constants.GROUP_INDEX: index, constants.REVISION: revision},
            **({"annotations": notes} if notes else {}),
            "ownerReferences": [owner_reference(leader)],
        },
        "spec": spec,
    }


def _resources(lws: Object) -> dict[str, str]:
    """Of a whole group, by requests; a limit without a request does not count."""
    pods = dict(zip(ROLES, (1, size(lws) - 1), strict=True))
    wanted = []
    for role, count in pods.items():
        requests, _ = podresources.of_pod({"spec": pod_spec(lws, role)})
        if count:
            wanted.append({key: amount * count for key, amount in requests.items()})
    return {key: str(amount) for key, amount in sorted(quantity.total(wanted).items())}
