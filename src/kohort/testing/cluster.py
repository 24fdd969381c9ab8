"""A whole cluster in this process for a test: API server, controllers, scheduler, virtual nodes; no port, no disk.

On a `VirtualLoop` (kohort.testing.virtual) all of it lives in virtual time. The `Cluster` that a test is given says
nothing of what is behind it: the same test body can be run on a cluster that is somewhere else.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from kohort.api.kind import Object
from kohort.embedded import whole
from kohort.gang.settings import SettingsSource, settings_of
from kohort.kube.client import Client
from kohort.kube.clock import LoopClock
from kohort.kube.errors import ApiError
from kohort.kube.transport import ADMIN
from kohort.kube.wire import User
from kohort.place.profile import Profile
from kohort.server import timestamps
from kohort.server.auth.attributes import AuthorizerAttributes
from kohort.server.auth.rbac import Authorizer
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import Pool, plain

_T = TypeVar("_T")
_START: Final = 120.0  # seconds until everything runs
_STEP: Final = 0.1  # seconds between two looks
_WORKLOADS: Final = "scheduling.k8s.io"


class Cluster:
    """What a test sees of a cluster: a client, a namespace of its own, and time to wait in."""

    def __init__(self, client: Client, namespace: str, *, patience: float = 120.0) -> None:
        self.client = client
        self.namespace = namespace
        self.patience = patience
        self.denied: list[str] = []  # what controllers and scheduler were not allowed to do
        self.used: set[tuple[str, str, str]] = set()  # what they were: verb, group, resource

    # ---- time

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until(self, look: Callable[[], Awaitable[_T | None]], seconds: float | None = None, what: str = "") -> _T:
        """The first true answer of `look`; AssertionError with its last answer if there is none in time."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        end = began + (self.patience if seconds is None else seconds)
        while not (found := await look()):
            assert loop.time() < end, f"{what or 'it'} did not happen; the last look gave {found!r}"
            await asyncio.sleep(max(_STEP, (loop.time() - began) / 100))
        return found

    async def never(self, look: Callable[[], Awaitable[Any]], seconds: float) -> None:
        """`look` stays false for so long."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            found = await look()
            assert not found, f"this should not have happened: {found!r}"
            await asyncio.sleep(_STEP)

    # ---- objects

    async def create(self, *objects: Object) -> Object:
        """In the namespace of the test unless they say another; the last one is returned."""
        made: Object = {}
        for obj in objects:
            space = obj["metadata"].get("namespace", self.namespace)
            made = await self.client.of(obj).create(obj, space)
        return made

    async def get(self, api_version: str, kind: str, name: str) -> Object | None:
        try:
            return await self.client.kind(api_version, kind).get(name, self.namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def every(self, api_version: str, kind: str, labels: str = "") -> list[Object]:
        """All of a kind in the namespace, by name; none where the kind is not served."""
        if not await self.serves(api_version, kind):
            return []
        found = await self.client.kind(api_version, kind).list(self.namespace, labels=labels)
        return sorted(found.items, key=lambda obj: str(obj["metadata"]["name"]))

    async def serves(self, api_version: str, kind: str) -> bool:
        group, _, version = api_version.rpartition("/")
        return version in await self.client.discovery.versions(group, kind)

    async def patch(self, api_version: str, kind: str, name: str, body: Object, subresource: str = "") -> Object:
        """A merge patch."""
        resource = self.client.kind(api_version, kind)
        return await resource.patch(name, body, self.namespace, subresource=subresource)

    async def delete(self, api_version: str, kind: str, name: str, **options: Any) -> None:
        await self.client.kind(api_version, kind).delete(name, self.namespace, **options)

    # ---- groups, in the version that the cluster serves

    async def workloads(self) -> list[Object]:
        return await self._groups("Workload")

    async def pod_groups(self) -> list[Object]:
        return await self._groups("PodGroup")

    async def composites(self) -> list[Object]:
        return await self._groups("CompositePodGroup")

    async def _groups(self, kind: str) -> list[Object]:
        versions = await self.client.discovery.versions(_WORKLOADS, kind)
        return await self.every(f"{_WORKLOADS}/{versions[0]}", kind) if versions else []

    # ---- what tests ask most

    async def pods(self, labels: str = "") -> list[Object]:
        return await self.every("v1", "Pod", labels)

    async def events(self, reason: str = "") -> list[Object]:
        return [one for one in await self.every("v1", "Event") if not reason or one.get("reason") == reason]

    async def condition(self, api_version: str, kind: str, name: str, type_: str) -> Object | None:
        """The condition of an object if it is True."""
        found = condition(await self.get(api_version, kind, name), type_)
        return found if found and found["status"] == "True" else None

    async def running(self, count: int, labels: str = "") -> list[Object]:
        """Waits until exactly so many pods run."""

        async def look() -> list[Object]:
            found = [pod for pod in await self.pods(labels) if pod.get("status", {}).get("phase") == "Running"]
            return found if len(found) == count else []

        return await self.until(look, what=f"{count} Running pods") if count else []

    async def gone(self, api_version: str, kind: str) -> None:
        """Waits until no object of a kind is left in the namespace."""

        async def look() -> bool:
            return not await self.every(api_version, kind)

        await self.until(look, what=f"the last {kind} going")


def condition(obj: Mapping[str, Any] | None, type_: str) -> Object | None:
    found = (obj or {}).get("status", {}).get("conditions") or ()
    return next((one for one in found if one["type"] == type_), None)


@asynccontextmanager
async def cluster(
    minor: str = "1.37",
    *,
    pools: Sequence[Pool] = plain(8),
    gates: Mapping[str, bool] | None = None,
    controllers: Iterable[str] | None = None,
    namespace: str = "lab",
    rbac: Sequence[Path] = (),
    settings: SettingsSource | None = None,
    profile: Profile | None = None,
) -> AsyncIterator[Cluster]:
    """In memory, in this process. Its time is that of the event loop.

    `settings`: of workload kinds, as in a configuration file: {"jobset": {"gangRendering": "Composite"}}. `rbac`:
    manifests of roles; controllers and scheduler then work as the ServiceAccount kohort-system/kohort. `profile`: of
    the scheduler.
    """
    loop = asyncio.get_running_loop()
    clock = LoopClock(datetime(2026, 11, 1, tzinfo=UTC) if loop.time() < 1e6 else datetime.now(UTC))
    token = timestamps.NOW.set(clock.now)
    try:
        with tempfile.TemporaryDirectory() as folder:
            chosen = Settings(Path(folder), minor, gates or {}, port=0, in_memory=True, listen=False)
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(_START):
                    server = await stack.enter_async_context(Server(chosen, clock))
                    account = await _account(server, rbac, clock)
                    denied, used = _watch(server, account)
                    work = whole(server, pools, controllers, account, settings=settings_of(settings), profile=profile)
                    client = await stack.enter_async_context(work)
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                await client.kind("v1", "Namespace").create(body)
                found = Cluster(client, namespace)
                found.denied, found.used = denied, used
                yield found
    finally:
        timestamps.NOW.reset(token)


def _watch(server: Server, account: User) -> tuple[list[str], set[tuple[str, str, str]]]:
    """Write down what the roles do not allow, and what of them this account used."""
    denied: list[str] = []
    used: set[tuple[str, str, str]] = set()
    authorizer = server.api.authorizer
    if not isinstance(authorizer, Authorizer):
        return denied, used
    allows = authorizer.allows

    def watched(user: User, attributes: AuthorizerAttributes) -> tuple[bool, str]:
        allowed, reason = allows(user, attributes)
        # Who makes a role is asked first whether they may give more than they have; a no is nothing bad.
        if not allowed and attributes.verb not in {"escalate", "bind"}:
            denied.append(f"{user.name}: {attributes}")
        if allowed and user.name == account.name:
            used.add((attributes.verb, attributes.group, attributes.full_resource))
        return allowed, reason

    authorizer.allows = watched  # type: ignore[method-assign]
    return denied, used


async def _account(server: Server, rbac: Sequence[Path], clock: LoopClock) -> User:
    if not rbac:
        return ADMIN
    async with Client.within(server.api, clock=clock) as admin:
        for obj in (obj for path in rbac for obj in yaml.safe_load_all(path.read_text())):
            await admin.of(obj).create(obj)
    groups = ("system:serviceaccounts", "system:serviceaccounts:kohort-system", "system:authenticated")
    return User("system:serviceaccount:kohort-system:kohort", groups=groups)
