"""How Deployments, StatefulSets and DaemonSets replace their pods: what their strategies may say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, forbidden, invalid, not_supported, required
from kohort.apimachinery.intstr import PERCENT, percent

_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_ROLLING: Final = "RollingUpdate"
Spec = dict[str, Any]


def negative(value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def deployment(spec: Spec) -> Iterator[FieldError]:
    strategy = spec.get("strategy") or {}
    kind, rolling, path = strategy.get("type"), strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if kind == "Recreate":
        if rolling is not None:
            yield forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    elif kind == _ROLLING:
        unavailable, surge = _two(rolling)
        yield from _amount(unavailable, f"{path}.maxUnavailable")
        yield from _amount(surge, f"{path}.maxSurge")
        if not _number(unavailable) and not _number(surge):
            yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
        yield from _share(unavailable, f"{path}.maxUnavailable")
    else:
        yield not_supported("spec.strategy", _shown(strategy, "MaxUnavailable", "MaxSurge"), ("Recreate", _ROLLING))


def daemon_set(spec: Spec) -> Iterator[FieldError]:
    strategy = spec.get("updateStrategy") or {}
    kind, path = strategy.get("type"), "spec.updateStrategy.rollingUpdate"
    if kind == _ROLLING:
        amounts = dict(zip(("maxUnavailable", "maxSurge"), _two(strategy.get("rollingUpdate")), strict=True))
        for check in (_amount, _share):
            for name, value in amounts.items():
                yield from check(value, f"{path}.{name}")
        unavailable, surge = (bool(_number(value)) for value in amounts.values())
        if unavailable and surge:
            yield invalid(f"{path}.maxSurge", amounts["maxSurge"], "may not be set when maxUnavailable is non-zero")
        elif not unavailable and not surge:
            yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif kind != "OnDelete":
        shown = _shown(strategy, "MaxUnavailable", "MaxSurge")
        yield not_supported("spec.updateStrategy", shown, (_ROLLING, "OnDelete"))


def stateful_set(spec: Spec) -> Iterator[FieldError]:
    strategy = spec.get("updateStrategy") or {}
    kind, rolling, path = strategy.get("type"), strategy.get("rollingUpdate"), "spec.updateStrategy.rollingUpdate"
    if kind == "OnDelete":
        if rolling is not None:
            shown = _shown(strategy, "Partition", "MaxUnavailable")["RollingUpdate"]
            yield invalid(path, shown, f"only allowed for updateStrategy '{_ROLLING}'")
    elif kind == _ROLLING:
        yield from negative((rolling or {}).get("partition"), f"{path}.partition")
        most = (rolling or {}).get("maxUnavailable")
        if most is not None:
            yield from _amount(most, f"{path}.maxUnavailable")
            if not _number(most):
                yield invalid(f"{path}.maxUnavailable", most, "cannot be 0")
            yield from _share(most, f"{path}.maxUnavailable")
    else:
        shown = _shown(strategy, "Partition", "MaxUnavailable")
        yield invalid("spec.updateStrategy", shown, f"must be '{_ROLLING}' or 'OnDelete'")


BY_KIND: Final[dict[str, Callable[[Spec], Iterator[FieldError]]]] = {
    "Deployment": deployment,
    "DaemonSet": daemon_set,
    "StatefulSet": stateful_set,
}


def _two(rolling: Spec | None) -> tuple[Any, Any]:
    given = rolling or {}
    return given.get("maxUnavailable", 0), given.get("maxSurge", 0)


def _amount(value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, str):
        if not PERCENT.fullmatch(value):
            yield invalid(path, value, _PERCENT)
    else:
        yield from negative(value, path)


def _share(value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, str) and PERCENT.fullmatch(value) and percent(value) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _number(value: Any) -> int:
    if isinstance(value, str):
        return percent(value) if PERCENT.fullmatch(value) else 0
    return value if isinstance(value, int) else 0


def _shown(strategy: Spec, *names: str) -> Spec:
    """As servers print it: with the names that it has in their code."""
    rolling = strategy.get("rollingUpdate")
    inner = {name: rolling.get(name[0].lower() + name[1:]) for name in names} if rolling is not None else None
    return {"Type": strategy.get("type", ""), "RollingUpdate": inner}
