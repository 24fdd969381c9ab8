"""What a scheduler groups, told to whoever asks: `kohort explain` and `kohort tree` see the groups that it sees.

A ConfigMap, written when a scheduler begins to work. Who may not write or read it does without: defaults are taken.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from kohort.api.errors import FieldError
from kohort.grouping.settings import Grouping, document, read
from kohort.kube.errors import ApiError, KubeError

if TYPE_CHECKING:
    from kohort.kube.client import Client

log = logging.getLogger(__name__)

NAME: Final = "kohort-grouping"
HOMES: Final = ("kohort-system", "kube-system")


async def publish(client: Client, grouping: Grouping) -> None:
    data = {"grouping": msgspec.json.encode(document(grouping)).decode()}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data}
    for home in HOMES:
        try:
            await client.kind("v1", "ConfigMap").apply(body, home, manager="kohort-scheduler", force=True)
            return
        except ApiError as error:
            log.info("ConfigMap %s/%s is not written: %s", home, NAME, error)
        except KubeError as error:
            log.warning("ConfigMap %s/%s is not written: %s", home, NAME, error)


async def published(client: Client) -> Grouping | None:
    """None: nobody has told, or not to us."""
    for home in HOMES:
        try:
            found = await client.kind("v1", "ConfigMap").get(NAME, home)
            text = msgspec.json.decode(found["data"]["grouping"])
        except (ApiError, KeyError, TypeError, msgspec.DecodeError):
            continue
        errors: list[FieldError] = []
        grouping = read(text, "grouping", errors)
        if not errors:
            return grouping
    return None
