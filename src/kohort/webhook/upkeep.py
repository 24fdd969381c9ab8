"""Keeps the webhook's certificate: in its Secret, in the configurations that API servers read, in the socket.

Every process does the same, whoever leads: there is nothing to lead. With files instead of a Secret (cert-manager, or
an administrator) somebody else makes and renews them, and only the socket is ours to keep.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from kohort.certificates import read_certificates
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, ConfigError, KubeError
from kohort.kube.limits import Backoff
from kohort.run.options import WebhookOptions
from kohort.webhook import rotation

log = logging.getLogger(__name__)
_CONFIGURATIONS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_API: Final = "admissionregistration.k8s.io/v1"
_TRIES: Final = 5  # against another process that writes the same Secret
_ROUND: Final = 60.0  # seconds


def host_names(chosen: WebhookOptions) -> tuple[str, ...]:
    """What an API server asks for; the first is what it uses."""
    base = f"{chosen.name}.{chosen.namespace}"
    return (f"{base}.svc", f"{base}.svc.cluster.local", base, chosen.name)


def new_context() -> ssl.SSLContext:
    """TLS 1.2 or newer. Without a certificate nobody gets through, which is all there is until one has been made."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass
class Upkeep:
    """`expires`: when the certificate in the socket ends; None: there is none yet."""

    client: Client
    chosen: WebhookOptions
    lives: rotation.Lives = field(default_factory=rotation.Lives)
    context: ssl.SSLContext = field(default_factory=new_context)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    expires: datetime | None = None
    rotations: int = 0
    _loaded: tuple[bytes, bytes] | None = None

    async def run(self) -> None:
        """Until it is cancelled."""
        pause = Backoff(first=0.5, most=_ROUND, jitter=self.client.jitter)
        while True:
            wait = _ROUND
            try:
                await self.look()
                pause.reset()
            except (KubeError, ConfigError, OSError, ssl.SSLError) as error:
                log.warning("the webhook's certificate: %s", error)
                wait = pause.next()
            await self.client.clock.sleep(wait)

    async def look(self) -> None:
        """One round: whatever is due, and no more."""
        if self.chosen.certificate:
            paths = (Path(self.chosen.certificate), Path(self.chosen.key))
            certificate, key = await asyncio.to_thread(lambda: tuple(path.read_bytes() for path in paths))
            await self._load(certificate, key)
            return
        keys = await self._secret()
        assert keys.serving is not None
        for kind in _CONFIGURATIONS:
            await self._trusted(kind, keys.bundle)
        await self._load(keys.serving.certificate_pem, keys.serving.key_pem)

    async def _secret(self) -> rotation.Keys:
        """As it should be. Somebody else who was faster is right, too: it is read again."""
        secrets = self.client.kind("v1", "Secret")
        names = host_names(self.chosen)
        for _ in range(_TRIES):
            found = await secrets.get(self.chosen.name, self.chosen.namespace)
            keys = rotation.read(found.get("data"))
            made = rotation.due(keys, names, self.client.clock.now(), self.lives)
            if made is None:
                return keys
            try:
                await secrets.update({**found, "data": rotation.write(made)}, self.chosen.namespace)
            except ApiError as error:
                if not error.conflict:
                    raise
                continue
            log.warning("a new certificate of the webhook was made, good until %s", _end(made))
            return made
        raise ConfigError(f"Secret {self.chosen.namespace}/{self.chosen.name}: others write it all the time")

    async def _trusted(self, kind: str, bundle: bytes) -> None:
        """The authority into every webhook of the configuration, if it is not there. None of ours: nothing to do."""
        resource, wanted = self.client.kind(_API, kind), b64encode(bundle).decode()
        try:
            found = await resource.get(self.chosen.name)
        except ApiError as error:
            if error.not_found:
                return
            raise
        changes: list[dict[str, Any]] = []
        for number, hook in enumerate(found.get("webhooks") or ()):
            path = f"/webhooks/{number}"
            if hook["clientConfig"].get("caBundle") != wanted:
                changes.append({"op": "test", "path": f"{path}/name", "value": hook["name"]})
                changes.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": wanted})
        if changes:
            await resource.patch(self.chosen.name, changes, kind="json")

    async def _load(self, certificate: bytes, key: bytes) -> None:
        """Connections that are there go on with the old one; those that come are shown the new one."""
        if self._loaded == (certificate, key):
            return
        (first, *_) = read_certificates(certificate) or (None,)
        if first is None:
            raise ConfigError(f"{self.chosen.certificate or self.chosen.name}: not a certificate")
        await asyncio.to_thread(_into, self.context, certificate, key)
        self._loaded, self.expires = (certificate, key), first.not_valid_after_utc
        self.rotations += 1
        self.ready.set()


def _end(keys: rotation.Keys) -> str:
    assert keys.serving is not None
    return f"{keys.serving.certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"


def _into(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL reads files: they are there for a moment, and nobody else may read them."""
    with tempfile.TemporaryDirectory(prefix="kohort-") as folder:
        paths: dict[str, Path] = {}
        for name, content in (("crt", certificate), ("key", key)):
            paths[name] = Path(folder) / name
            paths[name].touch(0o600)
            paths[name].write_bytes(content)
        context.load_cert_chain(paths["crt"], paths["key"])
