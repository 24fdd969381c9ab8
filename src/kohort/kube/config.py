"""Which server, and as whom: from kubeconfig files as kubectl reads them, or from inside a pod."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kohort.kube.clock import REAL
from kohort.kube.credentials import Credential, Credentials, Fixed, TokenFile, basic, bearer
from kohort.kube.errors import ConfigError
from kohort.kube.exec_plugin import ExecCredentials, Plugin
from kohort.kube.fields import Problems, Section
from kohort.kube.proxies import HttpProxy, from_environment
from kohort.kube.proxies import read as read_proxy
from kohort.yamlread import ManifestError
from kohort.yamlread import load as load_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kohort.kube.clock import Clock

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LISTS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}


@dataclass(frozen=True)
class Config:
    """All that is needed to talk to one server as one user."""

    server: str
    credentials: Credentials = field(default_factory=Fixed)
    namespace: str = "default"
    ca: bytes | None = None
    insecure: bool = False
    tls_server_name: str = ""
    compress: bool = True
    context: str = ""
    proxy: HttpProxy | None = None


def load(
    path: str | Path | None = None,
    *,
    context: str | None = None,
    environment: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
    clock: Clock = REAL,
) -> Config:
    """The file `path`; else the files of KUBECONFIG; else ~/.kube/config; else the pod we run in."""
    env = os.environ if environment is None else environment
    if path is not None:
        return _proxied(from_files([Path(path)], context=context, must_exist=True, clock=clock), env)
    listed, candidates = _candidates(env)
    if any(one.exists() for one in candidates):
        return _proxied(from_files(candidates, context=context, clock=clock), env)
    if env.get("KUBERNETES_SERVICE_HOST"):
        return _proxied(in_cluster(environment=env, service_account=service_account, clock=clock), env)
    tried = ", ".join(str(one) for one in candidates)
    raise ConfigError(
        f"no cluster is configured: looked for {tried}"
        f"{' (from KUBECONFIG)' if listed else ''} and for KUBERNETES_SERVICE_HOST (inside a pod); "
        "set KUBECONFIG, name a kubeconfig file, or start a cluster of your own: kohort up"
    )


def _proxied(config: Config, env: Mapping[str, str]) -> Config:
    """What the file says comes before what the environment says."""
    return config if config.proxy is not None else replace(config, proxy=from_environment(config.server, env))


def _candidates(env: Mapping[str, str]) -> tuple[bool, list[Path]]:
    """Files that are looked for; whether KUBECONFIG names them."""
    listed = [Path(one).expanduser() for one in env.get("KUBECONFIG", "").split(os.pathsep) if one]
    return bool(listed), listed or [Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"]


def context_names(path: str | Path | None = None) -> list[str]:
    """Of the files that `load` reads."""
    problems = Problems()
    merged, _ = _merged([Path(path)] if path is not None else _candidates(os.environ)[1], problems, must_exist=False)
    problems.check()
    return sorted(merged["contexts"])


def from_files(
    paths: Sequence[Path], *, context: str | None = None, must_exist: bool = False, clock: Clock = REAL
) -> Config:
    """Several files merged as kubectl does: of each name, and of current-context, the first one counts."""
    problems = Problems()
    merged, current = _merged(paths, problems, must_exist=must_exist)
    problems.check()
    name = context or current
    files = ", ".join(str(path) for path in paths)
    if not name:
        _fail(f"{files}: current-context", "empty", merged["contexts"])
    if name not in merged["contexts"]:
        _fail(f"{files}: {'context' if context else 'current-context'}", f"found {name!r}", merged["contexts"])
    config = _context(name, merged, problems, clock)
    problems.check()
    assert config is not None
    return config


def _merged(
    paths: Sequence[Path], problems: Problems, *, must_exist: bool
) -> tuple[dict[str, dict[str, Section]], str]:
    """Clusters, users and contexts by name; the current context."""
    merged: dict[str, dict[str, Section]] = {kind: {} for kind in _LISTS}
    current = ""
    for path in paths:
        if not must_exist and not path.exists():
            continue  # kubectl, too, passes over files of KUBECONFIG that are not there
        root = _read(path, problems)
        current = current or root.text("current-context")
        for kind, inner in _LISTS.items():
            for entry in root.sections(kind):
                found = entry.section(inner) or Section(entry.file, f"{entry.path}.{inner}", {}, problems)
                merged[kind].setdefault(entry.text("name"), found)
    return merged, current


def in_cluster(
    *,
    environment: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
    clock: Clock = REAL,
) -> Config:
    """Of the pod we run in; its token is read again as the kubelet replaces it."""
    env = os.environ if environment is None else environment
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    problems = Problems()
    if not host:
        problems.add("KUBERNETES_SERVICE_HOST", "not set; Kubernetes sets it inside a pod")
    token, authority, space = (service_account / name for name in ("token", "ca.crt", "namespace"))
    if not token.is_file():
        problems.add(str(token), "missing; a pod has it unless automountServiceAccountToken is false")
    try:
        ca: bytes | None = authority.read_bytes()
    except OSError:
        ca = None  # then the system's authorities decide, as for any HTTPS server
    problems.check()
    address = f"[{host}]" if ":" in host else host
    return Config(
        server=f"https://{address}:{port}",
        credentials=TokenFile(token, clock=clock),
        namespace=space.read_text().strip() if space.is_file() else "default",
        ca=ca,
        context="in-cluster",
    )


def _read(path: Path, problems: Problems) -> Section:
    try:
        value, _ = load_yaml(path.read_text(), 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot read: {error.strerror}; accepted is a kubeconfig file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text; accepted is a kubeconfig file") from None
    except ManifestError as error:
        raise ConfigError(f"{path}: {error}") from None
    if value is None:
        value = {}
    if not isinstance(value, dict) or value.get("kind", "Config") != "Config":
        found = value.get("kind") if isinstance(value, dict) else type(value).__name__
        raise ConfigError(f"{path}: kind: found {found!r}, accepted is Config")
    return Section(path, "", value, problems)


def _fail(place: str, found: str, contexts: Mapping[str, Section]) -> None:
    raise ConfigError(f"{place}: {found}, accepted are {', '.join(sorted(contexts)) or '(the files have no contexts)'}")


def _context(name: str, merged: Mapping[str, Mapping[str, Section]], problems: Problems, clock: Clock) -> Config | None:
    chosen = merged["contexts"][name]
    cluster = _named(chosen, "cluster", merged["clusters"])
    user = _named(chosen, "user", merged["users"]) if chosen.text("user") else None
    if cluster is None or problems.found:
        return None
    server = cluster.text("server").rstrip("/")
    parts = urlsplit(server)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        cluster.wrong("server", f"found {cluster.text('server')!r}, accepted is a URL such as https://10.0.0.1:6443")
    insecure = cluster.flag("insecure-skip-tls-verify")
    ca = cluster.bytes_of("certificate-authority")
    if insecure and ca:
        cluster.wrong("insecure-skip-tls-verify", "true, but a certificate-authority is given; accepted is one of them")
    if ca is not None and b"-----BEGIN" not in ca:
        cluster.wrong("certificate-authority", "no certificate in it, accepted is PEM text")
    return Config(
        server=server,
        credentials=_credentials(user, cluster.value, clock) if user is not None else Fixed(),
        namespace=chosen.text("namespace") or "default",
        ca=ca,
        insecure=insecure,
        tls_server_name=cluster.text("tls-server-name"),
        compress=not cluster.flag("disable-compression"),
        context=name,
        proxy=_proxy(cluster),
    )


def _proxy(cluster: Section) -> HttpProxy | None:
    url = cluster.text("proxy-url")
    try:
        return read_proxy(url) if url else None
    except ValueError as error:
        cluster.wrong("proxy-url", str(error))
        return None


def _named(context: Section, field_name: str, known: Mapping[str, Section]) -> Section | None:
    name = context.text(field_name)
    if name not in known:
        context.wrong(field_name, f"found {name!r}, accepted are {', '.join(sorted(known)) or '(there are none)'}")
    return known.get(name)


def _credentials(user: Section, cluster: dict[str, Any], clock: Clock) -> Credentials:
    """Of several ways to say who we are, kubectl's order counts: a program, a token, a password; a certificate too."""
    if user.section("auth-provider") is not None:
        user.wrong("auth-provider", "no longer part of Kubernetes; accepted are exec, token, tokenFile, certificates")
    certificate, key = user.bytes_of("client-certificate"), user.bytes_of("client-key")
    if (certificate is None) != (key is None) and not user.problems.found:
        missing = "client-key" if key is None else "client-certificate"
        user.wrong(missing, "missing; a certificate and its key go together")
    headers = _impersonation(user)
    plugin = user.section("exec")
    token, token_file = user.text("token"), user.file_path("tokenFile")
    if token and token_file is None and plugin is None:
        headers |= bearer(token)
    elif user.text("username") and plugin is None and token_file is None:
        headers |= basic(user.text("username"), user.text("password"))
    base = Credential(headers, certificate or b"", key or b"")
    if plugin is not None:
        return ExecCredentials(Plugin.read(plugin, cluster), base, clock)
    if token_file is not None:
        if not token_file.is_file():
            user.wrong("tokenFile", f"found {token_file}, which is not a file; accepted is a file with a bearer token")
        return TokenFile(token_file, base, clock)
    return Fixed(base)


def _impersonation(user: Section) -> dict[str, str]:
    headers = {}
    for field_name, header in (("as", "impersonate-user"), ("as-uid", "impersonate-uid")):
        if value := user.text(field_name):
            headers[header] = value
    for field_name in ("as-groups", "as-user-extra"):
        # Both need one header several times; nobody asked for them yet, and dropping them would widen what is allowed.
        if user.value.get(field_name):
            user.wrong(field_name, "not supported; accepted are as and as-uid")
    return headers
