"""Keys that a training needs and nobody else may know: SSH between the nodes of MPI, CURVE between Flux brokers.

They are generated once and random: upstream derives Flux's key from the job's uid, which everybody may read.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kohort.api.kind import Object
from kohort.kinds.trainer.compile import flux, mpi

_Z85: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
Files = Mapping[str, bytes]


def ssh_key() -> Files:
    """ECDSA on P-521, as PEM and as a line of authorized_keys."""
    key = ec.generate_private_key(ec.SECP521R1())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return {
        "ssh-privatekey": key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
        "ssh-publickey": public + b"\n",
    }


def curve_key() -> Files:
    """A ZeroMQ CURVE certificate."""
    key = x25519.X25519PrivateKey.generate()
    secret = z85(key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()))
    public = z85(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    text = f'metadata\n    name = "kohort"\ncurve\n    public-key = "{public}"\n    secret-key = "{secret}"\n'
    return {"curve.cert": text.encode()}


def z85(data: bytes) -> str:
    """ZeroMQ's base 85: five characters for four bytes."""
    digits = []
    for start in range(0, len(data), 4):
        value = int.from_bytes(data[start : start + 4], "big")
        digits += [_Z85[value // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(digits)


@dataclass(frozen=True, slots=True)
class Keys:
    """Who generates them: a test may say what comes out."""

    ssh: Callable[[], Files] = ssh_key
    curve: Callable[[], Files] = curve_key


def names(policy: Mapping[str, Any], job: str) -> list[str]:
    """The Secrets of a job, by its ML policy."""
    found = {"mpi": mpi.secret_name(job), "flux": flux.secret_name(job)}
    return [name for member, name in found.items() if policy.get(member) is not None]


def secret(name: str, job: Object, meta: Object, keys: Keys) -> Object:
    """With fresh keys. Those of MPI never change: pods that are up already would not know the new ones."""
    made: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
    if name == mpi.secret_name(job["metadata"]["name"]):
        return {**made, "type": "kubernetes.io/ssh-auth", "immutable": True, "data": _encoded(keys.ssh())}
    return {**made, "type": "Opaque", "data": _encoded(keys.curve())}


def _encoded(files: Files) -> dict[str, str]:
    return {name: b64encode(content).decode() for name, content in files.items()}
