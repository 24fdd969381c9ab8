"""What may change in a Job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kohort.api.copying import copied
from kohort.api.errors import OMITTED, FieldError, at, invalid
from kohort.api.rules import same
from kohort.kinds.batch.api import selector
from kohort.kinds.batch.api.scheduling import check_variant
from kohort.kinds.batch.api.validation import check_job_spec

if TYPE_CHECKING:
    from kohort.api.kind import Context, Object

Spec = dict[str, Any]

_FROZEN: Final = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "successPolicy", "managedBy")
_IMMUTABLE: Final = "field is immutable"


def validate_update(job: Object, old: Object, ctx: Context) -> list[FieldError]:
    stored = selector.as_created(old)
    # An update of what a server has stored is taken at its word: what it leaves out is gone.
    new = job if stored is old else selector.as_created(job)
    spec, before = new.get("spec") or {}, stored.get("spec") or {}
    return [
        *check_job_spec(spec, "spec", ctx),
        *selector.check_match(new),
        *_completions(spec, before),
        *_selector(spec, before),
        *_template(spec, before, directives=may_redirect(old, ctx), resources=ctx.release.minor != "1.35"),
        *_frozen(spec, before),
        *check_variant(spec, before, "spec"),
    ]


def _frozen(spec: Spec, old: Spec) -> Iterator[FieldError]:
    for member in _FROZEN:
        if not same(spec.get(member), old.get(member)):
            yield invalid(at("spec", member), spec.get(member), _IMMUTABLE)


def _selector(spec: Spec, old: Spec) -> Iterator[FieldError]:
    if not same(spec.get("selector"), old.get("selector")):
        yield invalid("spec.selector", spec.get("selector"), _IMMUTABLE)


def _completions(spec: Spec, old: Spec) -> Iterator[FieldError]:
    """An Indexed Job may grow and shrink as long as all its indexes run at once."""
    completions = spec.get("completions")
    if completions == old.get("completions"):
        return
    if spec.get("completionMode") != "Indexed":
        yield invalid("spec.completions", completions, _IMMUTABLE)
    elif completions is not None and completions != spec.get("parallelism"):
        yield invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")


def may_redirect(old: Object, ctx: Context) -> bool:
    """Whether the stored Job's pods may still be sent elsewhere: it is suspended, and none of them is about.

    1.35 only knew it for Jobs that had never started.
    """
    spec, status = old.get("spec") or {}, old.get("status") or {}
    if not spec.get("suspend"):
        return False
    return status.get("startTime") is None if ctx.release.minor == "1.35" else not status.get("active")


def _template(spec: Spec, old: Spec, *, directives: bool, resources: bool) -> Iterator[FieldError]:
    new, before = spec.get("template") or {}, old.get("template") or {}
    if not directives:
        if not same(new, before):
            yield invalid("spec.template", OMITTED, _IMMUTABLE)
        return
    if not same(_fixed(new, resources), _fixed(before, resources)):
        yield invalid("spec.template.spec", OMITTED, _IMMUTABLE)


def _fixed(template: Spec, resources: bool) -> Spec:
    """The part of a suspended Job's pod spec that may not change."""
    spec: Spec = copied(template.get("spec") or {})
    for member in ("nodeSelector", "tolerations", "schedulingGates"):
        spec.pop(member, None)
    affinity = spec.pop("affinity", None) or {}
    rest = {name: block for name, block in affinity.items() if name != "nodeAffinity"}
    if rest:
        spec["affinity"] = rest
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])] if resources else ():
        container.pop("resources", None)
    return spec
