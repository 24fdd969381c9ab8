"""Which names a definition gets, and its conditions NamesAccepted and Established."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kohort.api.kind import Object
from kohort.server.crd.definition import condition, spec_of

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_ACCEPTED: Final = ("True", "NoConflicts", "no conflicts found")
_ESTABLISHED: Final = ("True", "InitialNamesAccepted", "the initial names have been accepted")
_REFUSED: Final = ("False", "NotAccepted", "not all names are accepted")


def names_status(crd: Object, others: Iterable[Object], now: str) -> Object:
    """The status of a definition beside others of its group, some of whose names may be taken."""
    spec, status = spec_of(crd), dict(crd.get("status") or {})
    wanted, accepted = dict(spec.get("names") or {}), dict(status.get("acceptedNames") or {})
    resources, kinds = _taken(others)
    wrong = ("", "")
    for name, used in (("plural", resources), ("singular", resources), ("kind", kinds), ("listKind", kinds)):
        text = wanted.get(name) or ""
        if text != accepted.get(name) and text in used:
            wrong = (f"{name[0].upper()}{name[1:]}Conflict", f'"{text}" is already in use')
        else:
            accepted[name] = text
    clash = [name for name in wanted.get("shortNames") or () if name in resources]
    if clash:
        told = ", ".join(f'"{name}" is already in use' for name in clash)
        wrong = ("ShortNamesConflict", told if len(clash) == 1 else f"[{told}]")
    else:
        _put(accepted, "shortNames", wanted.get("shortNames"))
    _put(accepted, "categories", wanted.get("categories"))
    status["acceptedNames"] = {name: value for name, value in accepted.items() if value or name in {"plural", "kind"}}
    fine = wrong == ("", "")
    status["conditions"] = list(status.get("conditions") or [])
    _set_condition(status, "NamesAccepted", _ACCEPTED if fine else ("False", *wrong), now)
    before = condition({"status": status}, "Established") or {}
    if before.get("status") != "True":
        _set_condition(status, "Established", _ESTABLISHED if fine else _REFUSED, now)
    return status


def terminating(crd: Object, condition_values: tuple[str, str, str], now: str) -> Object:
    status = {**(crd.get("status") or {})}
    status["conditions"] = list(status.get("conditions") or [])
    _set_condition(status, "Terminating", condition_values, now)
    return status


def _taken(others: Iterable[Object]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())}
        kinds |= {names.get("kind") or "", names.get("listKind") or ""}
    return resources - {""}, kinds - {""}


def _put(block: dict[str, Any], name: str, value: Any) -> None:
    if value:
        block[name] = value
    else:
        block.pop(name, None)


def _set_condition(status: Object, condition_type: str, condition_values: tuple[str, str, str], now: str) -> None:
    condition_status, reason, message = condition_values
    made = {
        "type": condition_type,
        "status": condition_status,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    conditions: list[dict[str, Any]] = status["conditions"]
    for place, one in enumerate(conditions):
        if one.get("type") == condition_type:
            if one.get("status") == condition_status:
                made["lastTransitionTime"] = one.get("lastTransitionTime") or now
            conditions[place] = made
            return
    conditions.append(made)
