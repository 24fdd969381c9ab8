"""The cluster as rows that are sent to browsers: all of them once, then those that have changed.

Every change has a number. Whoever has seen changes up to one number is sent what came after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kohort.place.columns import shown
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import FINISHED, Node, Pod
from kohort.scheduler.rootstatus import RootStatus, reason_and_message, remedies, root_status
from kohort.scheduler.trees import BrokenChain
from kohort.web.nodes import Layout, Row, layout, row
from kohort.web.timeline import RUNNING, WAITING, Marks, Story, first_story
from kohort.web.units import Name, Unit

if TYPE_CHECKING:
    from kohort.web.follower import ClusterFollower

log = logging.getLogger(__name__)

TICK: Final = 0.5  # seconds between two looks at what has changed
_SLICE: Final = 0.01  # seconds of rows between two turns of the event loop
_SHARE: Final = 9  # times as long as a question took, others have the event loop
_ASK_AGAIN: Final = 15.0  # seconds after which an answer about something that waits is old
_ASK_SOON: Final = 1.0  # the same, if it has changed itself
_LOGGED: Final = 20_000  # changes that a browser may be behind
_PAST: Final = 500  # units that are gone, and still on the timeline
_MANY: Final = 1_000  # nodes: of so many a picture is shown before their pods have been read
_READING: Final = 1.0  # seconds between two pictures meanwhile


@dataclass(slots=True)
class UnitRow:
    """`data`: as it is sent. `names`: who stands above it, the topmost first."""

    namespace: str
    data: dict[str, Any]
    names: list[Name] = field(default_factory=list)
    gone: bool = False


@dataclass(slots=True)
class _Answer:
    at: float
    reason: str
    message: str
    help: list[str]


class View:
    """Follows a follower; `run` it. `rows` and `nodes` are what there is, `since` what came after a number."""

    def __init__(self, follower: ClusterFollower) -> None:
        self.follower, self.clock = follower, follower.client.clock
        self.number = 0
        self.epoch = 0  # another one: everything is to be sent anew
        self.rows: dict[int, UnitRow] = {}
        self.nodes: dict[str, Row] = {}
        self.layout = Layout((), "")
        self.marks = Marks()
        self.news = asyncio.Condition()
        self._first = asyncio.Event()
        self._log: deque[tuple[int, str, Any]] = deque(maxlen=_LOGGED)
        self._stories: dict[int, Story] = {}
        self._answers: dict[int, _Answer] = {}
        self._changed: set[int] = set()  # units that are not what they were when they were asked about
        self._past: deque[int] = deque()
        self._turn = 0.0
        for unit in follower.units.by_id.values():
            for pod in unit.pods.values():
                self._on_pod(None, pod, unit)
        follower.on_pod, follower.on_node = self._on_pod, self._on_node

    @property
    def reading(self) -> int | None:
        """So many pods have been read, while that lasts; None: all of them."""
        return None if self.follower.whole else len(self.follower.core.cache.members)

    async def run(self) -> None:
        if not self.follower.whole:
            await self._read()
        asking = asyncio.create_task(self._ask())
        try:
            while True:
                await self._update()
                self._first.set()
                await self.follower.changed.wait()
                await self.clock.sleep(TICK)
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _read(self) -> None:
        """The pods. A large cluster is shown without them first, and as they come."""
        if self.follower.core.cache.state.alive.sum() >= _MANY:
            await self._update()
            self._first.set()
            await self.clock.sleep(TICK)  # for whoever waits for it: reading takes the event loop for seconds
        reading = asyncio.create_task(self.follower.read_pods())
        try:
            while not reading.done():
                await asyncio.wait({reading}, timeout=_READING)
                if self._first.is_set():
                    await self._update()
            reading.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        self.follower.touched |= set(self.follower.units.by_id.values())  # only now their stories are known

    async def told(self) -> None:
        """Until there is something to show: all that there was at the beginning, or `reading` says that more comes."""
        await self._first.wait()

    async def refresh(self) -> None:
        """Once, for those who look and go: all rows, and a reason for everything that waits."""
        await self._update()
        for number in [one for one, known in self.rows.items() if known.data["pending"]]:
            self._answer(number)
            await asyncio.sleep(0)

    def since(self, number: int) -> tuple[set[int], set[str]] | None:
        """Units and nodes that have changed after a number; None: too many, or nobody knows any more."""
        oldest = self._log[0][0] if self._log else self.number + 1
        if number > self.number or number < min(oldest - 1, self.number):
            return None
        units: set[int] = set()
        nodes: set[str] = set()
        for at, kind, what in reversed(self._log):
            if at <= number:
                break
            (units if kind == "unit" else nodes).add(what)
        return units, nodes

    # ---- what has changed

    def _on_pod(self, old: Pod | None, new: Pod, unit: Unit) -> None:
        self.marks.pod(old, new, unit, self.clock.now())

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        self.marks.node(old, new, self.clock.now())

    async def _update(self) -> None:
        units, names = self.follower.take()
        core = self.follower.core
        self._turn = self.clock.monotonic()
        found = layout(core.cache.state, _constrained(core)) if self._new_places(names) else self.layout
        if found != self.layout:
            self.layout, names = found, {info.name for info in core.cache.state.node_infos if info is not None}
            self.epoch += 1
        marks = self.marks.number
        self.number += 1
        self._changed |= {unit.id for unit in units}
        for unit in units:
            self._put(unit)
            await self._breathe()
        for name in names:
            made = row(core, self.follower.units, self.layout, name)
            if made is None:
                self.nodes.pop(name, None)
            else:
                self.nodes[name] = made
            self._log.append((self.number, "node", name))
            await self._breathe()
        if units or names or marks != self.marks.number:
            await self._tell()

    def _new_places(self, names: set[str]) -> bool:
        state = self.follower.core.cache.state
        return any((name in self.nodes) != (state.row(name) is not None) for name in names)

    async def _breathe(self) -> None:
        if self.clock.monotonic() - self._turn > _SLICE:
            await asyncio.sleep(0)
            self._turn = self.clock.monotonic()

    async def _tell(self) -> None:
        async with self.news:
            self.news.notify_all()

    def _put(self, unit: Unit) -> None:
        self._log.append((self.number, "unit", unit.id))
        if not unit.pods:
            self._end(unit.id)
            return
        story = self._stories.get(unit.id)
        if story is None:
            story = first_story(unit.pods.values())
            if self.follower.whole:
                self._stories[unit.id] = story
        names = self.follower.owners.chain(unit.owners)
        self.rows[unit.id] = UnitRow(unit.namespace, self._data(unit, names, story), names)

    def _end(self, number: int) -> None:
        """It stays on the timeline for a while."""
        self._answers.pop(number, None)
        self._changed.discard(number)
        known = self.rows.get(number)
        if known is None or known.gone:
            return
        story = self._stories.pop(number, Story())
        story.becomes("", int(self.clock.now().timestamp()))
        known.gone = True
        known.data |= {"state": "Gone", "placed": 0, "pending": 0, "nodes": 0, "reason": "", "message": "", "help": []}
        known.data["spans"] = [span.row() for span in story.spans]
        self._past.append(number)
        if len(self._past) > _PAST:
            first = self._past.popleft()
            self.rows.pop(first, None)
            self._log.append((self.number, "unit", first))

    def _data(self, unit: Unit, names: list[Name], story: Story) -> dict[str, Any]:
        counts = _counts(unit)
        state = _state(counts)
        group = self.follower.core.cache.trees.get(unit.key)
        spec = group.spec if group is not None else None
        now = int(self.clock.now().timestamp())
        story.becomes(_SPAN[state], now)
        waiting = [pod for pod in unit.pods.values() if _waits(pod)]
        answer = self._answers.get(unit.id) if waiting else None
        top = names[0] if names else Name("", unit.kind, unit.name)
        return {
            "id": unit.id,
            "ns": unit.namespace,
            "kind": unit.kind,
            "name": unit.name,
            "top": [top.kind, top.name],
            "state": state,
            "gang": spec.minimum if spec is not None and spec.minimum is not None else 0,
            "topology": (spec.topology if spec is not None else None) or "",
            "priority": next(iter(unit.pods.values())).spec.priority or 0,
            **{name: counts[name] for name in ("placed", "pending", "succeeded", "failed")},
            "nodes": len({pod.spec.node_name for pod in unit.pods.values() if pod.spec.node_name}),
            "since": min((pod.metadata.creation_timestamp for pod in waiting), default=""),
            "needs": _needs(self.follower.core, waiting),
            "reason": answer.reason if answer is not None else "",
            "message": answer.message if answer is not None else "",
            "help": answer.help if answer is not None else [],
            "spans": [span.row() for span in story.spans],
        }

    # ---- why

    async def _ask(self) -> None:
        """One root after the other; all that waits, again and again, never for long."""
        while True:
            asked = False
            for number in [one for one, known in self.rows.items() if known.data["pending"]]:
                seconds = self._answer(number)
                if seconds is not None:
                    asked = True
                    await self.clock.sleep(min(seconds * _SHARE, 2.0))
            if asked:
                await self._tell()
            await self.clock.sleep(TICK)

    def _answer(self, number: int) -> float | None:
        """How long it took; None if the last answer is new enough."""
        unit, known = self.follower.units.by_id.get(number), self._answers.get(number)
        began = self.clock.monotonic()
        old = _ASK_SOON if number in self._changed else _ASK_AGAIN
        if unit is None or (known is not None and began - known.at < old):
            return None
        self._changed.discard(number)
        try:
            status = self.status(unit)
        except Exception:  # one root that cannot be explained does not keep the others waiting
            log.exception("no answer about %s", unit.key)
            status = None
        took = self.clock.monotonic() - began
        made = _answer(status, began) if status is not None else _Answer(began, "", "", [])
        self._answers[number] = made
        if known is None or (known.reason, known.message, known.help) != (made.reason, made.message, made.help):
            self.number += 1
            self._put(unit)
        return took

    def status(self, unit: Unit) -> RootStatus | None:
        core = self.follower.core
        core.sync(self.clock.monotonic())
        found = self.follower.units.root(unit)
        if found is None:
            return None
        root, member = found
        if isinstance(root, BrokenChain) and member is None:
            return None
        return root_status(core, root, member)


def _answer(status: RootStatus, at: float) -> _Answer:
    reason, message = reason_and_message(status)
    explanation = status.explanation
    found: list[str] = []
    if explanation is not None:
        culprit = explanation.culprit()
        for one in (explanation, culprit) if culprit is not explanation else (explanation,):
            found += remedies(one, status.names, steps=False) + remedies(one, status.names, steps=True)
    return _Answer(at, reason, message, list(dict.fromkeys(found)))


# ---- what is counted

_SPAN: Final = {"Waiting": WAITING, "Partly": RUNNING, "Running": RUNNING, "Succeeded": "", "Failed": ""}


def _waits(pod: Pod) -> bool:
    return not pod.spec.node_name and pod.status.phase not in FINISHED


def _counts(unit: Unit) -> Counter[str]:
    found: Counter[str] = Counter()
    for pod in unit.pods.values():
        phase = pod.status.phase
        found[phase.lower() if phase in FINISHED else "placed" if pod.spec.node_name else "pending"] += 1
    return found


def _state(counts: Counter[str]) -> str:
    if counts["pending"]:
        return "Partly" if counts["placed"] else "Waiting"
    if counts["placed"]:
        return "Running"
    return "Failed" if counts["failed"] else "Succeeded"


def _needs(core: SchedulerCore, waiting: list[Pod]) -> str:
    """What its waiting pods ask for, the commonest first: 8 × cpu 4, nvidia.com/gpu 8."""
    asked: Counter[str] = Counter()
    for pod in waiting:
        member = core.cache.members.get(pod.metadata.uid)
        if member is not None:
            requests = core.cache.equivalence_class(member).signature.requests
            parts = (f"{name} {shown(name, value)}" for name, value in sorted(requests.items()) if name != "pods")
            asked[", ".join(parts)] += 1
    return "; ".join(f"{number} × {what or 'nothing'}" for what, number in asked.most_common(3))


def _constrained(core: SchedulerCore) -> Iterator[str]:
    specs = (group.spec for group in core.cache.trees)
    return (spec.topology for spec in specs if spec is not None and spec.topology)
