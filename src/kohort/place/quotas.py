"""ResourceQuotas: what they leave for the members of a group that were not created yet.

The scheduler enforces none of them: the API server does, when pods are created. But a gang whose last members a quota
keeps from being created waits for ever, and two such gangs wait for each other; whoever asks is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kohort.place.columns import amount, shown

Json = dict[str, Any]
_REQUESTS = "requests."
_PODS = ("pods", "count/pods")


@dataclass(frozen=True, slots=True)
class QuotaShortage:
    """A quota that leaves less of a resource than some pods ask for."""

    quota: str
    resource: str
    hard: int
    used: int
    asks: int

    def __str__(self) -> str:
        left = shown(self.resource, max(self.hard - self.used, 0))
        return (
            f"ResourceQuota {self.quota} leaves {left} of {shown(self.resource, self.hard)} {self.resource}, "
            f"the missing pods ask {shown(self.resource, self.asks)}"
        )

    @property
    def remedy(self) -> str:
        return f"raise {self.resource} of ResourceQuota {self.quota} to {shown(self.resource, self.used + self.asks)}"


class ResourceQuotas:
    """By namespace, then name. Those with scopes speak of some pods only and are not looked at."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Json]] = {}

    def set(self, key: str, quota: Json | None) -> None:
        namespace, _, name = key.rpartition("/")
        here = self._known.setdefault(namespace, {})
        here.pop(name, None)
        spec = (quota or {}).get("spec") or {}
        if quota is not None and not spec.get("scopes") and not spec.get("scopeSelector"):
            here[name] = quota

    def shortage(
        self, namespace: str, asks: Mapping[str, int], at_least: Callable[[str, str], int] = lambda _, __: 0
    ) -> QuotaShortage | None:
        """The first quota that leaves too little for pods that ask for so much together.

        `at_least`: what is used of a quota's resource, whatever its status says yet.
        """
        for name, quota in sorted(self._known.get(namespace, {}).items()):
            for resource, most in sorted(_limits(quota).items()):
                plain = plain_name(resource)
                wanted = asks.get(plain, 0)
                taken = max(used_of(quota, resource), at_least(name, resource))
                if wanted and taken + wanted > most:
                    return QuotaShortage(name, plain, most, taken, wanted)
        return None


def _limits(quota: Json) -> dict[str, int]:
    """A limit that was changed and not counted since: the lower one, by which the server may refuse already."""
    found: dict[str, int] = {}
    for part in ("spec", "status"):
        for resource, limit in ((quota.get(part) or {}).get("hard") or {}).items():
            most = amount(plain_name(resource), str(limit))
            found[resource] = min(most, found.get(resource, most))
    return found


def plain_name(resource: str) -> str:
    """A resource of pods, from the name that a quota has for it."""
    return "pods" if resource in _PODS else resource.removeprefix(_REQUESTS)


def used_of(quota: Json, resource: str) -> int:
    used = (quota.get("status") or {}).get("used") or {}
    return amount(plain_name(resource), str(used.get(resource) or "0"))
