"""What is wrong with a Kohort on a cluster, and what mends it: decided from what was found there.

Pure: `examination` asks the cluster, this diagnoses. A finding of `bad` is something that does not work now; `odd`
something that will bite; `unknown` something that we were not allowed to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from cryptography.x509 import Certificate

from kohort import __version__
from kohort.api.kind import Object
from kohort.apimachinery.times import parse
from kohort.certificates import is_signed_by, read_certificates
from kohort.run.plan import Plan
from kohort.run.survey import OURS, Survey

_SOON: Final = timedelta(days=14)  # a certificate that ends so soon should have been renewed long ago

State = Literal["good", "odd", "bad", "unknown"]
SKEW: Final = 5.0  # seconds between two clocks that nobody minds
KNOWN: Final = ("1.35", "1.36", "1.37")
_VERSION: Final = "app.kubernetes.io/version"
_FLAPS: Final = 5  # times in an hour that a lease changes hands, at most


@dataclass(frozen=True, slots=True)
class Finding:
    """`mend`: a command, or what to do."""

    what: str
    state: State
    text: str
    mend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWebhook:
    """A configuration of our own webhook, and what is behind it. `certificate` None: may not be read."""

    name: str
    namespace: str
    service: str
    answers: bool
    trusted: bytes
    certificate: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was found. None: it may not be read, and `unread` says why."""

    survey: Survey
    plan: Plan
    namespace: str
    now: datetime
    server_time: datetime | None = None
    deployments: list[Object] | None = None  # of Kohort, in all namespaces
    leases: list[Object] | None = None  # of Kohort, in all namespaces
    lacking: Mapping[str, list[str]] = field(default_factory=dict)  # account -> what it may not do and should
    definitions: Mapping[str, str] = field(default_factory=dict)  # CustomResourceDefinition -> what is wrong with it
    dead_webhooks: Mapping[str, str] = field(
        default_factory=dict
    )  # configuration that refuses -> Service nobody is behind
    own_webhooks: tuple[OwnWebhook, ...] = ()
    unread: tuple[str, ...] = ()


def diagnose(facts: Facts) -> list[Finding]:
    found = [
        _version(facts),
        *_capabilities(facts),
        *_processes(facts),
        *_lease(facts),
        *_roles(facts),
        _clock(facts),
        _schedulers(facts),
        *_definitions(facts),
        *_webhooks(facts),
        *(_own_webhook(one, facts.now) for one in facts.own_webhooks),
    ]
    return found + [Finding("not looked at", "unknown", text) for text in facts.unread]


def worst(found: Iterable[Finding]) -> State:
    states = {one.state for one in found}
    return next((state for state in ("bad", "odd", "unknown") if state in states), "good")


def _version(facts: Facts) -> Finding:
    minor = facts.survey.kubernetes
    if minor in KNOWN:
        return Finding("Kubernetes", "good", f"{facts.survey.version}, known to this Kohort ({__version__})")
    text = f"{facts.survey.version}: Kohort {__version__} was tested with {', '.join(KNOWN)}"
    return Finding("Kubernetes", "odd", text)


def _capabilities(facts: Facts) -> Iterator[Finding]:
    """What `kohort run` would say: the Workload API, gates, kinds."""
    states: dict[str, State] = {"does": "good", "leaves": "good", "off": "good", "missing": "odd"}
    for one in facts.plan.lines:
        if one.what == "not looked at":
            continue
        state: State = "bad" if one.what == "Workload API" and one.verdict == "missing" else states[one.verdict]
        yield Finding(one.what, state, one.text, one.how if state != "good" else "")


def _processes(facts: Facts) -> Iterator[Finding]:
    what = "processes"
    if facts.deployments is None:
        return
    if not facts.deployments:
        text = "no Deployment of Kohort is on this cluster"
        yield Finding(what, "odd", text, "helm install kohort deploy/chart -n kohort-system --create-namespace")
    for one in facts.deployments:
        name = _name(one)
        wanted = int(one["spec"].get("replicas", 1))
        ready = int((one.get("status") or {}).get("readyReplicas") or 0)
        where = f"-n {one['metadata'].get('namespace')}"
        if ready < wanted:
            mend = f"kubectl describe pods {where} -l app.kubernetes.io/name=kohort"
            yield Finding(what, "bad" if ready == 0 else "odd", f"{name}: {ready} of {wanted} are ready", mend)
        elif wanted == 0:
            mend = f"kubectl scale deployment {one['metadata']['name']} {where} --replicas=2"
            yield Finding(what, "bad", f"{name}: scaled to none", mend)
        else:
            yield Finding(what, "good", f"{name}: {ready} of {wanted} are ready")
        runs = (one["metadata"].get("labels") or {}).get(_VERSION, __version__)
        if runs != __version__:
            yield Finding("version", "odd", f"{name} is of {runs}, this command of {__version__}", "use the same")


def _lease(facts: Facts) -> Iterator[Finding]:
    if facts.leases is None or not facts.deployments:
        return
    mend = f"kubectl logs -n {facts.namespace} -l app.kubernetes.io/name=kohort --tail=50"
    if not facts.leases:
        yield Finding("leader", "bad", "no process has ever taken the lease: nothing is placed", mend)
    for one in facts.leases:
        spec, name = one.get("spec") or {}, f"Lease {_name(one)}"
        holder, renewed = spec.get("holderIdentity"), parse(spec.get("renewTime"))
        if not holder or renewed is None:
            yield Finding("leader", "bad", f"{name} is free: no process works", mend)
            continue
        age = (facts.now - renewed).total_seconds()
        if age > float(spec.get("leaseDurationSeconds") or 15) + SKEW:
            text = f"{name}: {holder} has not renewed it for {age:.0f} s, and nobody took it over"
            yield Finding("leader", "bad", text, mend)
        else:
            yield Finding("leader", "good", f"{name} is held by {holder}")
        yield from _flapping(one, facts.now, mend)


def _flapping(lease: Object, now: datetime, mend: str) -> Iterator[Finding]:
    made = parse(lease["metadata"].get("creationTimestamp"))
    times = int((lease.get("spec") or {}).get("leaseTransitions") or 0)
    if made is None or times < _FLAPS:
        return
    hours = max((now - made).total_seconds() / 3600, 1.0)
    if times / hours > _FLAPS:
        text = f"Lease {_name(lease)} changed hands {times} times in {hours:.1f} h"
        yield Finding("leader", "odd", text, mend)


def _roles(facts: Facts) -> Iterator[Finding]:
    for account, lacking in facts.lacking.items():
        if not lacking:
            yield Finding("roles", "good", f"{account} may do all that it needs")
            continue
        shown = ", ".join(lacking[:4]) + (f" and {len(lacking) - 4} more" if len(lacking) > 4 else "")
        mend = f"helm upgrade kohort deploy/chart -n {facts.namespace} --reuse-values"
        yield Finding("roles", "bad", f"{account} may not {shown}", mend)


def _clock(facts: Facts) -> Finding:
    """Of this machine beside the API server's, and those of lease holders."""
    skews = {}
    if facts.server_time is not None:
        skews["the API server"] = (facts.server_time - facts.now).total_seconds()
    for one in facts.leases or ():
        renewed = parse((one.get("spec") or {}).get("renewTime"))
        if renewed is not None:  # a clock ahead shows; one behind looks like a late renewal
            skews[f"the holder of Lease {_name(one)}"] = max((renewed - facts.now).total_seconds(), 0.0)
    far = {whose: skew for whose, skew in skews.items() if abs(skew) > SKEW}
    if far:
        text = "; ".join(
            f"{whose} is {abs(s):.0f} s {'ahead of' if s > 0 else 'behind'} this machine" for whose, s in far.items()
        )
        return Finding("clock", "odd", text, "synchronise the clocks (timedatectl status, chronyc tracking)")
    if not skews:
        return Finding("clock", "unknown", "nothing on this cluster tells its time")
    return Finding("clock", "good", f"within {SKEW:.0f} s of {', '.join(skews)}")


def _schedulers(facts: Facts) -> Finding:
    """Two installations that place the same pods bind against each other."""
    what = "who schedules"
    spaces = sorted({str(one["metadata"].get("namespace")) for one in facts.deployments or ()})
    if len(spaces) > 1:
        mend = f"helm uninstall kohort -n {spaces[-1]}, or give one of them other scheduler.names"
        return Finding(what, "bad", f"Kohort is installed in {len(spaces)} namespaces: {', '.join(spaces)}", mend)
    beside = (
        f"kube-scheduler ({facts.survey.kube_scheduler})"
        if facts.survey.kube_scheduler
        else "nobody that holds a lease"
    )
    return Finding(what, "good", f"beside Kohort: {beside}")


def _definitions(facts: Facts) -> Iterator[Finding]:
    for name, wrong in facts.definitions.items():
        if wrong:
            mend = f"kohort crds {name} | kubectl apply --server-side --force-conflicts -f -"
            yield Finding("definitions", "odd", f"{name}: {wrong}", mend)
    right = [name for name, wrong in facts.definitions.items() if not wrong]
    if right:
        yield Finding("definitions", "good", f"{len(right)} are as this version has them")


def _webhooks(facts: Facts) -> Iterator[Finding]:
    for name, service in facts.dead_webhooks.items():
        whose = "ours" if OURS in name else "somebody else's"
        mend = f"kubectl get endpointslices -A -l kubernetes.io/service-name={service.rpartition('/')[2]}"
        text = f"{name} ({whose}) refuses what it cannot ask about, and nobody answers at Service {service}"
        yield Finding("webhooks", "bad", text, mend)
    if not facts.dead_webhooks:
        yield Finding("webhooks", "good", "none that refuses without anybody behind it")


def _own_webhook(one: OwnWebhook, now: datetime) -> Finding:
    """The first thing in the way of a question. Whatever it is, with failurePolicy Ignore nobody is stopped by it."""
    deployment = one.service.rpartition("/")[2]
    logs = f"kubectl logs -n {one.namespace} deployment/{deployment} --tail=50"
    if not one.answers:
        text = f"{one.name}: nobody answers at Service {one.service}; mistakes are not refused"
        mend = f"kubectl describe pods -n {one.namespace} -l app.kubernetes.io/component=webhook"
        return Finding("own webhook", "bad", text, mend)
    if one.certificate is None:
        return Finding("own webhook", "unknown", f"{one.name}: its certificate may not be read")
    trusted, shown = read_certificates(one.trusted), read_certificates(one.certificate)
    if not trusted or not shown:
        what = "caBundle has no certificate" if shown else f"Secret {one.service} has no certificate"
        return Finding("own webhook", "bad", f"{one.name}: {what}; API servers trust nobody there", logs)
    state, text = _trust(shown[0], trusted, now)
    again = f"kubectl rollout restart deployment {deployment} -n {one.namespace}"
    return Finding("own webhook", state, f"{one.name}: {text}", "" if state == "good" else again)


def _trust(shown: Certificate, trusted: Iterable[Certificate], now: datetime) -> tuple[State, str]:
    end = shown.not_valid_after_utc
    if end <= now:
        return "bad", f"its certificate expired on {end:%Y-%m-%d %H:%M} UTC"
    if not any(is_signed_by(shown, authority) for authority in trusted):
        return "bad", "caBundle is not of who signed its certificate; API servers do not trust it"
    if end <= now + _SOON:
        return "odd", f"its certificate ends on {end:%Y-%m-%d}, and was not renewed"
    return "good", f"answers, with a certificate until {end:%Y-%m-%d}"


def _name(obj: Mapping[str, Any]) -> str:
    meta = obj["metadata"]
    return f"{meta.get('namespace')}/{meta['name']}"
