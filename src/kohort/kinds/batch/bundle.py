"""Job and CronJob: Kubernetes' own kinds, whose controllers a real cluster has."""

from __future__ import annotations

from typing import Final

from kohort.api.bundle import Bundle, ControllerGroup, Page

BUNDLE: Final = Bundle(
    name="batch",
    api={"batch": "kohort.kinds.batch.api"},
    native=True,
    compilers={
        ("batch", "Job"): "kohort.kinds.batch.compile.job",
        ("batch", "CronJob"): "kohort.kinds.batch.compile.cronjob",
    },
    admission={("batch", "Job"): "kohort.kinds.batch.admission"},
    settings="kohort.kinds.batch.settings",
    makers="kohort.kinds.batch.control",
    controllers=(
        ControllerGroup(
            name="job",
            controllers=("job",),
            manages=("batch", "Job"),
            built_in=True,
        ),
        ControllerGroup(
            name="cronjob",
            controllers=("cronjob",),
            manages=("batch", "CronJob"),
            built_in=True,
        ),
        ControllerGroup(
            name="ttl-after-finished",
            controllers=("ttl-after-finished",),
            manages=("batch", "Job"),
            built_in=True,
        ),
    ),
    explained=("Job",),
    page=Page("Job, CronJob", "docs/kinds/job.md"),
    example="job-gang.yaml",
)
