"""Rules of the kinds that own a pod template: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kohort.api import formats
from kohort.api.core import check_pod_template
from kohort.api.errors import FieldError, forbidden, invalid, not_supported, required
from kohort.api.rules import same
from kohort.apimachinery.labels import matches
from kohort.server.registry import rollouts, storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context, Object

_RETENTION = ("Retain", "Delete")
_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def validate(obj: Object, ctx: Context) -> list[FieldError]:
    return list(_common(obj, ctx))


def validate_update(new: Object, old: Object, ctx: Context, frozen: tuple[str, ...]) -> list[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if new.get("kind") == "StatefulSet" and ctx.release.minor in ("1.35", "1.36"):
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
        yield from rollouts.negative(spec.get(name), f"spec.{name}")


def _common(obj: Object, ctx: Context) -> Iterator[FieldError]:
    kind, spec = str(obj.get("kind", "")), obj.get("spec") or {}
    if kind == "StatefulSet":
        yield from _stateful_set(spec)
    else:
        yield from _replicas(spec)
    selector, template = spec.get("selector"), spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not isinstance(selector, dict):
        yield required("spec.selector")
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", selector, "empty selector is invalid for " + kind.lower())
    elif not matches(selector, labels):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    if kind == "StatefulSet":
        template = _as_its_pods(template, spec)
    yield from check_pod_template(template, "spec.template", ctx, restart_policies=("Always",))
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        named = "ReplicaSet" if kind == "Deployment" else kind  # as servers do
        yield forbidden(
            "spec.template.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {named} is not Supported"
        )
    if kind in ("Deployment", "DaemonSet"):
        yield from rollouts.BY_KIND[kind](spec)
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if kind == "Deployment" and deadline is not None and deadline <= ready:
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _stateful_set(spec: dict[str, Any]) -> Iterator[FieldError]:
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from rollouts.stateful_set(spec)
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name in ("whenDeleted", "whenScaled"):
        if name in retention and retention[name] not in ("Retain", "Delete"):
            yield not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", retention[name], _RETENTION)
    for index, template in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from storage.claim_spec(template.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    for name in ("replicas", "minReadySeconds"):
        yield from rollouts.negative(spec.get(name), f"spec.{name}")
    yield from rollouts.negative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
    service = spec.get("serviceName") or ""
    for problem in formats.problems(formats.label, service) if service else ():
        yield invalid("spec.serviceName", service, problem)


def _as_its_pods(template: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """With the volumes of its claims; the controller gives the pods their host name and subdomain."""
    inner = dict(template.get("spec") or {})
    inner.pop("hostname", None)
    inner.pop("subdomain", None)
    names = [(one.get("metadata") or {}).get("name") for one in spec.get("volumeClaimTemplates") or ()]
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(names)]
    others = [one for one in inner.get("volumes") or () if one.get("name") not in names]
    if claims:
        inner["volumes"] = [*claims, *others]
    return {**template, "spec": inner}
