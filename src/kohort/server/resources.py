"""What is served: one `Resource` for each plural of each version, from the discovery data of the release.

CRDs come and go while the server runs: `Resources.add` and `remove`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from kohort.api import definitions, registry
from kohort.server import conversion, selectable_fields
from kohort.server.registry import generic, strategy

if TYPE_CHECKING:
    from kohort.api.apply import Structure
    from kohort.api.kind import Context, Kind, Object
    from kohort.server.selectors import Getter

# Groups of the discovery data that a server in one process has no use for.
_LEFT_OUT: Final = {"internal.apiserver.k8s.io"}
_NOT_SERVED: Final = {("", "componentstatuses")}
# Subresources that need a kubelet.
_CONNECT: Final = {"attach", "exec", "portforward", "proxy"}
_DEPRECATED: Final = {
    ("", "v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
}
_SHARED: Final = {("events.k8s.io", "events"): "events"}  # one table for both forms


@dataclass(frozen=True, slots=True)
class Subresource:
    name: str
    kind: str
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ("get", "patch", "update")


def unchanged(obj: Object) -> Object:
    return obj


def _none() -> None:
    return None


@dataclass(frozen=True, slots=True)
class WebhookConversion:
    """How a version that is not the stored one comes about. `mark`: another one for each state of the definition."""

    hub: Resource
    webhook: Mapping[str, Any]
    mark: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Resource:
    """One resource in one version. `table` is shared by all versions; `read` and `write` carry objects to and from it.

    What is stored has neither apiVersion nor kind, so versions with the same schema need no conversion. What takes time
    to make (`make_...`) is made when it is first asked for: a server starts with some hundred resources.
    """

    group: str
    version: str
    plural: str
    kind: str
    make_rules: Callable[[], Kind]
    deprecation: str = ""  # a warning with every answer
    gate: str | None = None  # the feature gate without which it is not served
    singular: str = ""
    namespaced: bool = True
    native: bool = True  # items of lists are without apiVersion and kind
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    table: str = ""
    fields: Mapping[str, Getter] = field(default_factory=dict)
    make_definition: Callable[[], str | None] = _none
    make_structure: Callable[[], Structure | None] = _none
    create_on_update: bool = False
    stored: bool = True  # reviews are answered, not kept
    read: Callable[[Object], Object] = unchanged
    write: Callable[[Object], Object] = unchanged
    conversion: WebhookConversion | None = None
    response_group: str = ""
    response_version: str = ""

    @cached_property
    def rules(self) -> Kind:
        return self.make_rules()

    @cached_property
    def definition(self) -> str | None:
        """Its name in the OpenAPI document, for strategic merge patches."""
        return self.make_definition()

    @cached_property
    def structure(self) -> Structure | None:
        """For managedFields; None: that of the OpenAPI document."""
        return self.make_structure()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def converts(self) -> bool:
        return self.read is not unchanged

    @property
    def storage(self) -> Resource:
        """The version in which objects are kept; for what concerns their metadata only."""
        return self.conversion.hub if self.conversion is not None else self

    @property
    def full_name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage_hash(self) -> str:
        """Tells clients when the stored version changes; any stable text will do."""
        digest = hashlib.sha256(f"{self.group}/{self.version}/{self.kind}".encode()).digest()
        return base64.b64encode(digest[:8]).decode()


class Resources:
    """By group, version and plural. `changes` counts: caches of documents compare it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Resource] = {}
        self.changes = 0

    def add(self, resource: Resource) -> None:
        self._found[resource.group, resource.version, resource.plural] = resource
        self._changed()

    def remove(self, group: str, version: str, plural: str) -> None:
        self._found.pop((group, version, plural), None)
        self._changed()

    def _changed(self) -> None:
        for derived in ("_first", "_kinds", "_stored"):
            self.__dict__.pop(derived, None)
        self.changes += 1

    @cached_property
    def _first(self) -> dict[tuple[str, str], Resource]:
        """By group and plural: where the first served version is kept."""
        return {(one.group, one.plural): one.storage for one in reversed(self._found.values())}

    @cached_property
    def _kinds(self) -> dict[tuple[str, str, str], Resource]:
        """By group, kind and version; "" is the first served one."""
        found = {(one.group, one.kind, ""): one for one in reversed(self._found.values())}
        return found | {(one.group, one.kind, one.version): one for one in reversed(self._found.values())}

    @cached_property
    def _stored(self) -> dict[str, Resource]:
        found: dict[str, Resource] = {}
        for one in self._found.values():
            if one.stored:
                found.setdefault(one.table, one.storage)
        return found

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._found.get((group, version, plural))

    def of_kind(self, group: str, kind: str, version: str = "") -> Resource | None:
        """The resource of a kind, in a version or the first served."""
        return self._kinds.get((group, kind, version))

    def of_plural(self, group: str, plural: str) -> Resource | None:
        return self._first.get((group, plural))

    def every(self) -> list[Resource]:
        return list(self._found.values())

    def versions(self) -> dict[str, list[str]]:
        """Groups and their versions, in the order of discovery."""
        found: dict[str, list[str]] = {}
        for group, version, _ in self._found:
            versions = found.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return found

    def stored(self) -> Mapping[str, Resource]:
        """One resource for each table: what a collector or a namespace's end has to walk."""
        return self._stored


def native_resources(ctx: Context) -> Resources:
    """The resources of a release, with the gates that are on."""
    found = Resources()
    documents = definitions.discovery(ctx.release.minor)
    for root in ("/api", "/apis"):
        for group in documents[root]["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                if name in _LEFT_OUT or (name, version["version"]) in _NOT_SERVED:
                    continue
                for entry in version["resources"]:
                    resource = _resource(ctx, name, version["version"], entry)
                    if resource is not None:
                        found.add(resource)
    return found


def _resource(ctx: Context, group: str, version: str, entry: dict[str, Any]) -> Resource | None:
    plural, kind = entry["resource"], entry["responseKind"]["kind"]
    if (group, plural) in _NOT_SERVED:
        return None
    subresources = {
        one["subresource"]: Subresource(
            one["subresource"],
            one["responseKind"]["kind"],
            one["responseKind"]["group"],
            one["responseKind"]["version"],
            tuple(one["verbs"]),
        )
        for one in entry.get("subresources", [])
        if one["subresource"] not in _CONNECT
    }
    namespaced, minor = entry["scope"] == "Namespaced", ctx.release.minor
    known = next((k for k in registry.kinds(group) if (k.version, k.plural) == (version, plural)), None)
    if known is not None and not known.served(ctx):
        return None
    make: Callable[[], Kind] = partial(
        generic, minor, group, version, kind, plural, namespaced, "status" in subresources
    )
    read, write = conversion.of(group, version, kind)
    verbs = tuple(entry["verbs"])
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        make_rules=make if known is None else lambda: known,
        deprecation=_DEPRECATED.get((group, version, kind), ""),
        gate=known.gate if known is not None else None,
        singular=entry.get("singularResource", ""),
        namespaced=namespaced,
        verbs=verbs,
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        subresources=subresources,
        table=_SHARED.get((group, plural), f"{group}/{plural}" if group else plural),
        fields=selectable_fields.of(group, plural, namespaced),
        make_definition=partial(definitions.of_kind, minor, group, version, kind),
        create_on_update=strategy.of(group, kind).create_on_update,
        stored="get" in verbs,
        read=read or unchanged,
        write=write or unchanged,
    )
