"""What a webhook's configuration may say, in the order and words of Kubernetes 1.37. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kohort.api import formats
from kohort.api.errors import FieldError, duplicate, invalid, not_supported, required
from kohort.api.meta import check_selector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kohort.api.kind import Object

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_VERSIONS: Final = ("v1", "v1beta1")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_CHOICES: Final = {"failurePolicy": ("Fail", "Ignore"), "matchPolicy": ("Equivalent", "Exact")}
_URL: Final = "desired format: https://host[/path]"


def check(configuration: Object) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for index, hook in enumerate(configuration.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", str(hook.get("name") or "")
        found += _hook(hook, path)
        if name in names:
            found.append(duplicate(f"{path}.name", name))
        names.add(name)
    return found


def _hook(hook: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    name = str(hook.get("name") or "")
    yield from (invalid(f"{path}.name", name, text) for text in formats.problems(formats.subdomain, name))
    if len(name.split(".")) < 3:
        text = "should be a domain with at least three segments separated by dots"
        yield invalid(f"{path}.name", name, text)
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from _rule(rule, f"{path}.rules[{index}]")
    for member, accepted in _CHOICES.items():
        if hook.get(member) is not None and hook[member] not in accepted:
            yield not_supported(f"{path}.{member}", hook[member], accepted)
    yield from _side_effects(hook.get("sideEffects"), f"{path}.sideEffects")
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        yield invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    for member in ("namespaceSelector", "objectSelector"):
        yield from check_selector(hook.get(member), f"{path}.{member}")
    yield from _client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from _versions(hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")
    if hook.get("matchConditions"):
        from kohort.server.registry.policies import match_conditions

        yield from match_conditions(hook["matchConditions"], False, f"{path}.matchConditions")


def _rule(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if not rule.get("operations"):
        yield required(f"{path}.operations")
    for index, operation in enumerate(rule.get("operations") or ()):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for member in ("apiGroups", "apiVersions", "resources"):
        given = rule.get(member) or []
        if not given:
            yield required(f"{path}.{member}")
        elif "*" in given and len(given) > 1 and member != "resources":
            yield invalid(f"{path}.{member}", given, "if '*' is present, must not specify other values")
    if rule.get("scope") not in (None, "*", "Cluster", "Namespaced"):
        yield not_supported(f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))


def _side_effects(given: Any, path: str) -> Iterator[FieldError]:
    if given is None:
        yield required(path, f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    elif given not in _SIDE_EFFECTS:
        yield not_supported(path, given, _SIDE_EFFECTS)


def _client(config: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(str(url), f"{path}.url")
    elif isinstance(service, dict):
        yield from (required(f"{path}.service.{name}") for name in ("name", "namespace") if not service.get(name))
        port = service.get("port")
        if port is not None and not 1 <= port <= 65535:
            yield invalid(f"{path}.service.port", port, "must be between 1 and 65535, inclusive")


def _url(url: str, path: str) -> Iterator[FieldError]:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        yield invalid(path, url, f"url must be a valid URL: {error}; {_URL}")
        return
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme; {_URL}")
    if not host:
        yield invalid(path, "", f"host must be specified; {_URL}")
    if parts.username is not None:
        yield invalid(path, parts.username, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _versions(given: list[str], path: str) -> Iterator[FieldError]:
    if not given:
        yield required(path, f"must specify one of {', '.join(_VERSIONS)}")
    elif not set(given) & set(_VERSIONS):
        yield invalid(path, given, f"must include at least one of {', '.join(_VERSIONS)}")
    elif "v1" not in given:
        yield invalid(path, given, "must include v1: this server asks in no other version")
