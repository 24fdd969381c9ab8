"""Scheduling directives of a pod: where it may run, what it tolerates and waits for, how urgent it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, at, duplicate, forbidden, invalid, not_supported, required
from kohort.api.meta import check_labels, check_selector

Spec = Mapping[str, Any]

_EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")
_WHEN: Final = ("DoNotSchedule", "ScheduleAnyway")
_PREEMPTION: Final = ("Never", "PreemptLowerPriority")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_directives(spec: Spec, path: str) -> Iterator[FieldError]:
    yield from check_labels(spec.get("nodeSelector") or {}, at(path, "nodeSelector"))
    yield from _affinity(spec.get("affinity") or {}, at(path, "affinity"))
    yield from _tolerations(spec.get("tolerations") or [], at(path, "tolerations"))
    yield from _spread(spec.get("topologySpreadConstraints") or [], at(path, "topologySpreadConstraints"))
    yield from _gates(spec.get("schedulingGates") or [], at(path, "schedulingGates"))
    yield from _urgency(spec, path)


def _urgency(spec: Spec, path: str) -> Iterator[FieldError]:
    name = spec.get("priorityClassName")
    problem = formats.subdomain(name) if name else None
    if problem:
        yield invalid(at(path, "priorityClassName"), name, problem)
    policy = spec.get("preemptionPolicy")
    if policy == "":
        yield required(at(path, "preemptionPolicy"))
    elif policy is not None and policy not in _PREEMPTION:
        yield not_supported(at(path, "preemptionPolicy"), policy, _PREEMPTION)


def _gates(gates: list[Spec], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        place, name = f"{path}[{index}]", gate.get("name") or ""
        problem = formats.label_key(name)
        if problem:
            yield invalid(place, name, problem)
        elif name in seen:
            yield duplicate(place, name)
        seen.add(name)


def _tolerations(tolerations: list[Spec], path: str) -> Iterator[FieldError]:
    for index, toleration in enumerate(tolerations):
        yield from _toleration(toleration, f"{path}[{index}]")


def _toleration(toleration: Spec, path: str) -> Iterator[FieldError]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    problem = formats.label_key(key) if key else None
    if problem:
        yield invalid(at(path, "key"), key, problem)
    if not key and operator != "Exists":
        yield invalid(
            at(path, "operator"),
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(at(path, "effect"), effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in {"", "Equal"}:
        problem = formats.label_value(value)
        if problem:
            yield invalid(at(path, "operator"), value, problem)
    elif operator == "Exists":
        if value:
            yield invalid(at(path, "operator"), value, "value must be empty when `operator` is 'Exists'")
    elif operator not in {"Lt", "Gt"}:
        yield not_supported(at(path, "operator"), operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield not_supported(at(path, "effect"), effect, _EFFECTS)


def _spread(constraints: list[Spec], path: str) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        place = f"{path}[{index}]"
        skew, key = constraint.get("maxSkew") or 0, constraint.get("topologyKey") or ""
        when = constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            yield invalid(at(place, "maxSkew"), skew, "must be greater than zero")
        if not key:
            yield required(at(place, "topologyKey"), "can not be empty")
        if when not in _WHEN:
            yield not_supported(at(place, "whenUnsatisfiable"), when, _WHEN)
        if (key, when) in seen:
            yield duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {when}}}")
        seen.add((key, when))
        least = constraint.get("minDomains")
        if least is not None and least <= 0:
            yield invalid(at(place, "minDomains"), least, "must be greater than zero")
        yield from check_selector(constraint.get("labelSelector"), at(place, "labelSelector"))


def _affinity(affinity: Spec, path: str) -> Iterator[FieldError]:
    node = affinity.get("nodeAffinity") or {}
    place = at(path, "nodeAffinity")
    if node.get(_REQUIRED) is not None:
        yield from _node_selector(node[_REQUIRED], at(place, _REQUIRED))
    for index, term in enumerate(node.get(_PREFERRED) or []):
        here = f"{at(place, _PREFERRED)}[{index}]"
        yield from _weight(term, here)
        yield from _node_term(term.get("preference") or {}, at(here, "preference"))
    for member in ("podAffinity", "podAntiAffinity"):
        block = affinity.get(member) or {}
        for index, term in enumerate(block.get(_REQUIRED) or []):
            yield from _pod_term(term, f"{at(at(path, member), _REQUIRED)}[{index}]")
        for index, term in enumerate(block.get(_PREFERRED) or []):
            here = f"{at(at(path, member), _PREFERRED)}[{index}]"
            yield from _weight(term, here)
            yield from _pod_term(term.get("podAffinityTerm") or {}, at(here, "podAffinityTerm"))


def _weight(term: Spec, path: str) -> Iterator[FieldError]:
    weight = term.get("weight") or 0
    if not 1 <= weight <= 100:
        yield invalid(at(path, "weight"), weight, "must be in the range 1-100")


def _pod_term(term: Spec, path: str) -> Iterator[FieldError]:
    key = term.get("topologyKey") or ""
    problem = formats.label_key(key) if key else None
    if not key:
        yield required(at(path, "topologyKey"), "can not be empty")
    elif problem:
        yield invalid(at(path, "topologyKey"), key, problem)
    yield from check_selector(term.get("labelSelector"), at(path, "labelSelector"))


def _node_selector(selector: Spec, path: str) -> Iterator[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield required(at(path, "nodeSelectorTerms"), "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from _node_term(term, f"{at(path, 'nodeSelectorTerms')}[{index}]")


def _node_term(term: Spec, path: str) -> Iterator[FieldError]:
    for index, expression in enumerate(term.get("matchExpressions") or []):
        place = f"{at(path, 'matchExpressions')}[{index}]"
        yield from _node_expression(expression, place)
        key = expression.get("key") or ""
        problem = formats.label_key(key)
        if problem:
            yield invalid(at(place, "key"), key, problem)


def _node_expression(expression: Spec, path: str) -> Iterator[FieldError]:
    operator, values = expression.get("operator") or "", expression.get("values") or []
    if operator in {"In", "NotIn"}:
        if not values:
            yield required(at(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            yield forbidden(at(path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in {"Gt", "Lt"}:
        if len(values) != 1:
            yield required(at(path, "values"), "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(at(path, "operator"), operator, "not a valid selector operator")
