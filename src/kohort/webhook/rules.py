"""GroupingRules of the cluster for the webhook: followed from when their definition is there and they may be read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kohort.api.kind import Object
from kohort.grouping.api import GROUP, KIND
from kohort.grouping.settings import Grouping, extended
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, KubeError
from kohort.kube.informer import Informer

log = logging.getLogger(__name__)
_LOOK: Final = 30.0  # seconds between two looks for their definition, and for the right to read them


class ClusterRules:
    """`changed` is called whenever they say something else."""

    def __init__(self, client: Client, changed: Callable[[], None]) -> None:
        self._client, self._changed = client, changed
        self._bodies: dict[str, Object] = {}

    def extend(self, grouping: Grouping) -> Grouping:
        """With the rules that are accepted; what is wrong with others the scheduler's condition says, or `validate`."""
        found, problems = extended(grouping, self._bodies.values())
        for name, errors in problems.items():
            if errors:
                log.warning("GroupingRule %s is not used: %s", name, "; ".join(map(str, errors)))
        return found

    async def run(self) -> None:
        """Until cancelled."""
        while not (version := await self._readable()):
            await self._client.clock.sleep(_LOOK)
        resource = self._client.kind(version, KIND)
        informer: Informer[Object] = Informer(resource, clock=self._client.clock, jitter=self._client.jitter)
        informer.handle(added=self._put, updated=lambda _, new: self._put(new), deleted=self._drop)
        await informer.run()

    async def _readable(self) -> str:
        """Their apiVersion; empty: not yet."""
        try:
            await self._client.discovery.refresh()
            types = await self._client.discovery.all()
            version = next((one.api_version for one in types if (one.group, one.kind) == (GROUP, KIND)), "")
            if version:
                await self._client.kind(version, KIND).list()
        except ApiError as error:
            if error.code not in {401, 403, 404}:
                log.warning("GroupingRules: %s", error)
            return ""
        except KubeError as error:
            log.warning("GroupingRules: %s", error)
            return ""
        return version

    def _put(self, body: Object) -> None:
        name = str(body["metadata"]["name"])
        before = self._bodies.get(name)
        self._bodies[name] = body
        if before is None or before.get("spec") != body.get("spec"):
            self._changed()

    def _drop(self, body: Object) -> None:
        self._bodies.pop(str(body["metadata"]["name"]), None)
        self._changed()
