"""`schedulingGroup` for pods of operators that write none, where kube-scheduler stays: looked up, made, patched in.

Which group is `kohort.grouping.schedulinggroup`'s to say. Nobody's pod is ever refused here: whatever goes wrong, it is
created as it came, with a warning.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import Any, Final

import msgspec

from kohort.api.kind import Context, Object
from kohort.api.releases import Gate
from kohort.grouping.schedulinggroup import Alone, Assigned, Seen, Wanted, assign, change
from kohort.grouping.settings import Grouping
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, KubeError
from kohort.webhook.review import ALLOWED, Answer, Question

LABEL: Final = "kohort.dev/grouping"  # of namespaces, with the value "enabled"
_ROUNDS: Final = 16
_KEPT: Final = 10.0  # seconds for which a group that was there is taken to be there: a gang's pods come together
_MOST: Final = 10_000


class GroupWriter:
    """`left`: names of schedulers that group by themselves."""

    def __init__(self, client: Client, left: Collection[str]) -> None:
        self._client, self._left = client, frozenset(left)
        self._there: dict[bytes, float] = {}

    async def answer(self, asked: Question, grouping: Grouping, ctx: Context | None) -> Answer:
        pod = asked.object
        if ctx is None or pod is None or asked.kind.kind != "Pod" or asked.sub_resource or asked.operation != "CREATE":
            return ALLOWED
        spec = pod.get("spec") or {}
        if spec.get("schedulerName") in self._left or spec.get("nodeName"):
            return ALLOWED
        whole = {**pod, "metadata": {**(pod.get("metadata") or {}), "namespace": asked.namespace}}
        try:
            found = await self._assigned(whole, grouping, ctx)
            if isinstance(found, Alone):
                return Answer(warnings=(f"not grouped: {found.problem}",)) if found.problem else ALLOWED
            if not asked.dry_run:
                for one in found.objects:
                    await self._make(one)
        except KubeError as error:
            return Answer(warnings=(f"not grouped: {error}"[:250],))
        patch = [{"op": "add", "path": f"/spec/{name}", "value": value} for name, value in found.link.items()]
        return Answer(warnings=found.warnings, patch=tuple(patch))

    async def _assigned(self, pod: Object, grouping: Grouping, ctx: Context) -> Assigned | Alone:
        seen = Seen()
        for _ in range(_ROUNDS):
            answer = assign(pod, seen, grouping, ctx.release, composites=ctx.on(Gate.COMPOSITE))
            if not isinstance(answer, Wanted):
                return answer
            seen.put(answer, await self._look(answer))
        return Alone(f"more than {_ROUNDS} objects would have to be looked up")

    async def _look(self, wanted: Wanted) -> Object | None:
        """None: it is not there, or may not be read."""
        kind = wanted.kind
        versions = await self._client.discovery.versions(kind.group, kind.name)
        if not versions:
            return None
        version = f"{kind.group}/{versions[0]}" if kind.group else versions[0]
        try:
            return await self._client.kind(version, kind.name).get(wanted.name, wanted.namespace)
        except ApiError as error:
            if error.not_found or error.code == 403:
                return None
            raise

    async def _make(self, wanted: Object) -> None:
        """All pods of a group ask for the same objects: the first makes them."""
        now, key = self._client.clock.monotonic(), msgspec.json.encode(wanted)
        if self._there.get(key, 0.0) > now:
            return
        resource, space = self._client.of(wanted), wanted["metadata"].get("namespace", "")
        try:
            await resource.create(deepcopy(wanted), space)
        except ApiError as error:
            if not error.already_exists:
                raise
            await self._bring_up_to_date(wanted, space)
        if len(self._there) >= _MOST:
            self._there.clear()
        self._there[key] = now + _KEPT

    async def _bring_up_to_date(self, wanted: Object, space: str) -> None:
        resource, name = self._client.of(wanted), wanted["metadata"]["name"]
        patch: dict[str, Any] | None = change(await resource.get(name, space), wanted)
        if patch:
            await resource.patch(name, patch, space)
