"""The runtimes that come with Kohort, as objects: people look at what there is before they write a TrainJob."""

from __future__ import annotations

from kohort.api.trainer import builtin_runtimes
from kohort.api.trainer.words import API_VERSION, CLUSTER_RUNTIME
from kohort.kube.client import Client
from kohort.kube.errors import ApiError


async def install(client: Client) -> None:
    """Those that are missing; one that somebody has changed stays as it is."""
    resource = client.kind(API_VERSION, CLUSTER_RUNTIME)
    for runtime in builtin_runtimes():
        try:
            await resource.create(runtime)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
