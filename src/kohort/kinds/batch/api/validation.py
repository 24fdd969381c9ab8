"""What a Job's spec must fulfil beyond its schema: bounds that depend on each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.core.pod_template import check_pod_template
from kohort.api.errors import FieldError, at, invalid, not_supported, required
from kohort.kinds.batch.api import selector
from kohort.kinds.batch.api.policies import check_failure_policy, check_success_policy
from kohort.kinds.batch.api.scheduling import check_scheduling

if TYPE_CHECKING:
    from kohort.api.kind import Context, Object

Spec = Mapping[str, Any]

RESTART_POLICIES: Final = ("OnFailure", "Never")
REPLACEMENT_POLICIES: Final = ("Failed", "TerminatingOrFailed")
MANY: Final = 100_000  # pods of an Indexed Job at once, and failed indexes
SOME: Final = 10_000  # the same where each of more than MANY indexes counts its own failures


def validate(job: Object, ctx: Context) -> list[FieldError]:
    whole = selector.as_created(job)
    return [
        *check_name(whole),
        *selector.check_generated(whole),
        *check_job_spec(whole.get("spec") or {}, "spec", ctx),
        *selector.check_match(whole),
    ]


def check_name(job: Object) -> Iterator[FieldError]:
    """The last pod of an Indexed Job must be able to have its hostname."""
    spec, name = job.get("spec") or {}, (job.get("metadata") or {}).get("name") or ""
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        hostname = f"{name}-{completions - 1}"
        if formats.label(hostname):
            yield invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {hostname}")


def check_job_spec(spec: Spec, path: str, ctx: Context) -> Iterator[FieldError]:
    """Also for the Job template of a CronJob."""
    yield from _limits(spec, path)
    yield from _completions(spec, path)
    yield from check_failure_policy(spec, path)
    yield from check_success_policy(spec, path)
    yield from _replacement(spec, path)
    yield from check_scheduling(spec, path)
    template = at(path, "template")
    yield from check_pod_template(spec.get("template"), template, ctx, restart_policies=RESTART_POLICIES)
    restart = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if spec.get("podFailurePolicy") is not None and restart == "OnFailure":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(at(template, "spec.restartPolicy"), restart, text)


def _limits(spec: Spec, path: str) -> Iterator[FieldError]:
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(at(path, "backoffLimitPerIndex"), "when maxFailedIndexes is specified")


def _completions(spec: Spec, path: str) -> Iterator[FieldError]:
    if spec.get("completionMode") == "Indexed":
        yield from _indexed(spec, path)
        return
    for member in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
        if spec.get(member) is not None:
            yield invalid(at(path, member), spec[member], "requires indexed completion mode")


def _indexed(spec: Spec, path: str) -> Iterator[FieldError]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield required(at(path, "completions"), "when completion mode is Indexed")
    if parallelism > MANY:
        text = f"must be less than or equal to {MANY} when completion mode is Indexed"
        yield invalid(at(path, "parallelism"), parallelism, text)
    if failed is not None and completions is not None and failed > completions:
        yield invalid(at(path, "maxFailedIndexes"), failed, "must be less than or equal to completions")
    if failed is not None and failed > MANY:
        yield invalid(at(path, "maxFailedIndexes"), failed, f"must be less than or equal to {MANY}")
    if (completions or 0) > MANY and spec.get("backoffLimitPerIndex") is not None:
        yield from _very_many(parallelism, failed, path)


def _very_many(parallelism: int, failed: int | None, path: str) -> Iterator[FieldError]:
    text = (
        f"must be less than or equal to {SOME} when completions are above {MANY} and used with backoff limit per index"
    )
    if failed is None:
        yield required(at(path, "maxFailedIndexes"), f"must be specified when completions is above {MANY}")
    elif failed > SOME:
        yield invalid(at(path, "maxFailedIndexes"), failed, text)
    if parallelism > SOME:
        yield invalid(at(path, "parallelism"), parallelism, text)


def _replacement(spec: Spec, path: str) -> Iterator[FieldError]:
    """With a failure policy a pod must have failed before it is replaced."""
    policy = spec.get("podReplacementPolicy")
    accepted = REPLACEMENT_POLICIES if spec.get("podFailurePolicy") is None else REPLACEMENT_POLICIES[:1]
    if policy is not None and policy not in accepted:
        yield not_supported(at(path, "podReplacementPolicy"), policy, accepted)
