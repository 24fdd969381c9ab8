"""One reconcile of a ClusterTopologyBinding: what became of the schedulers' own topology objects (spec grove 1.5).

kube-scheduler and Kohort read node labels and need no such object. One that a binding names for another scheduler is
looked after by that scheduler's backend, which is not part of this project.
"""

from __future__ import annotations

from datetime import datetime

from kohort.api.kind import Object
from kohort.api.objects import meta_of
from kohort.controllers.conditions import drop_condition, set_condition
from kohort.controllers.reconcile import Reconcile, Result
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.control.writing import copy_status, write_status


def reconcile(binding: Object | None, now: datetime) -> Reconcile:
    if binding is None or meta_of(binding).get("deletionTimestamp"):
        return Result()
    status = copy_status(binding)
    status["observedGeneration"] = meta_of(binding).get("generation")
    rows = [
        {**one, "inSync": False, "message": f'scheduler backend "{one["schedulerName"]}" manages no topology here'}
        for one in binding["spec"].get("schedulerTopologyBindings") or ()
    ]
    if rows:
        status["schedulerTopologyStatuses"] = rows
        text = "a scheduler that the binding names manages no topology here"
        set_condition(status, now, constants.DRIFT, None, "TopologyNotFound", text)
    else:
        status.pop("schedulerTopologyStatuses", None)
        drop_condition(status, constants.DRIFT)
    yield from write_status(binding, status)
    return Result()
