"""How much the rules of one pod, and of all pods of a namespace, may name.

Everything that a pod's rules name is compared with every node, and with pods of others, on the loop that serves
everybody. What people write is far below these limits. A pod above one is not tried, and is told which it is; rules
of such a pod that runs already are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

Json = Mapping[str, Any]

MOST_TERMS: Final = 100  # different rules between pods, of a pod
MOST_TERMS_OF_NAMESPACE: Final = 1000  # of all pods of a namespace
MOST_REQUIREMENTS: Final = 5000  # labels, values and tolerations that a pod's rules name
MOST_CLAIMS: Final = 200
MOST_PORTS: Final = 1000
MOST_UNKNOWN_RESOURCES: Final = 256  # that pods ask for and no node has had
MOST_UNKNOWN_RESOURCES_OF_NAMESPACE: Final = 32  # of those, by pods of one namespace
TOO_MANY: Final = "kohort.dev/tooMany"  # in a spec without its rules: what it has too many of
_HARD: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_SOFT: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def too_many(spec: Json, spread_constraints: Sequence[Json], claims: Sequence[str], ports: int) -> str:
    """What a pod has too many of, and how many are accepted; empty if it may be tried."""
    found = (("claims", len(claims), MOST_CLAIMS), ("host ports", ports, MOST_PORTS))
    said = [spec.get(TOO_MANY) or too_many_rules(spec, spread_constraints)]
    said += [_said(number, what, most) for what, number, most in found if number > most]
    return "; ".join(filter(None, said))


def too_many_rules(spec: Json, spread_constraints: Sequence[Json]) -> str:
    """The same of its rules about nodes and pods, whatever else it asks for."""
    terms = list(_pod_terms(spec))
    said = []
    if (number := _requirements(spec, terms, spread_constraints)) > MOST_REQUIREMENTS:
        said.append(_said(number, "requirements in its rules about nodes and pods", MOST_REQUIREMENTS))
    if len(terms) + len(spread_constraints) > MOST_TERMS:
        encode = msgspec.json.Encoder().encode
        different = len({encode(one) for one in (*terms, *spread_constraints)})
        if different > MOST_TERMS:
            said.append(_said(different, "different rules between pods (affinity, spread)", MOST_TERMS))
    return "; ".join(said)


def _said(number: int, what: str, most: int) -> str:
    return f"it has {number} {what}; at most {most} are accepted"


def _pod_terms(spec: Json) -> Iterator[Json]:
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(name) or {}
        yield from rules.get(_HARD) or ()
        yield from (item["podAffinityTerm"] for item in rules.get(_SOFT) or ())


def _requirements(spec: Json, terms: Iterable[Json], spread_constraints: Iterable[Json]) -> int:
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    wanted = [*((node.get(_HARD) or {}).get("nodeSelectorTerms") or ())]
    wanted += [item.get("preference") or {} for item in node.get(_SOFT) or ()]
    selectors = [one.get(name) or {} for one in terms for name in ("labelSelector", "namespaceSelector")]
    selectors += [one.get("labelSelector") or {} for one in spread_constraints]
    return (
        len(spec.get("nodeSelector") or ())
        + len(spec.get("tolerations") or ())
        + sum(map(_size, wanted))
        + sum(map(_size, selectors))
        + sum(len(one.get("namespaces") or ()) for one in terms)
    )


def _size(selector: Json) -> int:
    rules = (*(selector.get("matchExpressions") or ()), *(selector.get("matchFields") or ()))
    return len(selector.get("matchLabels") or ()) + sum(1 + len(rule.get("values") or ()) for rule in rules)
