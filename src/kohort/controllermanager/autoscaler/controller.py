"""HorizontalPodAutoscaler: minimum and maximum hold; there is nothing else to go by, and its status says so.

Virtual pods use no processor, so there are no metrics. The status, its conditions and the events are those of a cluster
without a metrics server.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import is_deleting, meta_of, namespace_of, status_of
from kohort.apimachinery import times
from kohort.controllers.conditions import set_condition
from kohort.controllers.controller import Controller, Key, Reader, Watch, enqueue_itself
from kohort.controllers.reconcile import Answer, Event, Reconcile, ReconcileError, Result, Step, Write, emit, one
from kohort.controllers.writes import update

PERIOD: Final = 15.0  # seconds between two looks at the target
_ABLE, _ACTIVE = "AbleToScale", "ScalingActive"
# type of a metric -> reason, where in the metric its name is, and who would have to answer
_METRICS: Final = {
    "Resource": ("FailedGetResourceMetric", "resource"),
    "ContainerResource": ("FailedGetContainerResourceMetric", "containerResource"),
    "Pods": ("FailedGetPodsMetric", "pods"),
    "Object": ("FailedGetObjectMetric", "object"),
    "External": ("FailedGetExternalMetric", "external"),
}
_NO_ANSWER: Final = (
    "unable to fetch metrics from resource metrics API: the server could not find the requested resource "
    "(get pods.metrics.k8s.io)"
)


def autoscaler_controller() -> Controller:
    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        return reconcile(reader.get("HorizontalPodAutoscaler", key), now)

    return Controller(
        name="horizontal-pod-autoscaler",
        watches=(Watch("autoscaling/v2", "HorizontalPodAutoscaler", enqueue_itself),),
        reconcile=reconcile_key,
        conditions=False,
    )


@dataclass(slots=True)
class _Turn:
    """One evaluation of a target."""

    hpa: Object
    now: datetime
    status: dict[str, Any]
    events: list[Event] = field(default_factory=list)

    def says(self, kind: str, value: bool, reason: str, message: str) -> None:
        set_condition(self.status, self.now, kind, value, reason, message)

    def warns(self, reason: str, note: str) -> None:
        self.events.append(Event(self.hpa, "Warning", reason, note))


def reconcile(hpa: Object | None, now: datetime) -> Reconcile:
    if hpa is None or is_deleting(hpa):
        return Result()
    turn = _Turn(hpa, now, copied(status_of(hpa)))
    get = _scale_request(hpa, "get")
    answer = yield from one(get)
    if answer.refusal is not None or answer.object is None:
        why = answer.refusal.message if answer.refusal is not None else "no answer"
        text = f"the HPA controller was unable to get the target's current scale: {why}"
        turn.says(_ABLE, False, "FailedGetScale", text)
        turn.warns("FailedGetScale", why)
    else:
        able = "the HPA controller was able to get the target's current scale"
        turn.says(_ABLE, True, "SucceededGetScale", able)
        yield from _scaled(turn, answer.object)
    yield from emit(*turn.events)
    yield from _write(turn)
    return Result(requeue_after=PERIOD)


def _scale_request(hpa: Object, verb: Any, body: Object | None = None) -> Write:
    ref = (hpa.get("spec") or {}).get("scaleTargetRef") or {}
    return Write(
        verb=verb, api_version=str(ref.get("apiVersion") or "v1"), kind=str(ref.get("kind")), name=str(ref.get("name")),
        namespace=namespace_of(hpa), subresource="scale", body=body,
    )  # fmt: skip


def _scaled(turn: _Turn, scale: Object) -> Generator[Step, Sequence[Answer], None]:
    spec = turn.hpa.get("spec") or {}
    now = int((scale.get("spec") or {}).get("replicas") or 0)
    least = 1 if spec.get("minReplicas") is None else int(spec["minReplicas"])
    most = int(spec.get("maxReplicas") or 0)
    turn.status["currentReplicas"] = now
    if not now:
        del turn.status["currentReplicas"]
    if now == 0 and least:
        turn.status["desiredReplicas"] = 0
        why = "scaling is disabled since the replica count of the target is zero"
        turn.says(_ACTIVE, False, "ScalingDisabled", why)
    elif now > most:
        yield from _rescale(turn, scale, most, "Current number of replicas above Spec.MaxReplicas")
    elif now < least:
        yield from _rescale(turn, scale, least, "Current number of replicas below Spec.MinReplicas")
    else:
        turn.status.setdefault("desiredReplicas", 0)
        _no_metrics(turn)


def _rescale(turn: _Turn, scale: Object, count: int, why: str) -> Generator[Step, Sequence[Answer], None]:
    body = {**scale, "spec": {**(scale.get("spec") or {}), "replicas": count}}
    answer = yield from one(_scale_request(turn.hpa, "update", body))
    if answer.refusal is not None:
        text = f"New size: {count}; reason: {why}; error: {answer.refusal.message}"
        note = f"the HPA controller was unable to update the target scale: {answer.refusal.message}"
        turn.says(_ABLE, False, "FailedUpdateScale", note)
        turn.warns("FailedRescale", text)
        return
    turn.says(_ABLE, True, "SucceededRescale", f"the HPA controller was able to update the target scale to {count}")
    turn.events.append(Event(turn.hpa, "Normal", "SuccessfulRescale", f"New size: {count}; reason: {why}"))
    turn.status["desiredReplicas"] = count
    turn.status["lastScaleTime"] = times.seconds(turn.now)


def _no_metrics(turn: _Turn) -> None:
    """Nobody serves any: the first of them says why."""
    metrics = (turn.hpa.get("spec") or {}).get("metrics") or ()
    first = ""
    for metric in metrics:
        reason, why = _failure(metric)
        turn.warns(reason, why)
        if not first:
            first = f"failed to get {_name(metric)} {_sort(metric)} metric value: {why}"
            turn.says(_ACTIVE, False, reason, f"the HPA was unable to compute the replica count: {why}")
    if first:
        turn.status["currentMetrics"] = [{"type": ""} for _ in metrics]
        note = f"invalid metrics ({len(metrics)} invalid out of {len(metrics)}), first error is: {first}"
        turn.warns("FailedComputeMetricsReplicas", note)


def _failure(metric: dict[str, Any]) -> tuple[str, str]:
    sort = str(metric.get("type"))
    reason, member = _METRICS.get(sort, ("InvalidMetricSourceType", ""))
    source = metric.get(member) or {}
    if sort in {"Resource", "ContainerResource"}:
        name = source.get("name")
        where = "utilization" if (source.get("target") or {}).get("averageUtilization") is not None else "usage"
        why = f"unable to get metrics for resource {name}: {_NO_ANSWER}"
        return reason, f"failed to get {name} {where}: {why}"
    api = "external" if sort == "External" else "custom"
    return reason, f"unable to get metric {_name(metric)}: no {api} metrics API ({api}.metrics.k8s.io) registered"


def _name(metric: dict[str, Any]) -> str:
    source = metric.get(_METRICS.get(str(metric.get("type")), ("", ""))[1]) or {}
    return str(source.get("name") or (source.get("metric") or {}).get("name") or "")


def _sort(metric: dict[str, Any]) -> str:
    words = {"Resource": "resource", "ContainerResource": "container", "Pods": "pods", "Object": "object"}
    return words.get(str(metric.get("type")), "external")


def _write(turn: _Turn) -> Generator[Step, Sequence[Answer], None]:
    generation = meta_of(turn.hpa).get("generation")
    if generation is not None:
        turn.status["observedGeneration"] = generation
    if turn.status == status_of(turn.hpa):
        return
    write = update({**turn.hpa, "status": turn.status}, "status")
    answer = yield from one(write)
    if answer.refusal is not None and not answer.refusal.not_found:
        raise ReconcileError(f"{write}: {answer.refusal.message}")
