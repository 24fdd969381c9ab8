"""GroupingRule: rules without code as objects, for administrators.

It has no namespace on purpose. A rule decides for every namespace which pods wait for each other, and what the
scheduler reads for it; who may create objects in one namespace must not be able to hold up the pods of another.
"""

from __future__ import annotations

from typing import Final

from kohort.api import formats
from kohort.api.errors import FieldError
from kohort.api.kind import Column, Context, Kind, Object
from kohort.api.schema import Arr, Int, Obj, Ref, Str
from kohort.grouping.custom import read_object
from kohort.grouping.model import LONGEST_EXPRESSION

GROUP: Final = "kohort.dev"
VERSION: Final = "v1alpha1"
KIND: Final = "GroupingRule"
ACCEPTED: Final = "Accepted"  # condition: whether the scheduler uses the rule
READABLE: Final = "KindReadable"  # condition: whether the kind that it is about can be read
VALID: Final = "Valid"  # reasons of Accepted
INVALID: Final = "Invalid"
_KEY: Final = r"^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$"


def _key(text: str, *, required: bool = False) -> Str:
    return Str(pattern=_KEY, most=317, description=text, required=required)


SCHEMA: Final = Obj(
    fields={
        "spec": Obj(
            required=True,
            fields={
                "apiVersion": Str(
                    required=True, pattern=r"^([a-z0-9.-]+/)?v[0-9a-z]+$", most=317, description="Of the owner's kind."
                ),
                "kind": Str(
                    required=True, pattern=r"^[A-Za-z0-9]+$", most=63, description="Of the owner: its pods are a gang."
                ),
                "membership": Obj(
                    description="How pods name the owner. Absent: by their ownerReferences, also through Jobs, "
                    "ReplicaSets and StatefulSets.",
                    fields={"label": _key("Label whose value is the owner's name.", required=True)},
                ),
                "groupBy": _key("Label; pods with the same value are a gang of their own."),
                "minimum": Obj(
                    required=True,
                    union=("count", "jsonPath", "cel"),
                    description="Pods that start together. Exactly one of its members.",
                    fields={
                        "count": Int(minimum=1, description="A number."),
                        "jsonPath": Arr(
                            item=Str(min_length=1, most=1024),
                            min_items=1,
                            max_items=16,
                            description="Paths of numbers in the owner's spec, which are added up, "
                            "such as .spec.groups[*].replicas.",
                        ),
                        "cel": Str(
                            min_length=1,
                            most=LONGEST_EXPRESSION,
                            description="A CEL expression of type int about `object`, the owner, such as "
                            "object.spec.replicas + 1.",
                        ),
                    },
                ),
                "rank": Obj(
                    description="Which of the gang's pods stand next to each other.",
                    fields={"label": _key("Label whose value is a pod's rank, a number.", required=True)},
                ),
                "topology": _key("Label of nodes; a gang is kept within one of its values."),
            },
        ),
        "status": Obj(
            fields={
                "conditions": Arr(
                    key=("type",),
                    item=Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.Condition"),
                    description="Accepted: whether the scheduler uses the rule, and if not, why. "
                    "KindReadable: whether it can read the owners.",
                )
            }
        ),
    }
)


def validate(rule: Object, _: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    read_object(rule, errors)
    return errors


def validate_update(rule: Object, _old: Object, ctx: Context) -> list[FieldError]:
    return validate(rule, ctx)


KINDS: Final = (
    Kind(
        group=GROUP,
        version=VERSION,
        kind=KIND,
        plural="groupingrules",
        namespaced=False,
        schema=SCHEMA,
        name_format=formats.label,
        columns=(
            Column("Kind", "string", ".spec.kind", description="Whose pods are grouped."),
            Column("Accepted", "string", '.status.conditions[?(@.type=="Accepted")].status', description="In use."),
            Column("Age", "date", ".metadata.creationTimestamp", description="Time since creation."),
        ),
        validate=validate,
        validate_update=validate_update,
    ),
)
