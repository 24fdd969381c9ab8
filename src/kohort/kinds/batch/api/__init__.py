"""The batch group: Job and CronJob."""

from __future__ import annotations

from typing import Final

from kohort.api.kind import Kind
from kohort.kinds.batch.api.cronjob import CRONJOB
from kohort.kinds.batch.api.job import JOB

KINDS: Final[tuple[Kind, ...]] = (JOB, CRONJOB)
