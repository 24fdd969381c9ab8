"""DaemonSets: which nodes suit, which pods come and go, how an update keeps its bounds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.controllermanager.build import NOW, owner, pod, template

from kohort.api.kind import Object
from kohort.controllermanager import history
from kohort.controllermanager.daemonset import nodes, plan
from kohort.controllermanager.daemonset.nodes import Fit
from kohort.controllermanager.daemonset.plan import FailureBackoff


def daemonset(spec: dict[str, Any] | None = None, **rest: Any) -> Object:
    found = owner("DaemonSet", template=template(**(spec or {})), **rest)
    found["metadata"] |= {"namespace": "lab", "uid": "d"}
    return found


def node(*taints: tuple[str, str], **labels: str) -> Object:
    spec = {"taints": [{"key": key, "effect": effect} for key, effect in taints]}
    return {"metadata": {"name": "n1", "labels": labels}, "spec": spec}


def required(key: str, value: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": wanted}}


@pytest.mark.parametrize(
    ("spec", "there", "run", "stay"),
    [
        ({}, node(), True, True),
        ({"nodeSelector": {"gpu": "a"}}, node(gpu="a"), True, True),
        ({"nodeSelector": {"gpu": "a"}}, node(gpu="b"), False, False),
        ({"nodeName": "n2"}, node(), False, False),
        (required("zone", "a"), node(zone="a"), True, True),
        (required("zone", "a"), node(zone="b"), False, False),
        ({}, node(("node.kubernetes.io/unschedulable", "NoSchedule")), True, True),
        ({}, node(("node.kubernetes.io/not-ready", "NoExecute")), True, True),
        ({}, node(("node.kubernetes.io/network-unavailable", "NoSchedule")), False, True),
        ({"hostNetwork": True}, node(("node.kubernetes.io/network-unavailable", "NoSchedule")), True, True),
        ({}, node(("gpu", "NoSchedule")), False, True),
        ({}, node(("gpu", "NoExecute")), False, False),
        ({}, node(("gpu", "PreferNoSchedule")), True, True),
        ({"tolerations": [{"operator": "Exists"}]}, node(("gpu", "NoExecute")), True, True),
    ],
)
def test_which_nodes_suit(spec: dict[str, Any], there: Object, run: bool, stay: bool) -> None:
    assert nodes.demand(daemonset(spec)).fit(there) == Fit(run, stay)


def test_a_daemon_is_tied_to_its_node_and_stays_in_trouble() -> None:
    ds = daemonset(required("zone", "a"))
    made = nodes.daemon(ds, "n7", "hash")
    assert nodes.target(made) == "n7"
    assert made["metadata"]["labels"] == {"app": "web", history.HASH: "hash"}
    keys = {one["key"] for one in made["spec"]["tolerations"]}
    assert "node.kubernetes.io/unreachable" in keys
    assert "tolerations" not in ds["spec"]["template"]["spec"]


# ---- what comes and goes


def daemon(name: str, *, new: bool = True, node: str = "n1", **state: Any) -> Object:
    return pod(name, node=node, labels={"app": "web", history.HASH: "new" if new else "old"}, **state)


def rule(surge: int = 0, unavailable: int = 1, **more: Any) -> plan.Rules:
    return plan.Rules(
        **{"hashed": "new", "least": 0, "most_surge": surge, "most_unavailable": unavailable, "now": NOW, **more}
    )


def names(pods: list[Object]) -> list[str]:
    return sorted(one["metadata"]["name"] for one in pods)


RUN, STAY, GO = Fit(True, True), Fit(False, True), Fit(False, False)
GOING: dict[str, Any] = {"deletionTimestamp": "2026-11-16T12:00:00Z"}


@pytest.mark.parametrize(
    ("fit", "pods", "surge", "create", "delete"),
    [
        (RUN, [], 0, ["n1"], []),
        (STAY, [], 0, [], []),
        (RUN, [daemon("a")], 0, [], []),
        (STAY, [daemon("a")], 0, [], []),
        (GO, [daemon("a"), daemon("b", **GOING)], 0, [], ["a"]),
        (RUN, [daemon("a", **GOING)], 0, [], []),  # its successor waits until it is gone
        (RUN, [daemon("a", phase="Failed", ready=None)], 0, [], ["a"]),
        (RUN, [daemon("a", age=1), daemon("b", age=9)], 0, [], ["a"]),
        (RUN, [daemon("a", new=False), daemon("b")], 1, [], ["a"]),
        (RUN, [daemon("a", new=False), daemon("b", ready=None)], 1, [], []),
        (RUN, [daemon("a", new=False, ready=None), daemon("b", ready=None)], 1, [], ["a"]),
    ],
)  # fmt: skip
def test_one_pod_on_each_node(fit: Fit, pods: list[Object], surge: int, create: list[str], delete: list[str]) -> None:
    found = plan.needed({"n1": fit}, {"n1": pods} if pods else {}, rule(surge), FailureBackoff())
    assert (found.create, names(found.delete)) == (create, delete)


def test_a_pod_for_a_node_that_is_gone_goes_unless_it_ran_there() -> None:
    waiting, ran = daemon("waiting", node=""), daemon("ran")
    assert names(plan.needed({}, {"gone": [waiting, ran]}, rule(), FailureBackoff()).delete) == ["waiting"]


def test_what_fails_again_is_replaced_ever_later() -> None:
    backoff, broken = FailureBackoff(), [daemon("a", phase="Failed", ready=None)]
    seen = []
    for seconds in (0.0, 0.5, 1.0, 2.0, 3.0):
        now = NOW + timedelta(seconds=seconds)
        found = plan.needed({"n1": RUN}, {"n1": broken}, rule(now=now), backoff)
        seen.append((len(found.delete), found.waits))
    assert seen == [(1, []), (0, [0.5]), (1, []), (0, [1.0]), (1, [])]


def fleet(*states: str) -> dict[str, list[Object]]:
    """`o`: old, `O`: old and not ready, `n`: new, `N`: new and not ready, `-`: one that is going; several on a node."""
    found = {}
    for index, letters in enumerate(states):
        found[f"n{index}"] = [
            daemon(
                f"{letter}{index}",
                new=letter in "nN",
                ready=None if letter in "ON" else 9.0,
                **(GOING if letter == "-" else {}),
            )
            for letter in letters
        ]
    return found


@pytest.mark.parametrize(
    ("there", "surge", "unavailable", "create", "delete"),
    [
        (fleet("o", "o", "o"), 0, 1, [], ["o0"]),
        (fleet("o", "o", "o"), 0, 2, [], ["o0", "o1"]),
        (fleet("N", "o", "o"), 0, 1, [], []),  # the first must be available before the next goes
        (fleet("n", "O", "o"), 0, 1, [], ["O1", "o2"]),  # what is broken goes at no cost
        (fleet("N", "O", "o"), 0, 1, [], ["O1"]),
        (fleet("-", "o"), 0, 1, [], []),
        (fleet("n", "n"), 0, 1, [], []),
        (fleet("o", "o", "o"), 1, 0, ["n0"], []),
        (fleet("oN", "o", "o"), 1, 0, [], []),
        (fleet("on", "o", "o"), 1, 0, ["n1"], ["o0"]),
        (fleet("O", "o", "o"), 1, 0, ["n0", "n1"], []),
    ],
)
def test_an_update_keeps_its_bounds(
    there: dict[str, list[Object]], surge: int, unavailable: int, create: list[str], delete: list[str]
) -> None:
    found = plan.update(there, rule(surge, unavailable))
    assert (found.create, names(found.delete)) == (create, delete)


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ({}, (0, 1)),
        ({"maxUnavailable": "10%"}, (0, 1)),
        ({"maxUnavailable": "50%"}, (0, 3)),
        ({"maxSurge": "30%", "maxUnavailable": 0}, (2, 0)),
        ({"maxSurge": 0, "maxUnavailable": 0}, (0, 1)),
    ],
)
def test_bounds_are_rounded_up(given: dict[str, Any], bounds: tuple[int, int]) -> None:
    ds = daemonset(updateStrategy={"type": "RollingUpdate", "rollingUpdate": given})
    found = plan.rules(ds, "new", 5, NOW)
    assert (found.most_surge, found.most_unavailable) == bounds


def test_the_status_counts_nodes() -> None:
    fits = {"n0": RUN, "n1": RUN, "n2": RUN, "n3": STAY, "n4": GO}
    found = plan.counts(fits, fleet("n", "O", "", "n", ""), rule())
    assert found == {
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 2,
        "numberMisscheduled": 1,
        "numberReady": 1,
        "numberAvailable": 1,
        "numberUnavailable": 2,
        "updatedNumberScheduled": 1,
    }
