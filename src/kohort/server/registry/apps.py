"""Rules of the kinds that own a pod template: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kohort.api.core import check_pod_template
from kohort.api.errors import FieldError, forbidden, invalid, required
from kohort.api.rules import same
from kohort.apimachinery.labels import matches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context, Object

_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def validate(obj: Object, ctx: Context) -> list[FieldError]:
    return list(_common(obj, ctx))


def validate_update(new: Object, old: Object, ctx: Context, frozen: tuple[str, ...]) -> list[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if new.get("kind") == "StatefulSet":
        free = {
            "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
        }  # fmt: skip
        changed = [name for name in {*spec, *before} - free if not same(spec.get(name), before.get(name))]
        found = [forbidden("spec", _SET)] if changed else []
    else:
        found = [
            invalid(f"spec.{name}", spec.get(name), "field is immutable")
            for name in frozen
            if not same(spec.get(name), before.get(name))
        ]
    return [*_common(new, ctx), *found]


def controller(obj: Object, ctx: Context) -> list[FieldError]:
    """The ReplicationController, whose selector is a plain map."""
    spec = obj.get("spec") or {}
    found = list(_replicas(spec))
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        found.append(required("spec.selector"))
    if not isinstance(template, dict):
        return [*found, required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        found.append(invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
    return [*found, *check_pod_template(template, "spec.template", ctx, restart_policies=("Always",))]


def _replicas(spec: dict[str, Any]) -> Iterator[FieldError]:
    for name in ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        value = spec.get(name)
        if isinstance(value, int) and value < 0:
            yield invalid(f"spec.{name}", value, "must be greater than or equal to 0")


def _common(obj: Object, ctx: Context) -> Iterator[FieldError]:
    spec = obj.get("spec") or {}
    yield from _replicas(spec)
    selector, template = spec.get("selector"), spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not isinstance(selector, dict):
        yield required("spec.selector")
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", selector, "empty selector is invalid for " + str(obj.get("kind", "")).lower())
    elif not matches(selector, labels):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate") is not None:
        text = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden("spec.strategy.rollingUpdate", text)
    yield from check_pod_template(template, "spec.template", ctx, restart_policies=("Always",))
