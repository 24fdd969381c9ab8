"""Topology and ranks as pods and groups say them, in the words of several schedulers."""

from __future__ import annotations

import pytest

from kohort.api.scheduling.ranks import rank_of
from kohort.api.scheduling.topology import Slice, TopologyError, TopologyRequest, read_topology

KUEUE = "kueue.x-k8s.io/podset-"
PREFIX, SEGMENT = "kai.scheduler/", "kai.scheduler/segment-topology-"
KOORDINATOR = "gang.scheduling.koordinator.sh/network-topology-spec"
BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({}, TopologyRequest()),
        ({"prometheus.io/scrape": "true"}, TopologyRequest()),
        ({"kohort.dev/topology": "rack"}, TopologyRequest(("rack",))),
        ({"kohort.dev/topology": "rack=preferred,zone=required"}, TopologyRequest(("zone",), ("rack",))),
        (
            {"kohort.dev/topology": f"zone = required , {RACK} = preferred"},
            TopologyRequest(("zone",), (RACK,)),
        ),
        ({"kohort.dev/topology-slice": "rack=4"}, TopologyRequest(slices=(Slice(4, "rack"),))),
        (
            {"kohort.dev/topology-slice": "rack=4, block=16,nvlink=2=preferred"},
            TopologyRequest(slices=(Slice(16, "block"), Slice(4, "rack"), Slice(2, preferred="nvlink"))),
        ),
        (
            {KUEUE + "slice-required-topology-constraints": '[{"topology":"b","size":8},{"topology":"r","size":2}]'},
            TopologyRequest(slices=(Slice(8, "b"), Slice(2, "r"))),
        ),
        (
            {
                PREFIX + "topology-required-placement": "zone",
                PREFIX + "segment-size": "4",
                SEGMENT + "required-placement": "rack",
            },
            TopologyRequest(("zone",), (), (Slice(4, "rack"),)),
        ),
        (
            {PREFIX + "segment-size": "4", SEGMENT + "required-placement": "b", SEGMENT + "preferred-placement": "r"},
            TopologyRequest(slices=(Slice(4, "b", "r"),)),
        ),
        ({PREFIX + "segment-size": "4"}, TopologyRequest()),
        ({SEGMENT + "required-placement": "rack"}, TopologyRequest()),
        ({KUEUE + "required-topology": RACK}, TopologyRequest((RACK,))),
        ({KUEUE + "preferred-topology": BLOCK}, TopologyRequest((), (BLOCK,))),
        ({KUEUE + "unconstrained-topology": "true"}, TopologyRequest()),
        (
            {
                KUEUE + "required-topology": BLOCK,
                KUEUE + "slice-required-topology": RACK,
                KUEUE + "slice-size": "4",
            },
            TopologyRequest((BLOCK,), (), (Slice(4, RACK),)),
        ),
        (
            {"kai.scheduler/topology": "cluster", "kai.scheduler/topology-preferred-placement": RACK},
            TopologyRequest((), (RACK,)),
        ),
        ({"kai.scheduler/topology-required-placement": RACK}, TopologyRequest((RACK,))),
        (
            {"volcano.sh/network-topology-mode": "hard", "volcano.sh/network-topology-highest-tier": "2"},
            TopologyRequest(("tier-2",)),
        ),
        ({"volcano.sh/network-topology-mode": "soft"}, TopologyRequest((), ("tier-1",))),
        (
            {
                KOORDINATOR: '{"gatherStrategy": [{"layer": "SpineLayer", "strategy": "MustGather"},'
                ' {"layer": "AcceleratorLayer", "strategy": "PreferGather"}]}'
            },
            TopologyRequest(("spine",), ("nvlink",)),
        ),
        (
            {"kohort.dev/topology": f"{RACK}=preferred", KUEUE + "preferred-topology": RACK},
            TopologyRequest((), (RACK,)),
        ),
    ],
)
def test_what_annotations_ask_for(said: dict[str, str], meant: TopologyRequest) -> None:
    assert read_topology(said) == meant


LEVELS = "level=required or level=preferred is wanted, such as rack=preferred,zone=required"
SLICE, LAYERS = "metadata.annotations[kohort.dev/topology-slice]", f"{KUEUE}slice-required-topology-constraints"
LISTED = "a JSON list of objects with topology and size is wanted"
AT = f"metadata.annotations[{KUEUE}"
OWN, SLICES = "metadata.annotations[kohort.dev/topology]", f"{KUEUE}slice-required-topology"
KAI, TIER = "kai.scheduler/topology-required-placement", "volcano.sh/network-topology-highest-tier"
GATHERED = "gatherStrategy with a layer and a strategy (MustGather, PreferGather) each is wanted, as JSON"
GATHER = '{"gatherStrategy": [{"layer": "SpineLayer", "strategy": "Maybe"}]}'


@pytest.mark.parametrize(
    ("said", "mistakes"),
    [
        (
            {"kohort.dev/topology": "rack=perhaps,=required,zone,zone=preferred"},
            [
                f"{OWN}: found 'rack=perhaps'; {LEVELS}",
                f"{OWN}: found '=required'; {LEVELS}",
                f"{OWN}: found 'zone=preferred'; zone is named twice",
            ],
        ),
        (
            {"kohort.dev/topology-slice": "rack"},
            [f"{SLICE}: found 'rack'; level=size is wanted, such as rack=4 or rack=4=preferred"],
        ),
        (
            {"kohort.dev/topology-slice": "block=10,rack=4"},
            [f"{SLICE}: found 'block=10,rack=4'; slices of 10 cannot be cut into whole ones of 4"],
        ),
        (
            {LAYERS: '[{"topology": "rack"}]'},
            [f'metadata.annotations[{LAYERS}]: found \'[{{"topology": "rack"}}]\'; {LISTED}'],
        ),
        (
            {PREFIX + "segment-size": "four"},
            [f"metadata.annotations[{PREFIX}segment-size]: found 'four'; a whole number above 0 is wanted"],
        ),
        (
            {KUEUE + "required-topology": RACK, KUEUE + "preferred-topology": "x", KUEUE + "slice-size": "4"},
            [
                f"{AT}preferred-topology]: found 'x'; it cannot stand beside {KUEUE}required-topology",
                f"{AT}slice-size]: found '4'; {SLICES} is wanted beside it",
            ],
        ),
        (
            {SLICES: RACK, KUEUE + "slice-size": "none"},
            [f"{AT}slice-size]: found 'none'; a whole number above 0 is wanted beside {SLICES}"],
        ),
        (
            {"volcano.sh/network-topology-mode": "best", "kohort.dev/topology": ""},
            [
                f"{OWN}: found ''; {LEVELS}",
                "metadata.annotations[volcano.sh/network-topology-mode]: found 'best'; hard or soft is wanted",
            ],
        ),
        ({TIER: "0"}, [f"metadata.annotations[{TIER}]: found '0'; a whole number above 0 is wanted"]),
        (
            {KOORDINATOR: GATHER},
            [f"metadata.annotations[{KOORDINATOR}]: found '{GATHER}'; {GATHERED}"],
        ),
        (
            {"kohort.dev/topology": "rack", KAI: BLOCK},
            [f"metadata.annotations[{KAI}]: asks for something else than {OWN}; one of the two is wanted"],
        ),
    ],
)
def test_all_mistakes_are_told(said: dict[str, str], mistakes: list[str]) -> None:
    with pytest.raises(TopologyError) as told:
        read_topology(said)
    assert list(told.value.mistakes) == mistakes


@pytest.mark.parametrize(
    ("labels", "annotations", "rank"),
    [
        ({}, {}, None),
        ({"kohort.dev/rank": "7"}, {}, (7,)),
        ({}, {"kohort.dev/rank": "7"}, (7,)),
        ({"batch.kubernetes.io/job-completion-index": "3"}, {}, (0, 3)),
        ({}, {"batch.kubernetes.io/job-completion-index": "3"}, (0, 3)),
        (
            {"jobset.sigs.k8s.io/job-index": "2", "batch.kubernetes.io/job-completion-index": "3"},
            {},
            (2, 3),
        ),
        (
            {"leaderworkerset.sigs.k8s.io/group-index": "1", "leaderworkerset.sigs.k8s.io/worker-index": "5"},
            {},
            (1, 5),
        ),
        (
            {"training.kubeflow.org/replica-type": "Master", "training.kubeflow.org/replica-index": "0"},
            {},
            (0, 0),
        ),
        (
            {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"},
            {},
            (1, 0),
        ),
        ({"ray.io/node-type": "head"}, {}, (0, 0, 0)),
        (
            {
                "ray.io/node-type": "worker",
                "ray.io/worker-group-replica-index": "2",
                "ray.io/replica-host-index": "1",
            },
            {},
            (1, 2, 1),
        ),
        ({"kueue.x-k8s.io/pod-group-pod-index": "4"}, {}, (4,)),
        ({"my/index": "9"}, {"kueue.x-k8s.io/pod-group-pod-index-label": "my/index"}, (9,)),
        ({}, {"gang.scheduling.koordinator.sh/network-topology-index": "6"}, (6,)),
        ({"apps.kubernetes.io/pod-index": "1"}, {}, (1,)),
        ({"apps.kubernetes.io/pod-index": "one"}, {}, None),
    ],
)
def test_the_rank_of_a_pod(labels: dict[str, str], annotations: dict[str, str], rank: tuple[int, ...] | None) -> None:
    assert rank_of(labels, annotations) == rank
