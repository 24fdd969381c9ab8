"""Building blocks of KEP-6089 that workload APIs embed (spec workload-api 2.5); counts are optional."""

from __future__ import annotations

from typing import Final

from kohort.api import formats
from kohort.api.schema import EMPTY, Arr, Int, Obj, Str, Update, but

TOPOLOGY: Final = Arr(max_items=1, item=Obj(fields={"key": Str(required=True, format=formats.label_key)}))
CONSTRAINTS: Final = Obj(fields={"topology": TOPOLOGY})
DISRUPTION: Final = Obj(fields={"single": EMPTY, "all": EMPTY}, union=("single", "all"))
CLAIMS: Final = Arr(
    key=("name",),
    max_items=4,
    item=Obj(
        fields={
            "name": Str(required=True, format=formats.label),
            "resourceClaimName": Str(format=formats.subdomain),
            "resourceClaimTemplateName": Str(format=formats.subdomain),
        },
        union=("resourceClaimName", "resourceClaimTemplateName"),
    ),
)
POLICY: Final = Obj(
    fields={"basic": EMPTY, "gang": Obj(fields={"minCount": Int(minimum=1)})},
    union=("basic", "gang"),
)
COMPOSITE_POLICY: Final = Obj(
    fields={"basic": EMPTY, "gang": Obj(fields={"minGroupCount": Int(minimum=1)})},
    union=("basic", "gang"),
)

# How a workload API embeds them (KEP-6089): the policy keeps its presence, the rest never changes.
EMBEDDED: Final = {
    "schedulingPolicy": but(POLICY, update=Update.VARIANT),
    "schedulingConstraints": but(CONSTRAINTS, update=Update.FROZEN),
    "disruptionMode": but(DISRUPTION, update=Update.FROZEN),
    "resourceClaims": but(CLAIMS, update=Update.FROZEN),
}
