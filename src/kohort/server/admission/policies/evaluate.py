"""Running the expressions of one policy for one request, within upstream's cost limits.

An expression may cost PER_CALL, all of one sort (conditions, validations, messages) share a budget. What variables cost
counts when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kohort.cel import language as cel
from kohort.cel.run import PER_CALL, run
from kohort.cel.values import NO_OVERLOAD, NoOverloadError

if TYPE_CHECKING:
    from kohort.server.admission.policies.environment import CompiledExpression

BUDGET: Final = 10_000_000  # of a policy with one binding and one parameter
CONDITIONS_BUDGET: Final = 2_500_000
_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class OutOfBudgetError(Exception):
    """Nothing more of this policy is evaluated."""

    def __init__(self) -> None:
        super().__init__(_SPENT)


class EvaluationError(Exception):
    """An expression has no value for this request."""


class _Variables:
    """`variables`: each is evaluated when it is first asked for, and once."""

    kind = "object"

    def __init__(self, declared: Mapping[str, CompiledExpression], names: dict[str, Any]) -> None:
        self._declared, self._names = declared, names
        self._known: dict[str, Any] = {}
        self.spent = 0

    def look(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._evaluated(name)
        found = self._known[name]
        if isinstance(found, cel.CelError):
            raise cel.CelError(str(found))
        return found

    def _evaluated(self, name: str) -> Any:
        declared = self._declared[name]
        if declared.tree is None:
            return cel.CelError(f'composited variable "{name}" fails to compile: {declared.wrong}')
        try:
            found, cost = run(declared.tree, self._names, PER_CALL)
        except cel.CelError as error:
            self.spent += error.spent
            return cel.CelError(f'composited variable "{name}" fails to evaluate: {_text(error)}')
        self.spent += cost
        return found


class Evaluation:
    """One budget, one set of variables; expressions in order."""

    def __init__(
        self, names: Mapping[str, Any], variables: Mapping[str, CompiledExpression], budget: int = BUDGET
    ) -> None:
        self._names = dict(names)
        self._variables = _Variables(variables, self._names)
        self._names["variables"] = self._variables
        self.left = budget

    def value(self, compiled: CompiledExpression) -> Any:
        """EvaluationError: this expression failed; OutOfBudgetError: no other is to be tried."""
        if compiled.tree is None:
            raise EvaluationError(f"compilation error: {compiled.wrong}")
        failed: cel.CelError | None = None
        found: Any = None
        try:
            found, cost = run(compiled.tree, self._names, PER_CALL)
        except cel.CelError as error:
            failed, cost = error, error.spent
        self._pay(self._variables.spent)
        self._variables.spent = 0
        self._pay(cost)
        if failed is not None:
            raise EvaluationError(f"expression '{compiled.text}' resulted in error: {_text(failed)}")
        return found

    def _pay(self, cost: int) -> None:
        if cost > self.left:
            raise OutOfBudgetError
        self.left -= cost


def _text(error: cel.CelError) -> str:
    """Ours name the values that no overload fits; upstream's do not."""
    return NO_OVERLOAD if isinstance(error, NoOverloadError) else str(error)


def conditions(
    names: Mapping[str, Any], variables: Mapping[str, CompiledExpression], found: Sequence[CompiledExpression]
) -> bool:
    """Whether all match conditions hold. One that is false decides, whatever errors others have."""
    evaluation = Evaluation(names, variables, CONDITIONS_BUDGET)
    wrong: list[str] = []
    values: list[Any] = []
    for one in found:
        try:
            values.append(evaluation.value(one))
        except EvaluationError as error:
            wrong.append(str(error))
    if False in [one for one in values if isinstance(one, bool)]:
        return False
    if wrong:
        distinct = list(dict.fromkeys(wrong))
        raise EvaluationError(distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]")
    return True
