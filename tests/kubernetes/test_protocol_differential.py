"""The same random requests to real Kubernetes 1.37 and to us, and the same answers.

A sequence is two dozen requests in a namespace of its own: every verb, every sort of patch, apply, options, pages,
watches. Compared after each: code, warnings, the whole object with managedFields, or the whole Status with the fields
of its causes. Uids, resourceVersions and generated names are numbered in the order in which they appear, so that one
which changes on one side only is seen; times are not compared. No controller runs on either side: what collectors make
of deletions is in test_garbage_differential.py.

The first answer that differs ends its sequence, which is then made as short as it can be, and printed. What may differ
is in known.py, line by line, and each line has to show that it is needed. `KOHORT_SEED` chooses other sequences,
`KOHORT_SEQUENCES` more.
"""

import asyncio
import copy
import itertools
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import pytest
from tests.kubernetes.known import KNOWN, UNASKED, Known, settle, without_ending
from tests.kubernetes.protocol import KINDS, Object, Step, sequence
from tests.server.crd.server import Running
from tests.server.widgets import CRD

from kohort.kube.wire import Request
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.testing.client import Client, Response
from kohort.testing.environment import Environment

SEED = os.environ.get("KOHORT_SEED", "")
SEQUENCES = int(os.environ.get("KOHORT_SEQUENCES", "120"))
RUNS = [(int(SEED), SEQUENCES)] if SEED else [(1, SEQUENCES * 3 // 4), (2, SEQUENCES // 4)]
LENGTH = 20
STORIES = int(os.environ.get("KOHORT_STORIES", "3"))  # of sequences that differ, how many are printed
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_VERSION = re.compile(r"\(\d+\)")
_MADE = re.compile(r"\b(made\d+-)[a-z0-9]{5}\b")
_ABSENT = "(absent)"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Ours(Running):
    """The embedded server as it is started, without its collectors."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        settings = Settings(folder, "1.37", in_memory=True, secure=False, listen=False, custom_kinds=False)
        self.server = Server(settings)

    async def _start(self) -> None:
        await self.server.start()
        await self.server.controllers.stop()
        self.api = self.server.api

    async def _stop(self) -> None:
        await self.server.close()

    def lines(self, path: str) -> Iterator[bytes]:
        where, _, query = path.partition("?")
        asked = parse_qs(query, keep_blank_values=True)
        answer = self.wait(self.api.handle(Request("GET", where, asked, {"accept": "application/json"})))
        if isinstance(answer.body, bytes):
            yield answer.body
            return
        chunks = aiter(answer.body)
        while chunk := self.wait(_next(chunks)):
            yield from chunk.splitlines()
        self.wait(asyncio.sleep(0))


async def _next(chunks: Any) -> bytes:
    return await anext(chunks, b"")


# ---- one server


class Side:
    """A sequence on one server: fills in what only this server knows, and takes it out of the answers again."""

    def __init__(self, client: Any, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        made = client.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).json()
        self.start = made["metadata"]["resourceVersion"]
        self.first: dict[str, str] = {}
        self.last: dict[str, Object] = {}
        self.numbers: dict[str, str] = {}
        self.ends = itertools.count()

    def take(self, step: Step) -> Any:
        if step.method == "WATCH":
            return self.watched(step)
        body = self.filled(step.body)
        if step.live:
            now = self.client.request("GET", self.path(step).removesuffix("/status"))
            if now.ok:
                self.note(now.json())
                body = _laid_over(now.json(), self.filled(step.body))
        answer = self.ask(step, body, step.query)
        found = [self.plain(answer)]
        while step.follow and answer.ok and (token := answer.json()["metadata"].get("continue")):
            query = {name: value for name, value in step.query.items() if not name.startswith("resourceVersion")}
            answer = self.ask(step, None, {**query, "continue": token})
            found.append(self.plain(answer))
        return found

    def ask(self, step: Step, body: Any, query: dict[str, str]) -> Response:
        path = self.path(step) + (f"?{urlencode(self.filled(query))}" if query else "")
        answer: Response = self.client.request(
            step.method, path, body, content_type=step.content_type, accept=step.accept
        )
        if answer.ok and "dryRun" not in query:
            said = answer.json()
            for one in said.get("items", [said]) or ():
                self.note(one)
        return answer

    def path(self, step: Step) -> str:
        return quote(step.path.replace("{ns}", self.namespace))

    def note(self, one: Object) -> None:
        meta = one.get("metadata", {})
        if "uid" in meta and "name" in meta:
            self.last[meta["name"]] = meta
            self.first.setdefault(meta["name"], meta["resourceVersion"])

    def filled(self, body: Any) -> Any:
        def known(match: re.Match[str]) -> str:
            what, _, name = match[1].partition(" ")
            meta = self.last.get(name, {})
            values: dict[str, str] = {
                "start": self.start,
                "first": self.first.get(name, self.start),
                "rv": meta.get("resourceVersion", self.start),
                "uid": meta.get("uid", "nobody"),
            }
            return values[what]

        text = json.dumps(body).replace("{ns}", self.namespace)
        return json.loads(re.sub(r"<([a-z]+(?: [a-z]+)?)>", known, text))

    # ---- watches

    def watched(self, step: Step) -> Any:
        name = f"end{next(self.ends)}"
        body = copy.deepcopy(step.body)
        body["metadata"] = {"name": name, "labels": {"a": "1", "b": "2"}}
        made = self.client.request("POST", f"{self.path(step)}?fieldManager=end", body)
        assert made.ok, made.body
        query = urlencode(self.filled(step.query) | {"timeoutSeconds": "10"})
        found = []
        for line in self.client.lines(f"{self.path(step)}?{query}"):
            event = json.loads(line)
            found.append(self.normal(event))
            if event.get("kind") == "Status" or event["object"].get("metadata", {}).get("name") == name:
                break
        return found

    # ---- what is compared

    def plain(self, answer: Response) -> Any:
        try:
            said = self.normal(answer.json())
        except ValueError:
            said = answer.body.decode()
        return {"code": answer.code, "warnings": sorted(answer.warnings), "said": said}

    def normal(self, said: Any) -> Any:
        said = copy.deepcopy(said)
        _without(said, self.number)
        text = json.dumps(without_ending(said))
        text = _UID.sub(lambda found: self.number("uid", found[0]), text)
        text = _MADE.sub(lambda found: self.number("name", found[0]), text)
        return json.loads(_VERSION.sub("(<rv>)", _TIME.sub("<time>", text)))

    def number(self, sort: str, value: str) -> str:
        count = sum(1 for one in self.numbers.values() if one.startswith(f"<{sort} "))
        return self.numbers.setdefault(value, f"<{sort} {count}>")


def _without(said: Any, number: Callable[[str, str], str]) -> None:
    """Times and versions of lists go, versions of objects are numbered, sets get an order."""
    if not isinstance(said, dict):
        return
    _without(said.get("object"), number)
    for one in said.get("items", ()) or ():
        _without(one, number)
    meta = said.get("metadata")
    if isinstance(meta, dict):
        if "items" in said:
            meta["resourceVersion"] = "<of the list>"
            if meta.get("continue"):
                meta["continue"] = "<more>"
        elif "resourceVersion" in meta:
            meta["resourceVersion"] = number("rv", meta["resourceVersion"])
        for entry in meta.get("managedFields", ()):
            entry.pop("time", None)
        if "managedFields" in meta:
            meta["managedFields"].sort(
                key=lambda entry: (entry["manager"], entry["operation"], entry.get("subresource", ""))
            )
    if said.get("kind") == "Status" and said.get("status") == "Failure":
        _of_status(said)


def _of_status(said: Object) -> None:
    details = said.get("details") or {}
    if "causes" in details:
        pairs = {(cause.get("field", ""), cause.get("reason", "")) for cause in details["causes"]}
        details["causes"] = sorted(map(list, pairs))
    if said["code"] in (400, 415, 422, 500):
        said.pop("message", None)


def _laid_over(live: Any, change: Any) -> Any:
    if not isinstance(live, dict) or not isinstance(change, dict):
        return change
    return live | {name: _laid_over(live.get(name), value) for name, value in change.items()}


# ---- both


class Both:
    def __init__(self, real: Client, ours: Ours) -> None:
        self.real, self.ours = real, ours
        self.namespaces = itertools.count()
        self.counted: Counter[tuple[str, int]] = Counter()
        self.known: Counter[str] = Counter()

    def differ(self, steps: list[Step]) -> tuple[int, Any, Any] | None:
        """The first step whose answers are not the same."""
        namespace = f"protocol-{next(self.namespaces)}"
        real, ours = Side(self.real, namespace), Side(self.ours, namespace)
        for number, step in enumerate(steps):
            theirs, own = real.take(step), ours.take(step)
            found: list[Known] = []
            if theirs != own:
                theirs, own, found = settle(step, theirs, own)
                self.known.update(one.what for one in found)
            if theirs != own:
                return number, theirs, own
            if any(one.ends for one in found):
                return None
            if step.method != "WATCH":
                self.counted[step.method, theirs[0]["code"]] += 1
            else:
                self.counted["events", 0] += len(theirs)
        return None

    def shortest(self, steps: list[Step]) -> list[Step]:
        """What is left when every step is gone without which the last one still differs."""
        for place in range(len(steps) - 2, -1, -1):
            fewer = steps[:place] + steps[place + 1 :]
            found = self.differ(fewer)
            if found is not None and found[0] == len(fewer) - 1:
                steps = fewer
        return steps

    def story(self, number: int, steps: list[Step]) -> str:
        steps = self.shortest(steps)
        found = self.differ(steps)
        if found is None:
            return f"#{number}: differed once, and not again:\n" + "\n".join(map(str, steps))
        lines = [f"#{number}", *(f"  {step}" for step in steps[: found[0] + 1]), *_apart(found[1], found[2])]
        return "\n".join(lines)


def _apart(real: Any, ours: Any, where: str = "") -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for name in sorted(real.keys() | ours.keys()):
            if real.get(name, _ABSENT) != ours.get(name, _ABSENT):
                yield from _apart(real.get(name, _ABSENT), ours.get(name, _ABSENT), f"{where}.{name}")
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for place, (one, other) in enumerate(zip(real, ours, strict=True)):
            if one != other:
                yield from _apart(one, other, f"{where}[{place}]")
    else:
        yield f"  {where}:\n    real {json.dumps(real)[:1500]}\n    ours {json.dumps(ours)[:1500]}"


@pytest.fixture(scope="module")
def both(
    kubernetes_environments: Callable[..., Environment], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    real = kubernetes_environments("1.37").client()
    ours = Ours(tmp_path_factory.mktemp("ours"))
    with ours:
        for client in (real, ours):
            client.request("POST", CRDS, CRD)
            deadline = time.monotonic() + 20
            while not client.request("GET", KINDS["Widget"].replace("{ns}", "default")).ok:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield Both(real, ours)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seed", "sequences"), RUNS)
def test_the_same_requests_get_the_same_answers(both: Both, seed: int, sequences: int) -> None:
    print(f"KOHORT_SEED={seed} KOHORT_SEQUENCES={sequences}")
    failures = []
    for number in range(sequences):
        steps = sequence(f"{seed}/{number}", LENGTH)
        found = both.differ(steps)
        if found is not None:
            failures.append((number, steps[: found[0] + 1]))
    print(dict(sorted(both.counted.items())), dict(both.known), sep="\n")
    stories = [both.story(number, steps) for number, steps in failures[:STORIES]]
    shown = "\n\n".join(stories)
    assert not failures, f"{len(failures)} of {sequences} sequences differ (KOHORT_SEED={seed}):\n{shown}"


@pytest.mark.parametrize("one", KNOWN, ids=lambda one: one.what)
def test_what_is_known_to_differ_still_does(both: Both, one: Known) -> None:
    """A line of the table that no longer explains anything has to go."""
    both.known.clear()
    assert both.differ(one.shown) is None, "something else differs, too"
    assert set(both.known) == {one.what}


@pytest.mark.parametrize("what", UNASKED)
def test_what_is_not_asked_at_random_still_differs(both: Both, what: str) -> None:
    steps = UNASKED[what][1]
    found = both.differ(steps)
    assert found is not None
    assert found[0] == len(steps) - 1, "something else differs, too"
