"""The three releases and their gates (spec workload-api 5)."""

from __future__ import annotations

import pytest

from kohort.api.releases import RELEASES, Gate, default_gates, parse_gates, release


@pytest.mark.parametrize(("text", "minor"), [("1.35", "1.35"), ("v1.36.3", "1.36"), ("1.37.1", "1.37")])
def test_a_minor_is_read_from_a_version(text: str, minor: str) -> None:
    assert release(text).minor == minor


def test_an_unknown_minor_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"1\.35, 1\.36, 1\.37"):
        release("1.34")


@pytest.mark.parametrize(
    ("minor", "workload", "composite", "field", "condition"),
    [
        ("1.35", "v1alpha1", None, "workloadRef", None),
        ("1.36", "v1alpha2", None, "schedulingGroup", "PodGroupScheduled"),
        ("1.37", "v1beta1", "v1alpha3", "schedulingGroup", "PodGroupInitiallyScheduled"),
    ],
)
def test_what_a_minor_serves(
    minor: str, workload: str, composite: str | None, field: str, condition: str | None
) -> None:
    found = release(minor)
    assert (found.workload_version, found.composite_version) == (workload, composite)
    assert (found.pod_field, found.scheduled_condition) == (field, condition)
    assert found.has_pod_groups == (minor != "1.35")
    assert found.has_composites == (minor == "1.37")
    assert found.min_count_mutable == (minor == "1.37")


@pytest.mark.parametrize("minor", RELEASES)
def test_default_gates_meet_their_requirements(minor: str) -> None:
    known = release(minor).gates
    assert all(need in default_gates(minor) for gate in default_gates(minor) for need in known[gate])


def test_a_gate_of_another_minor_is_refused() -> None:
    with pytest.raises(ValueError, match="GangScheduling"):
        parse_gates("1.37", {"GangScheduling": True})


def test_an_unmet_requirement_is_refused() -> None:
    with pytest.raises(ValueError, match="CompositePodGroup requires TopologyAwareWorkloadScheduling"):
        parse_gates("1.37", {"TopologyAwareWorkloadScheduling": False})


def test_gates_are_switched_from_the_default() -> None:
    on = parse_gates("1.37", {"CompositePodGroup": False, "PodGroupPreemptionPolicy": True})
    assert Gate.COMPOSITE not in on
    assert Gate.PREEMPTION_POLICY in on
    assert Gate.TOPOLOGY in on
