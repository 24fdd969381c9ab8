"""The rules of a JobSet in CEL, for servers that do not ask us: those of validation.py, gang_validation.py, update.py.

A server refuses a definition whose rules could be dear, and upstream's lists have no bound. So these rules look at the
first places of a list, by index; what stands behind them is told by the controller. No rule may refuse what our own
admission accepts, whatever the minor and the options.
"""

from __future__ import annotations

from typing import Final

from kohort.api.schema import Cel

MOST_INT: Final = 2**31 - 1
MOST_NAME: Final = 63
MOST_RULE_NAME: Final = 128
MOST_GROUPS: Final = 8  # of one list in a Workload
_MOST: Final = 32  # places of a list that are looked at
_FEW: Final = 16  # where places are compared with each other

_JOBS: Final = "self.replicatedJobs"
_OLD: Final = "oldSelf.replicatedJobs"
_POLICIES: Final = "self.podGroupPolicies"
_SCHEDULING: Final = "self.scheduling"
_RULES: Final = "self.failurePolicy.rules"
_COORDINATOR: Final = "self.coordinator"
_LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def _places(most: int) -> str:
    return f"[{', '.join(map(str, range(most)))}]"


def _all(items: str, place: str, body: str, most: int = _MOST) -> str:
    return f"{_places(most)}.all({place}, {place} >= size({items}) || ({body}))"


def _any(items: str, place: str, body: str, most: int = _MOST) -> str:
    return f"{_places(most)}.exists({place}, {place} < size({items}) && ({body}))"


def _has(path: str, start: str) -> str:
    """That all members of the path behind its start are there."""
    names = path.removeprefix(f"{start}.").split(".")
    return " && ".join(f"has({start}.{'.'.join(names[: end + 1])})" for end in range(len(names)))


# ---- ReplicatedJobs, by their place i

_SPEC: Final = f"{_JOBS}[i].template.spec"
_POD: Final = f"{_SPEC}.template.spec"
_FEW_ENOUGH: Final = f"(!has({_JOBS}) || size({_JOBS}) <= {_MOST})"


def _of_job(member: str, otherwise: str) -> str:
    path = f"{_SPEC}.{member}"
    return f"({_has(path, f'{_JOBS}[i]')} ? {path} : {otherwise})"


_PARALLELISM: Final = _of_job("parallelism", "1")
_PODS_PER_JOB: Final = f"[[{_PARALLELISM}, {_of_job('completions', str(MOST_INT))}].min(), 0].max()"
_PODS: Final = f"{_JOBS}[i].replicas * {_PODS_PER_JOB}"
_GROUPED: Final = f"(has({_JOBS}[i].gangConfig) && {_JOBS}[i].gangConfig.gangMode != 'Off')"
_EACH_JOB: Final = f"{_JOBS}[i].gangConfig.gangMode == 'ReplicatedGang'"
_REFERENCE: Final = f"({_has(_POD, f'{_JOBS}[i]')} && (has({_POD}.schedulingGroup) || has({_POD}.workloadRef)))"  # V7
_WAITS: Final = f"(has({_JOBS}[i].dependsOn) && size({_JOBS}[i].dependsOn) > 0)"


def _some_job(body: str) -> str:
    return f"(has({_JOBS}) && {_any(_JOBS, 'i', body)})"


def _every_job(body: str) -> str:
    return f"(!has({_JOBS}) || {_all(_JOBS, 'i', body)})"


def _is_job(text: str, place: str = "k", before: str = "") -> str:
    """That a ReplicatedJob has this name."""
    name = f"{_JOBS}[{place}].name"
    same = f"(has({name}) ? {name} == {text} : {text} == '')"
    return f"(has({_JOBS}) && {_any(_JOBS, place, before + same)})"


def _targeted(targets: str) -> str:
    return f"(has({_JOBS}[i].name) && {_JOBS}[i].name in {targets})"


_WHOLE: Final = "(has(self.gangConfig) && self.gangConfig.gangMode == 'Gang')"
_IN_ORDER: Final = "(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder')"
_SEQUENCED: Final = f"(has({_JOBS}) && size({_JOBS}) > 1 && ({_IN_ORDER} || {_some_job(_WAITS)}))"
_BY_MODE: Final = f"({_WHOLE} || {_some_job(_GROUPED)})"
_BY_POLICIES: Final = f"(has({_POLICIES}) && size({_POLICIES}) > 0)"

_START: Final = (
    Cel(
        _every_job(
            f"!has({_JOBS}[i].dependsOn) || i > 0 && {_JOBS}[i].dependsOn.all(d, !has(d.name)"
            f" || {_is_job('d.name', before='k < i && ')})"
        ),
        "dependsOn must name earlier ReplicatedJobs",
        ".replicatedJobs",
    ),
    Cel(
        _every_job(
            f"!has({_JOBS}[i].name) || !"
            + _any(_JOBS, "k", f"k < i && has({_JOBS}[k].name) && {_JOBS}[k].name == {_JOBS}[i].name")
        ),
        "names of ReplicatedJobs must differ",
        ".replicatedJobs",
    ),
    Cel(
        _every_job(f"{_JOBS}[i].replicas * {_PARALLELISM} <= {MOST_INT}"),
        f"the product of replicas and parallelism must not exceed {MOST_INT}",
        ".replicatedJobs",
        once=True,
    ),
)
_JOB_INDEX: Final = f"(has({_COORDINATOR}.jobIndex) ? {_COORDINATOR}.jobIndex : 0)"
_TARGETS: Final = (
    Cel(
        f"!has(self.successPolicy) || !has(self.successPolicy.targetReplicatedJobs) || !{_FEW_ENOUGH} || "
        + _all("self.successPolicy.targetReplicatedJobs", "t", _is_job("self.successPolicy.targetReplicatedJobs[t]")),
        "targets must be names of ReplicatedJobs",
        ".successPolicy.targetReplicatedJobs",
    ),
    Cel(
        f"!has(self.failurePolicy) || !has({_RULES}) || !{_FEW_ENOUGH} || "
        + _all(
            _RULES,
            "r",
            f"!has({_RULES}[r].targetReplicatedJobs) || "
            + _all(f"{_RULES}[r].targetReplicatedJobs", "t", _is_job(f"{_RULES}[r].targetReplicatedJobs[t]")),
        ),
        "targets must be names of ReplicatedJobs",
        ".failurePolicy.rules",
    ),
    Cel(
        f"!has({_COORDINATOR}) || !has({_COORDINATOR}.replicatedJob) || !{_FEW_ENOUGH} || "
        + _is_job(f"{_COORDINATOR}.replicatedJob"),
        "must be the name of a ReplicatedJob",
        ".coordinator",
        once=True,
    ),
    Cel(
        f"!has({_COORDINATOR}) || !has({_COORDINATOR}.replicatedJob) || "
        + _every_job(
            f"!has({_JOBS}[i].name) || {_JOBS}[i].name != {_COORDINATOR}.replicatedJob"
            f" || {_JOB_INDEX} >= 0 && {_JOB_INDEX} < {_JOBS}[i].replicas"
        ),
        "jobIndex must be that of a Job of the ReplicatedJob",
        ".coordinator",
        once=True,
    ),
)
_FAILURES: Final = (
    Cel(
        f"!has(self.failurePolicy) || !has({_RULES}) || "
        + _all(
            _RULES,
            "r",
            f"has({_RULES}[r].name) && {_RULES}[r].name.matches('^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$') && !"
            + _any(_RULES, "k", f"k < r && has({_RULES}[k].name) && {_RULES}[k].name == {_RULES}[r].name"),
        ),
        "names of rules must differ, start with a letter, go on with letters, digits, '_', ',' or ':', and not end "
        "with ',' or ':'",
        ".failurePolicy.rules",
    ),
    Cel(
        "!has(self.failurePolicy) || !has(self.failurePolicy.restartStrategy)"
        " || self.failurePolicy.restartStrategy != 'InPlaceRestart' || "
        + _every_job(
            f"{_of_job('backoffLimit', '0')} == {MOST_INT} && {_of_job('podReplacementPolicy', repr(''))} == 'Failed'"
            f" && {_of_job('completions', '-1')} == {_of_job('parallelism', '-2')}"
        ),
        f"in-place restart needs backoffLimit {MOST_INT}, podReplacementPolicy Failed, and completions equal to "
        "parallelism",
        ".replicatedJobs",
        once=True,
    ),
)

# ---- gangs: numbers are those of gang_validation.py

_TARGETS_OF: Final = "p.targetReplicatedJobs"
_NO_TARGETS: Final = f"(!has({_TARGETS_OF}) || size({_TARGETS_OF}) == 0)"
_ITS_TARGETS: Final = f"{_POLICIES}[n].targetReplicatedJobs"
_LISTED: Final = f"{_SCHEDULING}.replicatedJobs"
_LEVEL: Final = ("schedulingPolicy", "schedulingConstraints", "disruptionMode")
_MINIMUM: Final = f"{_SCHEDULING}.schedulingPolicy.gang.minCount"
_ONE_GANG: Final = "!(has(p.mode) && p.mode == 'ReplicatedGang')"


def _twice(items: str) -> str:
    """That two entries of a list name the same target."""
    one, other = (f"{items}[{place}].targetReplicatedJobs" for place in "ab")
    inner = _any(items, "b", f"b < a && has({other}) && {one}.exists(t, t in {other})", _FEW)
    return _any(items, "a", f"has({one}) && {inner}", _FEW)


# Over one step or two; longer chains are told by the controller
_CHAINED: Final = (
    f"!(has({_POLICIES}[n].mode) && {_POLICIES}[n].mode == 'ReplicatedGang') && has({_ITS_TARGETS}) && "
    + _any(
        _JOBS,
        "i",
        f"{_targeted(_ITS_TARGETS)} && has({_JOBS}[i].dependsOn) && {_JOBS}[i].dependsOn.exists(d, has(d.name)"
        f" && d.name != {_JOBS}[i].name && (d.name in {_ITS_TARGETS} || "
        + _any(
            _JOBS,
            "k",
            f"has({_JOBS}[k].name) && {_JOBS}[k].name == d.name && has({_JOBS}[k].dependsOn)"
            f" && {_JOBS}[k].dependsOn.exists(e, has(e.name) && e.name in {_ITS_TARGETS})",
            _FEW,
        )
        + "))",
        _FEW,
    )
)
_GANGS: Final = (
    Cel(
        f"!({_WHOLE} && {_some_job(_GROUPED)})",  # V3
        "the JobSet is one gang already: leave gangConfig of ReplicatedJobs out, or set the JobSet to Off",
        ".replicatedJobs",
    ),
    Cel(
        f"({_BY_MODE} ? 1 : 0) + ({_BY_POLICIES} ? 1 : 0) + (has({_SCHEDULING}) ? 1 : 0) <= 1",  # V4
        "only one of gangConfig, podGroupPolicies and scheduling",
    ),
    Cel(
        f"!({_WHOLE} && {_SEQUENCED})",  # V5
        "ReplicatedJobs that start one after the other (InOrder or dependsOn) cannot be one gang",
        ".gangConfig",
    ),
    Cel(
        f"!({_BY_MODE} && {_some_job(f'({_WHOLE} || {_GROUPED}) && {_REFERENCE}')}"  # V7
        f" && {_some_job(f'({_WHOLE} || {_GROUPED}) && !{_REFERENCE}')})"
        f" && !{_some_job(f'{_GROUPED} && {_EACH_JOB} && {_REFERENCE}')}",
        "every pod template of a gang names a group or none does, and none where each Job has its own",
        ".replicatedJobs",
    ),
    Cel(
        f"!(has({_SCHEDULING}) && {_some_job(_REFERENCE)})",
        "scheduling makes the groups: remove it, or the groups of pod templates",
        ".replicatedJobs",
    ),
    Cel(
        f"!(({_BY_MODE} || {_BY_POLICIES} || has({_SCHEDULING}))"  # V8
        f" && {_some_job(_has(f'{_SPEC}.scheduling', f'{_JOBS}[i]'))})",
        "the JobSet makes the groups: remove scheduling of the Job templates",
        ".replicatedJobs",
    ),
    Cel(
        f"!has({_JOBS}) || {_places(_MOST)}.filter(i, i < size({_JOBS}) && {_GROUPED} && !{_REFERENCE}"  # V11
        f" && {_PODS} > 0).size() <= {MOST_GROUPS}",
        f"at most {MOST_GROUPS} ReplicatedJobs with gangs of their own",
        ".replicatedJobs",
    ),
    Cel(
        f"!{_WHOLE} || !has({_JOBS}) || {_places(_MOST)}.map(i, i < size({_JOBS}) && !{_REFERENCE} ? {_PODS} : 0)"
        f".sum() <= {MOST_INT}",  # V12
        f"the pods of a gang must not be more than {MOST_INT}",
        ".replicatedJobs",
    ),
    Cel(
        _every_job(f"!({_WHOLE} || {_GROUPED}) || has({_JOBS}[i].name) && {_JOBS}[i].name.matches('{_LABEL}')"),
        "the name of a ReplicatedJob in a gang must be a DNS label",
        ".replicatedJobs",
    ),
)
_PARTS: Final = (
    Cel(
        f"!has({_POLICIES}) || size({_POLICIES}) < 2 || !{_POLICIES}.exists(p, {_NO_TARGETS})",  # V13
        "a policy for all ReplicatedJobs must be the only one",
        ".podGroupPolicies",
    ),
    Cel(
        f"!has({_POLICIES}) || !{_FEW_ENOUGH} || {_POLICIES}.all(p, !has({_TARGETS_OF})"
        f" || {_TARGETS_OF}.all(t, {_is_job('t')}))",
        "targets must be names of ReplicatedJobs",
        ".podGroupPolicies",
    ),
    Cel(
        f"!has({_POLICIES}) || !{_twice(_POLICIES)}",
        "a ReplicatedJob can be the target of one policy only",
        ".podGroupPolicies",
    ),
    Cel(
        f"!has({_POLICIES}) || !{_POLICIES}.exists(p, {_ONE_GANG} && ({_NO_TARGETS} ? {_SEQUENCED}"
        f" : {_IN_ORDER} && size({_TARGETS_OF}) > 1))",  # V5
        "ReplicatedJobs that start one after the other (InOrder or dependsOn) cannot be one gang",
        ".podGroupPolicies",
    ),
    Cel(
        f"!has({_POLICIES}) || !has({_JOBS}) || !" + _any(_POLICIES, "n", _CHAINED, MOST_GROUPS),
        "ReplicatedJobs of which one depends on another cannot be one gang",
        ".podGroupPolicies",
    ),
    Cel(
        f"!has({_SCHEDULING}) || !has({_LISTED}) || !{_FEW_ENOUGH}"
        f" || {_LISTED}.all(p, {_TARGETS_OF}.all(t, {_is_job('t')}))",  # V14
        "targets must be names of ReplicatedJobs",
        ".scheduling.replicatedJobs",
    ),
    Cel(
        f"!has({_SCHEDULING}) || !has({_LISTED}) || !{_twice(_LISTED)}",
        "a ReplicatedJob can be the target of one entry only",
        ".scheduling.replicatedJobs",
    ),
    Cel(
        f"!has({_SCHEDULING}) || !has({_LISTED}) || size({_LISTED}) == 0"
        f" || {' || '.join(f'has({_SCHEDULING}.{name})' for name in _LEVEL)}"
        f" || {_every_job(f'!has({_JOBS}[i].name) || {_LISTED}.exists(p, {_JOBS}[i].name in {_TARGETS_OF})')}",
        "every ReplicatedJob must be a target",
        ".scheduling.replicatedJobs",
    ),
    Cel(
        f"!has({_SCHEDULING}) || !({_has(_MINIMUM, _SCHEDULING)}) || !(has({_LISTED}) && size({_LISTED}) > 0)"
        f" && !{_SEQUENCED} && (!has({_JOBS}) || size({_JOBS}) == 0 || !{_FEW_ENOUGH}"
        f" || {_MINIMUM} <= {_places(_MOST)}.map(i, i < size({_JOBS}) ? {_PODS} : 0).sum())",
        "minCount is at most the number of pods, and stands neither with replicatedJobs nor where they start one after "
        "the other",
        ".scheduling.schedulingPolicy",
    ),
    Cel(
        f"!has({_SCHEDULING}) || !has({_LISTED}) || !has({_JOBS}) || !{_FEW_ENOUGH}"
        f" || {_LISTED}.all(p, has(p.job) || !({_has('p.schedulingPolicy.gang.minCount', 'p')})"
        f" || p.schedulingPolicy.gang.minCount <= {_places(_MOST)}.map(i, i < size({_JOBS})"
        f" && {_targeted(_TARGETS_OF)} ? {_PODS} : 0).sum())",
        "minCount must not be more than the pods of the targets",
        ".scheduling.replicatedJobs",
    ),
)

# ---- later: of a ReplicatedJob only parts of its template change

_MEMBERS: Final = (
    f"has({_JOBS}[i].gangConfig) == has({_OLD}[i].gangConfig)"
    f" && (!has({_JOBS}[i].gangConfig) || {_JOBS}[i].gangConfig.gangMode == {_OLD}[i].gangConfig.gangMode)"  # V15
)
_LATER: Final = (
    Cel(
        f"(has({_JOBS}) ? size({_JOBS}) : 0) == (has({_OLD}) ? size({_OLD}) : 0) && (!has({_JOBS}) || !has({_OLD}) || "
        + _all(
            _JOBS,
            "i",
            f"i >= size({_OLD}) || !has({_JOBS}[i].name) || !has({_OLD}[i].name) || {_JOBS}[i].name == {_OLD}[i].name",
        )
        + ")",
        "ReplicatedJobs cannot be added, removed, renamed or moved",
        ".replicatedJobs",
    ),
    Cel(
        f"!has({_JOBS}) || !has({_OLD}) || "
        + _all(_JOBS, "i", f"i >= size({_OLD}) || {_JOBS}[i].replicas == {_OLD}[i].replicas && {_MEMBERS}"),
        "replicas and gangConfig of ReplicatedJobs are immutable",
        ".replicatedJobs",
    ),
)
RULES: Final = (*_START, *_TARGETS, *_FAILURES, *_GANGS, *_PARTS, *_LATER)

# ---- rules of smaller parts, and of the whole

BLOCK: Final = Cel(
    "!(has(self.schedulingPolicy) && has(self.schedulingPolicy.basic)"
    " && has(self.disruptionMode) && has(self.disruptionMode.all))",
    "pods of a basic group come and go one by one: disruptionMode must be single",
)
ENTRY: Final = Cel(
    "!has(self.job) || size(self.targetReplicatedJobs) == 1"
    f" && {' && '.join(f'!has(self.{name})' for name in (*_LEVEL, 'resourceClaims'))}",
    "job is for exactly one target, and what is said of its groups stands within job",
)
_NAMED: Final = "self.spec.replicatedJobs"
NAMES: Final = Cel(
    f"!has(self.spec) || !has({_NAMED}) || size({_NAMED}) == 0"
    " || self.metadata.name.matches('^[a-z][-a-z0-9]*$') && "
    + _all(
        _NAMED,
        "i",
        f"(has({_NAMED}[i].name) ? size({_NAMED}[i].name) : 0) + size(self.metadata.name)"
        f" + size(string({_NAMED}[i].replicas - 1)) + 2 <= {MOST_NAME}"
        f" && (!has({_NAMED}[i].name) || {_NAMED}[i].name.matches('^[-a-z0-9]*$'))",
    ),
    f"the names of its Jobs, <JobSet>-<ReplicatedJob>-<index>, must be DNS labels of at most {MOST_NAME} characters "
    "that begin with a letter",
)
