"""What a server serves: asked once, kept, and asked again when something is looked for that was not there."""

from __future__ import annotations

import asyncio
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.kube.errors import ApiError, KubeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kohort.kube.calls import Calls

_FORM: Final = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_AGGREGATED: Final = ",".join((_FORM.format("v2"), _FORM.format("v2beta1"), "application/json"))


class NotServedError(KubeError):
    """The server has no such resource."""


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A resource in one version: the plural in a URL, and the kind in an object."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"
        parts = [root, "namespaces", namespace, self.plural] if namespace and self.namespaced else [root, self.plural]
        return "/".join([*parts, *(part for part in (name, subresource) if part)])

    def answers_to(self, name: str) -> bool:
        return name in {self.plural, self.singular, self.kind, self.kind.lower(), *self.short_names}


class Discovery:
    """The resources of one server, in the server's order of preference."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._types: tuple[ResourceType, ...] | None = None
        self._asking: asyncio.Task[tuple[ResourceType, ...]] | None = None
        self.unavailable: tuple[str, ...] = ()

    async def all(self) -> tuple[ResourceType, ...]:
        return self._types if self._types is not None else await self.refresh()

    async def refresh(self) -> tuple[ResourceType, ...]:
        """Ask the server; whoever asks meanwhile gets the same answer."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(
                lambda task: task.cancelled() or task.exception()
            )  # nobody may wait any more
        # One who gives up must not take the answer from the others.
        return await asyncio.shield(self._asking)

    async def find(self, name: str) -> ResourceType:
        """`pods`, `po`, `jobs.batch`, `workloads.v1beta1.scheduling.k8s.io`: as kubectl would understand it."""
        return await self._first(lambda types: _matching(types, name), name)

    async def kind(self, api_version: str, kind: str) -> ResourceType:
        def match(types: Iterable[ResourceType]) -> ResourceType | None:
            return next((one for one in types if one.api_version == api_version and one.kind == kind), None)

        return await self._first(match, f"{kind} of {api_version}")

    async def versions(self, group: str, kind: str) -> tuple[str, ...]:
        """The versions in which `kind` is served, the preferred one first; empty if it is not served."""

        def match(types: Iterable[ResourceType]) -> tuple[str, ...]:
            return tuple(one.version for one in types if one.group == group and one.kind == kind)

        return match(await self.all()) or match(await self.refresh())

    async def _first(self, match: Any, what: str) -> ResourceType:
        fresh = self._types is None
        found = match(await self.all())
        if found is None and not fresh:
            found = match(await self.refresh())
        if found is None:
            raise NotServedError(f"{what}: the server does not have it{self._near(what)}")
        return found  # type: ignore[no-any-return]

    def _near(self, what: str) -> str:
        types = self._types or ()
        head = what.split(" ", maxsplit=1)[0].split(".", maxsplit=1)[0]
        near = difflib.get_close_matches(head.lower(), sorted({one.plural for one in types}), n=3)
        said = f"; it has {', '.join(near)}" if near else ""
        return said + (f"; no answer about {', '.join(self.unavailable)}" if self.unavailable else "")

    async def _ask(self) -> tuple[ResourceType, ...]:
        core, groups = await asyncio.gather(self._document("/api"), self._document("/apis"))
        types: list[ResourceType] = []
        unavailable: list[str] = []
        for document in (core, groups):
            if document.get("kind") == "APIGroupDiscoveryList":
                types += _read_aggregated(document)
            else:
                await self._read_plain(document, types, unavailable)
        self.unavailable = tuple(unavailable)
        self._types = tuple(types)
        return self._types

    async def _document(self, path: str, accept: str = _AGGREGATED) -> dict[str, Any]:
        found = msgspec.json.decode(await self._calls.call("GET", path, accept=accept))
        return found if isinstance(found, dict) else {}

    async def _read_plain(self, document: dict[str, Any], types: list[ResourceType], unavailable: list[str]) -> None:
        """The older form: a request for each group and version. One that fails (its own server is away) is left out."""
        if document.get("kind") == "APIVersions":
            places = [("", version) for version in document.get("versions") or ()]
        else:
            places = [
                (group["name"], one["version"]) for group in document.get("groups") or () for one in _ordered(group)
            ]
        paths = [f"/apis/{group}/{version}" if group else f"/api/{version}" for group, version in places]
        answers = await asyncio.gather(
            *(self._document(path, "application/json") for path in paths), return_exceptions=True
        )
        for (group, version), answer in zip(places, answers, strict=True):
            if isinstance(answer, ApiError):
                unavailable.append(f"{group}/{version}" if group else version)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                types += _read_list(group, version, answer.get("resources") or ())


def _matching(types: Iterable[ResourceType], name: str) -> ResourceType | None:
    head, _, rest = name.partition(".")
    for one in types:
        if one.answers_to(head) and rest in {"", one.group, one.version, f"{one.version}.{one.group}"}:
            return one
    return None


def _ordered(group: dict[str, Any]) -> list[dict[str, Any]]:
    preferred = (group.get("preferredVersion") or {}).get("version")
    return sorted(group.get("versions") or (), key=lambda one: one["version"] != preferred)


def _read_aggregated(document: dict[str, Any]) -> Iterable[ResourceType]:
    for group in document.get("items") or ():
        for version in group.get("versions") or ():
            for one in version.get("resources") or ():
                # A resource that only has subresources has no kind of its own.
                kind = (one.get("responseKind") or {}).get("kind")
                if not kind:
                    continue
                yield ResourceType(
                    group=(group.get("metadata") or {}).get("name") or "",
                    version=version["version"],
                    plural=one["resource"],
                    kind=kind,
                    namespaced=one.get("scope") == "Namespaced",
                    singular=one.get("singularResource") or "",
                    short_names=tuple(one.get("shortNames") or ()),
                    categories=tuple(one.get("categories") or ()),
                    verbs=frozenset(one.get("verbs") or ()),
                    subresources=frozenset(sub["subresource"] for sub in one.get("subresources") or ()),
                )


def _read_list(group: str, version: str, resources: Iterable[dict[str, Any]]) -> Iterable[ResourceType]:
    resources = list(resources)
    for one in resources:
        plural = one["name"]
        if "/" in plural:
            continue
        subresources = [sub["name"].partition("/")[2] for sub in resources if sub["name"].startswith(f"{plural}/")]
        yield ResourceType(
            group=group,
            version=version,
            plural=plural,
            kind=one["kind"],
            namespaced=bool(one.get("namespaced")),
            singular=one.get("singularName") or "",
            short_names=tuple(one.get("shortNames") or ()),
            categories=tuple(one.get("categories") or ()),
            verbs=frozenset(one.get("verbs") or ()),
            subresources=frozenset(subresources),
        )
