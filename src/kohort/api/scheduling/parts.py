"""Fields that the kinds of scheduling.k8s.io share (spec workload-api 2.2 to 2.4); blocks for others: `blocks`."""

from __future__ import annotations

from typing import Final

from kohort.api import formats
from kohort.api.releases import Gate
from kohort.api.scheduling import blocks
from kohort.api.scheduling.constants import HIGHEST_USER_PRIORITY, MOST_CLAIMS, PREEMPTION_POLICIES
from kohort.api.schema import EMPTY, Arr, Int, Obj, Str, Time, Update, WhenOff, but

LABEL: Final = Str(required=True, format=formats.label)
SUBDOMAIN: Final = Str(required=True, format=formats.subdomain)
PATH_SEGMENT: Final = Str(required=True, format=formats.path_segment)

CONTROLLER_REF: Final = Obj(
    fields={"apiGroup": Str(format=formats.subdomain, blank=True), "kind": PATH_SEGMENT, "name": PATH_SEGMENT},
    update=Update.FROZEN,
)


def policy(count: str) -> Obj:
    """Basic or gang, for good; the gang's minimum may change."""
    gang = Obj(fields={count: Int(required=True, minimum=1)}, update=Update.VARIANT)
    return Obj(fields={"basic": but(EMPTY, update=Update.FROZEN), "gang": gang}, union=("basic", "gang"), embedded=True)


POLICY: Final = policy("minCount")
COMPOSITE_POLICY: Final = policy("minGroupCount")

# In templates the frozen rule stands alone; in PodGroups it belongs to the gate (spec workload-api 2.6).
TEMPLATE_CONSTRAINTS: Final = but(blocks.CONSTRAINTS, update=Update.FROZEN, gate=Gate.TOPOLOGY, shown=True)
GROUP_CONSTRAINTS: Final = but(blocks.CONSTRAINTS, update=Update.FROZEN, gate=Gate.TOPOLOGY, when_off=WhenOff.THAWED)
COMPOSITE_CONSTRAINTS: Final = but(blocks.CONSTRAINTS, update=Update.FROZEN)
CLAIMS: Final = but(blocks.CLAIMS, update=Update.FROZEN, gate=Gate.CLAIMS, when_off=WhenOff.SILENT)
DISRUPTION: Final = but(blocks.DISRUPTION, update=Update.FROZEN)
PRIORITY_CLASS: Final = Str(format=formats.subdomain, blank=True, update=Update.FROZEN)
PRIORITY: Final = Int(maximum=HIGHEST_USER_PRIORITY, update=Update.FROZEN)
PREEMPTION_POLICY: Final = Str(enum=PREEMPTION_POLICIES, update=Update.FROZEN, gate=Gate.PREEMPTION_POLICY)

# ---- status

CONDITION: Final = Obj(
    fields={
        "type": Str(required=True, format=formats.label_key, max_bytes=316),
        "status": Str(required=True, enum=("True", "False", "Unknown")),
        "observedGeneration": Int(bits=64, minimum=0, blank=True),
        "lastTransitionTime": Time(required=True),
        "reason": Str(required=True, format=formats.condition_reason, max_bytes=1024),
        "message": Str(max_bytes=32768, blank=True, shown=True),
    }
)
CONDITIONS: Final = Arr(key=("type",), item=CONDITION)
CLAIM_STATUSES: Final = Arr(
    key=("name",),
    max_items=MOST_CLAIMS,
    gate=Gate.CLAIMS,
    when_off=WhenOff.SILENT,
    # That a name is one of the spec's claims is a rule of the kind, and the only one for an empty name.
    item=Obj(fields={"name": Str(), "resourceClaimName": Str(format=formats.subdomain)}),
)
