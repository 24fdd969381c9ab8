"""A node that runs pods of Kohort's own image as processes: the kubelet that a test of the chart needs.

A process sees what its container would: the ConfigMaps of its volumes where they are mounted, the token, authority and
namespace of its ServiceAccount, KUBERNETES_SERVICE_HOST, and no kubeconfig. It runs in a mount namespace of its own;
whatever else is on the machine it sees, too, since there is no image. All share the machine's network, so that the
ports of a pod are moved to free ones. Probes decide whether a pod is ready; a container that ends is started again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from kohort.apimachinery.times import micros
from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.testing.environment.guard import die_with_parent
from kohort.testing.environment.probe import free_ports

Object = dict[str, Any]
LABEL: Final = "kohort.test/host"
ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 0.2
_ACCOUNT: Final = "/run/secrets/kubernetes.io/serviceaccount"  # /var/run is a link to /run
# The root of a pod: all folders of the machine but /etc and /run, of which it gets what is in $1/mounts.
_SANDBOX: Final = """
set -e
new=/mnt
mount --make-rprivate /
mount -t tmpfs tmpfs $new
for entry in /*; do
  name=${entry#/}
  case $name in mnt|etc|run) continue;; esac
  if [ -L "$entry" ]; then cp -P "$entry" $new/
  elif [ -d "$entry" ]; then mkdir "$new/$name"; mount --rbind "$entry" "$new/$name"
  fi
done
mkdir $new/etc $new/run
for file in passwd group ld.so.cache hosts nsswitch.conf; do
  if [ -f /etc/$file ]; then cp /etc/$file $new/etc/; fi
done
folder=$1; shift
(cd "$folder" && find . -mindepth 1 -type d) | while read -r path; do mkdir -p "$new/$path"; done
(cd "$folder" && find . -type f) | while read -r path; do cp "$folder/$path" "$new/$path"; done
exec chroot $new "$@"
"""


def sandbox_problem() -> str:
    """Why pods cannot be run here; empty: they can."""
    if shutil.which("unshare") is None:
        return "unshare (util-linux) is not here"
    done = subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"this machine gives no namespaces: {done.stderr.strip()}"


_UNSHARE: Final = ("unshare", "--user", "--map-root-user", "--mount")


@dataclass
class _Container:
    pod: Object
    folder: Path
    ports: dict[str, int]  # by name, where each was moved to
    address: str
    process: subprocess.Popen[bytes]
    restarts: int = 0
    again: float = 0.0  # not to be started before
    ready: bool | None = None
    ended: asyncio.Task[None] | None = field(default=None)

    @property
    def port(self) -> int:
        return next(iter(self.ports.values()))


class HostNode:
    """`async with HostNode(client, url, ca_file, folder): …`; `processes` are those of pods, by name."""

    def __init__(self, client: Client, url: str, ca_file: Path, folder: Path, name: str = "host") -> None:
        self._client, self._url, self._ca, self._folder, self.name = client, url, ca_file, folder, name
        self._containers: dict[str, _Container] = {}  # uid ->
        self._tasks: list[asyncio.Task[None]] = []
        self._started = 0
        self.logs = folder / "logs"
        self.longest_pause = 30.0  # seconds before a container that ended again and again is started

    @property
    def processes(self) -> dict[str, subprocess.Popen[bytes]]:
        return {one.pod["metadata"]["name"]: one.process for one in self._containers.values()}

    def port(self, pod: str) -> int:
        """Where its first port was moved to."""
        return next(one.port for one in self._containers.values() if one.pod["metadata"]["name"] == pod)

    def behind(self, labels: dict[str, str], port: str) -> list[int]:
        """Where this port of the ready pods with these labels was moved to."""
        return [
            one.ports[port]
            for one in self._containers.values()
            if one.ready and labels.items() <= one.pod["metadata"]["labels"].items()
        ]

    def said(self) -> str:
        """All that containers have written, those that are gone, too."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.logs.glob("*")))

    async def __aenter__(self) -> HostNode:
        self.logs.mkdir(parents=True, exist_ok=True)
        amounts = {"cpu": "8", "memory": "32Gi", "pods": "20", "ephemeral-storage": "10Gi"}
        meta = {"name": self.name, "labels": {LABEL: "true", "kubernetes.io/hostname": self.name}}
        spec = {"taints": [{"key": LABEL, "value": "true", "effect": "NoSchedule"}]}  # for Kohort's own pods alone
        status = {"capacity": amounts, "allocatable": amounts, **self._ready()}
        nodes = self._client.kind("v1", "Node")
        await nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status})
        await nodes.patch(self.name, {"status": status}, subresource="status")
        self._tasks = [asyncio.create_task(self._play())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in self._containers.values():
            one.process.kill()
            one.process.wait()

    def _ready(self) -> Object:
        moment = micros(self._client.clock.now())
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": moment[:19] + "Z"}
        return {"conditions": [ready]}

    async def _play(self) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as web:
            while True:
                with contextlib.suppress(ApiError):
                    await self._look(web)
                await asyncio.sleep(_SECONDS)

    async def _look(self, web: aiohttp.ClientSession) -> None:
        listed = await self._client.kind("v1", "Pod").list(fields=f"spec.nodeName={self.name}")
        seen = {pod["metadata"]["uid"]: pod for pod in listed.items}
        for uid in set(self._containers) - set(seen):  # deleted without grace
            one = self._containers.pop(uid)
            one.process.kill()
            one.process.wait()
        for uid, pod in seen.items():
            if uid not in self._containers:
                if "deletionTimestamp" not in pod["metadata"]:
                    self._containers[uid] = await self._start(pod)
                else:
                    await self._remove(pod)
            elif "deletionTimestamp" in pod["metadata"]:
                await self._end(self._containers[uid], pod)
            else:
                await self._watch(self._containers[uid], web)

    async def _start(self, pod: Object) -> _Container:
        meta = pod["metadata"]
        folder = self._folder / meta["uid"]
        (container,) = pod["spec"]["containers"]
        numbers = {one["name"]: one["containerPort"] for one in container["ports"]}
        moved = dict(zip(numbers, free_ports(len(numbers)), strict=True))
        mounts = folder / "mounts"
        volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
        for mount in container["volumeMounts"]:
            target = mounts / mount["mountPath"].lstrip("/")
            name = (volumes[mount["name"]].get("configMap") or {}).get("name")
            if name:
                target.mkdir(parents=True)
                found = await self._client.kind("v1", "ConfigMap").get(name, meta["namespace"])
                for file, text in (found.get("data") or {}).items():
                    written = text.replace("0.0.0.0:", "127.0.0.1:")
                    for port, number in numbers.items():
                        written = written.replace(f":{number}", f":{moved[port]}")
                    (target / file).write_text(written)
        await self._account(pod, mounts / _ACCOUNT.lstrip("/"))
        process = self._launch(container, mounts, self.logs / f"{meta['name']}.log")
        self._started += 1
        address = f"10.99.{self._started // 250}.{self._started % 250 + 1}"  # for what people read; nothing is there
        made = _Container(pod, folder, moved, address, process)
        await self._say(made, ready=False)
        return made

    async def _account(self, pod: Object, folder: Path) -> None:
        space, name = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
        path = f"/api/v1/namespaces/{space}/serviceaccounts/{name}/token"
        wish = msgspec.json.encode({"spec": {"expirationSeconds": 3600}})
        token = msgspec.json.decode(await self._client.calls.call("POST", path, body=wish))["status"]["token"]
        folder.mkdir(parents=True)
        (folder / "token").write_text(token)
        (folder / "namespace").write_text(space)
        (folder / "ca.crt").write_bytes(self._ca.read_bytes())

    def _launch(self, container: Object, mounts: Path, log: Path) -> subprocess.Popen[bytes]:
        host, port = self._url.removeprefix("https://").split(":")
        environment = {
            "HOME": "/nonexistent",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            **{one["name"]: one["value"] for one in container.get("env") or ()},
        }
        command = container.get("command") or [sys.executable, "-m", "kohort.cli.main"]
        argv = [*_UNSHARE, "sh", "-c", _SANDBOX, "sh", str(mounts), *command, *container["args"]]
        with log.open("ab") as output:
            return subprocess.Popen(
                argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, loaded beforehand
            )

    async def _watch(self, one: _Container, web: aiohttp.ClientSession) -> None:
        (container,) = one.pod["spec"]["containers"]
        now = asyncio.get_running_loop().time()
        if one.process.poll() is not None and now > one.again:
            one.restarts += 1
            one.again = now + min(2.0**one.restarts, self.longest_pause)
            one.process = self._launch(
                container, one.folder / "mounts", self.logs / f"{one.pod['metadata']['name']}.log"
            )
        ready = False
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            path = container["readinessProbe"]["httpGet"]["path"]
            async with web.get(f"http://127.0.0.1:{one.port}{path}") as answer:
                ready = answer.status == 200
        if ready != one.ready:
            await self._say(one, ready=ready)

    async def _say(self, one: _Container, *, ready: bool) -> None:
        (container,) = one.pod["spec"]["containers"]
        moment = micros(self._client.clock.now())[:19] + "Z"
        word = "True" if ready else "False"
        conditions = [
            {"type": kind, "status": word, "lastTransitionTime": moment} for kind in ("Ready", "ContainersReady")
        ]
        status = {
            "phase": "Running",
            "podIP": one.address,
            "podIPs": [{"ip": one.address}],
            "startTime": moment,
            "conditions": conditions,
            "containerStatuses": [
                {
                    "name": container["name"], "image": container["image"], "imageID": "", "ready": ready,
                    "started": True, "restartCount": one.restarts, "state": {"running": {"startedAt": moment}},
                }
            ],
        }  # fmt: skip
        meta = one.pod["metadata"]
        await self._client.kind("v1", "Pod").patch(
            meta["name"], {"status": status}, meta["namespace"], subresource="status"
        )
        one.ready = ready

    async def _end(self, one: _Container, pod: Object) -> None:
        if one.ended is None:
            one.process.terminate()
            grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            one.ended = asyncio.create_task(_ended(one.process, grace))
        if one.ended.done():
            await self._remove(pod)

    async def _remove(self, pod: Object) -> None:
        with contextlib.suppress(ApiError):
            await self._client.kind("v1", "Pod").delete(pod["metadata"]["name"], pod["metadata"]["namespace"], grace=0)


async def _ended(process: subprocess.Popen[bytes], grace: float) -> None:
    end = asyncio.get_running_loop().time() + grace
    while process.poll() is None:
        if asyncio.get_running_loop().time() > end:
            process.kill()
        await asyncio.sleep(0.05)
