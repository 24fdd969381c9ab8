"""Versions of a custom resource that a webhook carries over into each other (ConversionReview).

Objects are kept in one version of their definition, the stored one. Whoever asks for another gets what the webhook
makes of it; what they write is carried over before it is kept. A webhook may change labels and annotations, and nothing
else of the metadata.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.server import status, storage_codec
from kohort.server.admission.webhooks.matching import Hook
from kohort.server.admission.webhooks.review import InvalidReviewError
from kohort.server.codec import encode
from kohort.server.store import Item

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kohort.api.kind import Object
    from kohort.server.admission.webhooks.caller import CallWebhook
    from kohort.server.resources import Resource

_REVIEW: Final = "apiextensions.k8s.io/v1"
_SECONDS: Final = 30  # that a webhook has, as upstream
_AT_ONCE: Final = 500  # objects of one question
_REMEMBERED: Final = 8192
_FREE: Final = ("labels", "annotations")
_Key = tuple[str, str, str, tuple[str, str], int]


class WebhookConverter:
    """Remembers what it was told: an object of one resourceVersion is the same for all readers."""

    def __init__(self, call: CallWebhook) -> None:
        self.call = call
        self._known: OrderedDict[_Key, bytes] = OrderedDict()

    async def load(self, resource: Resource, item: Item) -> Object:
        """A stored object in the version of `resource`."""
        return storage_codec.load(resource, (await self.items(resource, [item]))[0])

    async def items(self, resource: Resource, items: Sequence[Item]) -> list[Item]:
        """Items as they would be if this version was the stored one."""
        hub = resource.storage
        keys = [self._key(resource, item) for item in items]
        missing = [item for item, key in zip(items, keys, strict=True) if key not in self._known]
        made: dict[_Key, bytes] = {}
        for first in range(0, len(missing), _AT_ONCE):
            some = missing[first : first + _AT_ONCE]
            found = await self._convert([storage_codec.load(hub, item) for item in some], hub, resource)
            made |= {self._key(resource, item): encode(_body(one)) for item, one in zip(some, found, strict=True)}
        values = [made.get(key) or self._known[key] for key in keys]
        for key, value in made.items():
            self._known[key] = value
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return [
            Item(item.namespace, item.name, item.revision, value) for item, value in zip(items, values, strict=True)
        ]

    async def object(self, obj: Object, source: Resource, target: Resource) -> Object:
        """An object of one version in another, of the same definition."""
        return (await self._convert([obj], source, target))[0]

    def _key(self, resource: Resource, item: Item) -> _Key:
        assert resource.conversion is not None
        return resource.table, resource.version, resource.conversion.mark, item.key, item.revision

    async def _convert(self, objects: Sequence[Object], source: Resource, target: Resource) -> list[Object]:
        conversion = target.conversion or source.conversion
        assert conversion is not None
        hook = Hook(target.full_name, "", {**conversion.webhook, "timeoutSeconds": _SECONDS})
        uid = str(uuid.uuid4())
        request = {"uid": uid, "desiredAPIVersion": target.api_version, "objects": list(objects)}
        try:
            body = await self.call(hook, {"kind": "ConversionReview", "apiVersion": _REVIEW, "request": request})
            return _read(body, uid, objects, target)
        except InvalidReviewError as error:
            kind = f"{source.api_version}, Kind={source.kind}"
            raise status.internal(f"conversion webhook for {kind} failed: {error.cause}") from None


def _read(body: bytes, uid: str, objects: Sequence[Object], target: Resource) -> list[Object]:
    try:
        answer: Any = msgspec.json.decode(body)
        response = answer["response"]
        result, converted = response.get("result") or {}, response.get("convertedObjects") or []
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, AttributeError):
        raise InvalidReviewError("the answer is not a ConversionReview with a response") from None
    if response.get("uid") != uid:
        raise InvalidReviewError(f"expected response.uid {uid!r}, got {response.get('uid')!r}")
    if result.get("status") != "Success":
        raise InvalidReviewError(str(result.get("message") or f"response.result.status was {result.get('status')!r}"))
    if len(converted) != len(objects):
        raise InvalidReviewError(f"returned {len(converted)} objects, expected {len(objects)}")
    return [_checked(one, before, target) for one, before in zip(converted, objects, strict=True)]


def _checked(found: Any, before: Object, target: Resource) -> Object:
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        raise InvalidReviewError("returned something that is not an object")
    kind = (found.get("apiVersion"), found.get("kind"))
    if kind != (target.api_version, target.kind):
        wanted = f"{target.api_version}, Kind={target.kind}"
        raise InvalidReviewError(f"returned {kind[0]}, Kind={kind[1]}, expected {wanted}")
    given, old = found["metadata"], before.get("metadata") or {}
    for name in ("name", "namespace", "uid"):
        if (given.get(name) or "") != (old.get(name) or ""):
            changed = f"{given.get(name)!r} instead of {old.get(name)!r}"
            raise InvalidReviewError(f"returned another metadata.{name}: {changed}")
    kept = {name: value for name, value in old.items() if name not in _FREE}
    return {**found, "metadata": kept | {name: given[name] for name in _FREE if given.get(name)}}


def _body(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
