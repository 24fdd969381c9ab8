"""What may be chosen about `kohort run`: from a file, from the command line, or both (the command line wins).

The file has the form of the configuration files of Kubernetes' own components. `kohort up` and `kohort translate` read
the same one, and take from it what they have a use for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kohort.api.errors import FieldError, invalid, required
from kohort.gang.settings import DEFAULTS, SettingsByKind, SettingsError, assign_settings, read_settings
from kohort.grouping.settings import Grouping
from kohort.grouping.settings import read as read_grouping
from kohort.kinds.controllers import groups, selection_mistakes
from kohort.kube.lease import SPREAD
from kohort.scheduler.settings import KOHORT
from kohort.server import limits
from kohort.yamlread import ManifestError, load

_NEEDED: Final = {
    "url": "the address at which pods reach this process, such as https://kohort.kohort-system.svc:10352",
    "certificate": "a PEM file with the certificate of that address",
    "key": "a PEM file with its private key",
    "ca": "a PEM file with the authority by which pods know it",
}
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:\s]+):(\d{1,5})")
API_VERSION: Final = "config.kohort.dev/v1alpha1"
KIND: Final = "KohortConfiguration"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
ALL: Final = "all"
NONE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """One of several processes works; the others wait."""

    enabled: bool = True
    namespace: str = ""  # empty: that of the pod, or kube-system
    name: str = "kohort"
    lease: int = 15  # seconds after which a lease that was not renewed is anybody's
    renew: int = 10  # seconds after which whoever could not renew it stops
    retry: int = 2  # seconds between two tries


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Where pods report to their kind's controllers (`ReportEndpoint`): the address that they use, files for TLS."""

    url: str = ""
    certificate: str = ""
    key: str = ""
    ca: str = ""
    listen: str = "0.0.0.0:10352"


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardOptions:
    """Where the dashboard listens. People show tokens there: beyond this machine only over TLS."""

    listen: str = "127.0.0.1:10353"
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """Of `kohort webhook`. `name`: of its Service, of the Secret with its certificate, and of the configurations that
    API servers read. With files for TLS somebody else makes and renews the certificate.
    """

    listen: str = "127.0.0.1:10354"
    name: str = "kohort-webhook"
    namespace: str = ""  # empty: that of the pod, or kohort-system
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`controllers`: words as kube-controller-manager takes them (`is_enabled`); None: all that nobody else runs."""

    kubeconfig: str = ""
    context: str = ""
    controllers: tuple[str, ...] | None = None
    scheduler: bool = True
    scheduler_names: tuple[str, ...] = (KOHORT,)
    namespaces: tuple[str, ...] = ()  # empty: all
    election: Election = field(default_factory=Election)
    listen: str = "127.0.0.1:10351"
    log_format: str = "text"  # or json: one object for each line
    debug_token_file: str = ""  # who has the token in it is shown /debug/state; empty: nobody
    gates: Mapping[str, bool] = field(default_factory=dict)
    profile: str = ""
    grouping: Grouping = field(default_factory=Grouping)  # of pods that name no group
    reports: Mapping[str, Reports] = field(default_factory=dict)  # by the member of the file
    dashboard: DashboardOptions | None = None  # None: there is none
    webhook: WebhookOptions = field(default_factory=WebhookOptions)  # `kohort webhook` has a use
    settings: SettingsByKind = DEFAULTS
    limits: Mapping[str, float] = field(default_factory=dict)  # members of server.limits.Limits; `kohort up` has a use
    given: frozenset[str] = field(default=frozenset(), compare=False)  # the fields that the file has

    @property
    def address(self) -> tuple[str, int]:
        return host_and_port(self.listen)


def host_and_port(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    return host.strip("[]"), int(port)


class OptionsError(ValueError):
    """All that is wrong."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, errors)))


def read(path: Path) -> Options:
    """A configuration file; OptionsError tells everything that is wrong with it."""
    try:
        text = path.read_text()
    except OSError as error:
        raise OptionsError([invalid("config", str(path), f"cannot be read: {error.strerror}")]) from None
    try:
        document, _ = load(text, 1)
    except ManifestError as error:
        raise OptionsError([invalid("config", str(path), str(error))]) from None
    return parse(document)


def parse(document: Any) -> Options:
    if not isinstance(document, dict):
        raise OptionsError([invalid("config", document, f"accepted is one YAML mapping, a {KIND} of {API_VERSION}")])
    errors = [*_type_meta(document)]
    reported = {one.reports.option for one in groups().values() if one.reports is not None}
    found: dict[str, Any] = {"given": frozenset(map(str, document)) - _TYPE_META.keys()}
    for name, value in document.items():
        if name in _TYPE_META:
            continue
        wrong = len(errors)
        if name in reported:
            given = _reports(value, name, errors)
            if len(errors) == wrong:
                found.setdefault("reports", {})[name] = given
            continue
        reader = _READERS.get(name)
        if reader is None:
            accepted = ", ".join((*_TYPE_META, *_READERS, *reported))
            errors.append(invalid(str(name), value, f"not known; accepted are {accepted}"))
            continue
        member, read_one = reader
        given = read_one(value, name, errors)
        if len(errors) == wrong:
            found[member] = given
    if errors:
        raise OptionsError(errors)
    return Options(**found)


def _type_meta(document: Mapping[str, Any]) -> Iterator[FieldError]:
    for name, accepted in _TYPE_META.items():
        found = document.get(name)
        if found is None:
            yield required(name, f"accepted is {accepted}")
        elif found != accepted:
            yield invalid(name, found, f"accepted is {accepted}")


def merged(base: Options, **given: Any) -> Options:
    """The command line over the file; what was not given there is None. All that is wrong is told at once."""
    errors: list[FieldError] = []
    chosen: dict[str, Any] = {}
    shown = given.pop("dashboard", None)
    if shown is not None:
        known = base.dashboard or DashboardOptions()
        chosen["dashboard"] = replace(known, listen=_listen(shown, "--dashboard", errors)) if shown else known
        _check_tls(chosen["dashboard"], "--dashboard", errors)
    for name, (member, read_one) in _FLAGS.items():
        value = given.pop(member, None)
        if value is not None:
            chosen[member] = read_one(value, f"--{name}", errors)
    try:
        chosen["settings"] = assign_settings(given.pop("assignments", ()), base.settings)
    except SettingsError as error:
        errors += error.errors
    if errors:
        raise OptionsError(errors)
    elect = given.pop("leader_elect", None)
    if elect is not None:
        chosen["election"] = replace(base.election, enabled=elect)
    return replace(base, **chosen, **{name: value for name, value in given.items() if value is not None})


# ---- one value each: (given, path, errors) -> what it means


def _text(value: Any, path: str, errors: list[FieldError]) -> str:
    if isinstance(value, str) and value:
        return value
    errors.append(invalid(path, value, "accepted is a text that is not empty"))
    return ""


def _words(value: Any, path: str, errors: list[FieldError]) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
        errors.append(invalid(path, value, "accepted is a list of names"))
        return ()
    return tuple(dict.fromkeys(value))


def _controllers(value: Any, path: str, errors: list[FieldError]) -> tuple[str, ...] | None:
    names = _words(value, path, errors)
    if names == (ALL,):
        return None
    if names == (NONE,):
        return ()
    errors += [invalid(path, word, wrong) for word, wrong in selection_mistakes(names)]
    return names


def _schedulers(value: Any, path: str, errors: list[FieldError]) -> tuple[str, ...]:
    names = _words(value, path, errors)
    if not names:
        errors.append(required(path, "at least one schedulerName"))
    return names


def _namespaces(value: Any, path: str, errors: list[FieldError]) -> tuple[str, ...]:
    names = _words(value, path, errors)
    bad = [name for name in names if _LABEL.fullmatch(name) is None]
    errors += [invalid(path, name, "not a name of a namespace") for name in bad]
    return names


def _switch(value: Any, path: str, errors: list[FieldError]) -> bool:
    if not isinstance(value, bool):
        errors.append(invalid(path, value, "accepted are true and false"))
    return value is True


def _listen(value: Any, path: str, errors: list[FieldError]) -> str:
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found[2]) > 65535:
        errors.append(invalid(path, value, "accepted is HOST:PORT, for example 127.0.0.1:10351"))
    return str(value)


def _log_format(value: Any, path: str, errors: list[FieldError]) -> str:
    if value not in {"text", "json"}:
        errors.append(invalid(path, value, "accepted are text and json"))
    return str(value)


def _election(value: Any, path: str, errors: list[FieldError]) -> Election:
    times = {f"{name}Seconds": name for name in ("lease", "renew", "retry")}
    readers = {"enabled": _switch, "namespace": _text, "name": _text, **dict.fromkeys(times, _seconds)}
    wrong = len(errors)
    found = _members(value, path, errors, readers)
    if len(errors) > wrong:
        return Election()
    made = Election(**{times.get(name, name): one for name, one in found.items()})
    if not made.retry * SPREAD < made.renew < made.lease:
        accepted = f"accepted is leaseSeconds > renewSeconds > {SPREAD} x retrySeconds"
        errors.append(invalid(f"{path}.leaseSeconds", made.lease, f"{accepted} (found {made.renew}, {made.retry})"))
    return made


def _seconds(value: Any, path: str, errors: list[FieldError]) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 3600:
        return value
    errors.append(invalid(path, value, "accepted are whole seconds from 1 to 3600"))
    return 0


def _reports(value: Any, path: str, errors: list[FieldError]) -> Reports:
    files = ("certificate", "key", "ca")
    found = _members(value, path, errors, {"url": _url, "listen": _listen, **dict.fromkeys(files, _text)})
    if isinstance(value, dict):
        errors += [required(f"{path}.{name}", _NEEDED[name]) for name in _NEEDED if name not in value]
    return Reports(**found)


def _dashboard(value: Any, path: str, errors: list[FieldError]) -> DashboardOptions:
    if value is True:
        return DashboardOptions()
    wrong = len(errors)
    found = _members(value, path, errors, {"listen": _listen, "certificate": _text, "key": _text})
    made = DashboardOptions(**found)
    if len(errors) == wrong:
        _check_tls(made, path, errors)
    return made


def _webhook(value: Any, path: str, errors: list[FieldError]) -> WebhookOptions:
    texts = dict.fromkeys(("name", "namespace", "certificate", "key"), _text)
    made = WebhookOptions(**_members(value, path, errors, {"listen": _listen, **texts}))
    _check_pair(made, path, errors)
    return made


def _check_pair(chosen: DashboardOptions | WebhookOptions, path: str, errors: list[FieldError]) -> None:
    if bool(chosen.certificate) != bool(chosen.key):
        missing = "key" if chosen.certificate else "certificate"
        errors.append(required(f"{path}.{missing}", "certificate and key are PEM files, and go together"))


def _check_tls(chosen: DashboardOptions, path: str, errors: list[FieldError]) -> None:
    _check_pair(chosen, "dashboard", errors)
    if not chosen.certificate and host_and_port(chosen.listen)[0] not in _LOOPBACK:
        accepted = f"accepted without dashboard.certificate and dashboard.key are {', '.join(sorted(_LOOPBACK))}"
        errors.append(invalid(path, chosen.listen, f"people show tokens there; {accepted}"))


def _url(value: Any, path: str, errors: list[FieldError]) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"https://[^/\s]+/?", value):
        errors.append(invalid(path, value, "accepted is https://HOST:PORT, as pods reach it"))
    return str(value).rstrip("/")


def _members(
    value: Any, path: str, errors: list[FieldError], readers: Mapping[str, Callable[[Any, str, list[FieldError]], Any]]
) -> dict[str, Any]:
    if not isinstance(value, dict):
        errors.append(invalid(path, value, f"accepted is a mapping with {', '.join(readers)}"))
        return {}
    found = {}
    for name, one in value.items():
        if name not in readers:
            errors.append(invalid(f"{path}.{name}", one, f"not known; accepted are {', '.join(readers)}"))
        else:
            found[name] = readers[name](one, f"{path}.{name}", errors)
    return found


def _gates(value: Any, path: str, errors: list[FieldError]) -> dict[str, bool]:
    if not isinstance(value, dict):
        errors.append(invalid(path, value, "accepted is a mapping of gates to true or false"))
        return {}
    return {str(name): _switch(one, f"{path}.{name}", errors) for name, one in value.items()}


def _settings(value: Any, path: str, errors: list[FieldError]) -> SettingsByKind:
    try:
        return read_settings(value, path=path)
    except SettingsError as error:
        errors += error.errors
        return DEFAULTS


def _limits(value: Any, path: str, errors: list[FieldError]) -> dict[str, float]:
    known = limits.by_name()
    if not isinstance(value, dict):
        errors.append(invalid(path, value, f"accepted is a mapping with {', '.join(known)}"))
        return {}
    for name, one in value.items():
        accepted = limits.wrong(known[name], one) if name in known else f"not known; accepted are {', '.join(known)}"
        errors += [invalid(f"{path}.{name}", one, accepted)] if accepted else []
    return {known[name].name: one for name, one in value.items() if name in known}


_TYPE_META: Final = {"apiVersion": API_VERSION, "kind": KIND}
_Read = Callable[[Any, str, list[FieldError]], Any]
_READERS: Final[Mapping[str, tuple[str, _Read]]] = {
    "kubeconfig": ("kubeconfig", _text),
    "context": ("context", _text),
    "controllers": ("controllers", _controllers),
    "scheduler": ("scheduler", _switch),
    "schedulerNames": ("scheduler_names", _schedulers),
    "namespaces": ("namespaces", _namespaces),
    "leaderElection": ("election", _election),
    "listen": ("listen", _listen),
    "logFormat": ("log_format", _log_format),
    "debugTokenFile": ("debug_token_file", _text),
    "featureGates": ("gates", _gates),
    "profile": ("profile", _text),
    "grouping": ("grouping", read_grouping),
    "dashboard": ("dashboard", _dashboard),
    "webhook": ("webhook", _webhook),
    "settings": ("settings", _settings),
    "limits": ("limits", _limits),
}
_FLAGS: Final[Mapping[str, tuple[str, _Read]]] = {
    "controllers": ("controllers", _controllers),
    "scheduler-name": ("scheduler_names", _schedulers),
    "namespaces": ("namespaces", _namespaces),
    "listen": ("listen", _listen),
    "log-format": ("log_format", _log_format),
}
