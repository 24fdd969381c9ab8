"""kube-apiserver's flags, as far as Kohort has a use for them; the rest is accepted, and said."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kohort.api.releases import NEWEST, release
from kohort.server.auth.serviceaccounts import ISSUER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kohort.api.releases import Gate

# With what it means here, for --help.
USED: Final[Mapping[str, str]] = {
    "anonymous-auth": "Whether requests without credentials are those of system:anonymous (true).",
    "api-audiences": "Of tokens of service accounts; the issuer if none is given.",
    "authorization-mode": "RBAC unless it is AlwaysAllow.",
    "bind-address": "Where to listen (127.0.0.1).",
    "cert-dir": "Where apiserver.crt and apiserver.key are, or are made.",
    "client-ca-file": "Who signs client certificates (common name: user, organisations: groups).",
    "disable-admission-plugins": "ServiceAccount can be left out.",
    "event-ttl": "How long events are kept (1h0m0s).",
    "max-mutating-requests-inflight": "Requests under way that write (200).",
    "max-requests-inflight": "Requests under way that read (400).",
    "min-request-timeout": "Seconds of a watch that names no end, at least (1800).",
    "request-timeout": "Time for an answer, watches aside (1m0s).",
    "feature-gates": "Those that Kohort knows are switched.",
    "secure-port": "The port (6443).",
    "service-account-issuer": "Who tokens of service accounts are from.",
    "service-account-signing-key-file": "What signs them: an elliptic curve key on P-256.",
    "service-cluster-ip-range": "Addresses of Services (10.0.0.0/24).",
    "tls-cert-file": "The certificate to listen with.",
    "tls-private-key-file": "Its key.",
    "token-auth-file": "Tokens of users, as CSV.",
    "v": "Accepted.",
}
# Given by every test, and true here whatever they say: nothing to tell.
_SILENT: Final = frozenset(
    {
        "advertise-address",
        "allow-privileged",
        "enable-admission-plugins",
        "etcd-servers",
        "runtime-config",
        "service-account-key-file",
        "v",
        "vmodule",
    }
)
_BOOLEAN: Final = frozenset({"allow-privileged", "anonymous-auth", "profiling", "enable-aggregator-routing"})
_TRUE: Final = frozenset({"1", "t", "true"})


class FlagError(ValueError):
    """The text names the flag, what was found and what is accepted."""


@dataclass(slots=True)
class Flags:
    """Values by name, in the order in which they were given."""

    values: dict[str, list[str]] = field(default_factory=dict)

    def last(self, name: str, default: str = "") -> str:
        return self.values.get(name, [default])[-1]

    def path(self, name: str) -> Path | None:
        found = self.last(name)
        return Path(found).absolute() if found else None

    def listed(self, name: str) -> list[str]:
        """A,B and repetitions are the same."""
        return [part for text in self.values.get(name, ()) for one in text.split(",") if (part := one.strip())]

    def boolean(self, name: str, default: bool) -> bool:
        text = self.last(name, str(default)).lower()
        if text not in _TRUE | {"0", "f", "false"}:
            raise FlagError(f'--{name}: the value is "{text}"; accepted are true and false')
        return text in _TRUE

    def number(self, name: str, default: int) -> int:
        text = self.last(name, str(default))
        if not text.isdecimal():
            raise FlagError(f'--{name}: the value is "{text}"; expected a number')
        return int(text)


def parse(arguments: Sequence[str]) -> Flags:
    """`--name=value`, `--name value`, `--name`; anything else is refused."""
    flags, rest = Flags(), list(arguments)
    while rest:
        one = rest.pop(0)
        if not one.startswith("-") or not one.strip("-"):
            raise FlagError(f'"{one}": expected a flag such as --secure-port=6443')
        name, equals, value = one.lstrip("-").partition("=")
        if not equals:
            alone = name in _BOOLEAN or not rest or rest[0].startswith("-")
            value = "true" if alone else rest.pop(0)
        flags.values.setdefault(name.replace("_", "-"), []).append(value)
    return flags


def unused(flags: Flags) -> list[str]:
    """A note for each flag that changes nothing here."""
    others = sorted(set(flags.values) - set(USED) - _SILENT)
    return [f"--{name}={','.join(flags.values[name])}: accepted, and without effect here" for name in others]


def gates(flags: Flags, minor: str = NEWEST) -> tuple[dict[str, bool], list[str]]:
    """Those of --feature-gates that Kohort knows, and a note for each other.

    The gates of the Workload API are on here unless they are switched off; whatever needs one that is off goes with it.
    """
    known, wanted, notes = release(minor).gates, {}, []
    for part in flags.listed("feature-gates"):
        name, _, value = part.partition("=")
        if value.lower() not in {"true", "false"}:
            raise FlagError(f'--feature-gates: {name} is "{value}"; accepted are true and false')
        if name in set(known):
            wanted[name] = value.lower() == "true"
        else:
            notes.append(f"--feature-gates={part}: not a gate that changes anything here")
    return {**dict.fromkeys(_without(known, wanted), False), **wanted}, notes


def _without(known: Mapping[Gate, Iterable[Gate]], wanted: Mapping[str, bool]) -> list[str]:
    """Gates that nobody named and that cannot be on."""
    off = {name for name, value in wanted.items() if not value}
    while more := {gate for gate, needs in known.items() if gate not in off | set(wanted) and off & set(needs)}:
        off |= more
    return sorted(off - set(wanted))


def not_served(flags: Flags, served: Iterable[str]) -> list[str]:
    """A note for each version of an API that --runtime-config asks for and that is not among those served."""
    there, notes = set(served), []
    for part in flags.listed("runtime-config"):
        name, _, value = part.partition("=")
        version = name.removeprefix("api/") if name.startswith("api/") else name
        if value.lower() != "false" and version not in there | {"all", "ga", "beta", "alpha", "legacy"}:
            notes.append(f"--runtime-config={part}: this version is not served here")
    return notes


def seconds(flags: Flags, name: str, default: float) -> float:
    text = flags.last(name)
    if not text:
        return default
    from kohort.apimachinery.duration import nanoseconds

    try:
        return nanoseconds(text) / 1e9
    except ValueError:
        raise FlagError(f'--{name}: the value is "{text}"; expected a duration such as 1h0m0s') from None


def issuer(flags: Flags) -> str:
    return flags.values.get("service-account-issuer", [ISSUER])[0]
