"""A snapshot of a cluster, in the form of `/debug/state`: what decides whether something starts, and nothing secret.

What the scheduler reads is cut to the fields that it reads: no environment, no commands, no images. Everything else is
cleaned: no annotations but Kubernetes' own, no values of environment variables, no parameters of storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.apimachinery import times
from kohort.plan.clustercopy import kinds, read_cluster
from kohort.plan.history import history
from kohort.scheduler.clusterlist import list_cluster
from kohort.scheduler.snapshot import dump

if TYPE_CHECKING:
    from kohort.kube.client import Client

Json = dict[str, Any]
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_DOMAINS: Final = ("kubernetes.io", "k8s.io")
# Fields that can hold something secret, or much that decides nothing, wherever they stand.
_DROPPED: Final = frozenset(
    {"managedFields", "env", "envFrom", "command", "args", "parameters", "volumeAttributes", "csi", "lifecycle"}
)


async def capture(client: Client) -> tuple[Json, list[str]]:
    """The snapshot, and what this user may not read."""
    seen = await list_cluster(client)
    copied = await read_cluster(client)
    made = dump(seen.core, seen.objects)
    objects = made["objects"]
    for name, _, _ in kinds():
        if name not in objects and copied.of(name):
            objects[name] = copied.of(name)
    for name, found in objects.items():
        objects[name] = [_clean(one) for one in found]
    made["history"] = history(copied.of("pods"), copied.of("podgroups"))
    made["minor"], made["time"] = copied.minor, times.seconds(copied.taken)
    return made, list(dict.fromkeys((*seen.unread, *copied.unread)))


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: _clean(one) for name, one in value.items() if name not in _DROPPED}
    if isinstance(made.get("annotations"), dict):
        made["annotations"] = {key: text for key, text in made["annotations"].items() if _is_kept(key)}
    return made


def _is_kept(annotation: str) -> bool:
    domain = annotation.partition("/")[0]
    return annotation != _APPLIED and any(domain == one or domain.endswith(f".{one}") for one in _DOMAINS)
