"""The runtimes that come with Kohort, as objects: people look at what there is before they write a TrainJob."""

from __future__ import annotations

import logging
from typing import Final

from kohort.kinds.trainer.api import builtin_runtimes
from kohort.kinds.trainer.api.constants import API_VERSION, CLUSTER_RUNTIME
from kohort.kube.client import Client
from kohort.kube.errors import ApiError

log: Final = logging.getLogger(__name__)


async def install(client: Client) -> None:
    """Those that are missing; one that somebody has changed stays as it is.

    One that the server refuses (they ask for groups: a gate may be off) is left out. Jobs that name it get it all the
    same, as on clusters where nobody has installed it.
    """
    resource = client.kind(API_VERSION, CLUSTER_RUNTIME)
    for runtime in builtin_runtimes():
        try:
            await resource.create(runtime)
        except ApiError as error:
            if error.reason == "Invalid":
                log.info("built-in runtime %s is left out: %s", runtime["metadata"]["name"], error.message)
            elif error.reason != "AlreadyExists":
                raise
