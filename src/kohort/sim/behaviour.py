"""What the containers of a pod would do, said by annotations on the pod (or on its node, for all pods of it).

metadata:
  annotations:
    sim.kohort.dev/run-seconds: "30"        # then the containers end
    sim.kohort.dev/exit-code: "1"           # with this code
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final

PREFIX: Final = "sim.kohort.dev/"
INDEX: Final = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """`run_seconds` None: until the pod is told to stop."""

    start_seconds: float = 1.0  # from bound to running: images, sandboxes
    ready_seconds: float = 0.0  # from running to ready
    never_ready: bool = False
    run_seconds: float | None = None
    exit_code: int = 0
    exit_codes: tuple[tuple[int, int], ...] = ()  # completion index -> code
    fail_chance: float = 0.0  # that exit_code 0 becomes 1; the same for a pod each time it is asked
    restarts: int = 0  # how often containers end badly before they end as they should (restartPolicy OnFailure)
    stop_seconds: float = 0.5  # from being told to stop to having stopped
    init_seconds: float | None = None  # of each init container; None: as its command says, or at once
    init_exit_code: int | None = None  # None: as its command says, or 0
    init_restarts: int = 0  # how often each init container ends badly before it ends as it should

    def code(self, uid: str, annotations: Mapping[str, str], restarts: int) -> int:
        index = annotations.get(INDEX, "")
        chosen = dict(self.exit_codes).get(int(index)) if index.isdigit() else None
        if chosen is not None:
            return chosen
        if restarts < self.restarts:
            return 1
        if self.exit_code == 0 and self.fail_chance > 0:
            return int(zlib.crc32(uid.encode()) / 2**32 < self.fail_chance)
        return self.exit_code


# A Job's pods are expected to end, others to go on.
FOR_EVER: Final = Behaviour()
SOON: Final = Behaviour(run_seconds=10.0)


def read(annotations: Mapping[str, str], usual: Behaviour) -> tuple[Behaviour, list[str]]:
    """The behaviour that annotations ask for, and what is wrong with them (which is then as usual)."""
    said = tuple([one for one in annotations.items() if one[0].startswith(PREFIX)])
    if not said:
        return usual, []
    known = sum(len(key) + len(text) for key, text in said) <= _SHORT
    found, problems = _remembered(said, usual) if known else _read(said, usual)
    return found, list(problems)


def _read(said: tuple[tuple[str, str], ...], usual: Behaviour) -> tuple[Behaviour, tuple[str, ...]]:
    found: dict[str, Any] = {}
    problems: list[str] = []
    for key, text in said:
        name = key.removeprefix(PREFIX)
        try:
            found[_KNOWN[name]] = _value(_KNOWN[name], text)
        except KeyError:
            problems.append(f"{key}: not known; accepted are {', '.join(sorted(_KNOWN))}")
        except ValueError:
            problems.append(f"{key}: {text!r} is not {_EXPECTED[_sort(_KNOWN[name])]}")
    return (replace(usual, **found) if found else usual), tuple(problems)


_remembered: Final = lru_cache(maxsize=1024)(_read)  # pods of one template say the same, and each is asked three times
_SHORT: Final = 1000  # letters: more is read each time, and not kept

_KNOWN: Final = {one.name.replace("_", "-"): one.name for one in fields(Behaviour)}

_EXPECTED: Final = {
    "seconds": "a number of seconds, 0 or more",
    "codes": "a list such as 0=1,3=137 (index=exit code)",
    "flag": "true or false",
    "number": "a number from 0 to 255",
    "chance": "a number from 0 to 1",
}


def _sort(name: str) -> str:
    if name.endswith("seconds"):
        return "seconds"
    return {"exit_codes": "codes", "never_ready": "flag", "fail_chance": "chance"}.get(name, "number")


def _value(name: str, text: str) -> object:
    match _sort(name):
        case "seconds":
            return _within(float(text), 0, 1e9)
        case "chance":
            return _within(float(text), 0, 1)
        case "flag":
            return bool(("false", "true").index(text.lower()))
        case "codes":
            pairs = [part.split("=") for part in text.split(",") if part]
            return tuple((int(index), int(_within(int(code), 0, 255))) for index, code in pairs)
    return int(_within(int(text), 0, 255))


def _within(value: float, least: float, most: float) -> float:
    if not least <= value <= most:
        raise ValueError
    return value
