"""Addresses of virtual pods and nodes: one for each, the same after a restart."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from kohort.sim.addresses import NODES, PODS, Addresses, of_node


def test_everybody_has_one_of_its_own_inside_the_network() -> None:
    free = Addresses(PODS)
    found = {free.of(f"uid-{number}") for number in range(5000)}
    assert len(found) == 5000
    assert all(IPv4Address(one) in PODS for one in found)


def test_the_same_owner_has_the_same_also_after_a_restart() -> None:
    assert Addresses(PODS).of("a") == Addresses(PODS).of("a")


def test_two_that_meet_do_not_share_and_what_is_released_is_free() -> None:
    free = Addresses(IPv4Network("10.0.0.0/30"))  # two addresses
    first, second = free.of("a"), free.of("b")
    assert first != second
    free.release("a")
    assert free.of("c") == first


def test_what_stands_in_a_status_is_not_given_to_another() -> None:
    taken = Addresses(PODS).of("new")
    free = Addresses(PODS)
    free.note("old", taken)
    assert free.of("old") == taken
    assert free.of("new") != taken
    free.release("old")
    assert free.of("other") != ""


def test_a_node_that_says_its_address_is_believed() -> None:
    node = {"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.7"}]}}
    assert of_node(node, Addresses(NODES)) == "192.0.2.7"
    assert IPv4Address(of_node({"metadata": {"name": "n"}}, Addresses(NODES))) in NODES
