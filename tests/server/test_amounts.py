"""Quantities are kept in their shortest form, in every place where a kind has one, as Kubernetes 1.37 keeps them.

The recording is held against a real server by tests/kubernetes/test_amounts_differential.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server import amounts
from tests.server.crd.server import Running
from tests.server.talk import Talk
from tests.server.widgets import WIDGETS, serve, widget

from kohort.apimachinery.quantity import MILLI, canonical

RECORDED = json.loads((Path(__file__).parents[1] / "recorded" / "quantities.json").read_text())
PODS = f"/api/v1/namespaces/{amounts.NAMESPACE}/pods"
QUOTAS = f"/api/v1/namespaces/{amounts.NAMESPACE}/resourcequotas"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


@pytest.fixture(scope="module")
def talk() -> Iterator[Talk]:
    made = Talk()
    made.create("/api/v1/namespaces", {"metadata": {"name": amounts.NAMESPACE}})
    yield made
    made.close()


def test_every_place_and_every_text(talk: Talk) -> None:
    found = {where: amounts.became(body, talk.request("POST", path, body)) for where, path, body in amounts.asked()}
    assert {where: (got, RECORDED[where]) for where, got in found.items() if got != RECORDED[where]} == {}


def test_above_exa_the_suffix_is_not_lost() -> None:
    """Real servers answer 1 to this."""
    assert canonical("1000E") == canonical("1000000000000000000000") == "1000E"
    assert canonical("1000E3") == "1e6"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("1e99999999", "1e99999999"),
        ("1e-99999999", "1e-3"),
        ("9" * 5000, "9" * 5000),
        ("0." + "0" * 5000 + "1", "1m"),
        ("1" * 5000 + "Ki", "9223372036854775807"),
    ],
)
@pytest.mark.parametrize("quota", [False, True])
def test_the_largest_and_the_finest_amounts(talk: Talk, written: str, kept: str, quota: bool) -> None:
    """Accepted, as by a real server, and counted without being written out."""
    if quota:
        talk.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1e999999999"}}})
    try:
        answer = talk.request("POST", f"{PODS}?dryRun=All", pod(written))
        assert answer.code == 201, answer.body
        assert answer.json()["spec"]["containers"][0]["resources"]["requests"]["cpu"] == kept
    finally:
        if quota:
            talk.request("DELETE", f"{QUOTAS}/q")


def test_a_number_of_many_digits_is_no_server_error(talk: Talk) -> None:
    body = json.dumps(pod("@")).replace('"@"', "9" * 5000)
    assert talk.request("POST", f"{PODS}?dryRun=All", text=body).code in {201, 400}


def test_less_than_nothing_is_rounded_away_from_zero() -> None:
    """Nearly all such amounts are refused, with this text."""
    assert [canonical(text, MILLI) for text in ("-2048Ki", "-.5", "-0.0001", "-0.5Ki")] == [
        "-2Mi",
        "-500m",
        "-1m",
        "-512",
    ]


def pod(cpu: str) -> amounts.Object:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}


def test_the_same_amount_in_other_words_is_no_change(talk: Talk) -> None:
    made = talk.create(f"{PODS}?fieldManager=a", pod("1000m"))
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
    again = talk.request("PUT", f"{PODS}/p?fieldManager=b", pod("1.0"))
    assert (again.code, again.json()) == (200, made)
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1000m"}}}]}}
    patched = talk.request("PATCH", f"{PODS}/p?fieldManager=c", patch, content_type=STRATEGIC)
    assert patched.json() == made
    asked = talk.request("PATCH", f"{PODS}/p?fieldManager=d", pod("1000m"), content_type=APPLY)
    assert asked.json()["details"]["causes"][0]["reason"] == "FieldManagerConflict", "apply compares texts, as upstream"
    taken = talk.request("PATCH", f"{PODS}/p?fieldManager=d", pod("1"), content_type=APPLY)
    assert (taken.code, taken.json()["spec"]) == (200, made["spec"])


def test_pods_from_the_cache_are_kept_so_too(talk: Talk) -> None:
    for name in ("s1", "s2", "s3"):
        made = talk.create(PODS, {**pod("0.5"), "metadata": {"name": name}})
        assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m"}


def test_a_custom_resource_keeps_what_was_written() -> None:
    with Running() as server:
        serve(server)
        spec = {"port": "1000m", "free": {"requests": {"cpu": "1000m"}}}
        assert server.request("POST", WIDGETS, widget("x", **spec)).json()["spec"] == spec
