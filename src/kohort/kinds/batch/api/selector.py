"""The selector that a server makes up for a Job, and the labels that go with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kohort.api.copying import copied
from kohort.api.errors import FieldError, invalid, required
from kohort.api.kind import Object
from kohort.api.meta import check_selector
from kohort.apimachinery.labels import matches

CONTROLLER_UID: Final = "batch.kubernetes.io/controller-uid"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
LEGACY_CONTROLLER_UID: Final = "controller-uid"
LEGACY_JOB_NAME: Final = "job-name"

UNKNOWN_UID: Final = "uid-given-on-creation"  # stands for the uid of a Job that no server has seen


def is_manual(job: Object) -> bool:
    return bool((job.get("spec") or {}).get("manualSelector"))


def generate(job: Object, uid: str) -> None:
    """Give a Job the selector and the labels that follow from its uid, in place."""
    if is_manual(job):
        return
    spec, own = job.setdefault("spec", {}), job.setdefault("metadata", {})
    template = spec["template"] = spec.get("template") or {}
    meta = template["metadata"] = template.get("metadata") or {}
    given = meta.get("labels") or {}
    # What the user wrote under these keys is kept, and refused by the rules.
    meta["labels"] = {**generated_labels(str(own.get("name") or ""), uid), **given}
    if (own.get("labels") or {}) == given:  # a Job without labels of its own has those of its pods
        own["labels"] = dict(meta["labels"])
    selector = spec["selector"] = spec.get("selector") or {}
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), CONTROLLER_UID: uid}


def generated_labels(name: str, uid: str) -> dict[str, str]:
    return {CONTROLLER_UID: uid, JOB_NAME: name, LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name}


def as_created(job: Object) -> Object:
    """The Job with its generated parts, also where no server has given it a uid."""
    uid = (job.get("metadata") or {}).get("uid")
    if is_manual(job) or (uid and (job.get("spec") or {}).get("selector") is not None):
        return job
    copy = copied(job)
    generate(copy, str(uid or UNKNOWN_UID))
    return copy


def check_generated(job: Object) -> Iterator[FieldError]:
    """On create: the generated labels are there, and nothing contradicts them."""
    if is_manual(job):
        return
    meta = job.get("metadata") or {}
    wanted = generated_labels(str(meta.get("name") or ""), str(meta.get("uid") or UNKNOWN_UID))
    labels = _labels(job)
    for key, value in wanted.items():
        if labels.get(key) != value:
            yield invalid(f"spec.template.metadata.labels[{key}]", labels, f"must be '{value}'")
    selector = (job.get("spec") or {}).get("selector")
    if selector is not None and not matches(selector, wanted):
        yield invalid("spec.selector", selector, "`selector` not auto-generated")


def check_match(job: Object) -> Iterator[FieldError]:
    """On create and update: the selector picks the pods of the template."""
    selector = (job.get("spec") or {}).get("selector")
    wrong = [required("spec.selector")] if selector is None else list(check_selector(selector, "spec.selector"))
    yield from wrong
    # A selector that cannot be read matches nothing and everything.
    if (selector is None or not wrong) and not matches(selector, _labels(job)):
        yield invalid(
            "spec.template.metadata.labels", _labels(job) or None, "`selector` does not match template `labels`"
        )


def _labels(job: Object) -> dict[str, str]:
    template = (job.get("spec") or {}).get("template") or {}
    labels: dict[str, str] = (template.get("metadata") or {}).get("labels") or {}
    return labels
