"""What a pod is to a Service: an address, the ports that the Service's ports mean in it, and whether it is ready."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, name_of, namespace_of, status_of, uid_of
from kohort.controllermanager.pods import is_ready, is_terminal, node_of

HEADLESS: Final = "service.kubernetes.io/headless"


@dataclass(frozen=True, slots=True)
class Port:
    name: str
    number: int
    protocol: str
    app_protocol: str | None = None

    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "port": self.number, "protocol": self.protocol}
        return {**found, "appProtocol": self.app_protocol} if self.app_protocol else found


@dataclass(frozen=True, slots=True)
class Backend:
    """A pod that a Service selects, and that has an address of the family that is asked for."""

    pod: Object
    address: str
    ports: tuple[Port, ...]
    hostname: str

    @property
    def target(self) -> dict[str, Any]:
        pod = self.pod
        return {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}

    @property
    def serving(self) -> bool:
        return is_ready(self.pod)

    @property
    def terminating(self) -> bool:
        return is_deleting(self.pod)

    @property
    def node(self) -> str:
        return node_of(self.pod)


def is_headless(service: Object) -> bool:
    return (service.get("spec") or {}).get("clusterIP") == "None"


def selector_of(service: Object) -> Object | None:
    """None: somebody else says who is behind it, or nobody is."""
    spec = service.get("spec") or {}
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return None
    return {"matchLabels": spec["selector"]}


def families(service: Object) -> tuple[str, ...]:
    return tuple((service.get("spec") or {}).get("ipFamilies") or ("IPv4",))


def backends(service: Object, pods: Iterable[Object], family: str) -> list[Backend]:
    """By name: the same pods give the same list. A pod without the port that a Service names is behind its others."""
    found = []
    for pod in sorted(pods, key=name_of):
        address = next((one for one in _addresses(pod) if _family(one) == family), "")
        if is_terminal(pod) or not address:
            continue
        ports = tuple(port for one in (service["spec"].get("ports") or ()) if (port := _port(pod, one)) is not None)
        if ports or is_headless(service):
            found.append(Backend(pod, address, ports, _hostname(service, pod)))
    return found


def _addresses(pod: Object) -> list[str]:
    status = status_of(pod)
    several = [str(one.get("ip") or "") for one in status.get("podIPs") or ()]
    return several or ([str(status["podIP"])] if status.get("podIP") else [])


@lru_cache(maxsize=4096)  # each pod of a Service is asked about whenever one of them changes
def _family(address: str) -> str:
    try:
        return f"IPv{ipaddress.ip_address(address).version}"
    except ValueError:
        return ""


def _port(pod: Object, port: dict[str, Any]) -> Port | None:
    wanted = port.get("targetPort", port.get("port"))
    protocol = str(port.get("protocol") or "TCP")
    number = wanted if isinstance(wanted, int) else _named(pod, str(wanted), protocol)
    if not number:
        return None
    return Port(str(port.get("name") or ""), number, protocol, port.get("appProtocol"))


def _named(pod: Object, name: str, protocol: str) -> int:
    if name.isdigit():
        return int(name)
    spec = pod.get("spec") or {}
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for one in container.get("ports") or ():
            if one.get("name") == name and (one.get("protocol") or "TCP") == protocol:
                return int(one["containerPort"])
    return 0


def _hostname(service: Object, pod: Object) -> str:
    """By which it is found under the Service's name."""
    spec = pod.get("spec") or {}
    return str(spec.get("hostname") or "") if spec.get("subdomain") == name_of(service) else ""


class _Last:
    """The two states that were compared last: the controllers of slices and of Endpoints ask one after the other."""

    states: tuple[Object, Object] | None = None
    same = False


def same(old: Object, new: Object) -> bool:
    """Whether two states of a pod are one to Services."""
    last = _Last.states
    if last is None or last[0] is not old or last[1] is not new:
        _Last.states, _Last.same = (old, new), _counts(old) == _counts(new)
    else:
        _Last.states = None  # both have asked, and a pod may be large
    return _Last.same


def _counts(pod: Object) -> tuple[object, ...]:
    """What of a pod Services look at."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    return (
        meta.get("labels"), meta.get("uid"), meta.get("deletionTimestamp"), spec.get("nodeName"),
        _addresses(pod), is_ready(pod), is_terminal(pod),
    )  # fmt: skip
