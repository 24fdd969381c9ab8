"""Signatures: pods that ask for the same are one thing to the engine, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final
from weakref import WeakValueDictionary

import msgspec
import numpy as np
import numpy.typing as npt

from kohort.place.columns import NameIndex
from kohort.place.requests import pod_requests
from kohort.place.rulelimits import MOST_UNKNOWN_RESOURCES, MOST_UNKNOWN_RESOURCES_OF_NAMESPACE, too_many

Json = Mapping[str, Any]
Port = tuple[str, str, int]  # protocol, host address, port
HOSTNAME: Final = "kubernetes.io/hostname"
_NAMED: Final = 3  # resources in a message
# What a pod counts for in scores when it asks for nothing (kube-scheduler's non-zero requests).
SCORED: Final = {"cpu": 100, "memory": 200 << 20}


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str = ""
    effect: str = "NoSchedule"

    UNSCHEDULABLE: ClassVar[Taint]

    @property
    def is_unschedulable(self) -> bool:
        return self.key == "node.kubernetes.io/unschedulable" and self.effect == "NoSchedule"

    @classmethod
    def of(cls, item: Json) -> Taint:
        return cls(item.get("key") or "", item.get("value") or "", item.get("effect") or "")

    def as_json(self) -> Json:
        return {"key": self.key, "value": self.value, "effect": self.effect}


Taint.UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


@dataclass(frozen=True, slots=True)
class Term:
    """Pods that a rule speaks of, and the label key of the domains it counts them in. `text`: the selector as JSON.

    `also`: further terms that a pod must match to be counted. kube-scheduler counts a pod for required affinity only
    if it matches all terms of the rule.
    """

    key: str  # topology key
    text: str
    namespaces: tuple[str, ...]
    namespace_selector: str | None = None
    also: tuple[Term, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)  # it is asked for often, and `also` may be a hundred

    def __post_init__(self) -> None:
        found = hash((self.key, self.text, self.namespaces, self.namespace_selector, self.also))
        object.__setattr__(self, "_hash", found)

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topology spread constraint."""

    term: Term
    max_skew: int
    hard: bool
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False
    lenient: bool = False  # nodes without the label count as well, at no cost: kube-scheduler's own defaults


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, weakref_slot=True)
class PodSignature:
    """What a class of pods asks for. Told apart by identity: `PodSignatures` makes one per distinct ask."""

    number: int
    namespace: str
    requests: Mapping[str, int]
    columns: npt.NDArray[np.intp]  # numbers of the resources asked for
    amounts: npt.NDArray[np.int64]
    weight: npt.NDArray[np.int64]  # cpu and memory as scores see them
    node: str | None = None  # the only node it may go to
    selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Sequence[Json] | None = None  # node selector terms, any of them
    preferred: Sequence[tuple[int, Json]] = ()
    tolerations: Sequence[Json] = ()
    ports: tuple[Port, ...] = ()
    pod_affinity: tuple[Term, ...] = ()
    pod_anti_affinity: tuple[Term, ...] = ()
    preferred_pod_affinity: tuple[tuple[int, Term], ...] = ()  # preferred affinity, negative weight for anti-affinity
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    claims: tuple[str, ...] = ()  # volume and resource claims that say where it may go
    excess: str = ""  # more than is accepted: its rules are left out, and it must not be placed
    hopeless: bool = False  # of such a one: whatever becomes of others
    is_plain: bool = field(init=False)  # placing one pod of it changes nothing for the next but room

    def __post_init__(self) -> None:
        rules = self.pod_affinity or self.pod_anti_affinity or self.spread_constraints or self.preferred_pod_affinity
        object.__setattr__(self, "is_plain", not (rules or self.ports or self.claims))

    def ask(self, column: int) -> int:
        """How much of one resource a pod asks for."""
        return int(self.amounts[self.columns == column].sum())

    def vector(self, columns: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """What a pod asks for in these columns."""
        return np.array([self.ask(int(column)) for column in columns], np.int64)

    def between(self) -> Iterator[Term]:
        """Terms that matter to others once a pod of the signature has a node."""
        yield from self.pod_affinity
        yield from self.pod_anti_affinity
        yield from (term for _, term in self.preferred_pod_affinity)

    def terms(self) -> Iterator[Term]:
        """Every term of its rules between pods."""
        yield from self.between()
        yield from (spread.term for spread in self.spread_constraints)


class PodSignatures:
    """All signatures in use, by what they ask for. A signature that nobody holds any more is forgotten."""

    def __init__(self, resources: NameIndex) -> None:
        self._resources = resources
        self._known: WeakValueDictionary[bytes, PodSignature] = WeakValueDictionary()
        self._made = 0
        self._unknown: Counter[str] = Counter()  # by namespace: resources asked for before any node had them
        self._encode = msgspec.json.Encoder().encode

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[PodSignature]:
        return iter(list(self._known.values()))

    def of_spec(
        self,
        spec: Json,
        namespace: str = "default",
        labels: Mapping[str, str] | None = None,
        *,
        claims: Sequence[str] = (),
        node: str | None = None,
        defaults: Sequence[Json] = (),
    ) -> PodSignature:
        """The signature of a pod's spec.

        `labels` matter only to rules with matchLabelKeys. `claims`: those that say where it may go. `node`: the only
        node it may go to. `defaults`: spread constraints of the cluster, for a pod that has none of its own.
        """
        own = spec.get("topologySpreadConstraints") or defaults
        spread_constraints = [_with_keys(item, labels or {}) for item in own]
        key = self._encode(
            [namespace, *(spec.get(name) for name in _ASKS), spread_constraints, claims, node, _light(spec)]
        )
        signature = self._known.get(key)
        if signature is None:
            signature = self._make(spec, namespace, spread_constraints, claims=tuple(claims), node=node)
            if not signature.excess:  # one that is too much today may be none tomorrow
                self._known[key] = signature
        return signature

    def of_requests(self, requests: Mapping[str, int], namespace: str = "default") -> PodSignature:
        """A signature that asks for nothing but room (in column units; `pods` is added)."""
        amounts = {**{name: value for name, value in requests.items() if value}, "pods": 1}
        key = self._encode([namespace, sorted(amounts.items())])
        signature = self._known.get(key)
        if signature is None:
            signature = self._known[key] = self._build(namespace, amounts)
        return signature

    def _build(self, namespace: str, requests: Mapping[str, int], **asks: Any) -> PodSignature:
        numbers = np.array([self._resources.number(name) for name in requests], np.intp)
        amounts = np.array(list(requests.values()), np.int64)
        weight = np.array([requests.get(name) or least for name, least in SCORED.items()], np.int64)
        self._made += 1
        return PodSignature(
            number=self._made,
            namespace=namespace,
            requests=dict(requests),
            columns=numbers,
            amounts=amounts,
            weight=weight,
            **asks,
        )

    def _make(
        self, spec: Json, namespace: str, spread_constraints: Sequence[Json], *, claims: tuple[str, ...], **asks: Any
    ) -> PodSignature:
        requests, ports = pod_requests(spec), host_ports(spec)
        excess = too_many(spec, spread_constraints, claims, len(ports))
        hopeless = bool(excess)
        unknown = [name for name in requests if self._resources.find(name) is None]
        if unknown and (said := self._count(unknown, namespace)):
            excess = excess or said
            requests = {name: value for name, value in requests.items() if self._resources.find(name) is not None}
        if excess:
            return self._build(namespace, requests, excess=excess, hopeless=hopeless)
        affinity = spec.get("affinity") or {}
        node, pod, anti = (affinity.get(name) or {} for name in ("nodeAffinity", "podAffinity", "podAntiAffinity"))
        hard, soft = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
        required = node.get(hard)
        return self._build(
            namespace,
            requests,
            selector=spec.get("nodeSelector") or {},
            affinity=None if required is None else required.get("nodeSelectorTerms") or (),
            preferred=tuple((item["weight"], item["preference"]) for item in node.get(soft) or ()),
            tolerations=tuple(spec.get("tolerations") or ()),
            ports=ports,
            pod_affinity=_jointly(_terms(pod.get(hard) or (), namespace)),
            pod_anti_affinity=_terms(anti.get(hard) or (), namespace),
            preferred_pod_affinity=_preferences(pod.get(soft) or (), anti.get(soft) or (), namespace),
            spread_constraints=tuple(dict.fromkeys(_spread(item, namespace) for item in spread_constraints)),
            claims=claims,
            **asks,
        )

    def _count(self, unknown: Sequence[str], namespace: str) -> str:
        """Each becomes a column of every node. Why they do not: a reason for the pod; empty if they may."""
        here, everywhere = self._unknown[namespace], self._unknown.total()
        if here + len(unknown) > MOST_UNKNOWN_RESOURCES_OF_NAMESPACE:
            others, asked, most = f"pods of namespace {namespace}", here, MOST_UNKNOWN_RESOURCES_OF_NAMESPACE
        elif everywhere + len(unknown) > MOST_UNKNOWN_RESOURCES:
            others, asked, most = "pods", everywhere, MOST_UNKNOWN_RESOURCES
        else:
            self._unknown[namespace] += len(unknown)
            return ""
        names = ", ".join(unknown[:_NAMED])
        return f"no node has {names}, and {others} ask for {asked} such resources already; at most {most} are accepted"


_ASKS: Final = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "overhead",
    "resources",
    "hostNetwork",
)


def _light(spec: Json) -> list[Any]:
    """The parts of containers that matter here: resources and host ports."""
    return [
        [[c.get("resources"), c.get("restartPolicy"), c.get("ports")] for c in spec.get(list_) or ()]
        for list_ in ("initContainers", "containers")
    ]


def host_ports(spec: Json) -> tuple[Port, ...]:
    host_network = spec.get("hostNetwork")
    found = []
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if host_network else 0)
            if number:
                found.append((port.get("protocol") or "TCP", port.get("hostIP") or "0.0.0.0", number))
    return tuple(found)


def _text(selector: Json | None) -> str:
    return msgspec.json.encode(selector).decode()


def _term(item: Json, namespace: str) -> Term:
    selector = item.get("namespaceSelector")
    spaces = tuple(item.get("namespaces") or ())
    if not spaces and selector is None:
        spaces = (namespace,)
    return Term(
        item["topologyKey"],
        _text(item.get("labelSelector")),
        spaces,
        None if selector is None else _text(selector),
    )


def _terms(items: Sequence[Json], namespace: str) -> tuple[Term, ...]:
    """What is said twice counts once."""
    return tuple(dict.fromkeys(_term(item, namespace) for item in items))


def _preferences(near: Sequence[Json], far: Sequence[Json], namespace: str) -> tuple[tuple[int, Term], ...]:
    """Weights of equal terms are added."""
    weights: dict[Term, int] = {}
    for items, sign in ((near, 1), (far, -1)):
        for item in items:
            term = _term(item["podAffinityTerm"], namespace)
            weights[term] = weights.get(term, 0) + sign * item["weight"]
    return tuple((weight, term) for term, weight in weights.items())


def _jointly(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Required affinity: a pod counts for one term only if it matches all of them."""
    if len(terms) < 2:
        return tuple(terms)
    return tuple(replace(term, also=tuple(one for one in terms if one is not term)) for term in terms)


def _with_keys(item: Json, labels: Mapping[str, str]) -> Json:
    """A spread constraint whose matchLabelKeys are folded into its selector, as servers do when a pod is made."""
    keys = [key for key in item.get("matchLabelKeys") or () if key in labels]
    selector = item.get("labelSelector")
    if not keys or selector is None:
        return item
    said = {rule["key"] for rule in selector.get("matchExpressions") or ()}
    more = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key not in said]
    rules = [*(selector.get("matchExpressions") or ()), *more]
    return {**item, "labelSelector": {**selector, "matchExpressions": rules}}


def _spread(item: Json, namespace: str) -> SpreadConstraint:
    return SpreadConstraint(
        Term(item["topologyKey"], _text(item.get("labelSelector")), (namespace,)),
        item["maxSkew"],
        item["whenUnsatisfiable"] == "DoNotSchedule",
        item.get("minDomains") or 1,
        (item.get("nodeAffinityPolicy") or "Honor") == "Honor",
        (item.get("nodeTaintsPolicy") or "Ignore") == "Honor",
        bool(item.get("lenient")),
    )
