"""What a cluster has, found by asking it: Kubernetes release, gates, kinds, and who else works there.

Whatever may not be read is not guessed: it stays None, and the plan says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kohort.api.releases import SCHEDULING_GROUP
from kohort.apimachinery.times import parse
from kohort.kube.client import Client
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError
from kohort.scheduler.release import discover

_WEBHOOKS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_GATE: Final = re.compile(rb'^kubernetes_feature_enabled\{[^}]*name="(\w+)"[^}]*\} ([01])', re.MULTILINE)
_KUBE: Final = "kube-system"

OURS: Final = "kohort"  # in the names of our leases and webhooks
HOME: Final = "kohort-system"  # of deploy/rbac.yaml


@dataclass(frozen=True, slots=True)
class Managed:
    """A kind that a controller of ours can manage."""

    controller: str
    group: str
    version: str
    kind: str
    plural: str = ""
    leases: tuple[str, ...] = ()  # words by which the leases of the upstream operator can be told


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    version: str  # of the server, for people
    minor: str = ""  # the release of the Workload API that is served; empty: none
    kinds: Mapping[str, str] = field(default_factory=dict)  # Workload, PodGroup, CompositePodGroup -> apiVersion
    gates: Mapping[str, bool] | None = None  # None: the server's metrics may not be read; empty: they list none
    served: frozenset[str] = frozenset()  # controllers whose kind the server has
    others: Mapping[str, str] = field(default_factory=dict)  # controller -> who else manages its kind
    kube_scheduler: str | None = None  # holder of its lease
    kube_controllers: str | None = None
    home: str = "kube-system"  # where a lease can be kept: our own namespace if there is one
    unread: tuple[str, ...] = ()  # what could not be looked at, and why

    @property
    def kubernetes(self) -> str:
        """The minor of the server itself, such as 1.37."""
        found = re.match(r"v?(\d+\.\d+)", self.version)
        return found[1] if found else self.version


async def survey(client: Client, managed: Iterable[Managed], now: datetime) -> Survey:
    unread: list[str] = []
    release = await discover(client.discovery)
    kinds = dict(release.versions)
    versions = await client.discovery.versions(SCHEDULING_GROUP, "Workload")
    if versions:
        kinds.setdefault("Workload", f"{SCHEDULING_GROUP}/{versions[0]}")
    known = tuple(managed)
    served = {one.controller for one in known if one.version in await client.discovery.versions(one.group, one.kind)}
    leases = await _leases(client, now, unread)
    hooks = [hook for kind in _WEBHOOKS for hook in await _all(client, _ADMISSION, kind, unread)]
    others = {one.controller: who for one in known if (who := _other(one, hooks, leases))}
    return Survey(
        version=str((await client.version()).get("gitVersion") or "unknown"),
        minor=release.minor,
        kinds=kinds,
        gates=await _gates(client, unread),
        served=frozenset(served),
        others=others,
        kube_scheduler=_holder(leases, "kube-scheduler"),
        kube_controllers=_holder(leases, "kube-controller-manager"),
        home=await _home(client),
        unread=tuple(unread),
    )


async def _all(client: Client, api_version: str, kind: str, unread: list[str]) -> list[dict[str, Any]]:
    try:
        return (await client.kind(api_version, kind).list()).items
    except NotServedError:
        return []
    except ApiError as error:
        unread.append(f"{kind}s: {error}")
        return []


async def _home(client: Client) -> str:
    try:
        await client.kind("v1", "Namespace").get(HOME)
    except ApiError:
        return _KUBE
    return HOME


async def _gates(client: Client, unread: list[str]) -> dict[str, bool] | None:
    try:
        text = await client.calls.call("GET", "/metrics", accept="text/plain")
    except ApiError as error:
        unread.append(f"feature gates, in the API server's /metrics: {error}")
        return None
    return {name.decode(): value == b"1" for name, value in _GATE.findall(text)}


async def kube_controller_manager(client: Client, now: datetime) -> str | None:
    """Who looks after nodes, Jobs and orphaned pods here; None: nobody that could be found."""
    return _holder(await _leases(client, now, []), "kube-controller-manager")


async def _leases(client: Client, now: datetime, unread: list[str]) -> list[Mapping[str, Any]]:
    return [one for one in await _all(client, "coordination.k8s.io/v1", "Lease", unread) if _alive(one, now)]


def _alive(lease: Mapping[str, Any], now: datetime) -> bool:
    """Renewed not longer ago than its holder promised."""
    spec = lease.get("spec") or {}
    moment = parse(spec.get("renewTime"))
    if moment is None or not spec.get("holderIdentity"):
        return False
    return (now - moment).total_seconds() <= 2 * float(spec.get("leaseDurationSeconds") or 15)


def _holder(leases: Iterable[Mapping[str, Any]], name: str) -> str | None:
    for one in leases:
        if one["metadata"]["name"] == name and one["metadata"].get("namespace") == _KUBE:
            return str(one["spec"]["holderIdentity"])
    return None


def _other(one: Managed, hooks: Iterable[Mapping[str, Any]], leases: Iterable[Mapping[str, Any]]) -> str:
    """An operator shows by a webhook that looks at its kind, or by a lease that it renews."""
    for hook in hooks:
        name = str(hook["metadata"]["name"])
        if not is_ours(hook) and any(_concerns(rule, one) for rule in _rules(hook)):
            return f"{hook.get('kind') or 'webhook configuration'} {name}"
    for lease in leases:
        meta = lease["metadata"]
        name, space = str(meta["name"]), str(meta.get("namespace") or "")
        if OURS not in name and any(word in name or word in space for word in one.leases):
            return f"Lease {space}/{name}, held by {lease['spec']['holderIdentity']}"
    return ""


def is_ours(configuration: Mapping[str, Any]) -> bool:
    """A configuration of our own webhook: by the names of its webhooks, since the chart may give it any name."""
    names = [str(one.get("name") or "") for one in configuration.get("webhooks") or ()]
    return bool(names) and all(name.endswith(f".{OURS}.dev") for name in names)


def _rules(hook: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [rule for one in hook.get("webhooks") or () for rule in one.get("rules") or ()]


def _concerns(rule: Mapping[str, Any], one: Managed) -> bool:
    """A rule for everything is a policy engine's, not an operator's."""
    return one.group in (rule.get("apiGroups") or ()) and any(
        resource.partition("/")[0] in {one.plural, "*"} for resource in rule.get("resources") or ()
    )
