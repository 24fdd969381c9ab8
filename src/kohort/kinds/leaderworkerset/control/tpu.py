"""Environment variables for TPU processes (spec lws 2.7)."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object
from kohort.kinds.leaderworkerset.api.levels import ROLES, pod_spec, size
from kohort.kinds.leaderworkerset.control.placement import subgroup_index
from kohort.kinds.leaderworkerset.control.reading import leader_name, subdomain

_RESOURCE: Final = "google.com/tpu"
_HOSTNAMES: Final = "TPU_WORKER_HOSTNAMES"
_ID: Final = "TPU_WORKER_ID"
_PORT: Final = "TPU_PROCESS_PORT"
_FIRST_PORT: Final = 8476


MAX_HOSTS: Final = 10_000  # more than any slice has; their names stand in every pod


def too_many_hosts(lws: Object) -> str:
    """Why no pod can be written for a group of this size; empty: it can."""
    if size(lws) <= MAX_HOSTS or not any(requests_tpus(pod_spec(lws, role)) for role in ROLES):
        return ""
    return f"spec.leaderWorkerTemplate.size: {size(lws)} pods with {_RESOURCE}; {_HOSTNAMES} lists at most {MAX_HOSTS}"


def requests_tpus(spec: Object) -> bool:
    return bool(_users(spec))


def _users(spec: Object) -> list[dict[str, Any]]:
    return [one for one in spec.get("containers") or () if _asks(one)]


def _asks(container: Object) -> bool:
    resources = container.get("resources") or {}
    return any(_RESOURCE in (resources.get(member) or {}) for member in ("limits", "requests"))


def add_variables(lws: Object, index: int, worker: int, spec: Object) -> None:
    """`worker` 0 is the leader. A container that has host names or an id by the user is left alone."""
    users = _users(spec)
    if not users:
        return
    mates = _mates(lws, worker)
    if subgroup_index(lws, worker) is not None:
        users = users[:1]
    leader, domain = leader_name(lws, index), subdomain(lws, index)
    hosts = [f"{leader if mate == 0 else f'{leader}-{mate}'}.{domain}" for mate in mates]
    ports = [_port(container, _FIRST_PORT + place) for place, container in enumerate(users)]
    for place, container in enumerate(users):
        known = {one.get("name") for one in container.get("env") or ()}
        if known & {_HOSTNAMES, _ID}:
            continue
        added = {
            _HOSTNAMES: ",".join(host for host in hosts for _ in users),
            _ID: str(mates.index(worker) * len(users) + place),
            "TPU_NAME": leader,
            "TPU_PROCESS_ADDRESSES": ",".join(f"{host}:{port}" for host in hosts for port in ports),
            _PORT: ports[place],
        }
        new = [{"name": name, "value": value} for name, value in added.items() if name not in known]
        container["env"] = [*(container.get("env") or ()), *new]


def _mates(lws: Object, worker: int) -> list[int]:
    """The pods whose processes belong together: those of the subgroup, or all; the leader only if it has TPUs."""
    first = 0 if requests_tpus(pod_spec(lws, "leader")) else 1
    subgroup = subgroup_index(lws, worker)
    return [one for one in range(first, size(lws)) if subgroup_index(lws, one) == subgroup]


def _port(container: Object, default: int) -> str:
    given = [one.get("value") for one in container.get("env") or () if one.get("name") == _PORT]
    return str(given[0]) if given and given[0] else str(default)
