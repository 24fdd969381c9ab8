"""A CronJob's runs: each is a Job of its own (spec job 3.10, T-18, T-65)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.api.build import cronjob, gang, job
from tests.kinds.batch.api.replay import cases

from kohort.api import admit
from kohort.api.kind import Context
from kohort.gang.compile import Compilation, CompileContext, compiler
from kohort.gang.render import render
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.api.cronjob import CRONJOB
from kohort.kinds.batch.api.job import JOB
from kohort.kinds.batch.compile.cronjob import compile_object, run_of
from kohort.kinds.batch.compile.job import compile_object as compile_job
from kohort.kinds.batch.settings import JobSettings

NIGHTLY = cronjob("nightly", of=job(parallelism=2, completions=2, completionMode="Indexed", scheduling=gang()))


def compiled(obj: dict[str, Any], minor: str = "1.37", **settings: Any) -> Compilation:
    ctx = Context.of(minor)
    context = CompileContext(ctx.release, ctx.gates, settings=SettingsByKind(JobSettings(**settings)))
    return compile_object(admit.defaulted(obj, CRONJOB, ctx), context)


def test_it_is_registered() -> None:
    assert compiler("batch", "CronJob") is compile_object


def test_t_65_each_run_has_its_own_objects() -> None:
    done = compiled(NIGHTLY)
    (plan,) = done.plans
    (run,) = done.objects
    name = run["metadata"]["name"]
    assert name == "nightly-29000000"
    assert plan.workload.startswith(f"{name}-")
    assert plan.templates[0].name == f"{name}-pgt-0"
    assert plan.templates[0].minimum == 2
    assert [member.path for member in plan.members] == [("spec", "jobTemplate", "spec", "template")]
    assert [owner.kind for owner in plan.owners] == ["Job"]


def test_t_18_parity() -> None:
    done = compiled(NIGHTLY, parity=True)
    assert not done.plans
    assert "CronJob nightly" in done.reason


def test_t_18_the_run_as_recorded() -> None:
    """1.36 did make groups for runs; the recording has the run's real number and uid."""
    case = cases("1.36")["T-18"]
    body = case["requests"][0]["body"]
    (line,) = [str(one) for one in case["timeline"] if str(one).startswith("+Job ")]
    name = line.split()[1]
    run = run_of(admit.defaulted(body, CRONJOB, Context.of("1.36")), int(name.rpartition("-")[2]))
    assert run["metadata"]["name"] == name
    assert run["metadata"]["labels"] == {"team": "blue"}
    assert run["metadata"]["annotations"] == {"note": "kept"}
    run["metadata"]["uid"] = case["uids"]["JOB_UID"]
    ctx = Context.of("1.36")
    done = compile_job(admit.defaulted(run, JOB, ctx), CompileContext(ctx.release, ctx.gates))
    made = [f"+{obj['kind']} {obj['metadata']['name']}" for obj in render(done.plans[0], "1.36").objects]
    assert made == [str(one) for one in case["timeline"] if str(one).startswith(("+Workload", "+PodGroup"))]


def test_the_run_is_owned_and_defaulted() -> None:
    (run,) = compiled(NIGHTLY).objects
    (owner,) = run["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "nightly", True)
    assert run["spec"]["backoffLimit"] == 6


def test_long_names_still_make_legal_templates() -> None:
    done = compiled(cronjob("n" * 52))
    assert len(done.plans[0].templates[0].name) <= 63
    (error,) = compiled(cronjob("n" * 52), parity=True, cronjob_transparent=True).errors
    assert error.field == "metadata.name"


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
def test_older_minors(minor: str) -> None:
    plain = cronjob(of=job(parallelism=2))
    assert compiled(plain, minor).reason


def test_warnings_name_the_field_of_the_cronjob() -> None:
    obj = cronjob(of=job(parallelism=8, completions=3, scheduling=gang()))
    (warning,) = compiled(obj, parity=True, cronjob_transparent=True).warnings
    assert str(warning).startswith("spec.jobTemplate.spec.scheduling.schedulingPolicy.gang: ")
