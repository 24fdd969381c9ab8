"""What a run found: a row for each limit, and a row for each sort of hostile request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.abuse.attack import Attack, Sort
from tests.abuse.cluster import BACK, Stall
from tests.abuse.gangs import quantile

LONGEST = 0.1  # seconds that the loop may be held; by its own processor time, for a busy machine adds what it likes


@dataclass
class Row:
    """Of one sort."""

    sort: Sort
    codes: Counter[str] = field(default_factory=Counter)
    stored: int = 0
    stall: Stall | None = None
    gangs: list[float] = field(default_factory=list)  # of the other tenant, meanwhile

    def count(self, one: Attack, status: int) -> None:
        self.codes[str(status)] += 1
        self.stored += one.writes and status in {200, 201}

    def stalled(self, stall: Stall) -> None:
        if self.stall is None or stall.seconds > self.stall.seconds:
            self.stall = stall

    @property
    def sent(self) -> int:
        return self.codes.total()

    @property
    def refused(self) -> int:
        return sum(number for code, number in self.codes.items() if code.startswith("4"))

    @property
    def reached(self) -> bool:
        """Nothing of a sort was stored that a server stores: the run has not shown what it should."""
        return bool(self.stored) or not self.sort.stored

    def cells(self) -> tuple[str, ...]:
        stall = f"{self.stall.seconds * 1000:.0f} ms ({self.stall.processor * 1000:.0f})" if self.stall else "none"
        gang = f"{max(self.gangs):.2f} s" if self.gangs else ""
        return (self.sort.name, str(self.sent), str(self.stored), str(self.refused), stall, gang)


@dataclass
class Report:
    target: str
    quiet: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    sorts: dict[str, Row] = field(default_factory=dict)
    fuzz: Row = field(default_factory=lambda: Row(Sort("fuzz", lambda _: (), stored=False)))
    faults: list[str] = field(default_factory=list)  # 5xx
    hangs: list[str] = field(default_factory=list)
    memory: tuple[float, float, float] | None = None  # MiB before, at the end, and when it has settled
    stalls: list[Stall] = field(default_factory=list)
    current: Row | None = None  # the sort that is being sent
    known: int = 0  # of the stalls, those before the sort that is being sent
    transitions: int = 0
    idle: tuple[int, int] | None = None  # connections, the answer to another one
    alive: bool = False
    emptied: bool = False
    kills: str = ""
    lost: bool = False

    @property
    def stall(self) -> tuple[float, float]:
        """The longest by the clock, and by the loop's own processor time; nobody wrote down those below 100 ms."""
        return (
            max((one.seconds for one in self.stalls), default=0.0),
            max((one.processor for one in self.stalls), default=0.0),
        )

    @property
    def stored(self) -> int:
        return sum(row.stored for row in self.sorts.values())

    def rows(self) -> list[tuple[str, str, str, bool]]:
        """What, found, limit, whether it was reached; of the parts that were asked for."""
        found = self._attack() if self.quiet else []
        if self.memory is not None:
            before, peak, after = self.memory
            text = f"{before:.0f} MiB, {peak:.0f} at the end, {after:.0f} when settled ({after / before:.2f} x)"
            found.append(("memory", text, "back to 20 %", after <= BACK * before))
        if self.idle is not None:
            opened, answer = self.idle
            found.append((f"{opened} idle connections", f"another one gets {answer}", "200", answer == 200))
        if self.kills:
            found.append(("kill -9 rounds with writers", self.kills, "nothing lost", not self.lost))
        return found

    def _attack(self) -> list[tuple[str, str, str, bool]]:
        quiet, attacked = quantile(self.quiet, 0.99), quantile(self.attacked, 0.99)
        times = f"{attacked / quiet:.1f} x"
        gangs = f"{times}: {attacked:.2f} s of {len(self.attacked)}, quiet {quiet:.2f} s of {len(self.quiet)}"
        faults = f"{self.fuzz.sent} fuzzed: {len(self.faults)} 5xx, {len(self.hangs)} hangs"
        sent = sum(row.sent for row in self.sorts.values())
        objects = f"{sent} sent, {self.stored} stored, {len(self.sorts)} sorts"
        clock, own = (f"{seconds * 1000:.0f} ms" for seconds in self.stall)
        stall = f"{clock} by the clock, {own} of its own processor time"
        return [
            ("hostile objects", objects, "of each sort", all(row.reached for row in self.sorts.values())),
            (
                "the other tenant's gangs, p99",
                gangs,
                "2 x quiet",
                attacked <= 2 * quiet,
            ),
            ("restarts", "none" if self.alive else "it has ended", "none", self.alive),
            ("changes of the lease", str(self.transitions), "none", not self.transitions),
            ("hostile namespace emptied", "yes" if self.emptied else "no", "yes", self.emptied),
            ("longest standstill of the loop", stall, "100 ms of its own", min(self.stall) <= LONGEST),
            ("requests", faults, "no 5xx, no hang", not self.faults and not self.hangs),
        ]

    def table(self) -> list[tuple[str, ...]]:
        """By sort; of a stall, the processor's part in brackets: a machine with other work makes the rest of it."""
        if not self.quiet:
            return []
        head = ("sort", "sent", "stored", "refused", "longest stall", "slowest gang")
        return [head, *(row.cells() for row in self.sorts.values()), self.fuzz.cells()]
