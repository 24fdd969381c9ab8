"""A real browser without a window: Chromium, driven through its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium on this machine (apt-get install chromium)"


def found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab. `problems`: errors in the console and uncaught exceptions; `requests`: every URL that was asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            data = json.loads(message.data)
            if "id" in data:
                future = self._answers.pop(data["id"], None)
                if future is not None and not future.done():
                    future.set_result(data)
            else:
                self._event(data.get("method", ""), data.get("params") or {})

    def _event(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(str((details.get("exception") or {}).get("description") or details.get("text")))
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning", "assert"}:
            self.problems.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
            entry = params["entry"]
            self.problems.append(f"{entry['text']} {entry.get('url', '')}")

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._number] = future
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        answer = await asyncio.wait_for(future, 60)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    async def run(self, script: str) -> Any:
        """The value of an expression; of a promise, what it becomes."""
        result = await self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    async def open(self, url: str) -> None:
        await self.send("Page.navigate", url=url)

    async def until(self, script: str, seconds: float = 30.0) -> Any:
        """Waits until an expression is true, and gives its value."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            with contextlib.suppress(AssertionError):  # in the middle of going from page to page
                value = await self.run(script)
                if value:
                    return value
            await asyncio.sleep(0.05)
        text = await self.run("document.body.innerText")
        raise AssertionError(f"not within {seconds} s: {script}\nproblems: {self.problems}\npage: {text[:2000]}")

    async def press(self, selector: str, words: str = "") -> None:
        """Clicks the first that matches, and says the words if there are any, as soon as the page has it."""
        wanted = f"[...document.querySelectorAll({selector!r})].find((one) => one.textContent.includes({words!r}))"
        await self.until(f"(() => {{ const one = {wanted}; one?.click(); return one !== undefined; }})()")

    async def key(self, key: str) -> None:
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            await self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes.get(key, 0), **text
            )

    async def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def size(self, width: int, height: int) -> None:
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def scheme(self, name: str) -> None:
        """light or dark, as the system of the visitor says."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def picture(self, path: Path) -> None:
        await self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        data = (await self.send("Page.captureScreenshot", format="png"))["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._socket.close()


@contextlib.asynccontextmanager
async def browser(width: int = 1360, height: int = 860) -> AsyncIterator[Page]:
    program = found()
    assert program is not None, MISSING
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            program,
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
            *(
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-default-browser-check",
            ),
            *("--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(folder) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tab = next(one for one in await answer.json(content_type=None) if one["type"] == "page")
                socket = await session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0)
                page = Page(socket)
                try:
                    for domain in ("Page", "Runtime", "Network", "Log"):
                        await page.send(f"{domain}.enable")
                    await page.size(width, height)
                    yield page
                finally:
                    await page.close()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def _port(file: Path) -> int:
    for _ in range(600):
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(file.read_text().splitlines()[0])
        await asyncio.sleep(0.05)
    raise AssertionError("Chromium did not start within 30 s")
