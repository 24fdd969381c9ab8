"""One unit in full: who stands above it, its groups down to the pods, why it waits; and one object with its events."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from kohort.kube.errors import ApiError
from kohort.manifest import dump
from kohort.place.explain import Explanation
from kohort.place.signatures import Taint
from kohort.scheduler.model import Condition, Pod
from kohort.scheduler.rootstatus import RootStatus, named, reason_and_message, remedies
from kohort.scheduler.trees import Group
from kohort.scheduler.validate import DEEPEST
from kohort.web.timeline import epoch
from kohort.web.units import Name, Unit, rank
from kohort.web.view import View

if TYPE_CHECKING:
    from kohort.kube.client import Client
    from kohort.web.access import Sight

Json = dict[str, Any]
_PODS: Final = 200  # of one group; the rest is counted
_NODES: Final = 200
_EVENTS: Final = 50
_CHILDREN: Final = 20


# ---- a unit


def details(view: View, unit: Unit, sight: Sight) -> Json:
    """Without what happened in namespaces that the visitor may not see."""
    follower = view.follower
    status = view.status(unit)
    group = follower.core.cache.trees.get(unit.key)
    chain = follower.owners.chain(unit.owners)
    return {
        "id": unit.id,
        "namespace": unit.namespace,
        "above": [_above(view, one) for one in chain],
        "tree": _group(view, group, unit) if group is not None and group.spec is not None else _loose(unit),
        "why": _why(status, sight) if status is not None else None,
    }


def _above(view: View, one: Name) -> Json:
    thing = view.follower.owners.get(one.uid)
    conditions = thing.status.conditions if thing is not None else None
    return {**_name(one), "conditions": _conditions(conditions or ())}


def _name(one: Name) -> Json:
    return {"apiVersion": one.api_version, "kind": one.kind, "name": one.name}


def _group(view: View, group: Group, unit: Unit, level: int = 1) -> Json:
    spec = group.spec
    assert spec is not None
    members = [unit.pods[uid] for uid in (*group.placed, *group.pending, *group.finished) if uid in unit.pods]
    members += _failed(unit, group.key)
    made: Json = {
        "kind": spec.kind,
        "name": spec.name,
        "workload": spec.workload,
        "minimum": spec.minimum,
        "topology": spec.topology or "",
        "domains": _domains(view, group, spec.topology) if spec.topology else [],
        "conditions": _conditions(spec.conditions),
        "placed": sum(len(leaf.placed) for leaf in group.leaves()),
        "pods": sum(len(leaf.placed) + len(leaf.pending) for leaf in group.leaves()),
        "finished": sum(leaf.done for leaf in group.leaves()),
    }
    if level < DEEPEST:
        made["groups"] = [_group(view, child, unit, level + 1) for child in group.ordered()]
    return made | _members(members)


def _failed(unit: Unit, key: str) -> list[Pod]:
    """The scheduler has no use for them; people do."""
    return [pod for pod in unit.pods.values() if pod.status.phase == "Failed" and pod.group == key]


def _loose(unit: Unit) -> Json:
    placed = [pod for pod in unit.pods.values() if pod.spec.node_name]
    made: Json = {
        "kind": unit.kind,
        "name": unit.name,
        "minimum": None,
        "topology": "",
        "domains": [],
        "conditions": [],
    }
    numbers = {"placed": len(placed), "pods": len(unit.pods), "finished": 0, "groups": [], "workload": ""}
    return made | numbers | _members(list(unit.pods.values()))


def _members(pods: list[Pod]) -> Json:
    pods = sorted(pods, key=lambda pod: (_number(rank(pod.metadata.labels)), pod.metadata.name))
    return {"members": [_pod(pod) for pod in pods[:_PODS]], "more": max(len(pods) - _PODS, 0)}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def _pod(pod: Pod) -> Json:
    gated = bool(pod.spec.scheduling_gates) and not pod.spec.node_name
    leaving = pod.metadata.deletion_timestamp is not None
    return {
        "name": pod.metadata.name,
        "rank": rank(pod.metadata.labels),
        "node": pod.spec.node_name,
        "phase": "Terminating" if leaving else "Gated" if gated else pod.status.phase or "Pending",
        "created": epoch(pod.metadata.creation_timestamp),
    }


def _domains(view: View, group: Group, key: str) -> list[str]:
    state = view.follower.core.cache.state
    rows = {state.row(one.node) for leaf in group.leaves() for one in leaf.placed.values()}
    return sorted({state.node(row).labels.get(key, "?") for row in rows if row is not None})


def _conditions(conditions: Any) -> list[Json]:
    found: list[Condition] = list(conditions)
    return [
        {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
        | {"since": one.last_transition_time or ""}
        for one in found
    ]


# ---- why


def _why(status: RootStatus, sight: Sight) -> Json:
    reason, message = reason_and_message(status) if status.pending or status.missing else ("", "")
    victims = [one for one in status.victims if sight.may_see(one.partition("/")[0])]
    return {
        "state": str(status.state),
        "reason": reason,
        "message": message,
        "explanation": _explanation(status.explanation, status) if status.explanation is not None else None,
        "places": [asdict(one) for one in status.places][:_NODES],
        "wouldGo": [asdict(one) for one in status.would_go][:_NODES],
        "victims": victims,
        "otherVictims": len(status.victims) - len(victims),
        "scheduler": status.scheduler,
        "priority": status.priority,
    }


def _explanation(one: Explanation, status: RootStatus) -> Json:
    names = status.names
    failing = [child for child in one.children if not child.ok and child.reason is not None]
    return {
        "group": names.get(one.group, one.group),
        "reason": str(one.reason) if one.reason is not None else "",
        "detail": named(one.detail, names),
        "proven": one.proven,
        "nodes": [str(cause) for cause in one.causes],
        "closest": named(str(one.nearest), names) if one.nearest is not None else "",
        "wouldFit": remedies(one, names, steps=False),
        "nextStep": remedies(one, names, steps=True),
        "groups": [_explanation(child, status) for child in failing[:_CHILDREN]],
    }


# ---- a node


def node_details(view: View, name: str, sight: Sight) -> Json | None:
    state = view.follower.core.cache.state
    row = state.row(name)
    if row is None:
        return None
    info = state.node(row)
    pods = [one for one in info.pods.values() if sight.may_see(one.namespace)]
    units = view.follower.units
    return {
        "name": name,
        "labels": dict(info.labels),
        "taints": [_taint(one) for one in info.taints],
        "pods": [
            {"namespace": one.namespace, "name": one.name, "unit": unit.id if (unit := units.of(one.uid)) else 0}
            for one in sorted(pods, key=lambda one: (one.namespace, one.name))
        ],
        "others": len(info.pods) - len(pods),
        "resources": {
            resource: [int(state.alloc[row, number]), int(state.used[row, number])]
            for number, resource in enumerate(state.resources.names)
            if number < state.alloc.shape[1] and state.alloc[row, number]
        },
    }


def _taint(one: Taint) -> str:
    return f"{one.key}{f'={one.value}' if one.value else ''}:{one.effect}"


# ---- an object


async def one_object(client: Client, api_version: str, kind: str, name: str, namespace: str) -> Json:
    """As YAML, without the bookkeeping of servers; and what was said about it last."""
    body = await client.kind(api_version, kind).get(name, namespace)
    uid = body["metadata"]["uid"]
    events = await _events(client, uid, namespace)
    body["metadata"].pop("managedFields", None)
    text = dump(body)
    return {"yaml": text, "events": events, "conditions": [_condition(one) for one in _conditions_of(body)]}


def _conditions_of(body: Json) -> list[Json]:
    found = (body.get("status") or {}).get("conditions") or ()
    return [one for one in found if isinstance(one, dict)]


def _condition(one: Json) -> Json:
    words = {name: str(one.get(name) or "") for name in ("type", "status", "reason", "message")}
    return {**words, "since": str(one.get("lastTransitionTime") or "")}


async def _events(client: Client, uid: str, namespace: str) -> list[Json]:
    try:
        found = (await client.kind("v1", "Event").list(namespace, fields=f"involvedObject.uid={uid}")).items
    except (ApiError, TimeoutError):
        return []
    made = [
        {
            "at": one.get("lastTimestamp") or one.get("eventTime") or one["metadata"].get("creationTimestamp") or "",
            "type": one.get("type", ""),
            "reason": one.get("reason", ""),
            "message": one.get("message", ""),
            "count": (one.get("series") or {}).get("count") or one.get("count") or 1,
        }
        for one in found
    ]
    return sorted(made, key=lambda one: str(one["at"]), reverse=True)[:_EVENTS]
