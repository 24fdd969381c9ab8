"""Which events are the same one again, and how many are too many. Pure: told of each event, says what to write.

Some thousand series are remembered for ten minutes, and each would be a score of small objects; those made while much
else came and went lie on pages of their own, and keep them. So a series that has been written is one piece of bytes
until it is heard again, and how much was said about an object is one number; and in calm moments all of that becomes a
single piece, until the next event is heard.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

WINDOW: Final = 600.0  # seconds without a repetition that end a series
INTERVAL: Final = 10.0  # seconds between two writes of one series
BURST: Final = 25  # new events about one object at once
RATE: Final = 1 / 300  # and then per second
# Series and objects that are remembered. What goes well is hardly ever said twice about one object, so few of those are
# enough; and they are many: each pod that comes and goes brings some.
NORMAL: Final = 512
WARNINGS: Final = 2048
OBJECTS: Final = 1024
_PAUSE: Final = 1 / RATE  # seconds that one event about an object takes up
_EXACT: Final = 0.001  # seconds: sums of them are nearly right


class Reference(NamedTuple):
    """An object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


class EventKey(NamedTuple):
    """What happened; two equal ones are one event with a count."""

    regarding: Reference
    type: str
    reason: str
    action: str
    note: str
    related: Reference | None = None


@dataclass(slots=True, eq=False)
class Series:
    """One event object on the server, written or to be written."""

    what: EventKey
    name: str
    first: datetime
    last: datetime
    heard: float
    count: int = 1
    created: bool = False
    told: int = 0
    written: float = float("-inf")


class _AtRest(msgspec.Struct, array_like=True):
    """Of a series that has been written, what whoever says the same again does not say."""

    name: str
    first: datetime
    last: datetime
    heard: float
    count: int
    created: bool
    told: int
    written: float


_decoder: Final = msgspec.msgpack.Decoder(_AtRest)
_Resting = list[tuple[bytes, bytes]]
_packed_decoder: Final = msgspec.msgpack.Decoder(tuple[_Resting, _Resting, list[tuple[bytes, float]]])


@dataclass
class Correlator:
    """Remembers a bounded number of series and of objects that were spoken about, and those only while it matters: a
    process that runs for months is as large after its first minutes as it will ever be.

    The oldest come first. `objects`: until when what was said about one counts, each event for so long after the last.
    """

    normal: dict[bytes, Series | bytes] = field(default_factory=dict)
    warnings: dict[bytes, Series | bytes] = field(default_factory=dict)
    objects: dict[bytes, float] = field(default_factory=dict)
    made: int = 0
    _packed: bytes = b""

    def hear(self, what: EventKey, moment: datetime, now: float) -> Series | None:
        """The series it belongs to, one with count 1 if it is new; None if there was too much about that object."""
        self._unpack()
        series, key = self._of(what), _digest(what)
        known = _awake(series.get(key), what)
        if known is not None and now - known.heard < WINDOW:
            known.count += 1
            known.last, known.heard = moment, now
            series.pop(key)
            series[key] = known
            return known
        self._tidy(series, now, 2)
        if not self._may_say(what.regarding, now):
            return None
        self.made += 1
        name = f"{what.regarding.name[:220]}.{int(moment.timestamp() * 1e6):x}{self.made & 0xFFFF:04x}"
        series.pop(key, None)
        series[key] = new = Series(what, name, moment, moment, now)
        if len(series) > (NORMAL if what.type == "Normal" else WARNINGS):
            del series[next(iter(series))]
        return new

    def rest(self, one: Series) -> None:
        """All of it is written. Who hears of it again gets another one that goes on where this has ended."""
        series, key = self._of(one.what), _digest(one.what)
        if series.get(key) is one:
            rest = _AtRest(one.name, one.first, one.last, one.heard, one.count, one.created, one.told, one.written)
            series[key] = msgspec.msgpack.encode(rest)

    def forget(self, what: EventKey) -> None:
        """It was not written: the next one is the first."""
        self._of(what).pop(_digest(what), None)

    def tidy(self, now: float) -> None:
        """Everything goes that has ended."""
        self._unpack()
        for series in (self.normal, self.warnings):
            self._tidy(series, now, len(series) + len(self.objects))

    def pack(self) -> None:
        """What is at rest becomes one piece until somebody hears of something."""
        self._unpack()
        normal, warnings = _resting(self.normal), _resting(self.warnings)
        if normal or warnings or self.objects:
            self._packed = msgspec.msgpack.encode((normal, warnings, list(self.objects.items())))
            # Not emptied but new: a dictionary keeps the room that it has had.
            self.normal, self.warnings, self.objects = _awake_only(self.normal), _awake_only(self.warnings), {}

    def _unpack(self) -> None:
        if self._packed:
            normal, warnings, objects = _packed_decoder.decode(self._packed)
            self._packed = b""
            self.normal = {**dict(normal), **self.normal}
            self.warnings = {**dict(warnings), **self.warnings}
            self.objects = dict(objects)

    def _of(self, what: EventKey) -> dict[bytes, Series | bytes]:
        return self.normal if what.type == "Normal" else self.warnings

    def _tidy(self, series: dict[bytes, Series | bytes], now: float, most: int) -> None:
        """So many of each, the oldest first, two for one that comes so that more go: a series that has ended, an object
        about which as much may be said as about a new one.
        """
        for _ in range(most):
            ended = bool(series) and now - _last_heard(next(iter(series.values()))) >= WINDOW
            quiet = bool(self.objects) and next(iter(self.objects.values())) <= now
            if ended:
                del series[next(iter(series))]
            if quiet:
                del self.objects[next(iter(self.objects))]
            if not (ended or quiet):
                return

    def _may_say(self, regarding: Reference, now: float) -> bool:
        key = _digest(regarding)
        until = self.objects.pop(key, now)
        after = max(until, now) + _PAUSE
        allowed = after - now <= BURST * _PAUSE + _EXACT
        self.objects[key] = after if allowed else until
        if len(self.objects) > OBJECTS:
            del self.objects[next(iter(self.objects))]
        return allowed


def _resting(series: dict[bytes, Series | bytes]) -> _Resting:
    return [(key, one) for key, one in series.items() if isinstance(one, bytes)]


def _awake_only(series: dict[bytes, Series | bytes]) -> dict[bytes, Series | bytes]:
    return {key: one for key, one in series.items() if not isinstance(one, bytes)}


def _digest(what: EventKey | Reference) -> bytes:
    return blake2b(msgspec.msgpack.encode(what), digest_size=16).digest()


def _awake(known: Series | bytes | None, what: EventKey) -> Series | None:
    if not isinstance(known, bytes):
        return known
    rest = _decoder.decode(known)
    return Series(what, rest.name, rest.first, rest.last, rest.heard, rest.count, rest.created, rest.told, rest.written)


def _last_heard(known: Series | bytes) -> float:
    return _decoder.decode(known).heard if isinstance(known, bytes) else known.heard
