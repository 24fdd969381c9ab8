"""Building blocks of KEP-6089 that workload APIs embed (spec workload-api 2.5); counts are optional."""

from __future__ import annotations

from typing import Final

from kohort.api import formats
from kohort.api.schema import EMPTY, Arr, Int, Obj, Str, Update, but

_KEY: Final = Str(required=True, format=formats.label_key, description="A label of nodes: one value is one domain.")
TOPOLOGY: Final = Arr(
    max_items=1, item=Obj(fields={"key": _KEY}), description="All pods of the group share one value of this node label."
)
CONSTRAINTS: Final = Obj(
    fields={"topology": TOPOLOGY}, description="Where the pods may be, together: in one domain of a topology."
)
DISRUPTION: Final = Obj(
    fields={
        "single": but(EMPTY, description="Preemption may take one member and leave the others."),
        "all": but(EMPTY, description="Preemption takes the group as a whole, or not at all."),
    },
    union=("single", "all"),
    description="Whether preemption takes single members or all of them.",
)
CLAIMS: Final = Arr(
    key=("name",),
    max_items=4,
    description="Devices that the pods of the group share.",
    item=Obj(
        fields={
            "name": Str(required=True, format=formats.label, description="Name of the claim within the group."),
            "resourceClaimName": Str(format=formats.subdomain, description="A ResourceClaim that exists already."),
            "resourceClaimTemplateName": Str(
                format=formats.subdomain, description="A ResourceClaimTemplate: one claim is made for the group."
            ),
        },
        union=("resourceClaimName", "resourceClaimTemplateName"),
    ),
)


def _policy(count: str, members: str) -> Obj:
    minimum = Int(minimum=1, description=f"So many {members} start at the same time, or none. Nothing said: all.")
    return Obj(
        fields={
            "basic": but(EMPTY, description="Each by itself; nothing is waited for."),
            "gang": Obj(fields={count: minimum}, description="All or nothing."),
        },
        union=("basic", "gang"),
        description=f"Whether {members} start together (gang) or each by itself (basic).",
    )


POLICY: Final = _policy("minCount", "pods")
COMPOSITE_POLICY: Final = _policy("minGroupCount", "groups")

# How a workload API embeds them (KEP-6089): the policy keeps its presence, the rest never changes.
EMBEDDED: Final = {
    "schedulingPolicy": but(POLICY, update=Update.VARIANT),
    "schedulingConstraints": but(CONSTRAINTS, update=Update.FROZEN),
    "disruptionMode": but(DISRUPTION, update=Update.FROZEN),
    "resourceClaims": but(CLAIMS, update=Update.FROZEN),
}
