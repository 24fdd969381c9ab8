"""`kohort snapshot`: a cluster in a file, for `plan --state` and `explain --state`, or for whoever helps."""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort import __version__
from kohort.cli.common import UsageError, friendly, say
from kohort.cli.targets import connected
from kohort.kube.errors import ApiError
from kohort.plan.anonymise import anonymised
from kohort.plan.capture import capture
from kohort.run.examination import LABEL, examine
from kohort.run.findings import diagnose

if TYPE_CHECKING:
    from kohort.kube.client import Client

Json = dict[str, Any]
_LOG_LINES: Final = 2000


@friendly
def run(output: str, kubeconfig: str, context: str, *, support: bool, anonymise: bool) -> int:
    if support and anonymise:
        raise UsageError(
            "--anonymise: a support bundle has logs, which have names in them; take a plain snapshot instead"
        )
    if support and output == "-":
        raise UsageError("--support: is an archive; name a file with -o FILE.tar.gz")

    async def look(client: Client) -> tuple[Json, list[str], dict[str, bytes]]:
        snapshot, unread = await capture(client)
        return snapshot, unread, await _support(client) if support else {}

    snapshot, unread, more = connected(kubeconfig, context, "kohort-snapshot", look)
    for one in unread:
        say("warning", f"not in it: {one}")
    body = msgspec.json.encode(anonymised(snapshot) if anonymise else snapshot)
    _write(output, _archive({"snapshot.json": body, **more}) if support else body)
    if output != "-":
        counts = ", ".join(
            f"{len(found)} {name}" for name, found in snapshot["objects"].items() if name in {"nodes", "pods"}
        )
        say("note", f"{output}: {counts}; ask it with kohort plan --state {output} -f FILE" if not support else output)
    return 0


def _write(output: str, body: bytes) -> None:
    if output == "-":
        sys.stdout.buffer.write(body + b"\n")
        return
    try:
        Path(output).write_bytes(gzip.compress(body, mtime=0) if output.endswith((".json.gz",)) else body)
    except OSError as error:
        raise UsageError(f"-o {output}: cannot be written: {error.strerror}") from None


# ---- what whoever helps wants to see


async def _support(client: Client) -> dict[str, bytes]:
    """Findings, versions, and Kohort's own objects and logs. Secrets are not read at all."""
    facts = await examine(client)
    files = {
        "doctor.json": msgspec.json.encode([asdict(one) for one in diagnose(facts)]),
        "versions.json": msgspec.json.encode({"kohort": __version__, "kubernetes": await client.version()}),
        "gates.json": msgspec.json.encode(facts.survey.gates),
        "deployments.json": msgspec.json.encode(_cleaned(facts.deployments or [])),
        "leases.json": msgspec.json.encode(facts.leases or []),
    }
    for kind, labels in (("Pod", LABEL), ("ConfigMap", LABEL), ("Event", "")):
        try:
            found = (await client.kind("v1", kind).list(facts.namespace, labels=labels)).items
        except ApiError as error:
            files[f"{kind.lower()}s.txt"] = str(error).encode()
            continue
        files[f"{kind.lower()}s.json"] = msgspec.json.encode(_cleaned(found))
        if kind == "Pod":
            for pod in found:
                files |= await _log(client, pod)
    return files


def _cleaned(value: Any) -> Any:
    """Values of environment variables and last-applied configurations can hold anything."""
    if isinstance(value, list):
        return [_cleaned(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {k: _cleaned(v) for k, v in value.items() if k not in {"env", "envFrom", "annotations", "managedFields"}}


async def _log(client: Client, pod: Json) -> dict[str, bytes]:
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log?tailLines={_LOG_LINES}"
    try:
        return {f"logs/{meta['name']}.log": await client.calls.call("GET", path, accept="*/*")}
    except ApiError as error:
        return {f"logs/{meta['name']}.txt": str(error).encode()}


def _archive(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, body in files.items():
            entry = tarfile.TarInfo(f"kohort-support/{name}")
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return made.getvalue()
