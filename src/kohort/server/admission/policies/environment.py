"""Expressions of admission policies: the variables that they have, whether they compile, and their compiled form.

object, oldObject and params have no type here, because one policy may match several kinds; what their schemas would
say comes as warnings in the policy's status (`type_checking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kohort.cel import language as cel
from kohort.cel.syntax import shown
from kohort.cel.types import (
    AUTHORIZATION,
    BOOL,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
)

_TEXTS: Final = map_of(STRING, STRING)


def _object(named: str, /, **fields: Type) -> Type:
    return Type("object", name=f"kubernetes.{named}", fields=fields)


_KIND: Final = _object("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE: Final = _object("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
_USER: Final = _object(
    "UserInfo", username=STRING, uid=STRING, groups=list_of(STRING), extra=map_of(STRING, list_of(STRING))
)
REQUEST: Final = _object(
    "AdmissionRequest",
    kind=_KIND,
    resource=_RESOURCE,
    subResource=STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_USER,
    dryRun=BOOL,
    options=DYN,
)
_CONDITION: Final = _object(
    "NamespaceCondition",
    status=STRING,
    type=STRING,
    lastTransitionTime=TIMESTAMP,
    message=STRING,
    reason=STRING,
)
_METADATA: Final = _object(
    "NamespaceMetadata",
    **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
    **dict.fromkeys(("labels", "annotations"), _TEXTS),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
    **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
    finalizers=list_of(STRING),
)
NAMESPACE: Final = _object(
    "Namespace",
    metadata=_METADATA,
    spec=_object("NamespaceSpec", finalizers=list_of(STRING)),
    status=_object("NamespaceStatus", conditions=list_of(_CONDITION), phase=STRING),
)
AUTHORIZER: Final = {
    "authorizer": AUTHORIZATION["Authorizer"],
    "authorizer.requestResource": AUTHORIZATION["ResourceCheck"],
}
CONDITION: Final = (BOOL,)
MESSAGE: Final = (STRING,)
ANNOTATION: Final = (STRING, NULL)
APPLY: Final = (Type("object", name=cel.OBJECT),)
PATCH: Final = (list_of(cel.JSON_PATCH),)


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """`tree` is None if something is wrong with it; `internal`: not with what was written."""

    text: str
    tree: cel.Node | None = None
    wrong: str = ""
    internal: bool = False
    type: Type = DYN


@dataclass(slots=True)
class Environment:
    """What the expressions of one policy can see. Each variable sees those before it."""

    params: bool
    object: Type = DYN
    given: Type = DYN  # of params
    variables: dict[str, Type] = field(default_factory=dict)
    composed: bool = False  # without variables there is no name for them

    def scope(self, *, authorizer: bool = True) -> dict[str, Type]:
        found = {"object": self.object, "oldObject": self.object, "namespaceObject": NAMESPACE, "request": REQUEST}
        if self.params:
            found["params"] = self.given
        if self.composed:
            found["variables"] = Type("object", name="kubernetes.variables", fields=self.variables)
        return {**found, **AUTHORIZER} if authorizer else found

    def compiled(
        self, text: str, wanted: Sequence[Type] = (), *, authorizer: bool = True, patches: bool = False
    ) -> CompiledExpression:
        """Without `wanted` it may be of any type."""
        checker = cel.Checker(patches=patches)
        try:
            tree = cel.parse(text)
            found = _closed(checker.resolved(checker.check(tree, self.scope(authorizer=authorizer))))
        except cel.CelSyntaxError as error:
            return CompiledExpression(text, wrong=f"compilation failed: {shown(text, error)}")
        except RecursionError:
            return CompiledExpression(text, wrong="compilation failed: ERROR: the expression is too deep")
        if checker.unfit:
            return CompiledExpression(text, wrong=checker.unfit, internal=True)
        if wanted and not any(_exactly(one, found) for one in wanted):
            return CompiledExpression(text, wrong=f"must evaluate to {_choice(wanted)} but got {_named(found)}")
        return CompiledExpression(text, tree, type=found)

    def declare(self, name: str, text: str) -> CompiledExpression:
        """A variable, for the expressions after it. One that does not compile may still be named."""
        self.composed = True
        found = self.compiled(text)
        self.variables[name] = found.type if found.tree is not None and found.type.kind != "object" else DYN
        return found


def _closed(one: Type) -> Type:
    """What an expression leaves open can be anything."""
    if one.kind == "param":
        return DYN
    return Type(one.kind, tuple(map(_closed, one.parts)), one.name, one.fields) if one.parts else one


def _exactly(wanted: Type, found: Type) -> bool:
    return wanted == found


def _named(one: Type) -> str:
    return "null_type" if one.kind == "null" else str(one)


def _choice(wanted: Sequence[Type]) -> str:
    return _named(wanted[0]) if len(wanted) == 1 else f"one of [{' '.join(map(_named, wanted))}]"
