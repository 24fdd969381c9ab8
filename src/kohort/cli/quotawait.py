"""Gangs of which no pod was created yet, since a ResourceQuota does not have room for all of them.

No pod means nothing to schedule, so the scheduler does not know that they wait; their Jobs say it in a condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kohort.api.objects import controller_of, uid_of
from kohort.kube.client import Client
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError
from kohort.place.demand import Reason
from kohort.place.explain import waits
from kohort.scheduler.rootstatus import RootState, RootStatus

Json = dict[str, Any]
_CONDITION: Final = "WaitingForQuota"


@dataclass(frozen=True, slots=True)
class QuotaWait:
    """What was asked for: a Job, or what it was made for."""

    kind: str
    namespace: str
    name: str
    uids: frozenset[str]  # its own, and of all down to a Job that waits
    message: str
    since: str

    @property
    def status(self) -> RootStatus:
        explanation = waits(self.name, Reason.WAITING_FOR_MEMBERS, self.message)
        return RootStatus(
            self.kind, self.namespace, self.name, RootState.WAITING, since=self.since, explanation=explanation
        )


async def waiting_for_quota(client: Client, namespace: str) -> list[QuotaWait]:
    """In a namespace, or in all; several Jobs of one JobSet wait as one."""
    try:
        jobs = (await client.kind("batch/v1", "Job").list(namespace)).items
    except ApiError:
        return []  # who may not see Jobs cannot ask about them
    found: dict[str, QuotaWait] = {}
    known: dict[str, Json | None] = {}
    for job in jobs:
        for one in (job.get("status") or {}).get("conditions") or ():
            if (one.get("type"), one.get("status")) == (_CONDITION, "True"):
                chain = await _chain(client, job, known)
                top, uids = chain[-1], frozenset(map(uid_of, chain))
                before = found.get(uid_of(top))
                uids |= before.uids if before is not None else frozenset()
                meta, since = top["metadata"], str(one.get("lastTransitionTime") or "")
                found[uid_of(top)] = QuotaWait(
                    str(top["kind"]), meta["namespace"], meta["name"], uids, str(one.get("message")), since
                )
    return list(found.values())


async def _chain(client: Client, job: Json, known: dict[str, Json | None]) -> list[Json]:
    """A Job, its JobSet, the TrainJob of that: as far up as can be read. Each is read once."""
    chain = [{**job, "kind": "Job"}]
    while (ref := controller_of(chain[-1])) is not None and len(chain) < 8:
        if ref["uid"] not in known:
            try:
                owner = await client.kind(ref["apiVersion"], ref["kind"]).get(ref["name"], job["metadata"]["namespace"])
                known[ref["uid"]] = {**owner, "kind": ref["kind"]}
            except (ApiError, NotServedError):
                known[ref["uid"]] = None
        above = known[ref["uid"]]
        if above is None:
            break
        chain.append(above)
    return chain
