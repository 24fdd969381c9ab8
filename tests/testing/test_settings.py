"""Settings of an environment: gates, versions, command lines, files."""

import json
import socket
from pathlib import Path

import pytest

from kohort.testing.environment import MINORS, Environment, gates_exactly, probe
from kohort.testing.environment.commands import Ports, apiserver, kcm
from kohort.testing.environment.files import kubeconfig, write_signing_key, write_tokens
from kohort.testing.environment.probe import free_ports
from kohort.testing.environment.versions import minor_of, parse_gates

PORTS = Ports(1, 2, 3, 4, 5)


@pytest.mark.parametrize(("text", "minor"), [("1.37", "1.37"), ("v1.36.3", "1.36"), ("1.35.4", "1.35")])
def test_versions_as_people_write_them(text: str, minor: str) -> None:
    assert minor_of(text) == minor


def test_gates_from_a_command_line() -> None:
    assert parse_gates("A=true, B=False,") == {"A": True, "B": False}
    with pytest.raises(ValueError, match=r"found 'C', accepted is NAME=true or NAME=false"):
        parse_gates("A=true,C")


def test_gates_exactly_states_the_others_as_off() -> None:
    gates = gates_exactly("1.37", ["GenericWorkload"])
    assert gates["GenericWorkload"]
    assert not any(on for name, on in gates.items() if name != "GenericWorkload")
    assert set(gates) == set(MINORS["1.37"].gates)
    assert gates_exactly("1.35", ["SomethingElse"])["SomethingElse"]


def test_gates_of_an_environment_are_laid_over_its_defaults() -> None:
    env = Environment("1.37", gates={"CompositePodGroup": False, "PodGroupPreemptionPolicy": True})
    assert env.gates["GenericWorkload"]
    assert not env.gates["CompositePodGroup"]
    assert env.gates["PodGroupPreemptionPolicy"]


def test_unknown_components_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="found kubelet, accepted are kcm, scheduler"):
        Environment("1.37", ("kcm", "kubelet"))


def test_an_environment_that_is_not_running_says_so() -> None:
    with pytest.raises(Exception, match="not running"):
        Environment("1.37").pids()


def test_command_lines(tmp_path: Path) -> None:
    flags = apiserver(tmp_path / "a", tmp_path, PORTS, gates={"A": True, "B": False}, runtime_config=["x/v1=true"])
    assert "--feature-gates=A=true,B=false" in flags
    assert "--runtime-config=x/v1=true" in flags
    assert "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition" in flags
    assert "--bind-address=127.0.0.1" in flags
    controllers = next(flag for flag in kcm(tmp_path / "k", tmp_path, PORTS, gates={}) if "--controllers" in flag)
    assert controllers == "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller,-node-ipam-controller"


def test_files_are_private_and_readable(tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "tokens", {"ann": ["dev", "ops"]})
    assert (tmp_path / "tokens").read_text() == f'{tokens["ann"]},ann,ann,"dev,ops"\n'
    key = write_signing_key(tmp_path / "key")
    assert key.read_text().startswith("-----BEGIN EC PRIVATE KEY-----\n")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    (tmp_path / "ca").write_text("certificate")
    config = json.loads(kubeconfig("https://127.0.0.1:1", tmp_path / "ca", "ann", tokens["ann"]))
    assert config["users"] == [{"name": "ann", "user": {"token": tokens["ann"]}}]
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20


def test_free_ports_are_none_that_connections_get() -> None:
    """A server that is killed and started again would find its port taken, one time in some thousands."""
    if not probe._RANGE.exists():
        pytest.skip("this system does not say which ports connections get: there is no /proc/sys/net (Linux)")
    assert max(free_ports(20)) < int(probe._RANGE.read_text().split()[0])


def test_where_all_ports_may_be_given_any_is_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "range").write_text("1024\t65535\n")
    for file in (tmp_path / "range", tmp_path / "none"):
        monkeypatch.setattr(probe, "_RANGE", file)
        assert len(set(free_ports(5))) == 5


def test_a_port_that_is_taken_is_not_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        number = taken.getsockname()[1]
        (tmp_path / "range").write_text(f"{number + 1} {number + 1}")
        monkeypatch.setattr(probe, "_RANGE", tmp_path / "range")
        monkeypatch.setattr(probe, "_FIRST", number)
        assert number not in free_ports(1)
