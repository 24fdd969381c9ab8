"""The CronJob: a Job template with a timetable. Its scheduling block belongs to its Jobs (spec job 4.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, invalid, not_supported
from kohort.api.kind import Column, Context, Kind, Object
from kohort.api.schema import Bool, Int, Obj, Ref, Str
from kohort.apimachinery import cron
from kohort.kinds.batch.api.defaults import default_template
from kohort.kinds.batch.api.job import spec_warnings
from kohort.kinds.batch.api.schema import SPEC
from kohort.kinds.batch.api.validation import check_job_spec

MAX_NAME: Final = 52  # a run's name has eleven characters more
_TEMPLATE: Final = "spec.jobTemplate.spec"

SCHEMA: Final = Obj(
    fields={
        "spec": Obj(
            embedded=True,
            fields={
                "schedule": Str(required=True),
                "timeZone": Str(),
                "startingDeadlineSeconds": Int(minimum=0, bits=64),
                "concurrencyPolicy": Str(default="Allow", enum=("Allow", "Forbid", "Replace")),
                "suspend": Bool(default=False),
                "jobTemplate": Obj(
                    embedded=True,
                    fields={
                        "metadata": Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
                        "spec": SPEC,
                    },
                ),
                "successfulJobsHistoryLimit": Int(default=3, minimum=0),
                "failedJobsHistoryLimit": Int(default=1, minimum=0),
            },
        ),
        "status": Ref(definition="io.k8s.api.batch.v1.CronJobStatus"),
    }
)


def default(cronjob: Object, _ctx: Context) -> None:
    spec = job_spec(cronjob)
    if spec:
        default_template(spec)


def job_spec(cronjob: Object) -> dict[str, Any]:
    """The spec of the Jobs to be made."""
    template = (cronjob.get("spec") or {}).get("jobTemplate") or {}
    found: dict[str, Any] = template.get("spec") or {}
    return found


def validate(cronjob: Object, ctx: Context) -> list[FieldError]:
    return [*_name(cronjob), *_spec(cronjob, ctx)]


def validate_update(cronjob: Object, _old: Object, ctx: Context) -> list[FieldError]:
    """The declared rules hold the scheduling block fast; its sort of policy may change, each run is new."""
    return list(_spec(cronjob, ctx))


def _name(cronjob: Object) -> Iterator[FieldError]:
    name = (cronjob.get("metadata") or {}).get("name") or ""
    if len(name) > MAX_NAME:
        yield invalid("metadata.name", name, f"must be no more than {MAX_NAME} characters")


def _spec(cronjob: Object, ctx: Context) -> Iterator[FieldError]:
    spec, template = cronjob.get("spec") or {}, job_spec(cronjob)
    wrong = cron.problem(spec.get("schedule") or "")
    if spec.get("schedule") and wrong:
        yield invalid("spec.schedule", spec["schedule"], wrong)
    zone = spec.get("timeZone")
    if zone is not None and not zone.strip():
        yield invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
    elif zone is not None and (zone.lower() == "local" or " " in zone):
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid("spec.timeZone", zone, text)
    yield from check_job_spec(template, _TEMPLATE, ctx)
    if template.get("selector") is not None:
        yield invalid(f"{_TEMPLATE}.selector", template["selector"], "`selector` will be auto-generated")
    if template.get("manualSelector"):
        yield not_supported(f"{_TEMPLATE}.manualSelector", True, ("nil", "false"))


def warn(cronjob: Object, _ctx: Context) -> list[str]:
    return spec_warnings(job_spec(cronjob), _TEMPLATE)


def _of_spec(name: str) -> Any:
    return lambda cronjob: (cronjob.get("spec") or {}).get(name)


CRONJOB: Final = Kind(
    group="batch",
    version="v1",
    kind="CronJob",
    plural="cronjobs",
    singular="cronjob",
    short_names=("cj",),
    categories=("all",),
    native=True,
    schema=SCHEMA,
    counts_changes=True,
    default=default,
    validate=validate,
    validate_update=validate_update,
    warn=warn,
    columns=(
        Column("Schedule", cell=_of_spec("schedule")),
        Column("Timezone", cell=lambda cronjob: (cronjob.get("spec") or {}).get("timeZone") or "<none>"),
        Column("Suspend", "boolean", cell=lambda cronjob: bool((cronjob.get("spec") or {}).get("suspend"))),
        Column("Active", "integer", cell=lambda cronjob: len((cronjob.get("status") or {}).get("active") or [])),
        Column("Last Schedule", "date", path=".status.lastScheduleTime"),
        Column("Age", "date", path=".metadata.creationTimestamp"),
    ),
)
