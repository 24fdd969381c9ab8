"""What `kubectl apply` would do to objects that are in the cluster already: nothing, an update, or be refused.

The object is put into an embedded server as it is, alone and without controllers, and updated there as kubectl would:
what the file says wins, what an earlier apply said and the file says no more goes, all else stays.
"""

from __future__ import annotations

import asyncio
import copy
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.api.objects import name_of, namespace_of
from kohort.kube.client import Client
from kohort.kube.clock import LoopClock
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError
from kohort.plan.loading import write
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.testing.virtual import VirtualLoop

if TYPE_CHECKING:
    from kohort.api.kind import Object

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ENDED: Final = frozenset({"Complete", "Completed", "Failed"})  # conditions of Jobs, JobSets and TrainJobs
_PHASES: Final = frozenset({"Succeeded", "Failed"})
_SERVERS: Final = ("managedFields", "resourceVersion", "generation")  # fields of metadata that no file says
_LOOK: Final = 0.05
_SERVED_WITHIN: Final = 30.0  # virtual seconds until the kinds of operators are defined
Pair = tuple["Object", "Object"]  # of a file, and as it is in the cluster


class Applied(StrEnum):
    """What would come of `kubectl apply`; the first two in its words."""

    UNCHANGED = "unchanged"
    CONFIGURED = "configured"
    REFUSED = "refused"
    UNKNOWN = "unknown"  # only its pods and groups were seen


@dataclass(frozen=True, slots=True)
class Existing:
    """`fields`: paths of what would change. `message`: why it would be refused. `ended`: how the object has ended, if
    it has."""

    kind: str
    namespace: str
    name: str
    applied: Applied
    fields: tuple[str, ...] = ()
    message: str = ""
    ended: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.namespace, self.name


async def existing(client: Client, targets: Sequence[Object], namespace: str) -> list[Pair]:
    """Those of some objects that are in the cluster. What cannot be read is taken as not there."""

    async def find(obj: Object) -> Object | None:
        try:
            return await client.of(obj).get(name_of(obj), namespace_of(obj) or namespace)
        except (ApiError, NotServedError):
            return None

    found = await asyncio.gather(*(find(obj) for obj in targets))
    return [(obj, there) for obj, there in zip(targets, found, strict=True) if there is not None]


def would_apply(minor: str, pairs: Sequence[Pair]) -> list[Existing]:
    if not pairs:
        return []
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_applied(minor, pairs))


async def _applied(minor: str, pairs: Sequence[Pair]) -> list[Existing]:
    with tempfile.TemporaryDirectory() as folder:
        chosen = Settings(Path(folder), minor, port=0, in_memory=True, listen=False)
        clock = LoopClock(datetime.now(UTC))
        async with (
            Server(chosen, clock) as server,
            Client.within(server.api, manager="kubectl", clock=clock) as client,
        ):
            return [await _one(server, client, *pair) for pair in pairs]


async def _one(server: Server, client: Client, obj: Object, there: Object) -> Existing:
    space = namespace_of(there) or "default"
    said = Existing(str(obj["kind"]), space, name_of(obj), Applied.UNCHANGED, ended=_ended(there))
    try:
        before = await _loaded(server, client, there)
        after = await client.of(obj).update(merged(before, obj), space)
    except (ApiError, NotServedError) as error:
        text = error.message if isinstance(error, ApiError) else str(error)
        return replace(said, applied=Applied.REFUSED, message=text)
    fields = tuple(changed(_compared(before), _compared(after)))
    return replace(said, applied=Applied.CONFIGURED, fields=fields) if fields else said


async def _loaded(server: Server, client: Client, there: Object) -> Object:
    group, _, version = str(there["apiVersion"]).rpartition("/")
    for _ in range(int(_SERVED_WITHIN / _LOOK)):
        resource = server.api.resources.of_kind(group, str(there["kind"]), version)
        if resource is not None:
            break
        await client.clock.sleep(_LOOK)
        await client.discovery.refresh()
    else:
        raise NotServedError(f"{there['kind']}.{there['apiVersion']}: not known to the embedded server")
    made = copy.deepcopy(there)
    made["metadata"].pop("managedFields", None)
    await write(server, resource, made)
    return await client.of(there).get(name_of(there), namespace_of(there) or "default")


def merged(there: Object, obj: Object) -> Object:
    """The object as an update would send it."""
    text = (there["metadata"].get("annotations") or {}).get(LAST_APPLIED, "{}")
    try:
        last = msgspec.json.decode(text)
    except msgspec.DecodeError:
        last = {}
    made: Object = _merged(there, obj, last)
    if "status" in there:
        made["status"] = there["status"]
    made["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
    return made


def _merged(there: Any, wanted: Any, last: Any) -> Any:
    """Lists are taken as the file has them: the server fills in again what it had filled in before."""
    if not isinstance(there, dict) or not isinstance(wanted, dict):
        return copy.deepcopy(wanted)
    before = last if isinstance(last, dict) else {}
    made = {key: value for key, value in there.items() if key in wanted or key not in before}
    for key, value in wanted.items():
        made[key] = _merged(there.get(key), value, before.get(key))
    return made


def changed(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Paths of what is not what it was."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from changed(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from changed(one, other, f"{path}[{number}]")
    elif before != after:
        yield path


def _compared(obj: Object) -> Object:
    meta = {key: value for key, value in obj["metadata"].items() if key not in _SERVERS}
    meta["annotations"] = {key: one for key, one in (meta.get("annotations") or {}).items() if key != LAST_APPLIED}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


def _ended(obj: Mapping[str, Any]) -> str:
    status = obj.get("status") or {}
    if obj.get("kind") == "Pod" and status.get("phase") in _PHASES:
        return str(status["phase"])
    true = (str(one.get("type")) for one in status.get("conditions") or () if one.get("status") == "True")
    return next((one for one in true if one in _ENDED), "")
