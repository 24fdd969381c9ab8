"""The pod template that every workload kind embeds: one check for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kohort.api.core.pod_spec import check_pod_spec
from kohort.api.errors import FieldError, at, forbidden, not_supported, required
from kohort.api.meta import check_annotations, check_labels

if TYPE_CHECKING:
    from kohort.api.kind import Context


def check_pod_template(
    template: Mapping[str, Any] | None, path: str, ctx: Context, *, restart_policies: Sequence[str] | None = None
) -> list[FieldError]:
    """All findings in a PodTemplateSpec, defaulted or not.

    `restart_policies` are those that the embedding kind accepts (None: any, also none at all). Labels and annotations
    are reported at `<path>.labels` and `<path>.annotations`, as servers do for templates.
    """
    return list(_findings(template or {}, path, ctx, restart_policies))


def _findings(
    template: Mapping[str, Any], path: str, ctx: Context, policies: Sequence[str] | None
) -> Iterator[FieldError]:
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    yield from check_labels(meta.get("labels") or {}, at(path, "labels"))
    yield from check_annotations(meta.get("annotations") or {}, at(path, "annotations"))
    yield from check_pod_spec(spec, at(path, "spec"), ctx)
    if spec.get("ephemeralContainers"):
        yield forbidden(at(path, "spec.ephemeralContainers"), "ephemeral containers not allowed in pod template")
    if policies is not None:
        yield from _restart_policy(spec.get("restartPolicy"), at(path, "spec.restartPolicy"), policies)


def _restart_policy(policy: Any, path: str, accepted: Sequence[str]) -> Iterator[FieldError]:
    # Absent means Always, the default; to a Job both look like a choice that was not made.
    if policy in accepted or (policy is None and "Always" in accepted):
        return
    if policy in (None, "", "Always"):
        yield required(path, "valid values: " + ", ".join(f'"{word}"' for word in accepted))
    elif policy in {"Never", "OnFailure"}:
        yield not_supported(path, policy, accepted)
