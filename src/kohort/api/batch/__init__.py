"""The batch group: Job and CronJob."""

from __future__ import annotations

from typing import Final

from kohort.api.batch.cronjob import CRONJOB
from kohort.api.batch.job import JOB
from kohort.api.kind import Kind

KINDS: Final[tuple[Kind, ...]] = (JOB, CRONJOB)
