"""What `kohort run` may do: one role for each job, those of the workload kinds from their bundles.

deploy/rbac.yaml and the roles of the Helm chart are written from this (`python hack/generated.py`), a test compares.
Where Kohort is to work in some namespaces only, what a role lets it write is bound there and nowhere else: `Role.wide`
and `Role.narrow` are the two halves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from kohort.api import registry
from kohort.api.bundle import MANAGE, READ, UPDATE, PolicyRule, bundles
from kohort.grouping.settings import Grouping

_CORE: Final = ("",)
_GROUPS: Final = ("scheduling.k8s.io",)
# Of Kubernetes' own resources that roles speak of, those without a namespace.
_CLUSTER_WIDE: Final = frozenset(
    {
        *("nodes", "persistentvolumes", "tokenreviews", "subjectaccessreviews"),
        *("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
    }
)


def _companions(verbs: tuple[str, ...] = READ, known: frozenset[str] = frozenset()) -> tuple[PolicyRule, ...]:
    """The kinds that rules of companion mode look up, one rule for each API group that is not `known`."""
    found: dict[str, list[str]] = {}
    for kind in Grouping().reads:
        if kind.group not in known:
            found.setdefault(kind.group, []).append(f"{kind.name.lower()}s")
    why = "For gangs of operators that know nothing of Kohort (docs/companion.md); what may not be read makes no gangs."
    return tuple(
        PolicyRule((group,), tuple(names), verbs, "" if number else why)
        for number, (group, names) in enumerate(found.items())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """`parts`: whoever needs it: the scheduler, or the controllers, or both."""

    name: str
    rules: tuple[PolicyRule, ...]
    parts: tuple[str, ...] = ("controllers",)
    why: str = ""
    controller: str = ""  # that has to be switched on
    own_namespace: bool = False  # only where Kohort itself is

    @property
    def wide(self) -> tuple[PolicyRule, ...]:
        """Reading, which is about the whole cluster, and writing of what has no namespace."""
        return tuple(_halves(self.rules, wide=True))

    @property
    def narrow(self) -> tuple[PolicyRule, ...]:
        """Writing within namespaces."""
        return tuple(_halves(self.rules, wide=False))


LOOK: Final = Role(
    name="look",
    parts=("scheduler", "controllers", "webhook"),
    why="Finding out what the cluster has and who else works there. Read only.",
    rules=(
        PolicyRule(
            ("admissionregistration.k8s.io",),
            ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
            ("list",),
        ),
        PolicyRule(("coordination.k8s.io",), ("leases",), ("list",)),
        PolicyRule((), (), ("get",), paths=("/metrics",)),
    ),
)
SCHEDULER: Final = Role(
    name="scheduler",
    parts=("scheduler",),
    why="Placing pods: read what decides, bind, evict what must make room, say why something waits.",
    rules=(
        PolicyRule(_CORE, ("nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims"), READ),
        PolicyRule(_CORE, ("persistentvolumes", "persistentvolumeclaims"), UPDATE),
        PolicyRule(_CORE, ("pods",), (*READ, "delete")),
        PolicyRule(_CORE, ("pods",), ("create",), "For the spares of gangs that ask for them (kohort.dev/spares)."),
        PolicyRule(_CORE, ("pods/binding",), ("create",)),
        PolicyRule(_CORE, ("pods/eviction",), ("create",), "For defragmentation, where it is switched on."),
        PolicyRule(_CORE, ("pods/status",), UPDATE),
        PolicyRule(
            _CORE,
            ("resourcequotas",),
            READ,
            "To name the quota that keeps members of a gang from being created; without it, it is not named.",
        ),
        PolicyRule(
            _CORE,
            ("services", "replicationcontrollers"),
            READ,
            "For pods that are spread by what selects them; without it they are not.",
        ),
        PolicyRule(("apps",), ("replicasets", "statefulsets"), READ),
        PolicyRule(
            ("batch",), ("jobs",), READ, "For gangs whose members are done and gone: their Jobs have recorded them."
        ),
        PolicyRule(("policy",), ("poddisruptionbudgets",), READ),
        PolicyRule(("storage.k8s.io",), ("storageclasses",), READ),
        PolicyRule(("resource.k8s.io",), ("resourceclaims",), READ),
        PolicyRule(_GROUPS, ("workloads", "podgroups", "compositepodgroups"), READ),
        PolicyRule(_GROUPS, ("podgroups/status", "compositepodgroups/status"), UPDATE),
        *_companions(known=frozenset({"batch", "apps"})),  # which it reads for reasons of its own
        PolicyRule(
            ("kohort.dev",),
            ("groupingrules",),
            READ,
            "Rules of administrators; the kinds that these name need a role of their own (docs/companion.md).",
        ),
        PolicyRule(("kohort.dev",), ("groupingrules/status",), UPDATE),
    ),
)
GROUPS: Final = Role(
    name="groups",
    why="What all controllers do: groups.",
    rules=(
        PolicyRule(_GROUPS, ("workloads", "podgroups", "compositepodgroups"), MANAGE),
        PolicyRule(_GROUPS, ("priorityclasses",), READ),
    ),
)
EVENTS: Final = Role(
    name="events",
    parts=("scheduler", "controllers"),
    why="Saying what happened.",
    rules=(PolicyRule(("events.k8s.io",), ("events",), ("create", "patch", "update")),),
)
LEASE: Final = Role(
    name="lease",
    parts=("scheduler", "controllers"),
    why="One of several processes works.",
    rules=(
        PolicyRule(("coordination.k8s.io",), ("leases",), ("get", "create", "update")),
        PolicyRule(
            _CORE,
            ("configmaps",),
            ("get", "create", "patch"),
            "Which rules group pods, for `kohort explain`; without it, it takes the defaults.",
        ),
    ),
    own_namespace=True,
)
JOBS: Final = Role(
    name="jobs",
    why=(
        "Beside rbac.yaml, only where no kube-controller-manager runs and "
        "`kohort run --controllers job,cronjob,…` stands in."
    ),
    rules=(
        PolicyRule(("batch",), ("jobs", "cronjobs"), MANAGE),
        PolicyRule(("batch",), ("jobs/status", "cronjobs/status", "jobs/finalizers", "cronjobs/finalizers"), UPDATE),
        PolicyRule(_CORE, ("pods",), MANAGE),
        PolicyRule(_CORE, ("pods/status",), UPDATE),
        PolicyRule(
            _CORE, ("resourcequotas",), READ, "Whether all pods of a gang fit into what the namespace may have."
        ),
    ),
)


def dashboard_role() -> Role:
    return Role(
        name="dashboard",
        parts=("dashboard",),
        why=(
            "What `kohort run --dashboard` may do besides rbac.yaml: ask who somebody is and what they may read, "
            "and read what it shows."
        ),
        rules=(
            PolicyRule(("authentication.k8s.io",), ("tokenreviews",), ("create",)),
            PolicyRule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
            PolicyRule(
                _CORE,
                (
                    *("nodes", "namespaces", "pods", "events"),
                    *("persistentvolumes", "persistentvolumeclaims", "resourcequotas"),
                ),
                READ,
            ),
            PolicyRule(("storage.k8s.io",), ("storageclasses",), READ),
            PolicyRule(("resource.k8s.io",), ("resourceclaims",), READ),
            PolicyRule(("policy",), ("poddisruptionbudgets",), READ),
            PolicyRule(_GROUPS, ("workloads", "podgroups", "compositepodgroups"), READ),
            PolicyRule(("kohort.dev",), ("groupingrules",), READ, "Which rule makes a group of pods that name none."),
            *_owners(),
            PolicyRule(("apps",), ("deployments", "replicasets", "statefulsets", "daemonsets"), READ),
        ),
    )


def _owners() -> Iterator[PolicyRule]:
    why = "Who stands above pods. What may not be read is not named."
    plurals: dict[str, list[str]] = {}
    for kind in registry.owner_kinds():
        plurals.setdefault(kind.group, []).append(kind.plural)
    for group, found in plurals.items():
        yield PolicyRule((group,), tuple(found), READ, why)
        why = ""


CONFIGURATIONS: Final = Role(
    name="webhook-configurations",
    parts=("webhook",),
    why="Telling API servers whom to trust: the authority of its certificate, in its own configurations.",
    rules=(
        PolicyRule(
            ("admissionregistration.k8s.io",),
            ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
            ("get", "patch"),
            names=("kohort-webhook",),
        ),
    ),
)
CERTIFICATE: Final = Role(
    name="webhook-certificate",
    parts=("webhook",),
    why="Its certificate, made and renewed by itself.",
    rules=(PolicyRule(_CORE, ("secrets",), ("get", "update"), names=("kohort-webhook",)),),
    own_namespace=True,
)
WEBHOOK_GROUPS: Final = Role(
    name="webhook-groups",
    parts=("webhook-groups",),
    why="Groups for pods that kube-scheduler places (docs/companion.md).",
    rules=(
        *_companions(("get",)),
        PolicyRule(("kohort.dev",), ("groupingrules",), READ),
        PolicyRule(_GROUPS, ("workloads", "podgroups", "compositepodgroups"), ("get", "create", "patch")),
    ),
)


def webhook_roles() -> tuple[Role, ...]:
    """Those of `kohort webhook`, beside `look`: of each family what its rules look up."""
    consulted = (
        Role(name=f"{name}-admission", parts=("webhook",), controller=name, rules=one.consults)
        for one in bundles()
        for name in (one.controllers[0].name if one.controllers else "",)
        if one.consults
    )
    return (CONFIGURATIONS, CERTIFICATE, *consulted, WEBHOOK_GROUPS)


def kinds_roles() -> tuple[Role, ...]:
    """One for each group of controllers that a real cluster does not have."""
    found = (one for bundle in bundles() for one in bundle.controllers if one.rules)
    return tuple(Role(name=one.name, rules=one.rules, controller=one.name) for one in found)


def every_role() -> tuple[Role, ...]:
    return (LOOK, SCHEDULER, GROUPS, EVENTS, LEASE, *kinds_roles())


def roles() -> str:
    """Those of the workload kinds, with their bindings: YAML documents, each after a line `---`."""
    return _text(kinds_roles())


def rbac() -> str:
    """deploy/rbac.yaml."""
    return f"{_HEAD}{_text(every_role())}"


def rbac_jobs() -> str:
    """deploy/rbac-jobs.yaml."""
    return _text([JOBS]).removeprefix("---\n")


def rbac_dashboard() -> str:
    """deploy/rbac-dashboard.yaml."""
    return _text([dashboard_role()]).removeprefix("---\n")


def as_objects(rules: Iterable[PolicyRule]) -> list[dict[str, Any]]:
    """As the rules of a ClusterRole."""
    return [
        {"nonResourceURLs": list(rule.paths), "verbs": list(rule.verbs)}
        if rule.paths
        else {
            "apiGroups": list(rule.groups),
            "resources": list(rule.resources),
            **({"resourceNames": list(rule.names)} if rule.names else {}),
            "verbs": list(rule.verbs),
        }
        for rule in rules
    ]


def chart_roles() -> str:
    """files/roles.json of the chart."""
    made = {
        one.name: {
            "parts": list(one.parts),
            "controller": one.controller,
            "ownNamespace": one.own_namespace,
            "wide": as_objects(one.wide),
            "narrow": as_objects(one.narrow),
        }
        for one in (*every_role(), dashboard_role(), *webhook_roles())
    }
    return json.dumps(made, indent=1) + "\n"


def _halves(rules: Iterable[PolicyRule], *, wide: bool) -> Iterator[PolicyRule]:
    for rule in rules:
        everywhere = tuple(one for one in rule.resources if one.partition("/")[0] in _without_namespace())
        within = tuple(one for one in rule.resources if one not in everywhere)
        reading = tuple(verb for verb in rule.verbs if verb in READ)
        writing = tuple(verb for verb in rule.verbs if verb not in READ)
        if wide:
            if rule.paths or rule.verbs == reading:
                yield rule
                continue
            yield from _rule(rule, everywhere, rule.verbs)
            yield from _rule(rule, within, reading)
        elif not rule.paths:
            yield from _rule(rule, within, writing)


def _rule(rule: PolicyRule, resources: tuple[str, ...], verbs: tuple[str, ...]) -> Iterator[PolicyRule]:
    if resources and verbs:
        yield replace(rule, resources=resources, verbs=verbs)


def _without_namespace() -> frozenset[str]:
    return _CLUSTER_WIDE | {kind.plural for kind in registry.every_kind() if not kind.namespaced}


_HEAD: Final = """\
# What `kohort run` may do. Each role is one job; leave out those whose controllers you do not run.
# Written from the code by `python hack/generated.py`.
apiVersion: v1
kind: Namespace
metadata:
  name: kohort-system
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: kohort
  namespace: kohort-system
"""


def _text(found: Iterable[Role]) -> str:
    made = tuple(found)
    return "".join(map(_role, made)) + "".join(map(_binding, made))


def _role(one: Role) -> str:
    lines = "\n".join(line for rule in one.rules for line in _lines(rule))
    why = f"# {one.why}\n" if one.why else ""
    kind, space = ("Role", "\n  namespace: kohort-system") if one.own_namespace else ("ClusterRole", "")
    return f"""---
{why}apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata:
  name: kohort-{one.name}{space}
rules:
{lines}
"""


def _lines(rule: PolicyRule) -> Iterator[str]:
    if rule.why:
        yield f"# {rule.why}"
    if rule.paths:
        yield f"- nonResourceURLs: {_list(rule.paths)}"
    else:
        yield f"- apiGroups: {_list(rule.groups)}"
        yield f"  resources: {_list(rule.resources)}"
    yield f"  verbs: {_list(rule.verbs)}"


def _list(words: Iterable[str]) -> str:
    return f"[{', '.join(word or json.dumps(word) for word in words)}]"


def _binding(one: Role) -> str:
    kind, space = ("Role", "\n  namespace: kohort-system") if one.own_namespace else ("ClusterRole", "")
    return f"""---
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}Binding
metadata:
  name: kohort-{one.name}{space}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: kohort-{one.name}}}
subjects:
- {{kind: ServiceAccount, name: kohort, namespace: kohort-system}}
"""
