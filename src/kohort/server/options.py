"""The options of a request: read from the query (or, for deletions, the body), refused as upstream refuses them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from kohort.api.errors import FieldError, invalid, not_supported, required, too_long
from kohort.api.errors import forbidden as forbidden_field
from kohort.server import status

if TYPE_CHECKING:
    from collections.abc import Mapping

FieldValidation = Literal["Strict", "Warn", "Ignore"]

_META: Final = "meta.k8s.io"
_MANAGER: Final = 128
_MODES: Final = ("", "Ignore", "Strict", "Warn")
_PROPAGATION: Final = ("Foreground", "Background", "Orphan", "nil")
APPLY: Final = "application/apply-patch+yaml"


def one(query: Mapping[str, list[str]], name: str) -> str:
    found = query.get(name)
    return found[0] if found else ""


def flag(query: Mapping[str, list[str]], name: str) -> bool:
    """As a server reads a boolean: anything but a plain no."""
    return name in query and one(query, name).lower() not in {"false", "0"}


def whole(query: Mapping[str, list[str]], name: str) -> int | None:
    text = one(query, name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax ({name})') from None


def singled_out(query: Mapping[str, list[str]]) -> str:
    """The one name that a list or watch is about, by its field selector: rules about names apply to it as well."""
    for part in one(query, "fieldSelector").split(","):
        name, equals, value = part.partition("=")
        if equals and name.strip() == "metadata.name":
            return value.removeprefix("=").strip()
    return ""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Of create, update and patch."""

    dry_run: bool = False
    manager: str = ""
    validation: FieldValidation = "Warn"
    force: bool | None = None


def write_options(query: Mapping[str, list[str]], kind: str, agent: str, content_type: str = "") -> WriteOptions:
    """`kind`: CreateOptions, UpdateOptions or PatchOptions; `agent`: the User-Agent, the manager of who names none."""
    if not query and content_type != APPLY:
        return WriteOptions(manager=_default_manager(agent))
    if len(query) == 1 and content_type != APPLY and (manager := one(query, "fieldManager")):
        return _managed(manager, kind)  # what all clients of this process send
    manager, mode = one(query, "fieldManager"), one(query, "fieldValidation")
    found = [*_dry_run(query.get("dryRun")), *_manager(manager)]
    if mode not in _MODES:
        found.append(not_supported("fieldValidation", mode, _MODES))
    force = flag(query, "force") if "force" in query else None
    if kind == "PatchOptions":
        if content_type == APPLY and not manager:
            found.append(required("fieldManager", "is required for apply patch"))
        if content_type != APPLY and force is not None:
            found.append(forbidden_field("force", "may not be specified for non-apply patch"))
    _refuse(kind, found)
    return WriteOptions(
        bool(query.get("dryRun")),
        manager or _default_manager(agent),
        cast("FieldValidation", mode or "Warn"),
        force,
    )


@lru_cache(maxsize=256)
def _managed(manager: str, kind: str) -> WriteOptions:
    _refuse(kind, _manager(manager))
    return WriteOptions(manager=manager)


def _default_manager(agent: str) -> str:
    return agent.partition("/")[0][:_MANAGER] or "unknown"


def _dry_run(values: list[str] | None) -> list[FieldError]:
    wrong = [value for value in values or [] if value != "All"]
    return [not_supported("dryRun", values, ("All",))] if wrong else []


def _manager(manager: str) -> list[FieldError]:
    if len(manager) > _MANAGER:
        return [too_long("fieldManager", _MANAGER)]
    if not manager.isprintable():
        return [invalid("fieldManager", manager, "should only contain printable characters")]
    return []


def _refuse(kind: str, found: list[FieldError]) -> None:
    if found:
        raise status.invalid(_META, kind, "", found)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    dry_run: bool = False
    grace: int | None = None
    propagation: str = ""
    uid: str | None = None
    version: str | None = None


def delete_options(query: Mapping[str, list[str]], body: Any) -> DeleteOptions:
    """A body counts before the query."""
    given: dict[str, Any] = body if isinstance(body, dict) else {}
    if not given and not query:
        return DeleteOptions()
    dry_run = given.get("dryRun", query.get("dryRun"))
    grace = given.get("gracePeriodSeconds")
    if grace is None and not given:
        grace = whole(query, "gracePeriodSeconds")
    propagation = given.get("propagationPolicy")
    orphan = given.get("orphanDependents")
    if not given:
        propagation = one(query, "propagationPolicy") or None
        orphan = flag(query, "orphanDependents") if "orphanDependents" in query else None
    _check_types(dry_run, grace)
    found = _dry_run(dry_run)
    if propagation not in (None, "Foreground", "Background", "Orphan"):
        found.append(not_supported("propagationPolicy", propagation, _PROPAGATION))
    if propagation is not None and orphan is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        found.append(invalid("propagationPolicy", propagation, text))
    _refuse("DeleteOptions", found)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    conditions = given.get("preconditions")
    conditions = conditions if isinstance(conditions, dict) else {}
    return DeleteOptions(
        bool(dry_run), grace, propagation or "", conditions.get("uid"), conditions.get("resourceVersion")
    )


def _check_types(dry_run: Any, grace: Any) -> None:
    if dry_run is not None and not isinstance(dry_run, list):
        raise status.bad_request("DeleteOptions: dryRun: expected a list of strings")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise status.bad_request("DeleteOptions: gracePeriodSeconds: expected an integer")
