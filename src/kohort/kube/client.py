"""The client: one server, one user, any resource.

    async with Client.connect() as client:
        pods = client.resource("pods")
        for pod in (await pods.list("default", labels="app=web")).items:
            print(pod["metadata"]["name"])

Nothing that uses it can tell whether the server is real, ours over HTTPS, or ours in the same process.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

from kohort.kube.calls import Calls
from kohort.kube.clock import REAL
from kohort.kube.config import Config, load
from kohort.kube.discovery import Discovery, ResourceType
from kohort.kube.http import Http
from kohort.kube.resource import Resource
from kohort.kube.transport import ADMIN, InProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from kohort.kube.clock import Clock
    from kohort.kube.codec import Object
    from kohort.kube.transport import Api, Transport
    from kohort.kube.wire import User

T = TypeVar("T")


class Client:
    """Close it, or use it in an `async with` block."""

    def __init__(
        self,
        transport: Transport,
        *,
        namespace: str = "default",
        manager: str = "kohort",
        timeout: float = 60.0,
        warn: Callable[[str], object] | None = None,
        clock: Clock = REAL,
        jitter: random.Random | None = None,
    ) -> None:
        """`jitter`: of the pauses that those make who work with this client; with a seed, a run can be repeated."""
        self.namespace = namespace
        self.manager = manager
        self.clock = clock
        self.jitter = jitter or random.Random()
        self.calls = Calls(transport, timeout=timeout, warn=warn)
        self.discovery = Discovery(self.calls)

    @classmethod
    def connect(
        cls,
        config: Config | str | Path | None = None,
        *,
        context: str | None = None,
        manager: str = "kohort",
        connections: int = 64,
        timeout: float = 60.0,
        warn: Callable[[str], object] | None = None,
    ) -> Client:
        """To the server of a Config, of a kubeconfig file, or of the environment. Nothing is sent yet."""
        chosen = config if isinstance(config, Config) else load(config, context=context)
        transport = Http(chosen, connections=connections, agent=manager)
        return cls(transport, namespace=chosen.namespace, manager=manager, timeout=timeout, warn=warn)

    @classmethod
    def within(
        cls,
        api: Api,
        user: User | None = ADMIN,
        *,
        namespace: str = "default",
        manager: str = "kohort",
        timeout: float = 60.0,
        warn: Callable[[str], object] | None = None,
        clock: Clock = REAL,
    ) -> Client:
        """To an API of this process."""
        transport = InProcess(api, user, clock)
        return cls(transport, namespace=namespace, manager=manager, timeout=timeout, warn=warn, clock=clock)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.calls.transport.close()

    @overload
    def resource(self, name: str | ResourceType) -> Resource[Object]: ...

    @overload
    def resource(self, name: str | ResourceType, decode: type[T]) -> Resource[T]: ...

    def resource(self, name: str | ResourceType, decode: Any = dict[str, Any]) -> Resource[Any]:
        """`pods`, `jobs.batch`, `workloads.v1beta1.scheduling.k8s.io`, or a ResourceType that is known already."""

        async def resolve() -> ResourceType:
            return name if isinstance(name, ResourceType) else await self.discovery.find(name)

        return self._resource(name if isinstance(name, str) else name.plural, resolve, decode)

    @overload
    def kind(self, api_version: str, kind: str) -> Resource[Object]: ...

    @overload
    def kind(self, api_version: str, kind: str, decode: type[T]) -> Resource[T]: ...

    def kind(self, api_version: str, kind: str, decode: Any = dict[str, Any]) -> Resource[Any]:
        """By what stands in an object: `client.kind("batch/v1", "Job")`."""

        async def resolve() -> ResourceType:
            return await self.discovery.kind(api_version, kind)

        return self._resource(f"{kind} of {api_version}", resolve, decode)

    def of(self, body: Object) -> Resource[Object]:
        """The resource that an object belongs to."""
        return self.kind(body["apiVersion"], body["kind"])

    async def version(self) -> Object:
        """Of the server: `gitVersion`, `major`, `minor`."""
        return msgspec.json.decode(await self.calls.call("GET", "/version"), type=dict[str, Any])

    def _resource(self, name: str, resolve: Any, decode: Any) -> Resource[Any]:
        return Resource(self.calls, name, resolve, decode, namespace=self.namespace, manager=self.manager)
