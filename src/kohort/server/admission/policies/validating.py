"""ValidatingAdmissionPolicy: refuses, or warns, in upstream's words. There is no audit log for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kohort.server import status
from kohort.server.admission.policies.source import PolicySource

if TYPE_CHECKING:
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.policies.activation import Activation
    from kohort.server.admission.policies.environment import CompiledExpression
    from kohort.server.admission.policies.evaluate import Evaluation
    from kohort.server.admission.policies.source import Invocation
    from kohort.server.auth.lister import Lister
    from kohort.server.auth.rbac import Authorizer
    from kohort.server.resources import Resources

_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_LONGEST_MESSAGE: Final = 5 * 1024


@dataclass(frozen=True, slots=True)
class CompiledValidatingPolicy:
    variables: Mapping[str, CompiledExpression]
    conditions: tuple[CompiledExpression, ...]
    validations: tuple[CompiledExpression, ...]
    messages: tuple[CompiledExpression | None, ...]
    annotations: tuple[CompiledExpression, ...]


@dataclass(frozen=True, slots=True)
class _Denied:
    """`always`: whatever the binding's actions are."""

    message: str
    reason: str = ""
    always: bool = False


def compile_policy(spec: Mapping[str, Any]) -> CompiledValidatingPolicy:
    from kohort.server.admission.policies import environment as env

    found = env.Environment(spec.get("paramKind") is not None, composed=True)
    variables = {str(one["name"]): found.declare(one["name"], one["expression"]) for one in spec.get("variables") or ()}
    rules = spec.get("validations") or ()
    return CompiledValidatingPolicy(
        variables,
        tuple(found.compiled(one["expression"], env.CONDITION) for one in spec.get("matchConditions") or ()),
        tuple(found.compiled(one["expression"], env.CONDITION) for one in rules),
        tuple(
            found.compiled(one["messageExpression"], env.MESSAGE, authorizer=False)
            if one.get("messageExpression")
            else None
            for one in rules
        ),
        tuple(found.compiled(one["valueExpression"], env.ANNOTATION) for one in spec.get("auditAnnotations") or ()),
    )


class ValidatingAdmissionPolicies:
    def __init__(self, lister: Lister, resources: Resources, authorizer: Authorizer | None) -> None:
        self._lister, self._authorizer = lister, authorizer
        self._source = PolicySource(lister, resources, "validating", compile_policy)

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if not self._source.hooks():
            return
        concerned = self._source.concerned(attrs)
        if not concerned:
            return
        from kohort.server.admission.policies.activation import Activation

        activation = Activation(attrs, self._lister, self._authorizer)
        refusal: status.ApiError | None = None
        for one in concerned:
            for denied in _evaluate(one, activation):
                actions = one.binding.get("validationActions") or ()
                if "Warn" in actions and not denied.always:
                    attrs.warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{one.name}' "
                        f"with binding '{one.binding_name}': {denied.message}"
                    )
                if refusal is None and (denied.always or "Deny" in actions):
                    refusal = _refusal(attrs, one, denied)
        if refusal is not None:
            refusal.warnings = tuple(attrs.warnings)
            raise refusal


def _refusal(attrs: AdmissionAttributes, one: Invocation[CompiledValidatingPolicy], denied: _Denied) -> status.ApiError:
    bound = "" if one.failed is not None and one.failed.of_policy else f" with binding '{one.binding_name}'"
    message = f"ValidatingAdmissionPolicy '{one.name}'{bound} denied request: {denied.message}"
    found = status.forbidden(attrs.resource.group, attrs.resource.plural, attrs.name, message)
    found.status["reason"] = denied.reason or "Invalid"
    found.status["code"] = _CODES.get(denied.reason, 422)
    found.status["details"]["causes"] = [{"message": message}]
    return found


def _evaluate(one: Invocation[CompiledValidatingPolicy], activation: Activation) -> list[_Denied]:
    """What the policy has against the request."""
    from kohort.server.admission.policies import evaluate

    if one.failed is not None:
        return [] if one.ignores_failure else [_Denied(str(one.failed), always=True)]
    policy = one.policy
    try:
        if policy.conditions:
            names = activation.names(one.resource, one.params, condition=True)
            if not evaluate.conditions(names, policy.variables, policy.conditions):
                return []
        names = activation.names(one.resource, one.params)
        return [*_validations(one, names), *_annotations(one, names)]
    except (evaluate.EvaluationError, evaluate.OutOfBudgetError) as error:
        return [] if one.ignores_failure else [_Denied(str(error))]


def _validations(one: Invocation[CompiledValidatingPolicy], names: Mapping[str, Any]) -> list[_Denied]:
    from kohort.server.admission.policies import evaluate

    evaluation = evaluate.Evaluation(names, one.policy.variables)
    found: dict[int, _Denied] = {}
    failed: list[int] = []
    for place, compiled in enumerate(one.policy.validations):
        try:
            if evaluation.value(compiled) is not True:
                failed.append(place)
        except evaluate.EvaluationError as error:
            if not one.ignores_failure:
                found[place] = _Denied(str(error))
    if failed:
        found |= _messages(one, evaluate.Evaluation(names, one.policy.variables, evaluation.left), failed)
    return [found[place] for place in sorted(found)]


def _messages(
    one: Invocation[CompiledValidatingPolicy], evaluation: Evaluation, failed: list[int]
) -> dict[int, _Denied]:
    """The text for each validation that failed; they share what the validations have left of the budget."""
    from kohort.server.admission.policies import evaluate

    texts: dict[int, str] = {}
    try:
        for place, expression in enumerate(one.policy.messages):
            if expression is not None:
                texts[place] = _evaluated(expression, evaluation)
    except evaluate.OutOfBudgetError as error:
        text = f"failed messageExpression: {error}"
        return {} if one.ignores_failure else dict.fromkeys(failed, _Denied(text))
    rules = one.spec.get("validations") or ()
    return {
        place: _Denied(
            texts.get(place)
            or str(rules[place].get("message") or "").strip()
            or f"failed expression: {str(rules[place]['expression']).strip()}",
            str(rules[place].get("reason") or "Invalid"),
        )
        for place in failed
    }


def _evaluated(expression: CompiledExpression, evaluation: Evaluation) -> str:
    """The text of a messageExpression; empty if it has none that can be shown."""
    from kohort.server.admission.policies import evaluate

    try:
        found = evaluation.value(expression)
    except evaluate.EvaluationError:
        return ""
    text = found.strip() if isinstance(found, str) else ""
    return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


def _annotations(one: Invocation[CompiledValidatingPolicy], names: Mapping[str, Any]) -> list[_Denied]:
    """Audit annotations are evaluated, because their errors refuse a request; their values have nowhere to go."""
    from kohort.server.admission.policies import evaluate

    evaluation = evaluate.Evaluation(names, one.policy.variables)
    found: list[_Denied] = []
    for compiled in one.policy.annotations:
        try:
            evaluation.value(compiled)
        except evaluate.EvaluationError as error:
            if not one.ignores_failure:
                found.append(_Denied(str(error), always=True))
    return found
