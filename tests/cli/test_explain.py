"""`kohort explain` reads like an answer: each reason of the vocabulary, what runs, and a saved state."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console
from tests.scheduler.short import create, pod_body
from tests.scheduler.sim import START, Sim

from kohort.cli.explainprint import page
from kohort.cli.lookup import find_in_state
from kohort.cli.main import app
from kohort.place.demand import Reason
from kohort.scheduler.model import Workload
from kohort.scheduler.rootstatus import reason_and_message, root_status

NOW = datetime(2026, 1, 1, 0, 12, tzinfo=UTC)
SINCE = "12 min (since 2026-01-01T00:00:00Z)"
SCHEDULER = "  scheduler  default-scheduler, priority 0\n"


def gang(sim: Sim, name: str, size: int, minimum: int | None = None, cpu: str = "1", **more: Any) -> None:
    pod = {key: more.pop(key) for key in ("gates",) if key in more}
    create(sim, {"group": name, "gang": minimum or size, **more})
    for number in range(size):
        item = {"pod": f"{name}-{number}", "in": name, "cpu": cpu, **pod}
        create(sim, item | ({"priority": more["priority"]} if "priority" in more else {}))


def asked(sim: Sim, kind: str, name: str) -> tuple[str, set[Reason]]:
    """The page, and the reasons on it. Asking twice gives the same, and changes nothing."""
    used = sim.core.cache.state.used.copy()
    found = find_in_state(sim.core, kind, name, "default")
    answers = [root_status(sim.core, root, member) for root, member in found.roots]
    console = Console(width=200, color_system=None, highlight=False, soft_wrap=True)
    with console.capture() as text:
        console.print(page(found, answers, NOW))
    assert (sim.core.cache.state.used == used).all()
    return text.get(), {
        one.explanation.reason for one in answers if one.explanation is not None and one.explanation.reason is not None
    }


def waiting_for_group(sim: Sim) -> str:
    create(sim, {"pod": "p", "in": "nobody", "cpu": "1"})
    return f"""\
Pod p in default waits for {SINCE}: it has no node

  WaitingForPodGroup
  default/nobody does not exist
  next step  create PodGroup default/nobody, or correct spec.schedulingGroup.podGroupName
{SCHEDULER}"""


def waiting_for_members(sim: Sim) -> str:
    gang(sim, "g", 2, minimum=4)
    return f"""\
PodGroup g in default waits for {SINCE}: none of its 2 pods has a node

  WaitingForMembers
  2 of 4 members exist
  next step  2 more members have to exist
{SCHEDULER}"""


def gated(sim: Sim) -> str:
    gang(sim, "g", 2, gates=True)
    return f"""\
PodGroup g in default waits for {SINCE}: none of its 2 pods has a node

  Gated
  2 pods have scheduling gates (example.com/wait)
  next step  whoever set the scheduling gates has to take them away
{SCHEDULER}"""


def misconfigured(sim: Sim) -> str:
    create(sim, {"group": "g", "gang": 2})
    for number in range(2):
        create(sim, {"pod": f"g-{number}", "in": "g", "cpu": "1", "priority": "p10"})
    return f"""\
PodGroup g in default waits for {SINCE}: none of its 2 pods has a node

  Misconfigured
  pods of PodGroup g have priority 10; accepted is 0, the priority of PodGroup g
{SCHEDULER}"""


def no_matching_node(sim: Sim) -> str:
    create(sim, {"group": "g", "gang": 1})
    create(sim, {"pod": "g-0", "in": "g", "cpu": "1", "select": {"pool": "x"}})
    return f"""\
PodGroup g in default waits for {SINCE}: its pod has no node

  NoMatchingNode
  none of 2 nodes suits its pods; nobody can be preempted for it
  nodes      2 nodes are not selected (pool=x)
  would fit  on nodes labelled pool=x (there is none)
{SCHEDULER}"""


def insufficient(sim: Sim) -> str:
    gang(sim, "g", 8)
    return f"""\
PodGroup g in default waits for {SINCE}: none of its 8 pods has a node

  InsufficientResource
  8 pods need 8 cpu, 2 nodes have 6 free; nobody can be preempted for it
  nodes      2 nodes have room for 6 more
  closest    a lacks 1 cpu for one more pod
  would fit  with 1 more node like b
  or         with minCount 6, now
{SCHEDULER}"""


def domain_too_small(sim: Sim) -> str:
    gang(sim, "g", 5, topology="rack")
    return f"""\
PodGroup g in default waits for {SINCE}: none of its 5 pods has a node

  TopologyDomainTooSmall
  rack=B, the largest of 2, is too small: 5 pods need 5 cpu, 1 node has 4 free; nobody can be preempted for it
  nodes      1 node has room for 4 more
  closest    rack=B takes 4 of 5; b lacks 1 cpu for one more pod
  would fit  with 1 more node like b in rack=B
  or         with minCount 4, now
  or         without the constraint to one rack
{SCHEDULER}"""


def fragmented(sim: Sim) -> str:
    create(sim, {"pod": "busy", "cpu": "2", "node": "b"})
    gang(sim, "g", 1, cpu="3")
    return f"""\
PodGroup g in default waits for {SINCE}: its pod has no node

  Fragmented
  2 nodes have 4 cpu free, in pieces that take 0 of 1 pod of 3; nobody can be preempted for it
  nodes      2 nodes lack cpu (a pod asks 3), 1 of them even when empty
  closest    b lacks 1 cpu for one more pod
  would fit  with 1 more node like b
  or         with 1 cpu freed on b (held by default/busy)
{SCHEDULER}"""


def blocked_by_sibling(sim: Sim) -> str:
    create(sim, {"composite": "g", "gang": 2})
    gang(sim, "x", 4, parent="g")
    gang(sim, "y", 4, parent="g")
    return f"""\
CompositePodGroup g in default waits for {SINCE}: none of its 8 pods has a node

  BlockedBySibling
  each of 2 groups fits alone, fewer than 2 fit together; its minimum needs 8 cpu, and nodes that it may use \
have 6 free; nobody can be preempted for it
  would fit  with minGroupCount 1, now
    PodGroup x  BlockedBySibling  level 1 of the tree
      it fits alone, not beside its siblings
    PodGroup y  BlockedBySibling  as PodGroup x
{SCHEDULER}"""


def preempting(sim: Sim) -> str:
    sim.slow = True
    create(sim, {"pod": "low", "cpu": "4", "node": "b"})
    gang(sim, "g", 1, cpu="3", priority="p10")
    sim.settle()
    return f"""\
PodGroup g in default waits for {SINCE}: its pod has no node

  PreemptionInProgress
  1 pod needs 3 cpu, 2 nodes have 2 free; preemption is under way on the nominated nodes
  who goes   1 pod of lower priority: default/low
  scheduler  default-scheduler, priority 10
"""


def not_found(sim: Sim) -> str:
    create(sim, {"group": "g", "gang": 2})
    near = {"from": {"a": "b"}, "by": "kubernetes.io/hostname"}
    create(sim, {"pod": "g-0", "in": "g", "cpu": "2", "together": near})
    create(sim, {"pod": "g-1", "in": "g", "cpu": "4", "labels": {"a": "b"}})
    return f"""\
PodGroup g in default waits for {SINCE}: none of its 2 pods has a node

  NotFoundInTime  (not found; it is not proven impossible)
  too much for the exact solver: required affinity"""


def waiting_for_volume(sim: Sim) -> str:
    storage_class = {"provisioner": "disks.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    sim.core.cache.storage.set_class("slow", storage_class)
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow"}}
    sim.put("claim", "c", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "a"}}, **claim})
    create(sim, {"group": "g", "gang": 1})
    create(sim, {"pod": "g-0", "in": "g", "cpu": "1", "claim": "c"})
    return f"""\
PodGroup g in default waits for {SINCE}: its pod has no node

  WaitingForVolume
  claim default/c waits for disks.example.com to make a volume for node a
  next step  look whether the provisioner disks.example.com runs, and for events of claim default/c
{SCHEDULER}"""


SITUATIONS = {
    Reason.WAITING_FOR_GROUP: (waiting_for_group, "Pod", "p"),
    Reason.WAITING_FOR_MEMBERS: (waiting_for_members, "PodGroup", "g"),
    Reason.GATED: (gated, "PodGroup", "g"),
    Reason.MISCONFIGURED: (misconfigured, "PodGroup", "g"),
    Reason.NO_MATCHING_NODE: (no_matching_node, "PodGroup", "g"),
    Reason.INSUFFICIENT: (insufficient, "PodGroup", "g"),
    Reason.DOMAIN_TOO_SMALL: (domain_too_small, "PodGroup", "g"),
    Reason.FRAGMENTED: (fragmented, "PodGroup", "g"),
    Reason.BLOCKED_BY_SIBLING: (blocked_by_sibling, "CompositePodGroup", "g"),
    Reason.PREEMPTING: (preempting, "PodGroup", "g"),
    Reason.NOT_FOUND: (not_found, "PodGroup", "g"),
    Reason.WAITING_FOR_VOLUME: (waiting_for_volume, "PodGroup", "g"),
}


def cluster() -> Sim:
    sim = Sim()
    create(sim, {"node": "a", "cpu": "2", "labels": {"rack": "A"}})
    create(sim, {"node": "b", "cpu": "4", "labels": {"rack": "B"}})
    return sim


def test_the_whole_vocabulary_is_here() -> None:
    assert set(SITUATIONS) == set(Reason) - {Reason.ERROR}  # a fault of ours: tests/scheduler/test_isolation.py


@pytest.mark.parametrize("reason", SITUATIONS)
def test_why_it_waits(reason: Reason) -> None:
    make, kind, name = SITUATIONS[reason]
    sim = cluster()
    wanted = make(sim)
    text, reasons = asked(sim, kind, name)
    assert reasons == {reason}
    assert text == wanted or (reason is Reason.NOT_FOUND and text.startswith(wanted))


def test_one_pod_that_no_node_is_large_enough_for_is_the_reason_not_the_room_of_the_others() -> None:
    sim = cluster()
    create(sim, {"group": "g", "gang": 3})
    for number, cpu in enumerate(("1", "1", "5")):
        create(sim, {"pod": f"g-{number}", "in": "g", "cpu": cpu})
    text, reasons = asked(sim, "PodGroup", "g")
    assert reasons == {Reason.INSUFFICIENT}
    assert "of 2 nodes none is large enough, even when empty (a pod asks 5 cpu)" in text


def test_where_it_runs() -> None:
    sim = cluster()
    create(sim, {"composite": "tree", "gang": 2})
    gang(sim, "x", 2, parent="tree", topology="rack")
    gang(sim, "y", 3, parent="tree", topology="rack")
    sim.settle()
    text, _ = asked(sim, "CompositePodGroup", "tree")
    assert text == (
        "CompositePodGroup tree in default runs: all 5 pods have nodes\n\n"
        "  runs on    PodGroup x: 2 pods on a (2), in rack=A\n"
        "  runs on    PodGroup y: 3 pods on b (3), in rack=B\n"
    )


def test_a_pod_is_spoken_of_as_one() -> None:
    sim = cluster()
    gang(sim, "g", 8)
    create(sim, {"pod": "alone", "cpu": "1", "node": "b"})
    assert asked(sim, "Pod", "g-0")[0].splitlines()[0].endswith(": none of its group's 8 pods has a node")
    assert asked(sim, "Pod", "alone")[0].splitlines()[0] == "Pod alone in default runs: it has a node"


def test_in_a_list_the_causes_are_named_where_no_node_suits() -> None:
    sim = cluster()
    body = pod_body({"pod": "p", "cpu": "1"})
    body["spec"]["nodeSelector"] = {"pool": "x"}
    sim.put("pod", "p", body)
    member = next(iter(sim.core.cache.members.values()))
    said = reason_and_message(root_status(sim.core, member))
    assert said == ("NoMatchingNode", "none of 2 nodes suits its pods: 2 nodes are not selected (pool=x)")


def test_what_runs_in_part_says_both() -> None:
    sim = cluster()
    gang(sim, "g", 7, minimum=3)
    sim.settle()
    text, reasons = asked(sim, "PodGroup", "g")
    assert text.startswith(f"PodGroup g in default runs in part: 1 of 7 pods wait for {SINCE}\n")
    assert "  runs on    6 pods on a (2), b (4)\n" in text
    assert reasons == {Reason.INSUFFICIENT}


def test_what_fits_and_is_not_placed_points_at_the_scheduler() -> None:
    sim = cluster()
    gang(sim, "g", 2)
    text, _ = asked(sim, "PodGroup", "g")
    assert "nothing is in its way: it would fit now" in text
    assert "if it lasts  look whether the scheduler default-scheduler runs" in text


def test_b3_a_member_that_the_api_server_does_not_take_is_named() -> None:
    sim = cluster()
    sim.refuse["g-1"] = -1
    gang(sim, "g", 2)
    sim.settle(30)
    text, _ = asked(sim, "PodGroup", "g")
    assert text.startswith(f"PodGroup g in default runs in part: 1 of 2 pods wait for {SINCE}\n")
    assert "  SchedulerError  (it is tried again and again, each time a little later)\n" in text
    assert "default/g-1: binding to " in text
    assert "was refused: refused on purpose" in text
    assert "nothing is in its way" not in text


def test_a_tree_says_which_of_its_groups_lack_members() -> None:
    sim = cluster()
    create(sim, {"composite": "tree", "gang": 2})
    gang(sim, "x", 2, parent="tree")
    gang(sim, "y", 1, minimum=3, parent="tree")
    text, _ = asked(sim, "CompositePodGroup", "tree")
    assert "1 of 2 groups have the members they need" in text
    assert "    PodGroup y  WaitingForMembers  level 1 of the tree\n      1 of 3 members exist\n" in text
    assert "    PodGroup x: ok\n" in text


def test_a_workload_is_found_by_its_groups_and_a_job_by_its_pods() -> None:
    sim = cluster()
    for name in ("g1", "g2"):
        create(sim, {"group": name, "gang": 5})
        sim.objects["group"][name]["spec"]["workloadRef"] = {"workloadName": "w", "templateName": name}
        sim.tell("group", name)
        for number in range(5):
            create(sim, {"pod": f"{name}-{number}", "in": name, "cpu": "2"})
    sim.objects["pod"]["g1-0"]["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    ]
    sim.core.cache.drop_pod(sim.core.cache.members[sim.objects["pod"]["g1-0"]["metadata"]["uid"]].pod)
    sim.tell("pod", "g1-0")
    text, _ = asked(sim, "Workload", "w")
    assert "PodGroup g1  5 pods wait" in text
    assert "PodGroup g2  5 pods wait" in text
    text, _ = asked(sim, "jobs", "j")
    assert text.startswith("Job j in default waits")
    assert "PodGroup g2" not in text


def test_a_group_of_1_35_is_a_part_of_its_workload() -> None:
    sim = cluster()
    groups = [{"name": "ranks", "policy": {"gang": {"minCount": 8}}}]
    body = {"metadata": {"name": "w", "namespace": "default", "uid": "w"}, "spec": {"podGroups": groups}}
    sim.core.cache.set_workload(msgspec.convert(body, Workload))
    for number in range(8):
        pod = pod_body({"pod": f"p{number}", "cpu": "1"})
        pod["spec"]["workloadRef"] = {"name": "w", "podGroup": "ranks", "podGroupReplicaKey": "0"}
        sim.put("pod", f"p{number}", pod)
    text, reasons = asked(sim, "Workload", "w")
    assert text.startswith(f"Workload w in default waits for {SINCE}: none of its 8 pods has a node")
    assert reasons == {Reason.INSUFFICIENT}
    text, _ = asked(sim, "Pod", "p3")
    assert "8 pods need 8 cpu, 2 nodes have 6 free" in text


# ---- the command


def saved(tmp_path: Path) -> Path:
    sim = cluster()
    gang(sim, "g", 8)
    objects = {"nodes": list(sim.objects["node"].values()), "podgroups": list(sim.objects["group"].values())}
    objects["pods"] = list(sim.objects["pod"].values())
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"version": 1, "schedulerNames": ["default-scheduler"], "objects": objects}))
    assert START.year == 2026
    return path


def test_a_saved_state_answers(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explain", "podgroup/g", "--state", str(saved(tmp_path))])
    assert result.exit_code == 0, result.output
    assert "8 pods need 8 cpu, 2 nodes have 6 free" in result.output


def test_as_json(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explain", "g", "--state", str(saved(tmp_path)), "-o", "json"])
    explanation = json.loads(result.stdout)
    (answer,) = explanation["answers"]
    assert (explanation["asked"], answer["state"], answer["pending"]) == ("PodGroup default/g", "Waiting", 8)
    assert answer["explanation"]["reason"] == "InsufficientResource"
    assert [one["kind"] for one in answer["explanation"]["remedies"]] == ["nodes", "minimum"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explain", "job/", "--state", "x"], 'error: "job/": no name'),
        (["explain", "g", "--state", "/nowhere"], "error: --state /nowhere: cannot be read"),
        (["explain", "g", "-o", "xml", "--state", "x"], 'error: -o "xml": not known'),
        (["explain", "g", "--kubeconfig", "/nowhere"], "/nowhere"),
    ],
)
def test_what_cannot_be_answered(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert said in result.output


@pytest.mark.parametrize(
    ("document", "said"),
    [("[]", "not a snapshot"), ('{"version": 9, "objects": {}}', "version: found 9, 1 is known"), ("x", "--state")],
)
def test_a_document_that_is_no_state(tmp_path: Path, document: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(document)
    result = CliRunner().invoke(app, ["explain", "g", "--state", str(path)])
    assert result.exit_code == 1
    assert said in result.output


def test_a_name_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explain", "job/none", "--state", str(saved(tmp_path))])
    assert result.exit_code == 1
    assert "job/none: not in this state, in namespace default" in result.output


def test_a_gang_that_lost_members_does_not_run() -> None:
    sim = cluster()
    create(sim, {"group": "g", "gang": 4})
    for number in range(2):
        create(sim, {"pod": f"g-{number}", "in": "g", "cpu": "1", "node": "b"})
    text, reasons = asked(sim, "PodGroup", "g")
    assert (
        text
        == """\
PodGroup g in default runs in part: 2 of at least 4 pods exist; they have nodes

  runs on    2 pods on b (2)
  WaitingForMembers
  2 of 4 members exist
  next step  2 more members have to exist
"""
    )
    assert reasons == {Reason.WAITING_FOR_MEMBERS}


# ---- kubectl's habits


def two_gangs(tmp_path: Path) -> Path:
    """`g` and `h` wait, `small` runs."""
    sim = cluster()
    gang(sim, "g", 8)
    gang(sim, "h", 7)
    create(sim, {"pod": "small", "cpu": "1", "node": "b"})
    objects = {"nodes": list(sim.objects["node"].values()), "podgroups": list(sim.objects["group"].values())}
    objects["pods"] = list(sim.objects["pod"].values())
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"version": 1, "schedulerNames": ["default-scheduler"], "objects": objects}))
    return path


@pytest.mark.parametrize("words", [["podgroup", "g", "h"], ["podgroups/g", "podgroup/h"], ["g", "h"]])
def test_several_names(tmp_path: Path, words: list[str]) -> None:
    result = CliRunner().invoke(app, ["explain", *words, "--state", str(two_gangs(tmp_path))])
    assert result.exit_code == 0, result.output
    assert [line.split(" waits")[0] for line in result.output.splitlines() if line.startswith("PodGroup ")] == [
        "PodGroup g in default",
        "PodGroup h in default",
    ]


def test_one_of_several_is_missing(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["explain", "podgroup", "g", "none", "--state", str(two_gangs(tmp_path))])
    assert result.exit_code == 1
    assert "PodGroup g in default waits" in result.stdout
    assert "error: podgroup/none: not in this state, in namespace default" in result.stderr


def test_without_a_name_all_that_waits(tmp_path: Path) -> None:
    path = str(two_gangs(tmp_path))
    result = CliRunner().invoke(app, ["explain", "--state", path])
    assert result.exit_code == 0, result.output
    head, *lines = result.output.splitlines()
    assert head.split() == ["KIND", "NAME", "REASON", "WAITS", "MESSAGE"]
    assert [line.split()[:3] for line in lines] == [
        ["PodGroup", "g", "InsufficientResource"],
        ["PodGroup", "h", "InsufficientResource"],
    ]
    assert "8 pods need 8 cpu" in lines[0]
    everywhere = CliRunner().invoke(app, ["explain", "-A", "--state", path]).output.splitlines()
    assert everywhere[0].startswith("NAMESPACE   KIND")
    assert everywhere[1].startswith("default     PodGroup   g")
    assert CliRunner().invoke(app, ["explain", "-n", "x", "--state", path]).output == ("nothing waits in namespace x\n")


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_all_that_waits_for_programs(tmp_path: Path, form: str) -> None:
    result = CliRunner().invoke(app, ["explain", "--state", str(two_gangs(tmp_path)), "-o", form])
    (first, second) = yaml.safe_load(result.stdout)["items"]
    message = first.pop("message")
    assert first == {
        "namespace": "default",
        "kind": "PodGroup",
        "name": "g",
        "reason": "InsufficientResource",
        "since": "2026-01-01T00:00:00Z",
        "pods": 8,
    }
    assert message.startswith("8 pods need 8 cpu")
    assert second["name"] == "h"


def test_one_as_yaml_is_what_it_is_as_json(tmp_path: Path) -> None:
    asking = ["explain", "podgroup", "g", "--state", str(two_gangs(tmp_path)), "-o"]
    in_json, in_yaml = (CliRunner().invoke(app, [*asking, form]).stdout for form in ("json", "yaml"))
    assert yaml.safe_load(in_yaml) == json.loads(in_json)
    assert json.loads(in_json)["asked"] == "PodGroup default/g"


@pytest.mark.parametrize("command", ["explain", "tree"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["job/a", "b"], 'error: "job/a" and "b": TYPE/NAME and TYPE NAME cannot be mixed'),
        (["job/a", "-A"], "error: -A: names are given as well"),
        (["job", "a", "-l", "x=y"], "error: -l: names are given as well"),
        (["-A", "-n", "x"], "error: -A and -n: one namespace or all of them, not both"),
    ],
)
def test_what_cannot_be_meant(command: str, arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, [command, *arguments])
    assert result.exit_code == 1
    assert said in result.output
