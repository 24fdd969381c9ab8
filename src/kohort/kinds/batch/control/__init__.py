"""The controllers of Jobs and CronJobs, each made from a `Setup`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kohort.kinds.batch.control.cronjob.controller import cronjob_controller
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.batch.control.ttl import ttl_controller
from kohort.kinds.controllers import Maker

MAKERS: Final[Mapping[str, Maker]] = {
    "job": lambda setup: job_controller(setup.ctx, grouping=setup.grouping),
    "cronjob": lambda _: cronjob_controller(),
    "ttl-after-finished": lambda _: ttl_controller(),
}
