"""Limits as settings: flags with kube-apiserver's names, a configuration file, and over both the same type."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from tests.server.talk import Talk

from kohort.cli.common import UsageError
from kohort.cli.envtest import flags as flagged
from kohort.cli.envtest.apiserver import _limits
from kohort.cli.up import _limited
from kohort.run.options import OptionsError, parse
from kohort.server.handlers.watch import Watch
from kohort.server.limits import DEFAULT, Limits, by_name


def configured(limits: Any) -> dict[str, Any]:
    return {"apiVersion": "config.kohort.dev/v1alpha1", "kind": "KohortConfiguration", "limits": limits}


def test_a_flag_wins_over_the_file() -> None:
    chosen = parse(configured({"maxRequestsInflight": 10, "queueSeconds": 2.5, "workers": 0})).limits
    found = _limited(chosen, max_requests_inflight=7, max_mutating_requests_inflight=None, request_timeout="1m30s")
    assert found == {"limits": Limits(max_requests_inflight=7, queue_seconds=2.5, workers=0, request_seconds=90.0)}


def test_nothing_said_is_upstreams_default() -> None:
    assert _limited({}, max_requests_inflight=None, event_ttl=None) == {"limits": DEFAULT}
    assert _limited({}, event_ttl="10m") == {"limits": DEFAULT, "event_ttl": 600.0}


@pytest.mark.parametrize("text", ["", "5", "0s", "-1s", "a", "9" * 50 + "h"])
def test_a_duration_that_is_none_is_named(text: str) -> None:
    with pytest.raises(UsageError, match=r"--request-timeout .* accepted is a duration above zero"):
        _limited({}, request_timeout=text)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ([], "accepted is a mapping with maxRequestsInflight"),
        ({"bodyBites": 1}, "limits.bodyBites: Invalid value: 1: not known; accepted are maxRequestsInflight"),
        ({"bodyBytes": 0}, "limits.bodyBytes: Invalid value: 0: accepted is a whole number, at least 1"),
        ({"queueLength": 1.5}, "accepted is a whole number"),
        ({"workers": -1}, "at least 0"),
        ({"workers": True}, "accepted is a whole number"),
        ({"idleSeconds": 0}, "accepted are seconds, more than 0"),
        ({"idleSeconds": "3s"}, "accepted are seconds, more than 0"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(limits: Any, text: str) -> None:
    with pytest.raises(OptionsError) as caught:
        parse(configured(limits))
    assert text in str(caught.value)


def test_every_limit_says_what_it_is_and_what_a_client_gets() -> None:
    assert [one.name for one in by_name().values()] == [one.name for one in fields(Limits)]
    for one in by_name().values():
        assert one.metadata["says"]
        assert one.metadata["gets"]


def test_the_apiserver_of_envtest_takes_the_same_flags() -> None:
    given = flagged.parse(["--max-requests-inflight=5", "--request-timeout=2s", "--cert-dir=/none"])
    assert flagged.unused(given) == []
    assert _limits(given) == Limits(max_requests_inflight=5, request_seconds=2.0, workers=0)


def test_a_watch_without_an_end_lasts_from_the_minimum_to_twice_that() -> None:
    talk = Talk()
    talk.api.core.min_request_timeout = 10.0
    seconds = []
    original = Watch._seconds

    def kept(self: Watch) -> float:
        seconds.append(original(self))
        return 0.001

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watch, "_seconds", kept)
        for query in ("watch=1", "watch=1", "watch=1&timeoutSeconds=3"):
            assert talk.request("GET", f"/api/v1/namespaces?{query}").code == 200
    talk.close()
    assert all(10 <= one <= 20 for one in seconds[:2])
    assert seconds[2] == 3
