"""What the commands share: reading input, gate settings, and telling people what is wrong.

`kohort up` starts with this: what only some commands need (rich, YAML) is imported when it is used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec

if TYPE_CHECKING:
    from rich.console import Console

    from kohort.cli.lines import Page
    from kohort.gang.settings import SettingsByKind
    from kohort.library import Problem

    out: Page
    err: Page


P = ParamSpec("P")
_DEBUG = "KOHORT_TRACEBACK"
_FAULT = 70  # EX_SOFTWARE of sysexits: tells a bug from bad input


@cache
def _console(*, stderr: bool) -> Page:
    from kohort.cli.lines import Page

    return Page(stderr=stderr)


def __getattr__(name: str) -> Any:
    """`out` and `err`: made when somebody asks for them."""
    if name not in ("out", "err"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _console(stderr=name == "err")


_STYLE = {"error": "bold red", "warning": "yellow"}


class UsageError(ValueError):
    """The command line itself is wrong."""


def friendly(run: Callable[P, int]) -> Callable[P, int]:
    """Bad input is a message and exit 1, never a traceback."""
    return _friendly(run, 1)


def answering(run: Callable[P, int]) -> Callable[P, int]:
    """For commands whose exit 1 is an answer: what could not be asked is exit 2, as for grep and diff."""
    return _friendly(run, 2)


def _friendly(run: Callable[P, int], code: int) -> Callable[P, int]:
    @wraps(run)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return run(*args, **kwargs)
        except BrokenPipeError:
            raise  # whoever read our output went away: main knows
        except Exception as error:
            if _is_of_the_input(error):
                for line in str(error).splitlines():
                    say("error", line)
                return code
            if os.environ.get(_DEBUG):
                raise
            say("error", f"a fault of Kohort, not of your input: {type(error).__name__}: {error}")
            say("note", f"please report it with the output of the same command under {_DEBUG}=1")
            return _FAULT

    return wrapped


def _is_of_the_input(error: Exception) -> bool:
    from kohort.yamlread import ManifestError

    return isinstance(error, (ManifestError, UsageError))


def say(severity: str, text: str) -> None:
    """One line each where programs read them."""
    from rich.text import Text

    from kohort.cli.lines import Hanging

    console = _console(stderr=True)
    line = Text.assemble((f"{severity}: ", _STYLE.get(severity, "")), text)
    console.print(Hanging(line) if console.is_terminal else line)


def choice(option: str, value: str, accepted: Iterable[str]) -> str:
    if value not in accepted:
        raise UsageError(f'{option} "{value}": not known; accepted are {", ".join(accepted)}')
    return value


def parse_gates(text: str) -> dict[str, bool]:
    """`A=true,B=false`; a bare name switches on."""
    settings = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if value.lower() not in {"", "true", "false"}:
            raise UsageError(f'--feature-gates {part}: the value is "{value}"; accepted are true and false')
        settings[name.strip()] = value.lower() != "false"
    return settings


def duration(option: str, text: str) -> float:
    """Seconds of Go's 1h2m3s, more than none."""
    from kohort.apimachinery.duration import nanoseconds

    try:
        found = nanoseconds(text) / 1e9
    except ValueError:
        found = 0.0
    if found <= 0:
        raise UsageError(f'{option} "{text}": accepted is a duration above zero, such as 1h0m0s')
    return found


@dataclass(frozen=True, slots=True)
class Configured:
    """What `--config` and `--set` say to commands other than `kohort run`."""

    gates: Mapping[str, bool]
    profile: str
    settings: SettingsByKind | None  # None: nobody chose any
    controllers: tuple[str, ...] | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)


def configured(
    config: str, assignments: Sequence[str], used: Collection[str], controllers: str | None = None
) -> Configured:
    """The file of `kohort run`, as far as a command has a use for it: `used` are the fields it reads."""
    if not config and not assignments and controllers is None:
        return Configured({}, "", None)  # a bare server starts without the code of settings
    from kohort.gang.settings import SettingsError, assign_settings

    if not config and controllers is None:
        try:
            return Configured({}, "", assign_settings(assignments))
        except SettingsError as error:
            raise UsageError(str(error)) from None
    from kohort.run.options import Options, OptionsError, merged, read

    try:
        found = merged(read(Path(config)) if config else Options(), assignments=assignments, controllers=controllers)
    except OptionsError as error:
        raise UsageError(str(error)) from None
    unused = sorted(found.given - set(used))
    if unused:
        say("note", f"--config {config}: {', '.join(unused)}: only kohort run reads this")
    return Configured(found.gates, found.profile, found.settings, found.controllers, found.limits)


def checked(make: Callable[[], Any]) -> Any:
    """Settings that the library refuses (an unknown minor or gate) are usage errors here."""
    try:
        return make()
    except ValueError as error:
        if _is_of_the_input(error):
            raise
        raise UsageError(str(error)) from None


def report(problems: Iterable[Problem], console: Console | None = None) -> None:
    """One line per problem, grouped by file; on standard error unless told otherwise."""
    from rich.text import Text

    console = console or _console(stderr=True)
    source = None
    for problem in problems:
        if problem.source and problem.source != source:
            source = problem.source
            console.print(Text(source, style="bold"))
        console.print(Text.assemble((f"{problem.severity}: ", _STYLE[problem.severity]), str(problem)))


def as_json(value: Any) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def problems_json(problems: Iterable[Problem]) -> list[Mapping[str, Any]]:
    from dataclasses import asdict

    return [{name: value for name, value in asdict(problem).items() if value not in ("", None)} for problem in problems]


def count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def write(text: str) -> None:
    """Plain text to standard output, as it is: it may be piped into kubectl."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


# Where the examples are: in the package if it was installed, beside it in a clone.
_PACKAGED: Final = Path(__file__).parents[1] / "examples"
FOLDER: Final = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[3] / "examples"


def example_path(name: str) -> str:
    """As somebody in this directory would write it."""
    file = FOLDER / name
    try:
        return str(file.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(file)
