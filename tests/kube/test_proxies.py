"""A proxy between us and the server: found as kubectl finds it, and passed through with TLS from end to end."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop
from tests.kube.scenarios import config_map, eventually

from kohort.kube.client import Client
from kohort.kube.config import Config, load
from kohort.kube.errors import ConfigError, TransportError
from kohort.kube.informer import Informer
from kohort.kube.proxies import HttpProxy, from_environment, read
from kohort.server.server import Server
from kohort.server.settings import Settings

FAR = "https://api.example.org:6443"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://proxy:3128", HttpProxy("proxy", 3128)),
        ("http://proxy", HttpProxy("proxy", 80)),
        ("proxy:8080", HttpProxy("proxy", 8080)),
        ("http://[::1]:3128/", HttpProxy("::1", 3128)),
        ("http://a%40b:c%3Ad@proxy:1", HttpProxy("proxy", 1, "Basic " + base64.b64encode(b"a@b:c:d").decode())),
    ],
)
def test_what_is_read(url: str, found: HttpProxy) -> None:
    assert read(url) == found


@pytest.mark.parametrize("url", ["socks5://me:secret@proxy:1080", "https://proxy", "http://", "http://proxy:99999"])
def test_what_is_not_spoken_is_told_without_a_password(url: str) -> None:
    with pytest.raises(
        ValueError, match=r"found '.*', accepted is a URL such as http://proxy\.example\.org:3128"
    ) as told:
        read(url)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("server", "env", "host"),
    [
        (FAR, {}, None),
        (FAR, {"HTTPS_PROXY": "http://p"}, "p"),
        (FAR, {"https_proxy": "http://p"}, "p"),
        (FAR, {"HTTPS_PROXY": "http://p", "https_proxy": "http://q"}, "p"),
        (FAR, {"HTTP_PROXY": "http://p"}, None),
        ("http://api.example.org", {"HTTP_PROXY": "http://p"}, "p"),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://127.0.0.9:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p"}, None),
        (FAR, {"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}, None),
        (FAR, {"HTTPS_PROXY": "http://p", "NO_PROXY": "other.org, example.org"}, None),
        (FAR, {"HTTPS_PROXY": "http://p", "no_proxy": ".EXAMPLE.org"}, None),
        (FAR, {"HTTPS_PROXY": "http://p", "NO_PROXY": "*.example.org"}, None),
        ("https://example.org", {"HTTPS_PROXY": "http://p", "NO_PROXY": ".example.org"}, "p"),
        (FAR, {"HTTPS_PROXY": "http://p", "NO_PROXY": "ample.org"}, "p"),
        (FAR, {"HTTPS_PROXY": "http://p", "NO_PROXY": "api.example.org:6443"}, None),
        (FAR, {"HTTPS_PROXY": "http://p", "NO_PROXY": "api.example.org:443"}, "p"),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p", "NO_PROXY": "10.0.0.0/8"}, None),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p", "NO_PROXY": "10.1.2.4"}, "p"),
        ("https://10.1.2.3:6443", {"HTTPS_PROXY": "http://p", "NO_PROXY": "10.1.2.3:6443"}, None),
        (FAR, {"HTTPS_PROXY": "http://p", "NO_PROXY": "10.0.0.0/8"}, "p"),
        ("https://[fd00::1]:6443", {"HTTPS_PROXY": "http://p", "NO_PROXY": "[fd00::1]:6443"}, None),
    ],
)
def test_the_environment_as_go_programs_read_it(server: str, env: dict[str, str], host: str | None) -> None:
    found = from_environment(server, env)
    assert (found.host if found else None) == host


def test_a_proxy_of_the_environment_that_is_not_spoken_is_told() -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY: found 'socks5://p:1080'"):
        from_environment(FAR, {"HTTPS_PROXY": "socks5://p:1080"})


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "https://api.example.org", proxy-url: "PROXY"}}]
"""


def test_the_file_comes_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG.replace("PROXY", "http://file:1"))
    assert load(file, environment={"HTTPS_PROXY": "http://env:1"}).proxy == HttpProxy("file", 1)
    file.write_text(KUBECONFIG.replace("PROXY", ""))
    assert load(file, environment={"HTTPS_PROXY": "http://env:1"}).proxy == HttpProxy("env", 1)
    file.write_text(KUBECONFIG.replace("PROXY", "socks5://file:1"))
    with pytest.raises(ConfigError, match=r"clusters\[0\].cluster.proxy-url: found 'socks5://file:1', accepted"):
        load(file, environment={})


# ---- through one


class Passing:
    """A proxy that passes on CONNECT for those who have the password, and writes down for whom."""

    def __init__(self, wanted: str = "") -> None:
        self.wanted = wanted
        self.asked: list[str] = []
        self.heads: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            method, target, _ = head.split("\r\n")[0].split(" ")
            if self.wanted and f"proxy-authorization: {self.wanted}" not in head:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 3\r\n\r\nno!")
                writer.close()
                return
            self.asked.append(f"{method} {target}")
            if method != "CONNECT":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                await writer.drain()
                writer.close()
                return
            host, _, port = target.rpartition(":")
            upstream, to_server = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_copy(reader, to_server), _copy(upstream, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def passing(wanted: str = "") -> AsyncIterator[tuple[Passing, int]]:
    made = Passing(wanted)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    try:
        yield made, server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def through(folder: Path) -> None:
    """Requests and a watch, with TLS from end to end."""
    async with (
        Server(Settings(folder, port=0, in_memory=True, custom_kinds=False)) as server,
        passing() as (proxy, port),
    ):
        config = replace(load(server.settings.kubeconfig_path), proxy=HttpProxy("127.0.0.1", port))
        async with Client.connect(config) as client:
            maps = client.resource("configmaps")
            async with Informer(maps, namespace="default") as informer:
                await informer.ready()
                made = await asyncio.gather(*(maps.create(config_map(f"m{number}")) for number in range(20)))
                await eventually(lambda: len(informer.cache) >= len(made))
        assert set(proxy.asked) == {f"CONNECT 127.0.0.1:{server.http.port}"}


async def test_requests_and_watches_go_through_it(tmp_path: Path) -> None:
    await through(tmp_path)


def test_also_on_the_loop_that_commands_use(tmp_path: Path) -> None:
    uvloop.run(through(tmp_path))


async def test_a_server_without_tls_is_asked_for_by_its_whole_address() -> None:
    async with passing() as (proxy, port):
        config = Config("http://api.example.org:8080/prefix", proxy=HttpProxy("127.0.0.1", port, "Basic eA=="))
        async with Client.connect(config) as client:
            assert await client.version() == {}
    assert proxy.asked == ["GET http://api.example.org:8080/prefix/version"]
    assert "\r\nhost: api.example.org:8080\r\n" in proxy.heads[0]
    assert "\r\nproxy-authorization: Basic eA==\r\n" in proxy.heads[0]


async def test_a_refusal_names_the_proxy_and_a_password_opens_it(tmp_path: Path) -> None:
    settings = Settings(tmp_path, port=0, in_memory=True, custom_kinds=False)
    async with Server(settings), passing("Basic bWU6c2VjcmV0") as (proxy, port):
        config = load(settings.kubeconfig_path)
        async with Client.connect(replace(config, proxy=HttpProxy("127.0.0.1", port))) as client:
            with pytest.raises(
                TransportError, match=f"proxy 127.0.0.1:{port}: 407 Proxy Authentication Required for CON"
            ):
                await client.version()
        async with Client.connect(replace(config, proxy=read(f"http://me:secret@127.0.0.1:{port}"))) as client:
            assert (await client.version())["major"] == "1"
        assert len(proxy.asked) == 1


async def test_a_proxy_that_is_not_there_is_told() -> None:
    async with passing() as (_, port):
        pass
    config = Config("https://api.example.org", proxy=HttpProxy("127.0.0.1", port))
    async with Client.connect(config) as client:
        with pytest.raises(
            TransportError, match=rf"cannot connect to api\.example\.org:443 through proxy 127\.0\.0\.1:{port}"
        ):
            await client.version()


async def test_a_proxy_that_hangs_up_is_told() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Client.connect(Config("https://api.example.org", proxy=HttpProxy("127.0.0.1", port))) as client:
        with pytest.raises(TransportError, match=rf"proxy 127\.0\.0\.1:{port}: "):
            await client.version()
