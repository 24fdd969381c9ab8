"""Preferred and several levels, and slices: fewest domains, the fullest that do, and what is given up last."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from tests.place.networks import LEVELS, network, optimum
from tests.place.short import HOST, Short

from kohort.api.scheduling.topology import Slice
from kohort.place.demand import Branch, Leaf, PendingPod
from kohort.place.fewest import Chosen, Offer, fewest
from kohort.place.profile import ProfileError, read_profile
from kohort.place.search import Search
from kohort.place.slices import sliced


def _racks(short: Short, zone: str, **racks: int) -> None:
    for rack, size in racks.items():
        for number in range(size):
            short.node(f"{zone}{rack}{number}", 1, zone=zone, rack=rack)


def _pods(short: Short, count: int, **pod: object) -> list[PendingPod]:
    return [short.pod(f"p{number}", **pod) for number in range(count)]  # type: ignore[arg-type]


def _where(placed: dict[str, str]) -> list[str]:
    return sorted(node[:-1] for node in placed.values())


def test_one_rack_if_one_takes_all_and_the_fullest_of_those() -> None:
    short = Short()
    _racks(short, "z", a=6, b=4, c=9)
    assert _where(short.place(*_pods(short, 4), preferred=("rack",))) == ["zb"] * 4


def test_two_racks_if_none_does() -> None:
    short = Short()
    _racks(short, "z", a=1, b=4, c=5, d=2)
    placed = short.place(*_pods(short, 7), preferred=("rack",))
    assert _where(placed) == ["zc"] * 5 + ["zd"] * 2


def test_the_wider_level_is_kept_before_the_narrower() -> None:
    """Two racks would do, in two zones; three racks of one zone are nearer."""
    short = Short()
    _racks(short, "y", a=4, b=1)
    _racks(short, "z", c=4, d=2, e=2)
    assert _where(short.place(*_pods(short, 8), preferred=("zone", "rack"))) == ["zc"] * 4 + ["zd"] * 2 + ["ze"] * 2


def test_the_required_domain_is_the_one_with_the_fewest_preferred_ones() -> None:
    short = Short()
    _racks(short, "y", a=2, b=2, c=2)
    _racks(short, "z", d=4, e=2)
    assert _where(short.place(*_pods(short, 4), topology="zone", preferred=("rack",))) == ["zd"] * 4


def test_members_that_run_draw_others_into_their_domains() -> None:
    short = Short()
    _racks(short, "z", a=2, b=3, c=2)
    short.run("r", "zb0")
    row = short.state.row("zb0")
    placed = short.place(*_pods(short, 2), minimum=3, running=[row], preferred=("rack",))
    assert _where(placed) == ["zb"] * 2


def test_extras_are_near_too_and_go_elsewhere_if_they_must() -> None:
    short = Short()
    _racks(short, "z", a=3, b=2, c=1)
    placed = short.place(*_pods(short, 6), minimum=2, preferred=("rack",))
    assert len(placed) == 6
    placed = short.place(*_pods(short, 3), minimum=2, preferred=("rack",))
    assert _where(placed) == ["za"] * 3


def test_unlike_pods_are_kept_together_as_well() -> None:
    short = Short()
    for rack, size in (("a", 2), ("b", 3), ("c", 4)):
        for number in range(size):
            short.node(f"{rack}{number}", 4, rack=rack)
    pods = [*_pods(short, 3, cpu=3), *(short.pod(f"small{number}", 1) for number in range(3))]
    assert {node[0] for node in short.place(*pods, preferred=("rack",)).values()} == {"b"}


def test_a_branch_prefers_one_rack_for_all_its_groups() -> None:
    short = Short()
    _racks(short, "z", a=3, b=5, c=3)
    leaves = [Leaf(name, [short.pod(f"{name}{n}") for n in range(2)], 2) for name in "xy"]
    result = Search(short.engine).place(Branch("root", leaves, 2, preferred=("rack",)))
    assert {short.state.node(row).name[1] for row in result.placed.values()} == {"b"}


def test_a_level_that_no_node_has_is_no_obstacle() -> None:
    short = Short(n0=2, n1=2)
    assert len(short.place(*_pods(short, 4), preferred=("rack", "zone"))) == 4


def test_several_required_levels_are_one_with_all_of_them() -> None:
    """Racks of two zones have the same names."""
    short = Short()
    for zone in "yz":
        for number in range(2):
            short.node(f"{zone}{number}", 1, zone=zone, rack="r1")
    assert short.place(*_pods(short, 3), topology="rack") != {}
    assert short.place(*_pods(short, 3), topology="zone,rack") == {}
    assert {node[0] for node in short.place(*_pods(short, 2), topology="zone,rack").values()} == {"y"}


# ---- slices


def _sliced(short: Short, count: int, size: int, key: str = "rack", **leaf: object) -> Branch:
    pods = [replace(short.pod(f"p{number}"), rank=(number,)) for number in range(count)]
    return sliced(short.state, Leaf("g", pods, count, **leaf), [Slice(size, key)])  # type: ignore[arg-type]


def _ranks(short: Short, placed: dict[str, int]) -> list[str]:
    return [short.state.node(placed[f"p{number}"]).name[:-1] for number in range(len(placed))]


def test_slices_share_a_rack_each_and_follow_each_other() -> None:
    short = Short()
    _racks(short, "z", a=5, b=3, c=5)
    result = Search(short.engine).place(_sliced(short, 8, 2, preferred=("rack",)))
    ranks = _ranks(short, result.placed)
    assert all(ranks[number] == ranks[number + 1] for number in range(0, 8, 2))
    assert sum(one != other for one, other in pairwise(ranks)) == 1


def test_slices_that_no_rack_takes_whole_do_not_fit() -> None:
    short = Short()
    _racks(short, "z", a=3, b=3, c=2)
    assert not Search(short.engine).place(_sliced(short, 8, 4)).ok


def test_slices_within_a_required_zone_count_in_whole_slices() -> None:
    """Zone y has six free nodes, but only one slice of three; zone z takes both."""
    short = Short()
    _racks(short, "y", a=2, b=2, c=3)
    _racks(short, "z", d=3, e=3)
    result = Search(short.engine).place(_sliced(short, 6, 3, topology="zone"))
    assert _ranks(short, result.placed) == ["zd"] * 3 + ["ze"] * 3


def test_slices_prefer_one_zone() -> None:
    short = Short()
    _racks(short, "y", a=2, b=4)
    _racks(short, "z", c=2, d=2, e=3)
    result = Search(short.engine).place(_sliced(short, 6, 2, preferred=("zone",)))
    assert {name[0] for name in _ranks(short, result.placed)} == {"y"}


def test_a_replacement_returns_to_its_slice() -> None:
    short = Short()
    _racks(short, "z", a=3, b=3)
    for rank, node in ((0, "za0"), (2, "zb0"), (3, "zb1")):
        short.run(f"r{rank}", node)
    running = [short.state.row(node) for node in ("za0", "zb0", "zb1")]
    pod = replace(short.pod("p1"), rank=(1,))
    leaf = Leaf("g", [pod], 4, running=running, running_ranks=[(0,), (2,), (3,)])  # type: ignore[arg-type]
    result = Search(short.engine).place(sliced(short.state, leaf, [Slice(2, "rack")]))
    assert [short.state.node(row).name for row in result.placed.values()] == ["za1"]


def test_slices_of_pods_without_ranks_fill_up_those_that_run() -> None:
    short = Short()
    _racks(short, "z", a=3, b=3)
    short.run("r", "za0")
    leaf = Leaf("g", _pods(short, 3), 4, running=[short.state.row("za0")])  # type: ignore[list-item]
    tree = sliced(short.state, leaf, [Slice(2, "rack")])
    assert [(len(child.pods), len(child.running)) for child in tree.leaves()] == [(1, 1), (2, 0)]


def _blocks(short: Short, block: str, **racks: int) -> None:
    for rack, size in racks.items():
        for number in range(size):
            short.node(f"{block}{rack}{number}", 1, block=block, rack=f"{block}{rack}")


def _nested(short: Short, count: int, *slices: Slice) -> Branch:
    pods = [replace(short.pod(f"p{number}"), rank=(number,)) for number in range(count)]
    return sliced(short.state, Leaf("g", pods, count), slices)


def test_slices_of_slices_have_a_rack_in_their_block() -> None:
    """Eight ranks share a block, each two of them a rack. Block x has eight nodes, but three racks have an odd one."""
    short = Short()
    _blocks(short, "x", a=3, b=3, c=1, d=1)
    _blocks(short, "y", a=2, b=4, c=3)
    _blocks(short, "z", a=4, b=2, c=2)
    result = Search(short.engine).place(_nested(short, 16, Slice(8, "block"), Slice(2, "rack")))
    names = [short.state.node(result.placed[f"p{number}"]).name for number in range(16)]
    for start in (0, 8):
        assert len({name[0] for name in names[start : start + 8]}) == 1
    assert {name[0] for name in names} == {"y", "z"}
    assert all(names[number][:2] == names[number + 1][:2] for number in range(0, 16, 2))
    assert not Search(short.engine).place(_nested(short, 24, Slice(8, "block"), Slice(2, "rack"))).ok


def test_a_slice_that_only_prefers_its_rack_is_cut_where_it_must_be() -> None:
    short = Short()
    _racks(short, "z", a=3, b=3, c=2)
    assert not Search(short.engine).place(_nested(short, 8, Slice(4, "rack"))).ok
    short = Short()
    _racks(short, "z", a=3, b=3, c=2)
    result = Search(short.engine).place(_nested(short, 8, Slice(4, preferred="rack")))
    ranks = _ranks(short, result.placed)
    assert [len(set(ranks[start : start + 4])) for start in (0, 4)] == [2, 2]
    short = Short()
    _racks(short, "z", a=4, b=6, c=2)
    result = Search(short.engine).place(_nested(short, 8, Slice(4, preferred="rack")))
    ranks = _ranks(short, result.placed)
    assert [len(set(ranks[start : start + 4])) for start in (0, 4)] == [1, 1]


def test_slices_of_slices_in_a_required_zone_and_a_replacement_among_them() -> None:
    short = Short()
    _blocks(short, "x", a=2, b=3)
    running = [("xa0", 0), ("xa1", 1), ("xb0", 2)]
    for node, rank in running:
        short.run(f"r{rank}", node)
    rows = [row for node, _ in running if (row := short.state.row(node)) is not None]
    leaf = Leaf("g", [replace(short.pod("p3"), rank=(3,))], 4, running=rows, running_ranks=[(0,), (1,), (2,)])
    result = Search(short.engine).place(sliced(short.state, leaf, [Slice(4, "block"), Slice(2, "rack")]))
    assert [short.state.node(row).name[:2] for row in result.placed.values()] == ["xb"]


# ---- which domains


def _offer(paths: list[list[int]], seats: list[int]) -> Offer:
    return Offer(np.array(paths), np.array(seats), np.array(seats), np.zeros((len(paths), len(seats)), np.bool_))


def test_nothing_is_chosen_where_seats_are_too_few() -> None:
    assert fewest(_offer([[0, 1]], [1, 2]), 4, [0]) is None
    assert fewest(_offer([[0, 1]], [1, 2]), 0, [0]) == Chosen([], (0,), 0)


def test_large_questions_are_answered_within_five_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tables over all nodes would be too large, racks are chosen by tables and nodes by size."""
    asked = best = 0
    for seed in range(12):
        net = network(Random(seed), nodes=120)
        count = sum(net.room.values()) * 2 // 3
        racks = len({paths[2] for paths in net.paths.values()})
        monkeypatch.setattr("kohort.place.fewest._LARGEST", count * racks)
        placed = net.short.place(*net.pods(count), preferred=LEVELS)
        tree = net.hierarchy()
        used = tree.domains([row for node in placed.values() if (row := net.short.state.row(node)) is not None])
        optimal = optimum(net.room, net.paths, count, [0, 1, 2, 3])
        assert used[:3] == optimal[:3], seed
        asked, best = asked + sum(used), best + sum(optimal)
    assert best <= asked <= best * 1.05


def test_levels_of_the_network_are_a_part_of_the_profile() -> None:
    profile = read_profile({"topologyLevels": [{"name": "row", "key": "example.com/row"}]})
    assert profile.topology_levels == (("row", "example.com/row"),)
    with pytest.raises(ProfileError) as told:
        read_profile({"topologyLevels": [{"name": "row", "keys": "x"}, "rack"]})
    assert told.value.mistakes == (
        "topologyLevels[0].key: found None; a text is wanted",
        "topologyLevels[0].keys: no such field; fields are name, key",
        "topologyLevels[1]: found str; a mapping with name and key is wanted",
    )


def test_the_node_is_a_level_if_it_is_named() -> None:
    short = Short(a=4, b=4, c=3)
    assert len(set(short.place(*_pods(short, 7), preferred=(HOST,)).values())) == 2
    assert len(set(short.place(*_pods(short, 7)).values())) == 3
