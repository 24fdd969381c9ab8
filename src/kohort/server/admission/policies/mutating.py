"""MutatingAdmissionPolicy: changes what is created or updated, and looks again when others changed it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kohort.api.copying import copied
from kohort.server import status
from kohort.server.admission import versions
from kohort.server.admission.attributes import DELETE
from kohort.server.admission.policies.source import PolicySource

if TYPE_CHECKING:
    from kohort.api.kind import Context
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.policies.environment import CompiledExpression
    from kohort.server.admission.policies.source import Invocation
    from kohort.server.auth.lister import Lister
    from kohort.server.auth.rbac import Authorizer
    from kohort.server.fieldmanager import FieldManager
    from kohort.server.resources import Resources


@dataclass(frozen=True, slots=True)
class CompiledMutatingPolicy:
    variables: Mapping[str, CompiledExpression]
    conditions: tuple[CompiledExpression, ...]
    mutations: tuple[tuple[str, CompiledExpression], ...]  # with their patchType

    again: bool  # reinvocationPolicy IfNeeded


def compile_policy(spec: Mapping[str, Any]) -> CompiledMutatingPolicy:
    from kohort.server.admission.policies import environment as env

    found = env.Environment(spec.get("paramKind") is not None, composed=True)
    variables = {str(one["name"]): found.declare(one["name"], one["expression"]) for one in spec.get("variables") or ()}
    mutations = []
    for one in spec.get("mutations") or ():
        sort = str(one.get("patchType"))
        member, wanted = ("jsonPatch", env.PATCH) if sort == "JSONPatch" else ("applyConfiguration", env.APPLY)
        mutations.append((sort, found.compiled(one[member]["expression"], wanted, patches=True)))
    return CompiledMutatingPolicy(
        variables,
        tuple(found.compiled(one["expression"], env.CONDITION) for one in spec.get("matchConditions") or ()),
        tuple(mutations),
        spec.get("reinvocationPolicy") == "IfNeeded",
    )


class MutatingAdmissionPolicies:
    """`first` and `again`: the two turns of mutating admission (`reinvocation`)."""

    def __init__(
        self,
        lister: Lister,
        resources: Resources,
        ctx: Context,
        authorizer: Authorizer | None,
        field_manager: FieldManager,
    ) -> None:
        self._lister, self._ctx, self._authorizer, self._fields = lister, ctx, authorizer, field_manager
        self._source = PolicySource(lister, resources, "mutating", compile_policy)

    def concerned(self, attrs: AdmissionAttributes) -> list[Invocation[CompiledMutatingPolicy]]:
        if attrs.operation == DELETE or not self._source.hooks():
            return []
        return self._source.concerned(attrs)

    def run(
        self, attrs: AdmissionAttributes, concerned: list[Invocation[CompiledMutatingPolicy]]
    ) -> tuple[bool, list[Invocation[CompiledMutatingPolicy]]]:
        """One after the other. Whether the object changed; if so, those that want to see it again."""
        failures: list[tuple[Invocation[CompiledMutatingPolicy], str]] = []
        asked: list[Invocation[CompiledMutatingPolicy]] = []
        first = copied(attrs.object)
        for one in concerned:
            try:
                if self._mutate(one, attrs) and one.policy.again:
                    asked.append(one)
            except _FailedError as error:
                if not one.ignores_failure:
                    failures.append((one, str(error)))
        if failures:
            raise _refusal(attrs, failures)
        changed = first != attrs.object
        return changed, asked if changed else []

    def _mutate(self, one: Invocation[CompiledMutatingPolicy], attrs: AdmissionAttributes) -> bool:
        """Whether its match conditions hold."""
        from kohort.server.admission.policies import evaluate, patches
        from kohort.server.admission.policies.activation import Activation

        if one.failed is not None:
            raise _FailedError(str(one.failed))
        activation = Activation(attrs, self._lister, self._authorizer)
        try:
            if one.policy.conditions:
                names = activation.names(one.resource, one.params, condition=True)
                if not evaluate.conditions(names, one.policy.variables, one.policy.conditions):
                    return False
            wrong = ""
            for sort, expression in one.policy.mutations if attrs.object is not None else ():
                try:
                    self._patch(one, attrs, activation, sort, expression)
                except (evaluate.EvaluationError, patches.MutationError) as error:
                    wrong = wrong or str(error)
            if wrong:
                raise _FailedError(wrong)
        except (evaluate.EvaluationError, evaluate.OutOfBudgetError) as error:
            raise _FailedError(str(error)) from None
        return True

    def _patch(
        self,
        one: Invocation[CompiledMutatingPolicy],
        attrs: AdmissionAttributes,
        activation: Any,
        sort: str,
        expression: CompiledExpression,
    ) -> None:
        from kohort.server.admission.policies import evaluate, patches

        if expression.tree is None:
            raise evaluate.EvaluationError(expression.wrong)
        names = activation.names(one.resource, one.params)
        value = evaluate.Evaluation(names, one.policy.variables).value(expression)
        shown = names["object"]
        if sort == "JSONPatch":
            patched = patches.json_patch(shown, value)
        else:
            target = self._fields.target(one.resource)
            patched = patches.apply_configuration(shown, value, target.structure if target is not None else None)
        if patched == shown:
            return
        try:
            attrs.object = versions.received(patched, one.resource, attrs.resource, self._ctx)
        except ValueError as error:
            raise status.internal(str(error)) from None


class _FailedError(Exception):
    """The policy could not do its work; its failurePolicy says what follows."""


def _refusal(
    attrs: AdmissionAttributes, failures: list[tuple[Invocation[CompiledMutatingPolicy], str]]
) -> status.ApiError:
    messages = []
    for one, text in failures:
        if one.failed is not None and one.failed.of_policy:
            messages.append(f'policy "{one.name}" denied request: {text}')
        else:
            messages.append(f"policy '{one.name}' with binding '{one.binding_name}' denied request: {text}")
    found = status.forbidden(attrs.resource.group, attrs.resource.plural, attrs.name, "")
    found.status["message"] = messages[0]
    if failures[0][0].failed is None:
        found.status["reason"] = "Invalid"
    found.status["details"]["causes"] = [{"message": message} for message in messages]
    return found
