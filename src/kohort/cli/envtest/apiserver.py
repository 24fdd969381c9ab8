"""`kube-apiserver` for tests: Kohort's API server in memory, started by the flags that controller-runtime's envtest
passes.

As in envtest nothing runs beside it: no garbage collector, no controllers of namespaces, quotas or service accounts,
no kubelet. What the API server itself does (admission, webhooks, custom resources, conversion) is all there.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kohort.cli.common import write
from kohort.cli.envtest import flags as flagged
from kohort.cli.envtest.flags import FlagError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.cli.envtest.flags import Flags
    from kohort.server.auth.credentials import CredentialFiles
    from kohort.server.limits import Limits
    from kohort.server.settings import Settings

NAME: Final = "kube-apiserver"
_USAGE: Final = "The Kohort API server, in the place of kube-apiserver, for tests. Objects are kept in memory.\n"
_HOUR: Final = 3600.0
# As long as etcd may take for a write. Pods under envtest have no node and so no grace period: operators that act when
# a pod is marked (LeaderWorkerSet's restart policies) have this time to see it.
_MARKED: Final = 0.01
_SERVICES: Final = "10.0.0.0/24"


def help_text() -> str:
    """In the form in which envtest looks for flags: one at the start of each line."""
    lines = [f"  --{name:<36} {says}" for name, says in flagged.USED.items()]
    return "\n".join([_USAGE, f"Usage:\n  {NAME} [flags]\n", "Flags:", *lines, "", "Other flags are accepted.", ""])


def main(minor: str, arguments: Sequence[str]) -> int:
    """Until SIGTERM. `minor`: the Kubernetes that is served."""
    gc.disable()  # nothing that is loaded goes away again
    if {"--help", "-h"} & set(arguments):
        write(help_text())
        return 0
    if "--version" in arguments:
        from kohort.api import definitions
        from kohort.server.discovery import version_info

        write(f"Kubernetes {version_info(definitions.version(minor))['gitVersion']}")
        return 0
    try:
        given = flagged.parse(arguments)
        chosen, notes = settings(given, minor)
        chosen.context()
    except (FlagError, OSError) as error:
        return _refused(str(error))
    except ValueError as error:  # gates that need others
        return _refused(f"--feature-gates: {error}")
    _say(*flagged.unused(given), *notes)
    return _run(chosen, given)


def _refused(text: str) -> int:
    sys.stderr.write(f"Error: {NAME}: {text}\n")
    return 1


def _say(*notes: str) -> None:
    sys.stderr.write("".join(f"{NAME}: {note}\n" for note in notes))


def _run(chosen: Settings, given: Flags) -> int:
    import uvloop

    from kohort.cli import serving

    try:
        uvloop.run(_serve(chosen, given))
    except serving.StartError as error:
        return _refused(f"{chosen.host}:{chosen.port}: {error}")
    return 0


async def _serve(chosen: Settings, given: Flags) -> None:
    from kohort.cli import lean, serving

    lean.serving()
    async with serving.started(chosen) as (server, stopped):
        served = {f"{one.group}/{one.version}".lstrip("/") for one in server.api.resources.every()}
        _say(*flagged.not_served(given, served))
        await serving.until(stopped, server, f"{NAME}: Kubernetes {chosen.minor} API of Kohort at {server.url}\n")


def settings(flags: Flags, minor: str) -> tuple[Settings, list[str]]:
    """What the server is started with, and notes about gates that change nothing."""
    from kohort.server.settings import PORT, Settings

    gates, notes = flagged.gates(flags, minor)
    host = flags.last("bind-address", "127.0.0.1")
    folder = flags.path("cert-dir") or Path("/var/run/kubernetes")
    chosen = Settings(
        data=folder,
        minor=minor,
        gates=gates,
        host=host,
        port=flags.number("secure-port", PORT),
        in_memory=True,
        custom_kinds=False,
        event_ttl=flagged.seconds(flags, "event-ttl", _HOUR),
        marked_seconds=_MARKED,
        limits=_limits(flags),
        credentials=_credentials(flags, folder, host),
        controllers=False,
        service_accounts="ServiceAccount" not in flags.listed("disable-admission-plugins"),
        anonymous=flags.boolean("anonymous-auth", True),
        authorize="AlwaysAllow" not in flags.listed("authorization-mode"),
        service_range=flags.last("service-cluster-ip-range", _SERVICES).partition(",")[0],
    )
    return chosen, notes


def _limits(flags: Flags) -> Limits:
    from kohort.server.limits import DEFAULT

    return replace(
        DEFAULT,
        workers=0,  # a test's own client: another process would take longer to start
        max_requests_inflight=flags.number("max-requests-inflight", DEFAULT.max_requests_inflight),
        max_mutating_requests_inflight=flags.number(
            "max-mutating-requests-inflight", DEFAULT.max_mutating_requests_inflight
        ),
        request_seconds=flagged.seconds(flags, "request-timeout", DEFAULT.request_seconds),
        min_request_timeout=flags.number("min-request-timeout", int(DEFAULT.min_request_timeout)),
    )


def _credentials(flags: Flags, folder: Path, host: str) -> CredentialFiles:
    from kohort.server.auth.credentials import CredentialFiles

    certificate, key = flags.path("tls-cert-file"), flags.path("tls-private-key-file")
    if certificate is None or key is None:
        certificate, key = folder / "apiserver.crt", folder / "apiserver.key"
        if not certificate.exists() or not key.exists():
            _make(folder, host)
    return CredentialFiles(
        certificate,
        key,
        flags.path("client-ca-file"),
        flags.path("token-auth-file"),
        flags.path("service-account-signing-key-file"),
        flagged.issuer(flags),
        tuple(flags.listed("api-audiences")),
    )


def _make(folder: Path, host: str) -> None:
    """A certificate for who brings none: the file has its authority as well, so that clients can trust the file."""
    from kohort.server.auth import private, tls

    made = tls.ensure(folder / "kohort", names=[host])
    private.write(folder / "apiserver.key", made.server.key_pem)
    private.write(folder / "apiserver.crt", made.server.certificate_pem + made.ca_pem)
