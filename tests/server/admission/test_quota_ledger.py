"""The ledger of a quota: the same sums as counting everything, for the price of what changed."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Context
from typing import Any

import pytest

from kohort.apimachinery.quantity import ZERO, Quantities
from kohort.server import storage_codec
from kohort.server.admission import quota_usage
from kohort.server.admission.quota_ledger import QuotaLedger
from kohort.server.codec import encode
from kohort.server.store import Change, Event, Item, Table

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SCOPES: list[dict[str, Any]] = [{}, {"scopes": ["BestEffort"]}, {"scopes": ["NotBestEffort"]}]
AMOUNTS = ("100m", "1", "3Gi", "1e-9", "1e40", "7e99999")


def _pod(cpu: str, phase: str, *, going: bool) -> dict[str, Any]:
    meta = {
        "name": "p",
        **({"deletionTimestamp": "2026-11-15T00:00:00Z", "deletionGracePeriodSeconds": 5} if going else {}),
    }
    requests = {"resources": {"requests": {"cpu": cpu}}} if cpu else {}
    return {"metadata": meta, "spec": {"containers": [{"name": "c", **requests}]}, "status": {"phase": phase}}


def _counted(table: Table, spec: dict[str, Any]) -> Quantities:
    found: Quantities = {}
    for item in table.heads("n"):
        usage = quota_usage.usage_of(quota_usage.PODS, storage_codec.decode(item.value), NOW)
        if quota_usage.scopes_match(spec, usage):
            for name, value in usage.quantities.items():
                found[name] = found.get(name, ZERO) + value
    return found


def _values(sums: Quantities) -> dict[str, Any]:
    """To forty digits: the sixtieth of a sum that was rounded depends on its order."""
    return {name: Context(40).plus(one.value) for name, one in sums.items() if one.value}


@pytest.mark.parametrize("seed", range(5))
def test_a_ledger_says_what_counting_says(seed: int) -> None:
    draw, table = random.Random(seed), Table()
    ledger = QuotaLedger(quota_usage.PODS, table, "n", lambda: NOW)
    table.head_listeners.append(lambda _, name: ledger.changed(name))
    for revision in range(1, 201):
        name = f"p{draw.randrange(8)}"
        before = table.head("n", name)
        body = _pod(draw.choice(("", *AMOUNTS)), draw.choice(("Running", "Failed")), going=draw.random() < 0.2)
        change = Change.CREATE if before is None else draw.choice((Change.UPDATE, Change.DELETE))
        event = Event(change, Item("n", name, revision, encode(body)), before)
        table.begin(event)
        if (head := table.head("n", name)) is not None and draw.random() < 0.5:  # whoever wrote it says what it uses
            usage = quota_usage.usage_of(quota_usage.PODS, storage_codec.decode(head.value), NOW)
            ledger.counted(head, quota_usage.from_wire(quota_usage.to_wire(usage)))
        table.give_up([event]) if draw.random() < 0.2 else table.commit(event)
        spec = draw.choice(SCOPES)
        assert _values(ledger.total(spec)) == _values(_counted(table, spec))


def test_one_change_is_read_once_however_many_objects_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    table, read = Table(), list[bytes]()
    for number in range(1000):
        table.restore(
            Event(Change.CREATE, Item("n", f"p{number}", number + 1, encode(_pod("1", "Running", going=False))), None)
        )
    ledger = QuotaLedger(quota_usage.PODS, table, "n", lambda: NOW)
    counted = quota_usage.counted

    def counting(kind: quota_usage.Source, value: bytes) -> Any:
        read.append(value)
        return counted(kind, value)

    monkeypatch.setattr(quota_usage, "counted", counting)
    assert ledger.total({})["pods"].value == 1000
    read.clear()
    for _ in range(10):
        ledger.changed("p1")
        assert ledger.total({})["pods"].value == 1000
    assert len(read) == 10


def test_what_counts_by_number_only_is_not_read_at_all() -> None:
    assert quota_usage.counted(("", "configmaps"), b"not JSON") == {}


def test_of_a_pod_only_what_a_quota_looks_at_is_read() -> None:
    pod = _pod("1", "Running", going=True)
    pod["spec"]["containers"][0]["env"] = [{"name": "E", "value": "v"}]
    pod["metadata"]["annotations"] = {"a": "b"}
    found = quota_usage.counted(quota_usage.PODS, encode(pod))
    assert "annotations" not in found["metadata"]
    assert "env" not in found["spec"]["containers"][0]
    assert quota_usage.usage_of(quota_usage.PODS, found, NOW) == quota_usage.usage_of(quota_usage.PODS, pod, NOW)


def test_a_terminating_pod_is_read_once_and_again_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    table, read, now = Table(), list[bytes](), [NOW]
    body = _pod("1", "Running", going=False)
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    now[0] = datetime(2026, 1, 1, tzinfo=UTC)
    body["metadata"] |= gone
    table.restore(Event(Change.CREATE, Item("n", "p", 1, encode(body)), None))
    ledger = QuotaLedger(quota_usage.PODS, table, "n", lambda: now[0])
    counted = quota_usage.counted

    def counting(kind: quota_usage.Source, value: bytes) -> Any:
        read.append(value)
        return counted(kind, value)

    monkeypatch.setattr(quota_usage, "counted", counting)
    for _ in range(5):
        assert ledger.total({})["pods"].value == 1
    assert len(read) == 1
    now[0] += timedelta(seconds=31)
    assert "pods" not in ledger.total({}) or ledger.total({})["pods"].value == 0
    assert len(read) == 2


def test_much_is_settled_in_pieces() -> None:
    table = Table()
    for number in range(50):
        item = Item("n", f"p{number}", number + 1, encode(_pod("1", "Running", going=False)))
        table.restore(Event(Change.CREATE, item, None))
    ledger = QuotaLedger(quota_usage.PODS, table, "n", lambda: NOW)
    pieces = 1
    while not ledger.settle(0.0):
        pieces += 1
    assert pieces == 50
    assert ledger.total({})["pods"].value == 50
